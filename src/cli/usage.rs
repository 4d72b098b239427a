//! A wrong command line in assay's own words: a message, a hint, exit code 2.
//!
//! Enters: clap's error. Leaves: text on standard error; help and version, which clap also calls errors, are printed as
//! they are on standard output.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::CommandLine;
use crate::experiment::VARY_IS_V;
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
    let (message, hint) = in_our_words(error, subcommand.as_deref());
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
fn format_meant(error: &clap::Error) -> Option<String> {
    let ContextValue::String(option) = error.get(ContextKind::InvalidArg)? else { return None };
    let format: Format = option.strip_prefix("--")?.parse().ok()?;
    (error.kind() == ErrorKind::UnknownArgument).then(|| format!("--format {}", format.name()))
}

/// Whether a format is asked for by an option, `--format` or `--html`, of a subcommand that has none: there the name behind -o says it.
fn asks_for_format(error: &clap::Error) -> bool {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return false };
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    is_unknown && (option == "--format" || format_meant(error).is_some())
}

/// Whether `--vary` or its short form came last.
fn takes_no_level(error: &clap::Error) -> bool {
    let of_vary =
        |value: &ContextValue| matches!(value, ContextValue::String(arg) if arg.starts_with("--vary "));
    error.kind() == ErrorKind::InvalidValue && error.get(ContextKind::InvalidArg).is_some_and(of_vary)
}

/// What clap takes to be meant instead, as a hint. Its advice to pass the word after `--` is dropped: hardly anybody means a file
/// called --html.
fn similar(error: &clap::Error) -> Option<String> {
    let of = |kind| match error.get(kind)? {
        ContextValue::String(word) => Some(format!("'{word}'")),
        // The nearest is the last.
        ContextValue::Strings(words) => words.last().map(|word| format!("'{word}'")),
        _ => None,
    };
    let names = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let sentence = || match error.get(ContextKind::Suggested)? {
        ContextValue::StyledStrs(all) => {
            all.iter().map(ToString::to_string).find(|one| !one.starts_with("to pass '"))
        }
        _ => None,
    };
    names.into_iter().find_map(of).map(|meant| format!("did you mean {meant}?")).or_else(sentence)
}

/// clap's message, and what to do.
fn in_our_words(error: &clap::Error, subcommand: Option<&str>) -> (String, String) {
    // The message is clap's first paragraph: clap offers it nowhere else.
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default().trim();
    let message = message.strip_prefix("error: ").unwrap_or(message).to_owned();
    let command = CommandLine::command();
    let subcommand = subcommand.and_then(|name| command.find_subcommand(name));
    let takes_format = subcommand.is_some_and(|of| of.get_arguments().any(|arg| arg.get_id() == "format"));
    let is_history = subcommand.is_some_and(|of| of.get_name() == "history");
    let hint = if takes_no_level(error) {
        VARY_IS_V.to_owned()
    } else if let Some(format) = format_meant(error).filter(|_| takes_format) {
        format!("{format}; -o FILE writes it to a file")
    } else if is_history && asks_for_format(error) {
        "-o FILE.html writes a page with pictures; --json prints one document for programs".to_owned()
    } else if let Some(similar) = similar(error) {
        similar
    } else if let Some(subcommand) = subcommand {
        format!("`assay {} --help` lists what it takes", subcommand.get_name())
    } else {
        "`assay --help` lists the subcommands".to_owned()
    };
    (message, hint)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn words(arguments: &[&str]) -> (String, String) {
        let error = CommandLine::try_parse_from(arguments).err().unwrap();
        in_our_words(&error, arguments.get(1).copied())
    }

    #[test]
    fn a_message_and_a_hint_without_the_usage() {
        let (message, hint) = words(&["assay", "run", "--fail-if", "sometimes"]);
        assert!(message.starts_with("invalid value 'sometimes' for '--fail-if"), "{message}");
        assert!(message.contains("slower") && !message.contains("Usage"), "{message}");
        assert_eq!(hint, "`assay run --help` lists what it takes");
        let (message, hint) = words(&["assay", "reprot", "7"]);
        assert_eq!(message, "unrecognized subcommand 'reprot'");
        assert_eq!(hint, "did you mean 'report'?");
        let misplaced = words(&["assay", "--rounds", "5", "run", "job.fio"]).1;
        assert_eq!(misplaced, "'run --rounds' exists");
        assert_eq!(words(&["assay", "report", "1", "--formt", "html"]).1, "did you mean '--format'?");
        let (message, hint) = words(&["assay", "report", "1", "--html"]);
        assert_eq!(message, "unexpected argument '--html' found");
        assert_eq!(hint, "--format html; -o FILE writes it to a file");
        for wrong in [&["--format", "html"][..], &["--html"]] {
            let hint = words(&[&["assay", "history", "n"][..], wrong].concat()).1;
            assert!(hint.starts_with("-o FILE.html writes a page"), "{wrong:?}: {hint}");
        }
        let (_, hint) = words(&["assay", "report", "1", "--nonsense"]);
        assert_eq!(hint, "`assay report --help` lists what it takes");
        assert_eq!(words(&["assay", "run", "job.fio", "-v"]).1, VARY_IS_V);
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
