//! A wrong command line in assay's own words: a message, a hint, exit code 2.
//!
//! Enters: clap's error. Leaves: text on standard error; help and version, which clap also calls errors, are printed as
//! they are on standard output.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;

use super::CommandLine;
use crate::sys::terminal::{self, Form};

/// Prints `error` and returns the exit code.
pub(super) fn report(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // Whoever closed the pipe has seen enough of the help.
        let text = error.render();
        let text = if terminal::colours() { text.ansi().to_string() } else { text.to_string() };
        let _ = terminal::out_as(Form::Styled).write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    let subcommand = std::env::args_os().nth(1).map(|word| word.to_string_lossy().into_owned());
    let (message, hint) = in_our_words(&error.render().to_string(), subcommand.as_deref());
    let mut errors = terminal::err();
    let _ = writeln!(errors, "assay: {message}\nhint: {hint}");
    ExitCode::from(2)
}

/// clap's paragraphs are the message, perhaps a tip, the usage and where help is.
fn in_our_words(text: &str, subcommand: Option<&str>) -> (String, String) {
    let mut paragraphs = text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    let message = paragraphs.next().unwrap_or("the command line is wrong");
    let message = message.strip_prefix("error: ").unwrap_or(message).to_owned();
    if let Some(tip) = paragraphs.next().and_then(|paragraph| paragraph.strip_prefix("tip: ")) {
        return (message, tip.lines().next().unwrap_or(tip).to_owned());
    }
    let known = |name: &&str| CommandLine::command().find_subcommand(name).is_some();
    let help = match subcommand.filter(known) {
        Some(name) => format!("`assay {name} --help` lists what it takes"),
        None => "`assay --help` lists the subcommands".to_owned(),
    };
    (message, help)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn words(arguments: &[&str]) -> (String, String) {
        let error = CommandLine::try_parse_from(arguments).err().map(|error| error.render().to_string());
        in_our_words(&error.unwrap_or_default(), arguments.get(1).copied())
    }

    #[test]
    fn a_message_and_a_hint_without_the_usage() {
        let (message, hint) = words(&["assay", "run", "--fail-if", "sometimes"]);
        assert!(message.starts_with("invalid value 'sometimes' for '--fail-if"), "{message}");
        assert!(message.contains("slower") && !message.contains("Usage"), "{message}");
        assert_eq!(hint, "`assay run --help` lists what it takes");
        let (message, hint) = words(&["assay", "reprot", "7"]);
        assert_eq!(message, "unrecognized subcommand 'reprot'");
        assert!(hint.contains("similar subcommand") && hint.contains("'report'"), "{hint}");
        let (message, _) = words(&["assay", "show"]);
        assert!(message.contains("<RUN>"), "{message}");
    }
}
