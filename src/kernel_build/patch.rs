//! Patches of a kernel: unified diffs, which files they touch, and applying them.
//!
//! Enters: the file a user named. Leaves: a [`Patch`], and a tree in which it is applied. No name in a patch leads out of the tree.
//! The form: POSIX diff -u, and git's `rename`, `deleted file` and `GIT binary patch`, of which the last is refused.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use super::digests;
use super::error::BuildError;
use crate::sys::{clean_command, regular_file};

/// A larger patch is a new kernel.
const MOST_BYTES: u64 = 64 << 20;

/// How git names files without --- and +++.
const RENAMED: [&str; 4] = ["rename from ", "rename to ", "copy from ", "copy to "];
/// What git says of a file before its hunks; one whose rights alone change has none, nor has an empty one.
const WITHOUT_HUNKS: [&str; 4] = ["old mode ", "new mode ", "new file mode ", "deleted file mode "];

/// How lines of git end that are of a symbolic link.
const LINK: &str = "120000";

/// Directories of a kernel.
const TOP: [&str; 20] = [
    "Documentation", "arch", "block", "certs", "crypto", "drivers", "fs", "include", "init", "io_uring",
    "ipc", "kernel", "lib", "mm", "net", "rust", "scripts", "security", "sound", "virt",
];

/// A patch that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// The file.
    pub(super) path: PathBuf,
    text: Vec<u8>,
    /// What it changes, makes and removes, below the top of the tree.
    pub(super) touched: BTreeSet<String>,
    /// By the change itself: not by the message before it, nor by when and as which blobs its files were compared.
    pub(super) digest: String,
}

impl Patch {
    /// Reads a patch.
    ///
    /// # Errors
    /// Unreadable, no unified diff, binary, or one that names files outside the tree.
    pub(super) fn read(path: &Path) -> Result<Patch, BuildError> {
        let text =
            regular_file::read(path, MOST_BYTES).map_err(BuildError::unfit("cannot read the patch", path))?;
        Patch::of(path, text)
    }

    /// Its lines.
    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// The same as it was read.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// A patch of this text, called `path` in messages.
    pub(super) fn of(path: &Path, text: Vec<u8>) -> Result<Patch, BuildError> {
        let wrong = |found: String| BuildError::NoPatch { path: path.to_owned(), found };
        let touched = touched(&text).map_err(wrong)?;
        let digest = digests::of_bytes(&[change(&text).as_bytes()]);
        Ok(Patch { path: path.to_owned(), text, touched, digest })
    }

    /// Whether it changes which options there are, or what they select.
    pub(super) fn changes_options(&self) -> bool {
        let is_of_options =
            |name: &String| name.rsplit('/').next().is_some_and(|last| last.starts_with("Kconfig"));
        self.touched.iter().any(is_of_options)
    }

    /// Its file's name.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Applies it in a tree that belongs to assay. Leaves the hunks that went in where lines around them differ.
    ///
    /// # Errors
    /// [`BuildError::DoesNotApply`] with the hunk.
    pub(super) fn apply(&self, tree: &Path, source_name: &str) -> Result<Vec<String>, BuildError> {
        let mut command = clean_command("patch");
        // -u: what looks like a script of ed is none.
        command
            .args([
                "-u", "-p1", "--batch", "--forward", "--no-backup-if-mismatch", "--fuzz=2", "-r", "-", "-d",
            ])
            .arg(tree);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(
                |_| BuildError::NoTools { what: vec!["patch"], packages: vec!["patch".to_owned()] },
            )?;
        let mut input = child.stdin.take();
        let text = self.text.clone();
        // patch may say much before it has read everything.
        let writer = std::thread::spawn(move || {
            // It closes its end when it gives up, and says why.
            input.as_mut().map_or(Ok(()), |input| input.write_all(&text))
        });
        let output = child.wait_with_output().map_err(BuildError::io("cannot apply", &self.path))?;
        let _ = writer.join();
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            return Ok(fuzzy_hunks(&said));
        }
        if let Some(error) = BuildError::of_the_machine(&said, &self.path.to_string_lossy()) {
            return Err(error);
        }
        Err(BuildError::DoesNotApply {
            patch: self.path.clone(),
            source_name: source_name.to_owned(),
            said: failed_hunk(&said),
        })
    }
}

