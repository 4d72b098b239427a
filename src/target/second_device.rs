//! Devices and files that arguments of mkfs, options of mount and settings name besides the target's own device: a log, a
//! journal, a second member. They are written to as well, so they are asked for as that one is.
//!
//! Enters: the settings, the paths named with `--destroy`. Leaves: those paths, or the first that must not be written to.
//! What each program does with a word is not known here: whatever leads to a block device counts as one that is written.

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::error::TargetError;
use super::overwrite::may_overwrite;
use crate::experiment::TargetSettings;

/// What divides a word into parts: `-l logdev=/dev/vdb,size=64m`.
const DIVIDES: [char; 4] = ['=', ',', ':', ';'];
/// Names with which blkid finds a device whatever it is called (blkid(8)).
const TAGS: [&str; 5] = ["UUID=", "LABEL=", "PARTUUID=", "PARTLABEL=", "ID="];
/// A file behind these is written to; others take numbers and names.
const WRITTEN: [&str; 6] = ["logdev", "rtdev", "name", "device", "dev", "journal_path"];
/// The word behind these is a label, or a file that is only read.
const READ: [&str; 9] = ["-L", "-p", "-d", "-l", "-r", "-U", "--label", "--rootdir", "--uuid"];

/// Whether everything named besides the device may be overwritten.
///
/// # Errors
/// The first that may not, or that is named in a way that does not tell which device it is.
pub(super) fn obstacle(settings: &TargetSettings, named: &[PathBuf]) -> Result<(), TargetError> {
    let unclear = |key: &str, word: &str| {
        TargetError::unavailable(
            format!("{key}={word} does not say by its path which device it is"),
            "write the device's path, and --destroy it",
        )
    };
    for (key, before, word) in words(settings) {
        let label = READ.contains(&before);
        let tagged = parts(word).any(|part| TAGS.iter().any(|tag| part.text.starts_with(tag)));
        if !label && (tagged || key == "mount" && word.starts_with("journal_dev=")) {
            return Err(unclear(key, word));
        }
        for path in paths(before, word) {
            may_overwrite(&path, named).map_err(|refusal| {
                TargetError::unavailable(format!("{key} names {word}: {refusal}"), refusal.hint())
            })?;
        }
    }
    Ok(())
}

/// All of them.
pub(super) fn all(settings: &TargetSettings) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = words(settings).flat_map(|(_, before, word)| paths(before, word)).collect();
    found.sort();
    found.dedup();
    found
}

/// Block devices that mkfs is given besides the one it is for, without links.
pub(super) fn of_mkfs(settings: &TargetSettings) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = words(settings)
        .filter(|(key, ..)| *key == "mkfs")
        .flat_map(|(_, before, word)| paths(before, word))
        .filter(|path| is_block(path))
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// (setting, the word before, the word).
fn words(settings: &TargetSettings) -> impl Iterator<Item = (&'static str, &str, &str)> {
    let before = std::iter::once("").chain(settings.mkfs.iter().map(String::as_str));
    let mkfs = before.zip(&settings.mkfs).map(|(before, word)| ("mkfs", before, word.as_str()));
    let mount = settings.mount.iter().map(|option| ("mount", "", option.as_str()));
    let knobs = settings.knobs.iter().filter(|knob| knob.value.starts_with('/'));
    mkfs.chain(mount).chain(knobs.map(|knob| ("a setting", "", knob.value.as_str())))
}

/// A part of a word, and the name in front of it where that ends in `=`.
struct Part<'w> {
    text: &'w str,
    key: Option<&'w str>,
    whole: bool,
}

/// From each beginning of a part to each end behind it: a path may have the dividing characters in it, too.
fn parts(word: &str) -> impl Iterator<Item = Part<'_>> {
    let divides: Vec<usize> = word.match_indices(DIVIDES).map(|(at, _)| at).collect();
    // Behind an option of one letter there may be no blank: `-l/dev/vdb`.
    let glued = word.starts_with('-').then(|| word.find('/')).flatten();
    let starts: Vec<usize> = std::iter::once(0).chain(divides.iter().map(|at| at + 1)).chain(glued).collect();
    let ends: Vec<usize> = divides.into_iter().chain([word.len()]).collect();
    starts.into_iter().flat_map(move |start| {
        let front = word[..start].strip_suffix('=');
        let key = front.map(|front| front.rsplit(DIVIDES).next().unwrap_or(front));
        let ends: Vec<usize> = ends.iter().copied().filter(|end| *end > start).collect();
        ends.into_iter().map(move |end| Part {
            text: &word[start..end],
            key,
            whole: end - start == word.len(),
        })
    })
}

