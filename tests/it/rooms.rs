//! What a new engine, filesystem, launcher, observer or section costs: the patches of tests/rooms each add a dummy one, in at most two
//! files, and fit this tree. `make rooms` builds and uses them.

use std::collections::BTreeMap;
use std::path::Path;

/// Files that a room may take.
const MOST_FILES: usize = 2;

/// File → what its hunks replace.
fn replaced(patch: &str) -> BTreeMap<&str, Vec<String>> {
    let mut files: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut file = "";
    for line in patch.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = name;
        } else if line.starts_with("@@ ") {
            files.entry(file).or_default().push(String::new());
        } else if let Some(kept) = line.strip_prefix([' ', '-']).filter(|_| !line.starts_with("--- "))
            && let Some(hunk) = files.get_mut(file).and_then(|hunks| hunks.last_mut())
        {
            hunk.push_str(kept);
            hunk.push('\n');
        }
    }
    files
}

#[test]
fn a_new_room_takes_two_files_at_most() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for room in ["engine", "filesystem", "launcher", "observer", "section"] {
        let patch = format!("tests/rooms/{room}.patch");
        let text = std::fs::read_to_string(root.join(&patch)).unwrap();
        let files = replaced(&text);
        assert!((1..=MOST_FILES).contains(&files.len()), "{room} takes {:?}", files.keys());
        for (file, hunks) in files {
            assert!(!hunks.is_empty(), "{patch}: nothing in {file}");
            if hunks.iter().all(String::is_empty) {
                assert!(!root.join(file).exists(), "{patch} makes {file}, which is there");
                continue;
            }
            let source = std::fs::read_to_string(root.join(file)).unwrap();
            for hunk in hunks {
                assert_eq!(
                    source.matches(&hunk).count(),
                    1,
                    "{patch} no longer fits {file}; mend it:\n{hunk}"
                );
            }
        }
    }
}
