//! A program of another's making: what it is called, and the package that has it.

/// A program that is looked for on PATH and among the system's programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// What is executed.
    pub name: &'static str,
    /// Debian's and Ubuntu's package.
    pub package: &'static str,
}
