//! What a person names on the command line → the files it means, in a stable order, with a label.

use std::path::{Path, PathBuf};

use super::error::{ImportError, Problem, nearest};

/// One side of a comparison as named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The arm's label.
    pub label: String,
    /// Its files, sorted by name.
    pub files: Vec<PathBuf>,
    /// Several files named at once (directory or glob): one that cannot be read does not spoil the request itself.
    pub several: bool,
    /// Sentences about what was left out.
    pub notes: Vec<String>,
}

/// `label=rest` and plain `rest`. A name with `=` in it that exists as a path, or as a glob matches something, is that.
#[must_use]
pub fn split_label(spec: &str) -> (Option<&str>, &str) {
    let is_path = || Path::new(spec).exists() || is_glob(spec) && matches(spec).is_ok();
    match spec.split_once('=') {
        Some((label, rest)) if !label.is_empty() && !rest.is_empty() && !is_path() => (Some(label), rest),
        _ => (None, spec),
    }
}

fn is_glob(spec: &str) -> bool {
    spec.contains(['*', '?', '['])
}

/// The stored run's number that a spec means: digits only, and no such path.
#[must_use]
pub fn run_number(rest: &str) -> Option<i64> {
    let digits = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    if digits && !Path::new(rest).exists() { rest.parse().ok() } else { None }
}

/// The files a spec without its label means: one file, all of a directory, or those a glob matches.
///
/// # Errors
/// [`ImportError`] when there is nothing of that name, or nothing in it.
pub fn find_files(rest: &str, label: Option<&str>) -> Result<Side, ImportError> {
    let path = Path::new(rest);
    let label = label.map_or_else(|| stem(rest), str::to_owned);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let (files, notes) = directory(path)?;
            Ok(Side { label, files, several: true, notes })
        }
        Ok(_) => Ok(Side { label, files: vec![path.to_owned()], several: false, notes: Vec::new() }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound || is_glob(rest) => {
            if is_glob(rest) {
                let (files, notes) = matches(rest)?;
                return Ok(Side { label, files, several: true, notes });
            }
            Err(ImportError::new(rest, Problem::NotFound { nearest: neighbour(path) }))
        }
        Err(error) => Err(ImportError::new(rest, Problem::Io(error))),
    }
}

/// The last part of the path without its ending; `results/*.json` is called `results`.
fn stem(rest: &str) -> String {
    let path = Path::new(rest);
    let plain = path
        .components()
        .rev()
        .filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .find(|name| !is_glob(name));
    match plain {
        None => rest.to_owned(),
        Some(name) if path.is_dir() || !rest.ends_with(&*name) => name,
        Some(name) => {
            Path::new(&name).file_stem().map_or(name.clone(), |stem| stem.to_string_lossy().into_owned())
        }
    }
}

fn directory(path: &Path) -> Result<(Vec<PathBuf>, Vec<String>), ImportError> {
    let origin = path.display().to_string();
    let io = |error| ImportError::new(&origin, Problem::Io(error));
    let mut files = Vec::new();
    let mut directories = 0;
    for entry in std::fs::read_dir(path).map_err(io)? {
        let entry = entry.map_err(io)?.path();
        let hidden = entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if entry.is_dir() {
            directories += 1;
        } else if !hidden {
            files.push(entry);
        }
    }
    if files.is_empty() {
        return Err(ImportError::new(origin, Problem::EmptyDirectory));
    }
    files.sort();
    let notes = if directories > 0 {
        vec![format!("{origin}: files in its {directories} subdirectories were not read")]
    } else {
        Vec::new()
    };
    Ok((files, notes))
}