/// `hunk #2 at line 1040 of fs/f2fs/file.c` of each that patch(1) says it applied with fuzz.
fn fuzzy_hunks(said: &str) -> Vec<String> {
    let mut file = "";
    let hunk = |line| {
        file = named_file(line).unwrap_or(file);
        // `Hunk #2 succeeded at 1040 with fuzz 1 (offset 3 lines).`
        let (hunk, place) = str::strip_prefix(line, "Hunk #")?.split_once(" succeeded at ")?;
        let at = place.split_once(" with fuzz ")?.0;
        Some(format!("hunk #{hunk} at line {at} of {file}"))
    };
    said.lines().filter_map(hunk).collect()
}

/// The file that patch(1) says it goes on with.
fn named_file(line: &str) -> Option<&str> {
    line.strip_prefix("patching file ")
}

/// `hunk #2 fails at line 1040 of fs/f2fs/file.c` of what patch(1) says.
fn failed_hunk(said: &str) -> String {
    let mut file = "";
    for line in said.lines() {
        file = named_file(line).unwrap_or(file);
        if line.starts_with("Hunk #") && line.contains("FAILED") {
            let hunk = line
                .trim_end_matches('.')
                .replacen("Hunk", "hunk", 1)
                .replace(" FAILED at ", " fails at line ");
            return format!("{} of {file}", hunk.trim_end_matches(')').trim());
        }
        if line.starts_with("Reversed (or previously applied) patch detected") {
            return format!("{file} has this change already");
        }
        if line.contains("can't find file to patch") {
            let missing = said.lines().find_map(|line| line.strip_prefix("|--- "));
            let missing = missing.map_or("a file", |line| line.split('\t').next().unwrap_or(line));
            return format!("there is no {missing}");
        }
        if line.contains("malformed patch") {
            return line.trim_start_matches("patch: ").trim_start_matches("**** ").to_owned();
        }
    }
    said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("patch(1) says nothing").to_owned()
}

/// Every file that the headers of a diff name, without the first part of its path as `-p1` takes it off.
fn touched(text: &[u8]) -> Result<BTreeSet<String>, String> {
    let text = String::from_utf8_lossy(text);
    let mut touched = BTreeSet::new();
    let (mut hunks, mut left) = (0_usize, Hunk::default());
    let (mut before, mut of_git, mut in_header, mut without_hunks) = ("", None, false, false);
    for line in text.lines() {
        if left.has(line) {
            continue;
        }
        if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err("has binary parts, which patch(1) cannot apply".to_owned());
        }
        if let Some(lengths) = line.strip_prefix("@@ -") {
            hunks += 1;
            left = Hunk::of(lengths).ok_or_else(|| format!("has a hunk that cannot be read: {line}"))?;
        }
        if let Some(names) = line.strip_prefix("diff --git ") {
            (of_git, in_header) = (same_name(names), true);
        }
        // What comes before it is a message, in which a line may begin like anything.
        in_header &= !line.starts_with("--- ") && !line.starts_with("@@ ") && line != "-- ";
        let whole = of_git.filter(|_| in_header && WITHOUT_HUNKS.iter().any(|start| line.starts_with(start)));
        let of_link = line.strip_suffix(LINK).filter(|_| in_header);
        if of_link.is_some_and(|start| WITHOUT_HUNKS.contains(&start) || start.starts_with("index ")) {
            return Err(format!(
                "changes the symbolic link {}: only files can be patched",
                of_git.unwrap_or("")
            ));
        }
        let renamed = RENAMED.iter().filter(|_| in_header).find_map(|start| line.strip_prefix(start));
        if let Some(name) = whole.or(renamed) {
            touched.insert(inside(name)?);
            without_hunks = true;
        }
        let is_pair = before.starts_with("--- ") && line.starts_with("+++ ");
        for header in [before, line].into_iter().filter(|_| is_pair) {
            let name = header[4..].split('\t').next().unwrap_or_default().trim();
            if name != "/dev/null" {
                let below = name.split_once('/').map(|(_, below)| below);
                let below = below.filter(|_| !is_bare(before, line));
                touched.insert(inside(below.ok_or_else(|| {
                    format!("names {name} without the directory in front that a/{name} has (patch -p1; git diff without --no-prefix)")
                })?)?);
            }
        }
        before = line;
    }
    if touched.is_empty() || (hunks == 0 && !without_hunks) {
        return Err("is no unified diff: it names no file with --- and +++ and a hunk".to_owned());
    }
    Ok(touched)
}

