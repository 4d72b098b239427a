//! An archive as the kernel unpacks it into its first root: cpio's "newc" form.
//!
//! Enters: paths with what they are. Leaves: bytes. Format: Documentation/driver-api/early-userspace/buffer-format.rst.

use std::collections::BTreeMap;

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A directory.
    Directory,
    /// A file, with its permissions.
    File(Vec<u8>, u32),
    /// A symbolic link to this path.
    Link(String),
    /// A character device with its two numbers.
    Device(u32, u32),
}

/// The archive of these paths, which begin with `/`; directories above them are added. The same entries give the same bytes.
pub(super) fn archive(entries: &BTreeMap<String, Entry>) -> Vec<u8> {
    let mut all: BTreeMap<&str, &Entry> = BTreeMap::new();
    for (path, entry) in entries {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
            all.entry(&path[1..at]).or_insert(&Entry::Directory);
        }
        all.insert(&path[1..], entry);
    }
    let mut bytes = Vec::new();
    for (number, (path, entry)) in all.iter().enumerate() {
        let (mode, data, device): (u32, &[u8], (u32, u32)) = match entry {
            Entry::Directory => (0o040_755, &[], (0, 0)),
            Entry::File(data, permissions) => (0o100_000 | permissions, data, (0, 0)),
            Entry::Link(to) => (0o120_777, to.as_bytes(), (0, 0)),
            Entry::Device(major, minor) => (0o020_600, &[], (*major, *minor)),
        };
        member(&mut bytes, number as u32 + 1, path, mode, data, device);
    }
    member(&mut bytes, 0, "TRAILER!!!", 0, &[], (0, 0));
    bytes
}

fn member(bytes: &mut Vec<u8>, inode: u32, path: &str, mode: u32, data: &[u8], device: (u32, u32)) {
    let links = if mode & 0o170_000 == 0o040_000 { 2 } else { 1 };
    let name_size = path.len() as u32 + 1;
    // inode, mode, owner, group, links, time, size, device, device of a device, size of the name, no checksum.
    let fields = [inode, mode, 0, 0, links, 0, data.len() as u32, 0, 0, device.0, device.1, name_size, 0];
    bytes.extend(b"070701");
    fields.iter().for_each(|field| bytes.extend(format!("{field:08x}").bytes()));
    bytes.extend(path.bytes());
    bytes.push(0);
    pad(bytes);
    bytes.extend(data);
    pad(bytes);
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_as_the_format_has_them() {
        let entries = BTreeMap::from([
            ("/dev/console".to_owned(), Entry::Device(5, 1)),
            ("/init".to_owned(), Entry::File(b"hello".to_vec(), 0o755)),
        ]);
        let bytes = archive(&entries);
        let text = String::from_utf8_lossy(&bytes);
        let names: Vec<usize> = ["dev\0", "dev/console\0", "init\0", "TRAILER!!!\0"]
            .iter()
            .map(|name| text.find(name).unwrap())
            .collect();
        assert!(names.is_sorted(), "directories come first: {names:?}");
        let start = names[2] - 110;
        assert_eq!(&text[start..start + 6], "070701");
        assert_eq!(&text[start + 14..start + 22], "000081ed", "a file, rwxr-xr-x");
        assert_eq!(&text[start + 54..start + 62], "00000005", "its size");
        // The name ends at 115, so data begins at the next multiple of 4.
        assert_eq!(&bytes[start + 116..start + 121], b"hello");
        assert_eq!(bytes.len() % 4, 0);
    }
}
