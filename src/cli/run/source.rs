//! What the name behind `assay run` means: a file, a recipe, or nothing that is known.
//!
//! Enters: the options. Leaves: one [`Source`] a run, one run after the other.

use std::path::{Path, PathBuf};

use crate::cli::Failure;
use crate::cli::recipes::{self, Part};
use crate::experiment::{ExperimentErrors, RecipeTable};
use crate::sys::regular_file;
use crate::workload::nearest;

/// A larger file is refused where it is loaded.
const MOST_BYTES: u64 = 4 << 20;

/// Where the experiment of a run is written.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// In a file.
    File(PathBuf),
    /// In a recipe.
    Recipe(&'static Part),
    /// On the command line alone.
    CommandLine,
}

impl Source {
    /// All that a word of the command line names: a recipe or a directory may be several.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: neither a file nor a recipe, or a directory without experiments.
    pub(super) fn all(file: &Path, quiet: bool) -> Result<Vec<Source>, Failure> {
        let name = file.to_string_lossy();
        let parts = recipes::parts(&name);
        if file.is_dir() && parts.is_empty() {
            return in_directory(file);
        }
        if file.exists() && !file.is_dir() {
            if !parts.is_empty() && !quiet {
                crate::sys::terminal::tell(&format!(
                    "{name} is a file here; the recipe of that name is not used"
                ));
            }
            return Ok(vec![Source::File(file.to_owned())]);
        }
        if !parts.is_empty() {
            return Ok(parts.into_iter().map(Source::Recipe).collect());
        }
        if !is_a_word(file) {
            return Ok(vec![Source::File(file.to_owned())]);
        }
        let advice = match nearest(&name, recipes::names(), 1).first() {
            Some(near) => format!("; did you mean {near}?"),
            None => String::new(),
        };
        Err(Failure::request(format!("there is no file and no recipe {name}{advice}"))
            .hint("`assay recipes` lists the recipes; a job or experiment file is given by its path"))
    }

    /// What a recipe, or a file written like one, tells of itself.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: the mistakes of the file.
    pub(super) fn recipe(&self) -> Result<Option<RecipeTable>, Failure> {
        let (text, origin) = match self {
            Source::Recipe(part) => (part.text.to_owned(), part.name.to_owned()),
            // A file that cannot be read is told where it is loaded.
            Source::File(file) if file.extension().is_some_and(|extension| extension == "toml") => {
                (regular_file::read_text(file, MOST_BYTES).unwrap_or_default(), file.display().to_string())
            }
            Source::File(_) | Source::CommandLine => return Ok(None),
        };
        RecipeTable::of(&text, &origin).map_err(|errors| wrong_experiment(&errors))
    }

    /// What names it alone on a command line.
    pub(super) fn own_word(&self) -> String {
        match self {
            Source::File(file) => file.display().to_string(),
            Source::Recipe(part) => part.name.to_owned(),
            Source::CommandLine => String::new(),
        }
    }

    /// Whether it is one of the experiments that are part of assay.
    pub(super) fn is_of_a_recipe(&self) -> bool {
        matches!(self, Source::Recipe(_))
    }

    /// `journal-flush/dbench` of a recipe's part.
    pub(super) fn recipe_name(&self) -> Option<&'static str> {
        match self {
            Source::Recipe(part) => Some(part.name),
            Source::File(_) | Source::CommandLine => None,
        }
    }
}

/// The job and experiment files of a directory, by name.
fn in_directory(directory: &Path) -> Result<Vec<Source>, Failure> {
    let name = directory.display();
    let entries =
        std::fs::read_dir(directory).map_err(|error| Failure::request(format!("{name}: {error}")))?;
    let is_one = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "fio" || ending == "toml");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_one).collect();
    files.sort();
    if files.is_empty() {
        return Err(Failure::request(format!("the directory {name} has no .fio and no .toml file")).hint(
            "give job or experiment files, or a directory of them; --directory says where trials work",
        ));
    }
    Ok(files.into_iter().map(Source::File).collect())
}

/// All mistakes of an experiment.
pub(super) fn wrong_experiment(errors: &ExperimentErrors) -> Failure {
    Failure::request(errors).helped(errors.hint.clone())
}

/// No path: a name such as recipes have, or a slip of the pen in one.
fn is_a_word(file: &Path) -> bool {
    let known = |name: &str| recipes::names().any(|recipe| name.split('/').next() == Some(recipe));
    let name = file.to_string_lossy();
    known(&name) || (file.components().count() == 1 && file.extension().is_none() && !name.starts_with('.'))
}