/// How lines of headers begin that say what is done.
const HEADERS: [&str; 12] = [
    "diff --git ", "--- ", "+++ ", "old mode ", "new mode ", "new file mode ", "deleted file mode ",
    "rename from ", "rename to ", "copy from ", "copy to ", "@@ -",
];

/// The headers of files and the hunks of a diff, whose form was looked at already.
fn change(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let (mut kept, mut left, mut of_file) = (String::new(), Hunk::default(), false);
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if left.has(line) {
            kept.push_str(line);
            continue;
        }
        // `\ No newline at end of file` behind the last line of a hunk.
        let is_end = line.starts_with('\\');
        let begins = line.starts_with("diff --git ")
            || line.starts_with("--- ") && lines.peek().is_some_and(|next| next.starts_with("+++ "));
        of_file = (of_file || begins) && line.trim_end() != "--";
        if !of_file || !(is_end || HEADERS.iter().any(|start| line.starts_with(start))) {
            continue;
        }
        match line.strip_prefix("@@ -").and_then(Hunk::of) {
            // What stands behind it is a line of the source, for people.
            Some(hunk) => {
                left = hunk;
                kept.push_str(line.find(" @@").map_or(line, |at| &line[..at]));
            }
            // A time may stand behind a name.
            None => kept.push_str(line.split('\t').next().unwrap_or(line).trim_end()),
        }
        kept.push('\n');
    }
    kept
}

/// Whether both names of a pair begin in the kernel's own top directory, and not in one beside it.
fn is_bare(before: &str, after: &str) -> bool {
    let name = |header: &str| header[4..].split('\t').next().unwrap_or_default().trim().to_owned();
    let (one, other) = (name(before), name(after));
    let first = one.split('/').next().unwrap_or_default();
    one == other && TOP.contains(&first)
}

/// `NAME` of `a/NAME b/NAME`; `None`: there are two.
fn same_name(names: &str) -> Option<&str> {
    let (one, other) = (names.get(..names.len() / 2)?, names.get(names.len() / 2 + 1..)?);
    let name = one.split_once('/')?.1;
    (other.split_once('/')?.1 == name).then_some(name)
}

/// The lines that are left of a hunk, of both files. Within one nothing is a header, whatever it looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hunk {
    old: u64,
    new: u64,
}

impl Hunk {
    /// That of `12,7 +12,9 @@…` has 7 and 9 lines.
    fn of(text: &str) -> Option<Hunk> {
        let (ranges, _) = text.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        let length = |range: &str| {
            let (start, length) = range.split_once(',').unwrap_or((range, "1"));
            start.parse::<u64>().ok().and_then(|_| length.parse().ok())
        };
        Some(Hunk { old: length(old)?, new: length(new)? })
    }

    /// Whether this line, the next one, is of the hunk.
    fn has(&mut self, line: &str) -> bool {
        if self.old == 0 && self.new == 0 {
            return false;
        }
        let (of_old, of_new) = match line.bytes().next() {
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            Some(b'\\') => (0, 0),
            _ => (1, 1),
        };
        (self.old, self.new) = (self.old.saturating_sub(of_old), self.new.saturating_sub(of_new));
        true
    }
}

