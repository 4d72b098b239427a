//! `assay generate`: man page and shell completions, from the command definitions themselves.

use std::process::ExitCode;

use clap::CommandFactory;

use super::CommandLine;
use super::output::Output;
use crate::sys::terminal::Form;

/// Options of `assay generate`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// man, or the shell to complete in
    #[arg(value_parser = ["man", "bash", "zsh", "fish", "elvish"])]
    what: String,
    #[command(flatten)]
    output: Output,
}

/// Writes the page or the script.
///
/// # Errors
/// An output that cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let mut bytes = Vec::new();
    let mut command = CommandLine::command();
    match args.what.parse::<clap_complete::Shell>() {
        Ok(shell) => clap_complete::generate(shell, &mut command, "assay", &mut bytes),
        Err(_) => manual(command, &mut bytes)?,
    }
    args.output.write(&String::from_utf8(bytes)?, Form::Plain)?;
    Ok(ExitCode::SUCCESS)
}

/// One page: the overview, then each subcommand with its options.
fn manual(command: clap::Command, bytes: &mut Vec<u8>) -> anyhow::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let overview = clap_mangen::Man::new(command.clone());
    overview.render_title(bytes)?;
    overview.render_name_section(bytes)?;
    overview.render_synopsis_section(bytes)?;
    overview.render_description_section(bytes)?;
    examples(&command, bytes);
    // Its section of subcommands would point at pages of their own, which there are not.
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        bytes.extend(format!(".SH \"ASSAY {}\"\n", part.get_name().to_uppercase()).bytes());
        let page = clap_mangen::Man::new(part.clone());
        page.render_description_section(bytes)?;
        page.render_synopsis_section(bytes)?;
        page.render_options_section(bytes)?;
        examples(part, bytes);
    }
    Ok(())
}

/// What --help says behind the options, line by line.
fn examples(command: &clap::Command, bytes: &mut Vec<u8>) {
    let Some(text) = command.get_after_help() else { return };
    bytes.extend_from_slice(b".PP\n.nf\n");
    for line in text.to_string().lines() {
        // A dot or a quote at the beginning of a line would be a request of roff's.
        let begins = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        let escaped = line.replace('\\', "\\e").replace('-', "\\-");
        bytes.extend(format!("{begins}{escaped}\n").bytes());
    }
    bytes.extend_from_slice(b".fi\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_page_holds_all_and_names_no_other() {
        let mut bytes = Vec::new();
        manual(CommandLine::command(), &mut bytes).unwrap();
        let page = String::from_utf8(bytes).unwrap();
        assert!(page.contains(".SH NAME\n") && page.contains(".SH \"ASSAY RUN\"\n"), "{page}");
        assert!(!page.contains("(1)"), "{page}");
        assert!(page.contains("\n  assay run randwrite.fio \\-\\-vary direct=0,1\n"), "{page}");
    }
}
