//! What a kernel needs out of a tar archive that anybody may have made: regular files below `boot/` and `lib/modules/`.
//!
//! Enters: the bytes of an archive (POSIX ustar, with GNU's and pax's long names), a directory that is empty. Leaves: files in it.
//! Devices, FIFOs and links are left out, no name leads out of the directory, and members, bytes and lengths of names are
//! bounded. It must not know what a kernel is.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

const BLOCK: usize = 512;
/// Most members of an archive; a kernel with all its modules has 10,000.
const MOST_MEMBERS: usize = 200_000;
/// Most bytes of an archive.
pub(super) const MOST_BYTES: u64 = 4 << 30;
/// Most bytes of a member that only carries the name of the next.
const MOST_NAME: u64 = 64 << 10;
/// What is taken out of the archive.
const TAKEN: [&str; 3] = ["boot", "lib/modules", "usr/lib/modules"];

/// Unpacks an archive below `root`.
///
/// # Errors
/// The archive is damaged or too large, or a file cannot be made; [`ErrorKind::UnexpectedEof`]: it is cut.
pub(super) fn unpack(archive: impl Read, root: &Path) -> Result<()> {
    // One byte more, so that the limit is noticed.
    let mut archive = archive.take(MOST_BYTES + 1);
    let mut named = None;
    let mut made = BTreeSet::new();
    for _ in 0..MOST_MEMBERS {
        let Some(member) = Member::next(&mut archive)? else { return Ok(()) };
        match member.kind {
            b'L' => named = Some(text(&content(&mut archive, member.bytes)?)),
            b'x' => named = pax_path(&content(&mut archive, member.bytes)?).or(named),
            b'0' | b'\0' | b'7' => {
                let name = named.take().unwrap_or(member.name);
                match place_of(&name).filter(|path| TAKEN.iter().any(|taken| path.starts_with(taken))) {
                    Some(path) => copy(&mut archive, member.bytes, root, &path, &mut made)?,
                    None => skip(&mut archive, member.bytes)?,
                }
                skip(&mut archive, padding(member.bytes))?;
                continue;
            }
            _ => {
                named = None;
                skip(&mut archive, member.bytes)?;
            }
        }
        skip(&mut archive, padding(member.bytes))?;
    }
    Err(bad("the archive has too many members"))
}

fn bad(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

fn cut() -> Error {
    Error::new(ErrorKind::UnexpectedEof, "the archive is cut, or too large")
}

/// Bytes up to the next block.
fn padding(bytes: u64) -> u64 {
    bytes.next_multiple_of(BLOCK as u64) - bytes
}

/// The head of a member.
struct Member {
    name: String,
    bytes: u64,
    kind: u8,
}

impl Member {
    /// `None` at the end of the archive.
    fn next(archive: &mut impl Read) -> Result<Option<Member>> {
        let mut head = [0_u8; BLOCK];
        archive.read_exact(&mut head).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => cut(),
            _ => error,
        })?;
        if head.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum: u64 = head
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
            .sum();
        if octal(&head[148..156]) != Some(sum) {
            return Err(bad("the archive is damaged: a checksum is wrong"));
        }
        let bytes = octal(&head[124..136]).filter(|bytes| *bytes <= MOST_BYTES);
        let bytes = bytes.ok_or_else(|| bad("the archive has a member that is too large"))?;
        let prefix =
            if &head[257..262] == b"ustar" && head[262] == 0 { text(&head[345..500]) } else { String::new() };
        let name = text(&head[..100]);
        let name = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        // Directories are made for what is in them; links and others have no content, whatever is said of it.
        let kind = head[156];
        let bytes = if (b'1'..=b'6').contains(&kind) { 0 } else { bytes };
        Ok(Some(Member { name, bytes, kind }))
    }
}

/// A number in octal digits.
fn octal(field: &[u8]) -> Option<u64> {
    u64::from_str_radix(text(field).trim(), 8).ok()
}

/// The text before a zero byte.
fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}

fn content(archive: &mut impl Read, bytes: u64) -> Result<Vec<u8>> {
    if bytes > MOST_NAME {
        return Err(bad("the archive has a name that is too long"));
    }
    let mut content = vec![0; bytes as usize];
    archive.read_exact(&mut content)?;
    Ok(content)
}

fn skip(archive: &mut impl Read, bytes: u64) -> Result<()> {
    match std::io::copy(&mut archive.take(bytes), &mut std::io::sink())? {
        skipped if skipped == bytes => Ok(()),
        _ => Err(cut()),
    }
}

