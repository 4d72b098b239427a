//! Which headers a file of a source includes, by itself and by others: what is made of a header is made anew when that changes.
//!
//! Enters: how files of the source are read, a file, a header. Leaves: whether the one depends on the other. Only `#include "…"` is read:
//! what lies in angle brackets is the kernel's own headers, which no module is made of alone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use super::error::BuildError;
use super::source::Files;

/// The files of a source that were read for what they include.
pub(super) struct Includes<'f> {
    pub(super) files: Files<'f>,
    /// As they name them; `None`: there is no such file.
    read: RefCell<BTreeMap<String, Option<Vec<String>>>>,
}

impl<'f> Includes<'f> {
    pub(super) fn of(files: Files<'f>) -> Includes<'f> {
        Includes { files, read: RefCell::default() }
    }

    /// Whether a file includes a header, also by others. A name that is not found beside the file that has it may be looked for elsewhere
    /// (`ccflags-y := -I…`), and counts if the header ends like it.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(super) fn reach(&self, file: &str, header: &str) -> Result<bool, BuildError> {
        let (mut seen, mut open) = (BTreeSet::from([file.to_owned()]), vec![file.to_owned()]);
        while let Some(name) = open.pop() {
            for word in self.included(&name)?.unwrap_or_default() {
                let beside = beside(&name, &word);
                if beside == header {
                    return Ok(true);
                }
                if seen.contains(&beside) {
                    continue;
                }
                if self.included(&beside)?.is_some() {
                    seen.insert(beside.clone());
                    open.push(beside);
                } else if Path::new(header).ends_with(&word) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn included(&self, name: &str) -> Result<Option<Vec<String>>, BuildError> {
        if let Some(known) = self.read.borrow().get(name) {
            return Ok(known.clone());
        }
        let file = (self.files)(name)?;
        let words = file.map(|file| words(&String::from_utf8_lossy(&file.bytes)));
        self.read.borrow_mut().insert(name.to_owned(), words.clone());
        Ok(words)
    }
}

fn words(text: &str) -> Vec<String> {
    let word = |line: &str| {
        let include = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        Some(include.trim_start().strip_prefix('"')?.split_once('"')?.0.to_owned())
    };
    text.lines().filter_map(word).collect()
}

/// What a name means in a file, seen from the top of the source.
fn beside(file: &str, word: &str) -> String {
    let mut path = Path::new(file).parent().map(PathBuf::from).unwrap_or_default();
    for part in Path::new(word).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::source::SourceFile;
    use super::*;

    #[test]
    fn a_header_is_reached_through_others_and_from_elsewhere() {
        let tree = [
            ("md/thin.c", "#include <linux/fs.h>\n#include \"thin.h\"\n"),
            ("md/thin.h", "# include \"data/btree.h\"\n#include \"thin.h\"\n"),
            ("md/data/btree.h", "#include \"../md.h\"\n"),
            ("md/md.h", "\n"),
            ("md/raid.c", "#include \"raid.h\"\n#include \"sub/far.h\"\n"),
            ("md/raid.h", "\n"),
        ];
        let files = |name: &str| {
            let text = tree.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
            Ok(text.map(|text| SourceFile { bytes: text.as_bytes().to_vec(), executable: false }))
        };
        let includes = Includes::of(&files);
        let reach = |file: &str, header: &str| includes.reach(file, header).unwrap();
        for header in ["md/thin.h", "md/data/btree.h", "md/md.h"] {
            assert!(reach("md/thin.c", header), "{header}");
            assert!(!reach("md/raid.c", header), "{header}");
        }
        assert!(reach("md/raid.c", "include/sub/far.h") && !reach("md/raid.c", "include/other/far.h"));
        assert!(!reach("md/none.c", "md/md.h"));
    }
}
