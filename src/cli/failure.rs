//! How a subcommand says that it failed: a message, a hint and the exit code.

use std::fmt;
use std::process::ExitCode;

use crate::workload::Hint;

/// An error with assay's exit code and, mostly, a hint.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    message: String,
    hint: Option<Hint>,
}

impl Failure {
    /// The request is wrong (file, option, unit); nothing was touched. Exit code 2.
    #[must_use]
    pub fn request(message: impl fmt::Display) -> Failure {
        Failure { code: 2, message: message.to_string(), hint: None }
    }

    /// A trial or a tool failed. Exit code 1.
    #[must_use]
    pub fn tool(message: impl fmt::Display) -> Failure {
        Failure { code: 1, message: message.to_string(), hint: None }
    }

    /// Interrupted, everything put back. Exit code 130.
    #[must_use]
    pub fn interrupted(message: impl fmt::Display) -> Failure {
        Failure { code: 130, message: message.to_string(), hint: None }
    }

    /// Adds what to type instead; an empty text adds nothing.
    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Failure {
        let hint = hint.to_string();
        if !hint.is_empty() {
            self.hint = Some(hint.into());
        }
        self
    }

    /// Adds what helps.
    #[must_use]
    pub fn helped(mut self, hint: Hint) -> Failure {
        self.hint = Some(hint);
        self
    }

    /// The same of one thing among several, named in front.
    #[must_use]
    pub fn of(mut self, what: &str) -> Failure {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The exit code.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.code
    }

    /// The line behind `hint:`.
    #[must_use]
    pub fn hinted(&self) -> Option<&Hint> {
        self.hint.as_ref()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The number behind a code of this program's.
pub(super) fn number_of(code: ExitCode) -> u8 {
    // The standard library tells only the system.
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
}

/// Says on standard error what failed and what helps; its exit code.
pub(super) fn report_error(error: &anyhow::Error) -> ExitCode {
    let failure = error.chain().find_map(|cause| cause.downcast_ref::<Failure>());
    // A reader that closed the pipe (`assay report 7 | head`) has what it wanted.
    let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(broken_pipe) {
        return ExitCode::SUCCESS;
    }
    crate::sys::terminal::tell(&format!("assay: {error:#}"));
    if let Some(hint) = failure.and_then(Failure::hinted) {
        crate::sys::terminal::tell(&format!("hint: {hint}"));
    }
    ExitCode::from(failure.map_or(1, Failure::code))
}
