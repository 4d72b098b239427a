//! A wrong command line in assay's own words: a message, a hint, exit code 2.
//!
//! Enters: clap's error. Leaves: text on standard error; help and version, which clap also calls errors, are printed as
//! they are on standard output.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::ErrorKind;

use super::CommandLine;
use crate::report::Format;
use crate::sys::terminal::{self, Form};

/// Prints `error` and returns the exit code.
pub(super) fn report(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        print(error);
        return ExitCode::SUCCESS;
    }
    // Nothing was asked for: the help is the answer, and no success.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        print(error);
        return ExitCode::from(2);
    }
    let subcommand = std::env::args_os().nth(1).map(|word| word.to_string_lossy().into_owned());
    let (message, hint) = in_our_words(&error.render().to_string(), subcommand.as_deref());
    terminal::tell(&format!("assay: {message}\nhint: {hint}"));
    ExitCode::from(2)
}

/// clap's own text on standard output; whoever closed the pipe has seen enough of it.
fn print(error: &clap::Error) {
    let text = error.render();
    let text = if terminal::colours() { text.ansi().to_string() } else { text.to_string() };
    let _ = terminal::out_as(Form::Styled).write_all(text.as_bytes());
}

/// What may be meant by an option that is none but names a format: `--html`.
fn format_meant(message: &str) -> Option<String> {
    let option = message.strip_prefix("unexpected argument '--")?.strip_suffix("' found")?;
    option.parse::<Format>().ok().map(|format| format!("--format {}", format.name()))
}

/// clap's paragraphs are the message, perhaps a tip, the usage and where help is.
fn in_our_words(text: &str, subcommand: Option<&str>) -> (String, String) {
    let mut paragraphs = text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    let message = paragraphs.next().unwrap_or("the command line is wrong");
    let message = message.strip_prefix("error: ").unwrap_or(message).to_owned();
    let known = |name: &&str| CommandLine::command().find_subcommand(name).is_some();
    let subcommand = subcommand.filter(known);
    let takes_format = |name: &str| {
        let command = CommandLine::command();
        command.find_subcommand(name).is_some_and(|of| of.get_arguments().any(|arg| arg.get_id() == "format"))
    };
    if let Some(format) = format_meant(&message).filter(|_| subcommand.is_some_and(takes_format)) {
        return (message, format!("{format}; -o FILE writes it to a file"));
    }
    // Hardly anybody means a file called --html.
    let tip = paragraphs.next().and_then(|paragraph| paragraph.strip_prefix("tip: "));
    if let Some(tip) = tip.filter(|tip| !tip.starts_with("to pass '-")) {
        return (message, tip.lines().next().unwrap_or(tip).to_owned());
    }
    let help = match subcommand {
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
        let (message, hint) = words(&["assay", "report", "1", "--html"]);
        assert_eq!(message, "unexpected argument '--html' found");
        assert_eq!(hint, "--format html; -o FILE writes it to a file");
        let (_, hint) = words(&["assay", "report", "1", "--nonsense"]);
        assert_eq!(hint, "`assay report --help` lists what it takes");
        let (message, _) = words(&["assay", "show"]);
        assert!(message.contains("<RUN>"), "{message}");
    }

    #[test]
    fn no_subcommand_is_answered_with_the_help() {
        let error = CommandLine::try_parse_from(["assay"]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        assert!(error.render().to_string().contains("Usage: assay <COMMAND>"));
        assert_eq!(report(&error), ExitCode::from(2));
    }
}