/// Block devices and files that a word leads to.
fn paths(before: &str, word: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        parts(word).filter(|part| is_written(before, part)).map(|part| PathBuf::from(part.text)).collect();
    // `-cvdb` where /dev is the current directory.
    if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.starts_with('-')) {
        let rest = letters.char_indices().skip(1).map(|(at, _)| Path::new(&letters[at..]));
        found.extend(rest.filter(|path| is_block(path)).map(Path::to_owned));
    }
    found
}

fn is_written(before: &str, part: &Part<'_>) -> bool {
    let path = Path::new(part.text);
    if is_block(path) {
        return true;
    }
    if !path.is_file() {
        return false;
    }
    let number = part.text.starts_with(|c: char| c.is_ascii_digit());
    match part.key {
        Some("options") => false,
        Some(key) => part.text.contains('/') || WRITTEN.contains(&key),
        None if part.whole => !READ.contains(&before) && !number,
        // Glued to an option: `-p/some/file`.
        None => part.text.starts_with('/'),
    }
}

fn is_block(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(mkfs: &str, mount: &str) -> TargetSettings {
        let mut settings = TargetSettings::default();
        for (key, value) in [("mkfs", mkfs), ("mount", mount)] {
            settings.set(key, value, Path::new("/")).unwrap();
        }
        settings
    }

    #[test]
    fn files_are_found_wherever_they_stand() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("log,1");
        std::fs::write(&file, "x").unwrap();
        let file = file.to_string_lossy();
        for words in [
            format!("-l logdev={file}"),
            format!("-l size=64m,logdev={file},su=4k"),
            format!("-f {file}"),
            format!("-c{file}"),
            format!("-z {file}"),
        ] {
            assert_eq!(all(&settings(&words, "default")), [PathBuf::from(&*file)], "{words}");
            let refused = obstacle(&settings(&words, "default"), &[]).unwrap_err();
            assert!(refused.to_string().contains(" exists, and "), "{refused}");
            assert_eq!(refused.hint(), format!("if everything on it may be lost: --destroy {file}"));
            obstacle(&settings(&words, "default"), &[PathBuf::from(&*file)]).unwrap();
        }
        for words in [
            format!("-c options={file}"),
            format!("-p {file}"),
            format!("-d {}", directory.path().display()),
            "-m reflink=0,crc=1 -b size=4096 -f".to_owned(),
            "-E lazy_itable_init=0,lazy_journal_init=0 -O ^has_journal".to_owned(),
            "-d agcount=4 -L data -m uuid=4a3c3b8c-0d3c-4c4b-9d1c-1f2f3f4f5f6f".to_owned(),
        ] {
            assert_eq!(all(&settings(&words, "noatime,logbsize=256k")), Vec::<PathBuf>::new(), "{words}");
            obstacle(&settings(&words, "noatime"), &[]).unwrap();
        }
    }

    #[test]
    fn a_device_that_is_not_named_by_its_path_is_refused() {
        for (mkfs, mount) in [
            ("-J device=UUID=4a3c3b8c-0d3c-4c4b-9d1c-1f2f3f4f5f6f", "default"),
            ("-J device=LABEL=journal", "default"),
            ("default", "journal_dev=0xfe10"),
        ] {
            let refused = obstacle(&settings(mkfs, mount), &[]).unwrap_err();
            assert!(refused.to_string().contains("which device it is"), "{refused}");
        }
    }

    #[test]
    fn parts_have_their_names() {
        let found: Vec<(&str, Option<&str>)> =
            parts("size=1m,name=x").map(|part| (part.text, part.key)).collect();
        assert!(found.contains(&("x", Some("name"))) && found.contains(&("1m", Some("size"))));
        assert!(found.contains(&("size=1m,name=x", None)));
    }
}