fn matches(pattern: &str) -> Result<(Vec<PathBuf>, Vec<String>), ImportError> {
    let bad = |what: String| ImportError::new(pattern, Problem::Glob(what));
    let paths = glob::glob(pattern).map_err(|error| bad(format!("this glob cannot be read: {error}")))?;
    let mut files = Vec::new();
    let mut notes = Vec::new();
    for path in paths {
        let path = path.map_err(|error| {
            ImportError::new(error.path().display().to_string(), Problem::Io(error.into()))
        })?;
        if path.is_dir() {
            notes.push(format!("{pattern}: the directory {} was not read", path.display()));
        } else {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(bad("no file matches this glob".to_owned()));
    }
    files.sort();
    Ok((files, notes))
}

/// A name in the same directory that is like it.
fn neighbour(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names: Vec<String> = std::fs::read_dir(parent)
        .ok()?
        .take(10_000)
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    nearest(&name, names.iter().map(String::as_str))
}

/// Makes labels differ: the stem, then the last two parts of the path, then a number behind.
pub(super) fn tell_apart(sides: &mut [Side]) {
    let parent_of = |side: &Side| {
        let parent = side.files.first()?.parent()?.file_name()?;
        Some(parent.to_string_lossy().into_owned())
    };
    let before: Vec<(String, Option<String>)> =
        sides.iter().map(|side| (side.label.clone(), parent_of(side).filter(|_| !side.several))).collect();
    for (index, side) in sides.iter_mut().enumerate() {
        let same = || before.iter().filter(|(label, _)| *label == before[index].0);
        if let Some(parent) = &before[index].1
            && same().any(|(_, other)| other.as_ref() != Some(parent))
        {
            side.label = format!("{parent}/{}", side.label);
        }
    }
    for index in 0..sides.len() {
        let before = sides[..index].iter().filter(|side| side.label == sides[index].label).count();
        if before > 0 {
            sides[index].label = format!("{} ({})", sides[index].label, before + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_numbers() {
        assert_eq!(split_label("old=before/"), (Some("old"), "before/"));
        assert_eq!(split_label("before/"), (None, "before/"));
        assert_eq!(run_number("7"), Some(7));
        assert_eq!(run_number("7a"), None);
        assert_eq!(run_number("99999999999999999999"), None);
    }

    #[test]
    fn a_directory_is_all_its_files_in_order() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.json", ".hidden"] {
            std::fs::write(directory.path().join(name), "1").unwrap();
        }
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        std::fs::create_dir(directory.path().join("bs=4k")).unwrap();
        std::fs::write(directory.path().join("bs=4k/o1.json"), "1").unwrap();
        let pattern = format!("{}/bs=4k/o*.json", directory.path().display());
        assert_eq!(split_label(&pattern), (None, pattern.as_str()));
        let side = find_files(directory.path().to_str().unwrap(), Some("x")).unwrap();
        let names: Vec<_> =
            side.files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!((names, side.notes.len(), side.several), (vec!["a.json", "b.json"], 1, true));
        assert!(side.notes[0].contains("in its 2 subdirectories"), "{:?}", side.notes);
        let pattern = format!("{}/*.json", directory.path().display());
        assert_eq!(find_files(&pattern, None).unwrap().files.len(), 2);
        let none = find_files(&format!("{}/*.csv", directory.path().display()), None).unwrap_err();
        assert!(none.to_string().contains("no file matches"), "{none}");
        let missing = find_files(directory.path().join("a.jsom").to_str().unwrap(), None).unwrap_err();
        assert!(missing.to_string().ends_with("the nearest name is 'a.json'"), "{missing}");
    }

    #[test]
    fn equal_labels_get_their_directory_or_a_number() {
        let side = |path: &str| Side {
            label: stem(path),
            files: vec![PathBuf::from(path)],
            several: false,
            notes: Vec::new(),
        };
        let mut sides = [side("before/r.json"), side("after/r.json")];
        tell_apart(&mut sides);
        assert_eq!((sides[0].label.as_str(), sides[1].label.as_str()), ("before/r", "after/r"));
        let mut same = [side("r.json"), side("r.json")];
        tell_apart(&mut same);
        assert_eq!((same[0].label.as_str(), same[1].label.as_str()), ("r", "r (2)"));
        assert_eq!(stem("results/*.json"), "results");
    }
}
