//! `assay recipes`: the experiments that are part of the program.
//!
//! Enters: nothing, or a name. Leaves: the list with questions, needs and times, or a recipe's text on standard output.

mod needs;
mod shipped;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::Failure;
use crate::experiment::{CommandLine, Experiment, RecipeTable};
use crate::workload::nearest;

use needs::needs;
pub(in crate::cli) use needs::{SOURCE_HINT, missing, no_kernel};
pub(in crate::cli) use shipped::{Part, RECIPES, Recipe, names, parts};

/// Columns of the list.
const WIDTH: usize = 80;

/// Options of `assay recipes`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Print a recipe: an experiment file, to read, or to keep and change
    Show {
        /// Its name; where a recipe is several runs, NAME/PART prints one of them
        name: String,
    },
}

/// Prints the list or a recipe.
///
/// # Errors
/// No such recipe; a closed pipe.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let text = match &args.what {
        None => list()?,
        Some(What::Show { name }) => show(name)?,
    };
    crate::sys::terminal::out().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn show(name: &str) -> Result<String, Failure> {
    let found = parts(name);
    if found.is_empty() {
        let near = nearest(name, names(), 1).first().map(|near| format!("; did you mean {near}?"));
        return Err(Failure::request(format!("there is no recipe {name}{}", near.unwrap_or_default()))
            .hint("`assay recipes` lists them"));
    }
    let several = found.len() > 1;
    let text = |part: &&Part| {
        let head = if several { format!("# ---- {} ----\n", part.name) } else { String::new() };
        head + part.text
    };
    Ok(found.iter().map(text).collect::<Vec<_>>().join("\n"))
}

fn list() -> Result<String, Failure> {
    let mut lines = Vec::new();
    for recipe in &RECIPES {
        lines.extend(described(recipe)?);
        lines.push(String::new());
    }
    let commands = [
        ("run NAME --quick", "a first look"),
        ("run NAME --plan", "only say what would be run, written and erased"),
        ("run NAME --vary kernel=A,B", "compare something of your own with it"),
        ("recipes show NAME", "the experiment file, and what it is about"),
    ];
    lines.extend(commands.map(|(command, what)| format!("assay {command:<27} {what}")));
    Ok(lines.join("\n") + "\n")
}

/// What a recipe asks, needs and takes.
fn described(recipe: &Recipe) -> Result<Vec<String>, Failure> {
    let mut lines = vec![recipe.name.to_owned()];
    for part in recipe.parts {
        let wrong = |errors| Failure::tool(format!("recipe {}: {errors}", part.name));
        let about = RecipeTable::of(part.text, part.name).map_err(wrong)?.unwrap_or_default();
        if recipe.parts.len() > 1 {
            lines.push(format!("  {}", part.name));
        }
        for question in &about.asks {
            lines.extend(hanging("  ? ", question));
        }
        let mut places = Vec::new();
        for target in std::iter::once(&Vec::new()).chain(&about.otherwise) {
            let line = CommandLine { target: target.clone(), ..CommandLine::default() };
            let experiment =
                Experiment::from_toml(part.text, part.name, Path::new(""), &line).map_err(wrong)?;
            places.push(needs(&experiment));
        }
        for (at, place) in places.iter().enumerate() {
            lines.extend(hanging(if at == 0 { "  needs  " } else { "  or     " }, place));
        }
        lines.push(format!("  time   {}; with --quick {}", about.time, about.quick_time));
    }
    Ok(lines)
}

/// A text in lines of 80 columns behind `head`, the others below its beginning.
pub(in crate::cli) fn hanging(head: &str, text: &str) -> Vec<String> {
    let room = WIDTH - head.len();
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let taken = lines[last].chars().count();
        if taken > 0 && taken + 1 + word.chars().count() > room {
            lines.push(word.to_owned());
        } else {
            let gap = if taken > 0 { " " } else { "" };
            lines[last].push_str(&format!("{gap}{word}"));
        }
    }
    let indent = |(at, line): (usize, String)| {
        if at == 0 { format!("{head}{line}") } else { " ".repeat(head.len()) + &line }
    };
    lines.into_iter().enumerate().map(indent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_listed_with_all_that_one_wants_to_know() {
        let list = list().unwrap();
        assert!(list.lines().all(|line| line.chars().count() <= WIDTH), "{list}");
        for recipe in &RECIPES {
            let told = described(recipe).unwrap();
            for part in recipe.parts {
                assert!(part.name == recipe.name || part.name.starts_with(&format!("{}/", recipe.name)));
                assert!(part.text.starts_with("# "), "{}: no comment at its head", part.name);
            }
            for (start, what) in [("  ? ", "question"), ("  needs  ", "needs"), ("  time   ", "time")] {
                let found =
                    told.iter().filter(|line| line.starts_with(start) && line.len() > start.len() + 2);
                assert!(found.count() >= recipe.parts.len(), "{}: no {what} in {told:?}", recipe.name);
            }
            assert!(list.contains(&format!("\n\n{}\n", recipe.name)) || list.starts_with(recipe.name));
        }
    }

    #[test]
    fn what_is_shown_is_the_file() {
        assert_eq!(show("bdev-mix").unwrap(), include_str!("../../recipes/bdev-mix.toml"));
        let error = show("bdev-mux").unwrap_err().to_string();
        assert_eq!(error, "there is no recipe bdev-mux; did you mean bdev-mix?");
    }

    #[test]
    fn long_texts_hang_below_their_beginning() {
        let lines = hanging("  ? ", &"word ".repeat(20));
        assert_eq!(lines.len(), 2);
        assert!(lines[0].len() <= WIDTH && lines[1].starts_with("    word"));
    }
}