/// `25 path=NAME\n` among the lines of a pax head.
fn pax_path(content: &[u8]) -> Option<String> {
    let lines = content.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    lines.rev().find_map(|line| Some(line.split_once(' ')?.1.strip_prefix("path=")?.to_owned()))
}

/// The path below the root, when the name stays there.
fn place_of(name: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    path.file_name()?;
    Some(path)
}

/// Makes a file that was not there; there are no links below the root that could lead elsewhere.
fn copy(
    archive: &mut impl Read,
    bytes: u64,
    root: &Path,
    path: &Path,
    made: &mut BTreeSet<PathBuf>,
) -> Result<()> {
    let above = path.parent().unwrap_or(Path::new(""));
    if made.insert(above.to_owned()) {
        std::fs::create_dir_all(root.join(above))?;
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o644).open(root.join(path))?;
    match std::io::copy(&mut archive.take(bytes), &mut file)? {
        copied if copied == bytes => Ok(()),
        _ => Err(bad("the archive is cut, or too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut head = [0_u8; BLOCK];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        head[156] = kind;
        head[257..263].copy_from_slice(b"ustar\0");
        head[148..156].fill(b' ');
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let mut bytes = head.to_vec();
        bytes.extend(content);
        bytes.resize(bytes.len() + padding(content.len() as u64) as usize, 0);
        bytes
    }

    fn unpacked(members: &[Vec<u8>]) -> (tempfile::TempDir, Result<()>) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let archive = [members.concat(), vec![0; 2 * BLOCK]].concat();
        let result = unpack(&*archive, &root);
        (place, result)
    }

    fn names(below: &Path) -> Vec<String> {
        let mut names = Vec::new();
        let mut open = vec![below.to_owned()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    open.push(entry.path());
                } else {
                    names.push(entry.path().strip_prefix(below).unwrap().display().to_string());
                }
            }
        }
        names.sort();
        names
    }

    #[test]
    fn only_files_that_a_kernel_needs_are_unpacked() {
        let long = format!("./lib/modules/6.1/{}/a.ko", "x".repeat(120));
        let pax = format!("999 path={}\n", long.replace("a.ko", "b.ko"));
        let (place, result) = unpacked(&[
            member("./boot/", b'5', b""),
            member("./boot/vmlinuz-6.1", b'0', &[7; 1000]),
            member("./usr/share/doc/x", b'0', b"text"),
            member("./boot/fifo", b'6', b""),
            member("./boot/zero", b'3', b""),
            member("./boot/link", b'2', b""),
            member("../../boot/up", b'0', b"up"),
            member("./boot/../../up", b'0', b"up"),
            member("/boot/rooted", b'0', b"up"),
            member("././@LongLink", b'L', long.as_bytes()),
            member("cut", b'0', b"module"),
            member("head", b'x', pax.as_bytes()),
            member("cut", b'0', b"module"),
        ]);
        result.unwrap();
        let found = names(place.path());
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0], "root/boot/vmlinuz-6.1");
        assert!(found[1].ends_with("/a.ko") && found[2].ends_with("/b.ko"), "{found:?}");
        assert_eq!(std::fs::read(place.path().join(&found[0])).unwrap(), [7; 1000]);
    }

    #[test]
    fn what_is_damaged_twice_there_or_too_much_is_refused() {
        let said = |members: &[Vec<u8>]| unpacked(members).1.unwrap_err().to_string();
        let mut damaged = member("boot/a", b'0', b"");
        damaged[0] ^= 1;
        assert!(said(&[damaged]).contains("checksum"));
        assert!(said(&[member("boot/a", b'0', b"1"), member("boot/a", b'0', b"2")]).contains("exists"));
        assert!(said(&[member("l", b'L', &[b'x'; 70 << 10])]).contains("too long"));
        assert!(unpack(&member("boot/a", b'0', b"")[..100], Path::new("/nowhere")).is_err());
        // An archive without an end.
        let one = member("doc", b'0', b"");
        let endless = Endless { one, at: 0 };
        assert!(unpack(endless, Path::new("/nowhere")).unwrap_err().to_string().contains("too many members"));
    }

    struct Endless {
        one: Vec<u8>,
        at: usize,
    }

    impl Read for Endless {
        fn read(&mut self, into: &mut [u8]) -> Result<usize> {
            let length = into.len().min(self.one.len() - self.at);
            into[..length].copy_from_slice(&self.one[self.at..self.at + length]);
            self.at = (self.at + length) % self.one.len();
            Ok(length)
        }
    }
}
