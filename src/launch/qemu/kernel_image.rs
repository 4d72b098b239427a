//! A kernel to boot: an image, its release, its modules and configuration.
//!
//! Enters: the path of an image or of a Debian package. Leaves: a [`KernelImage`]; a package is unpacked into the cache, never installed.
//! The header of an image: Documentation/arch/x86/boot.rst.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::GuestError;
use super::package::unpacked;
use crate::sys::cache;
use crate::sys::regular_file;

/// What is booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelImage {
    /// The file the loader takes.
    pub(super) image: PathBuf,
    /// As `uname -r` will say.
    pub(super) release: String,
    /// `…/lib/modules/RELEASE`; `None`: there is none, all that is needed must be built in.
    pub(super) modules: Option<PathBuf>,
    /// Digest of `config-RELEASE`, where that lies beside the image.
    pub(super) config: Option<String>,
}

impl KernelImage {
    /// Opens an image or package.
    ///
    /// # Errors
    /// [`GuestError`]: unreadable, or no kernel.
    pub(super) fn open(path: &Path) -> Result<KernelImage, GuestError> {
        let mut start = [0_u8; 8];
        let mut file = regular_file::open(path).map_err(GuestError::unfit("cannot open", path))?;
        let is_package = file.read_exact(&mut start).is_ok() && &start == b"!<arch>\n";
        let image = if is_package { image_in(&unpacked(path)?, path)? } else { path.to_owned() };
        let release = release_of(&image)?;
        let directory = image.parent().unwrap_or(Path::new("/"));
        let config = directory.join(format!("config-{release}"));
        let modules = modules_of(directory, &release).filter(|_| may_have_modules(&config));
        let config = cache::digest_of(&config).ok();
        Ok(KernelImage { image, release, modules, config })
    }

    /// Where modules are, or would be.
    pub(super) fn modules_place(&self) -> PathBuf {
        self.modules.clone().unwrap_or_else(|| Path::new("/lib/modules").join(&self.release))
    }
}

/// A larger file is no configuration.
const MOST_CONFIG_BYTES: u64 = 4 << 20;

/// Whether a kernel of this configuration can load any: one that cannot may have the release of another, whose modules are not its own.
fn may_have_modules(config: &Path) -> bool {
    let text = regular_file::read_text(config, MOST_CONFIG_BYTES);
    text.map_or(true, |text| !text.lines().any(|line| line == "# CONFIG_MODULES is not set"))
}

fn modules_of(directory: &Path, release: &str) -> Option<PathBuf> {
    let below =
        [directory.to_owned(), directory.parent().unwrap_or(directory).to_owned(), PathBuf::from("/")];
    let places = below.iter().flat_map(|root| [root.join("lib/modules"), root.join("usr/lib/modules")]);
    places.map(|place| place.join(release)).find(|place| place.is_dir())
}

/// The release in the header of an x86 image.
fn release_of(image: &Path) -> Result<String, GuestError> {
    let wrong = |found: &str| GuestError::NoKernel { path: image.to_owned(), found: found.to_owned() };
    let mut file = regular_file::open(image).map_err(GuestError::unfit("cannot open", image))?;
    let mut header = [0_u8; 0x210];
    file.read_exact(&mut header).map_err(|_| wrong("too short for a kernel"))?;
    if header.starts_with(b"\x7fELF") {
        return Err(wrong("an ELF file (a vmlinux?), which is not the compressed image that boots"));
    }
    if &header[0x202..0x206] != b"HdrS" {
        return Err(wrong("no x86 Linux kernel: it has no boot header"));
    }
    // The pointer is relative to the setup code, which begins at 0x200.
    let at = u64::from(u16::from_le_bytes([header[0x20e], header[0x20f]])) + 0x200;
    let mut text = [0_u8; 128];
    file.seek(SeekFrom::Start(at)).map_err(GuestError::io("cannot read", image))?;
    let read = file.read(&mut text).map_err(GuestError::io("cannot read", image))?;
    let version = String::from_utf8_lossy(text[..read].split(|byte| *byte == 0).next().unwrap_or_default());
    match version.split_whitespace().next() {
        Some(release) if release.starts_with(|c: char| c.is_ascii_digit()) => Ok(release.to_owned()),
        _ => Err(wrong("a kernel that does not say its release")),
    }
}

/// The image in an unpacked package.
fn image_in(root: &Path, package: &Path) -> Result<PathBuf, GuestError> {
    let entries = std::fs::read_dir(root.join("boot")).into_iter().flatten().flatten();
    let mut images: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.is_file()
                && path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
        })
        .collect();
    images.sort();
    images.pop().ok_or_else(|| GuestError::NoKernel {
        path: package.to_owned(),
        found: "a package without boot/vmlinuz-*".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with this version text.
    fn image(version: &str) -> Vec<u8> {
        let mut bytes = vec![0_u8; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        bytes[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        bytes
    }

    #[test]
    fn an_image_says_its_release_and_finds_its_modules() {
        let root = tempfile::tempdir().unwrap();
        let boot = root.path().join("boot");
        std::fs::create_dir_all(root.path().join("lib/modules/6.1.0-1-amd64")).unwrap();
        std::fs::create_dir(&boot).unwrap();
        let path = boot.join("vmlinuz-6.1.0-1-amd64");
        std::fs::write(&path, image("6.1.0-1-amd64 (x@debian.org) #1 SMP")).unwrap();
        std::fs::write(boot.join("config-6.1.0-1-amd64"), "").unwrap();
        let kernel = KernelImage::open(&path).unwrap();
        assert_eq!(kernel.release, "6.1.0-1-amd64");
        assert_eq!(kernel.modules, Some(root.path().join("lib/modules/6.1.0-1-amd64")));
        assert_eq!(kernel.config.as_deref(), Some("ef46db3751d8e999"));
        std::fs::write(boot.join("config-6.1.0-1-amd64"), "# CONFIG_MODULES is not set\n").unwrap();
        assert_eq!(KernelImage::open(&path).unwrap().modules, None, "those are of another kernel");
    }

    #[test]
    fn what_is_no_kernel_is_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let said = |bytes: &[u8]| {
            let path = root.path().join("file");
            std::fs::write(&path, bytes).unwrap();
            KernelImage::open(&path).unwrap_err().to_string()
        };
        assert!(said(b"short").ends_with("is too short for a kernel"));
        assert!(said(&[0; 0x400]).ends_with("it has no boot header"));
        assert!(said(&image("linux")).ends_with("does not say its release"));
        let mut vmlinux = vec![0; 0x400];
        vmlinux[..4].copy_from_slice(b"\x7fELF");
        assert!(said(&vmlinux).contains("a vmlinux?"));
    }
}