/// A name that cannot lead out of the tree, nor to what git keeps.
fn inside(name: &str) -> Result<String, String> {
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let clean =
        plain && !name.is_empty() && !name.starts_with('"') && !name.split('/').any(|part| part == ".git");
    if clean {
        Ok(name.to_owned())
    } else {
        Err(format!("names {name}, which is not a file below the kernel's top directory"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "A change.\n---\n fs/f2fs/file.c | 2 +-\n\ndiff --git a/fs/f2fs/file.c b/fs/f2fs/file.c\nindex 1..2 100644\n\
                       --- a/fs/f2fs/file.c\n+++ b/fs/f2fs/file.c\n@@ -1,3 +1,3 @@ int f(void)\n one\n-two\n+zwei\n three\n-- \n2.39.5\n";

    fn of(text: &str) -> Result<Patch, BuildError> {
        Patch::of(Path::new("x/mine.patch"), text.as_bytes().to_vec())
    }

    fn files(text: &str) -> Vec<String> {
        of(text).unwrap().touched.into_iter().collect()
    }

    #[test]
    fn touched_files_are_read_from_the_headers() {
        assert_eq!(files(ONE), ["fs/f2fs/file.c"]);
        let new = "--- /dev/null\t1970\n+++ b/fs/f2fs/new.c\t2024\n@@ -0,0 +1 @@\n+int x;\n";
        assert_eq!(files(&format!("{ONE}{new}")), ["fs/f2fs/file.c", "fs/f2fs/new.c"]);
        let bare = of(&ONE.replace("a/fs/", "fs/").replace("b/fs/", "fs/")).unwrap_err();
        assert!(bare.to_string().contains("names fs/f2fs/file.c without the directory in front"), "{bare}");
        let prose = "copy to userspace fails when the page is gone, and\nrename from the old way:\n";
        assert_eq!(files(&format!("{prose}{ONE}-- \n2.39\n{prose}")), ["fs/f2fs/file.c"]);
        let renamed =
            "diff --git a/a/b.c b/a/c.c\nsimilarity index 100%\nrename from a/b.c\nrename to a/c.c\n";
        assert_eq!(files(renamed), ["a/b.c", "a/c.c"]);
    }

    #[test]
    fn the_same_change_has_the_same_digest_whatever_the_mail_says() {
        let digest = |text: &str| of(text).unwrap().digest;
        let mail = ONE
            .replace("A change.", "From: somebody\nSubject: [PATCH v2] a change\n")
            .replace("index 1..2", "index 12345..67890")
            .replace(" @@ int f(void)", " @@ int g(void)")
            .replace("file.c\n@@", "file.c\t2024-05-01\n@@")
            .replace("2.39.5", "2.47.0");
        assert_ne!(mail, ONE);
        assert_eq!(digest(&mail), digest(ONE));
        for other in [
            ONE.replace("+zwei", "+drei"),
            ONE.replace("@@ -1,3 +1,3", "@@ -2,3 +2,3"),
            ONE.replace(" three", " four"),
        ] {
            assert_ne!(digest(&other), digest(ONE));
        }
        assert_ne!(digest(&ONE.replace("file.c", "data.c")), digest(ONE));
        let end = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n";
        assert_ne!(digest(end), digest(&format!("{end}\\ No newline at end of file\n")));
    }

    #[test]
    fn rights_and_empty_files_need_no_hunk() {
        let rights = "diff --git a/xy.sh b/xy.sh\nold mode 100644\nnew mode 100755\n";
        let empty = "diff --git a/new.c b/new.c\nnew file mode 100644\nindex 0000000..e69de29\n";
        let gone = "diff --git a/gone.c b/gone.c\ndeleted file mode 100644\nindex e69de29..0000000\n";
        assert_eq!(files(rights), ["xy.sh"]);
        let all = format!("{ONE}{rights}{empty}{gone}");
        assert_eq!(files(&all), ["fs/f2fs/file.c", "gone.c", "new.c", "xy.sh"]);
        assert!(of("diff --git a/../x b/../x\nold mode 100644\nnew mode 100755\n").is_err());
        let tree = tempfile::tempdir().unwrap();
        for (name, text) in [("fs/f2fs/file.c", "one\ntwo\nthree\n"), ("xy.sh", "x\n"), ("gone.c", "")] {
            super::super::tree::put(tree.path(), name, Some((text.as_bytes(), false))).unwrap();
        }
        of(&all).unwrap().apply(tree.path(), "linux").unwrap();
        assert!(super::super::tree::is_executable(&tree.path().join("xy.sh")));
        assert!(tree.path().join("new.c").is_file() && !tree.path().join("gone.c").exists());
    }

    #[test]
    fn a_mailbox_with_several_patches_of_one_file_applies_in_order() {
        let mail = |number: u32, before: &str, after: &str| {
            format!(
                "From 0123456789abcdef Mon Sep 17 00:00:00 2001\nSubject: [PATCH {number}/2] x\n\n---\n x | 2 +-\n\n\
                 diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n 1\n-{before}\n+{after}\n 3\n--\n2.39\n\n"
            )
        };
        let patch = of(&format!("{}{}", mail(1, "2", "two"), mail(2, "two", "TWO"))).unwrap();
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(tree.path().join("x"), "1\n2\n3\n").unwrap();
        assert!(patch.apply(tree.path(), "linux").unwrap().is_empty());
        assert_eq!(std::fs::read_to_string(tree.path().join("x")).unwrap(), "1\nTWO\n3\n");
    }

    #[test]
    fn lines_of_a_hunk_are_no_headers() {
        // A removed line `-- a/x` and an added one `++ b/x` look like headers.
        let text = "--- a/doc/x\n+++ b/doc/x\n@@ -1,2 +1,2 @@\n--- a/etc/one\n+++ b/etc/two\n same\n";
        assert_eq!(files(text), ["doc/x"]);
    }

    #[test]
    fn what_is_no_patch_is_said() {
        for (text, expected) in [
            ("", "is no unified diff"),
            ("hello\n", "is no unified diff"),
            ("--- a/x\n+++ b/x\n", "is no unified diff"),
            ("--- a/../../etc/x\n+++ b/../../etc/x\n@@ -1 +1 @@\n-a\n+b\n", "not a file below"),
            ("--- /etc/x\n+++ /etc/../x\n@@ -1 +1 @@\n-a\n+b\n", "not a file below"),
            ("--- a/.git/hooks/x\n+++ b/.git/hooks/x\n@@ -1 +1 @@\n-a\n+b\n", "not a file below"),
            ("--- file.c\n+++ file.c\n@@ -1 +1 @@\n-a\n+b\n", "without the directory in front"),
            ("--- a/x\n+++ b/x\n@@ -one +1 @@\n", "cannot be read"),
            ("diff --git a/x b/x\nGIT binary patch\n", "binary parts"),
            (
                "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n",
                "changes the symbolic link x: only files",
            ),
        ] {
            let message = of(text).unwrap_err().to_string();
            assert!(
                message.starts_with("patch x/mine.patch ") && message.contains(expected),
                "{text:?}: {message}"
            );
        }
    }

    #[test]
    fn a_hunk_that_fails_is_named_and_nothing_is_left() {
        let tree = tempfile::tempdir().unwrap();
        let file = tree.path().join("fs/f2fs/file.c");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
        let patch = of(ONE).unwrap();
        patch.apply(tree.path(), "linux").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\nzwei\nthree\n");
        let again = patch.apply(tree.path(), "linux").unwrap_err().to_string();
        assert_eq!(again, "x/mine.patch does not apply to linux: fs/f2fs/file.c has this change already");
        std::fs::write(&file, "1\n2\n3\n").unwrap();
        let failed = patch.apply(tree.path(), "linux").unwrap_err().to_string();
        assert_eq!(failed, "x/mine.patch does not apply to linux: hunk #1 fails at line 1 of fs/f2fs/file.c");
        std::fs::write(&file, "new\none\ntwo\nthree\n").unwrap();
        assert!(patch.apply(tree.path(), "linux").unwrap().is_empty(), "an offset is no doubt");
        std::fs::write(&file, "0\n1\ntwo\nthree\n").unwrap();
        let fuzzy = patch.apply(tree.path(), "linux").unwrap();
        assert_eq!(fuzzy, ["hunk #1 at line 2 of fs/f2fs/file.c"]);
        std::fs::remove_file(&file).unwrap();
        let gone = patch.apply(tree.path(), "linux").unwrap_err().to_string();
        assert!(gone.ends_with("there is no a/fs/f2fs/file.c"), "{gone}");
        assert_eq!(std::fs::read_dir(tree.path().join("fs/f2fs")).unwrap().count(), 0, "no .rej, no .orig");
    }
}
