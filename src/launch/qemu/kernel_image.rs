//! A kernel to boot: an image, its release, its modules and configuration.
//!
//! Enters: the path of an image or of a Debian package. Leaves: a [`KernelImage`]; a package is unpacked into the cache, never installed.
//! The header of an image: Documentation/arch/x86/boot.rst.

use std::cmp::Ordering;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::error::GuestError;
use super::module_files;
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
    /// That its modules may be those of another build, in words.
    pub(super) doubt: Option<String>,
}

impl KernelImage {
    /// Opens an image or package.
    ///
    /// # Errors
    /// [`GuestError`]: unreadable, or no kernel.
    pub(super) fn open(path: &Path) -> Result<KernelImage, GuestError> {
        let mut start = [0_u8; 8];
        let mut file = regular_file::open(path).map_err(GuestError::unfit("cannot open", path))?;
        if file.read_exact(&mut start).is_ok() && &start == b"!<arch>\n" {
            return KernelImage::packaged(path);
        }
        let image = path.to_owned();
        let release = release_of(&image)?;
        if let Some(tree) = built_tree(path) {
            let config = tree.join(".config");
            // Without any, all that is wanted is built in; what is installed may be of an earlier build. The list of them may be missing.
            let is_listed = std::fs::metadata(tree.join("modules.order")).is_ok_and(|order| order.len() > 0);
            let has_some = is_listed || !has_no_modules(&config) && module_files::has_some(&tree);
            let modules = Some(tree).filter(|_| has_some && may_have_modules(&config));
            let config = cache::digest_of(&config).ok();
            return Ok(KernelImage { image, release, modules, config, doubt: None });
        }
        let directory = image.parent().unwrap_or(Path::new("/"));
        let config = directory.join(format!("config-{release}"));
        let modules = modules_of(directory, &release).filter(|_| may_have_modules(&config));
        let config = cache::digest_of(&config).ok();
        Ok(KernelImage { image, release, modules, config, doubt: None })
    }

    /// Of a package, whose modules may lie in another one beside it: Ubuntu's `linux-modules-RELEASE`.
    fn packaged(package: &Path) -> Result<KernelImage, GuestError> {
        let root = unpacked(package)?;
        let image = image_in(&root, package)?;
        let release = release_of(&image)?;
        let config_in = |root: &Path| root.join(format!("boot/config-{release}"));
        let (config, own) = (config_in(&root), modules_below(&root, &release));
        if own.is_some() || has_no_modules(&config) {
            let modules = own.filter(|_| may_have_modules(&config));
            let config = cache::digest_of(&config).ok();
            return Ok(KernelImage { image, release, modules, config, doubt: None });
        }
        let lacks = || GuestError::NoModules { package: package.to_owned(), release: release.clone() };
        let beside = modules_beside(package, &release).ok_or_else(lacks)?;
        let other = unpacked(&beside.path)?;
        let modules = Some(modules_below(&other, &release).ok_or_else(lacks)?);
        let config = [config, config_in(&other)].iter().find_map(|config| cache::digest_of(config).ok());
        let doubt = (!beside.is_of_image).then(|| of_another_version(package, &beside.path));
        Ok(KernelImage { image, release, modules, config, doubt })
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

/// Whether it says that there are none: it has a configuration, in which nothing is a module.
fn has_no_modules(config: &Path) -> bool {
    let text = regular_file::read_text(config, MOST_CONFIG_BYTES);
    text.is_ok_and(|text| !text.lines().any(|line| line.ends_with("=m")))
}

/// The tree in which an image was built, if it still lies where make put it.
pub(super) fn built_tree(image: &Path) -> Option<PathBuf> {
    let image = image.canonicalize().ok().filter(|image| image.ends_with("arch/x86/boot/bzImage"))?;
    let tree = image.ancestors().nth(4)?;
    tree.join(".config").is_file().then(|| tree.to_owned())
}

/// A package with the modules of a kernel.
struct Beside {
    path: PathBuf,
    /// Whether it has the version of the image's package: an image of another build refuses its modules, or is not what they were made for.
    is_of_image: bool,
}

/// The package with the modules of a kernel: that of the image's version, or else the one of the highest.
fn modules_beside(package: &Path, release: &str) -> Option<Beside> {
    let beside = package.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let start = format!("linux-modules-{release}_");
    let is_of_modules = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&start) && name.ends_with(".deb")
    };
    let entries = std::fs::read_dir(beside).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_of_modules).collect();
    all.sort_by(|one, other| by_version(&version_of(one), &version_of(other)).then_with(|| one.cmp(other)));
    let own = version_of(package);
    if own.is_empty() && all.len() == 1 {
        return all.pop().map(|path| Beside { path, is_of_image: true });
    }
    match all.iter().find(|path| version_of(path) == own) {
        Some(path) => Some(Beside { path: path.clone(), is_of_image: true }),
        None => all.pop().map(|path| Beside { path, is_of_image: false }),
    }
}

fn of_another_version(package: &Path, modules: &Path) -> String {
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    format!(
        "the modules of {} are those of {}, whose version is not that of the image",
        name(package),
        name(modules)
    )
}

/// The version in the name of a package: `linux-image-…_6.8.0-31.31_amd64.deb`; empty where it has none.
fn version_of(package: &Path) -> String {
    let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.split('_').nth(1).unwrap_or_default().to_owned()
}

/// As dpkg(1) orders versions (deb-version(7)): numbers by their value, `~` before the end, letters before all else.
fn by_version(one: &str, other: &str) -> Ordering {
    let split = |text: &str, is_digit: bool| {
        let end = text.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(text.len());
        (text[..end].to_owned(), text[end..].to_owned())
    };
    let weight = |text: &str| -> Vec<u32> {
        let of = |c: char| match c {
            '~' => 0,
            c if c.is_ascii_alphabetic() => u32::from(c),
            c => u32::from(c) + 0x200,
        };
        // The end lies between `~` and all else.
        text.chars().map(of).chain([1]).collect()
    };
    let (mut one, mut other) = (one.to_owned(), other.to_owned());
    while !one.is_empty() || !other.is_empty() {
        let ((a, rest), (b, other_rest)) = (split(&one, false), split(&other, false));
        let ((number, rest), (other_number, other_rest)) = (split(&rest, true), split(&other_rest, true));
        let value = |digits: &str| digits.parse::<u64>().unwrap_or_default();
        let order = weight(&a).cmp(&weight(&b)).then(value(&number).cmp(&value(&other_number)));
        if order != Ordering::Equal {
            return order;
        }
        (one, other) = (rest, other_rest);
    }
    Ordering::Equal
}

fn modules_below(root: &Path, release: &str) -> Option<PathBuf> {
    let places = ["lib/modules", "usr/lib/modules"].map(|place| root.join(place).join(release));
    places.into_iter().find(|place| place.is_dir())
}

fn modules_of(directory: &Path, release: &str) -> Option<PathBuf> {
    let below =
        [directory.to_owned(), directory.parent().unwrap_or(directory).to_owned(), PathBuf::from("/")];
    below.iter().find_map(|root| modules_below(root, release))
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
    fn an_image_in_its_tree_has_the_trees_modules() {
        let tree = tempfile::tempdir().unwrap();
        let boot = tree.path().join("arch/x86/boot");
        std::fs::create_dir_all(&boot).unwrap();
        let path = boot.join("bzImage");
        std::fs::write(&path, image("6.99.0+ (x@y) #1 SMP")).unwrap();
        std::fs::write(tree.path().join(".config"), "CONFIG_MODULES=y\nCONFIG_XFS_FS=m\n").unwrap();
        let open = || KernelImage::open(&path).unwrap();
        assert_eq!(open().modules, None, "no module was built");
        std::fs::write(tree.path().join("modules.order"), "fs/xfs/xfs.o\n").unwrap();
        assert_eq!(open().modules, Some(tree.path().canonicalize().unwrap()));
        // After `make fs/xfs/xfs.ko` the list may be missing.
        std::fs::remove_file(tree.path().join("modules.order")).unwrap();
        std::fs::create_dir_all(tree.path().join("fs/xfs")).unwrap();
        std::fs::write(tree.path().join("fs/xfs/xfs.ko"), "x").unwrap();
        assert_eq!(open().modules, Some(tree.path().canonicalize().unwrap()));
        assert!(open().config.is_some());
        std::fs::write(tree.path().join(".config"), "# CONFIG_MODULES is not set\n").unwrap();
        assert_eq!(open().modules, None);
    }

    /// A package with these files.
    fn package(place: &Path, name: &str, files: &[(&str, &[u8])]) -> Option<PathBuf> {
        let root = place.join(format!("{name}.files"));
        let control = format!(
            "Package: {}\nVersion: 1\nArchitecture: all\nMaintainer: x <x@y>\nDescription: x\n",
            name.split('_').next()?
        );
        for (file, bytes) in [("DEBIAN/control", control.as_bytes())].iter().chain(files) {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent()?).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let path = place.join(name);
        let made = std::process::Command::new("dpkg-deb").arg("--build").arg(&root).arg(&path).output();
        made.is_ok_and(|made| made.status.success()).then_some(path)
    }

    #[test]
    fn a_packages_modules_may_lie_in_a_package_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let release = format!("6.98.{}-generic", std::process::id());
        let (bytes, boot) = (image(&format!("{release} (x@y) #1")), format!("boot/vmlinuz-{release}"));
        let name = format!("linux-image-unsigned-{release}_6.98_amd64.deb");
        let Some(path) = package(place.path(), &name, &[(&boot, &bytes)]) else { return };
        let refused = KernelImage::open(&path).unwrap_err();
        assert!(refused.to_string().contains(&format!("linux-modules-{release}_")), "{refused}");
        let module = format!("lib/modules/{release}/kernel/x.ko");
        package(place.path(), &format!("linux-modules-{release}_6.98_amd64.deb"), &[(&module, b"x")])
            .unwrap();
        let kernel = KernelImage::open(&path).unwrap();
        assert!(kernel.modules.unwrap().join("kernel/x.ko").is_file());
        // Of several the one of the image's version.
        assert_eq!(KernelImage::open(&path).unwrap().doubt, None);
        package(place.path(), &format!("linux-modules-{release}_6.99_amd64.deb"), &[(&module, b"other")])
            .unwrap();
        let kernel = KernelImage::open(&path).unwrap();
        assert_eq!(std::fs::read(kernel.modules.unwrap().join("kernel/x.ko")).unwrap(), b"x");
        let older = place.path().join(format!("linux-image-unsigned-{release}_6.97_amd64.deb"));
        std::fs::copy(&path, &older).unwrap();
        let kernel = KernelImage::open(&older).unwrap();
        assert_eq!(std::fs::read(kernel.modules.unwrap().join("kernel/x.ko")).unwrap(), b"other");
        let doubt = kernel.doubt.unwrap();
        assert!(doubt.ends_with("_6.99_amd64.deb, whose version is not that of the image"), "{doubt}");
        // One that says that all is built in needs none.
        let config = format!("boot/config-{release}");
        let whole = [(boot.as_str(), bytes.as_slice()), (&config, b"CONFIG_MODULES=y\nCONFIG_XFS_FS=y\n")];
        let other = place.path().join("other");
        std::fs::create_dir(&other).unwrap();
        let path = package(&other, &name, &whole).unwrap();
        assert_eq!(KernelImage::open(&path).unwrap().modules, None);
    }

    #[test]
    fn versions_are_ordered_as_dpkg_does() {
        let ordered =
            ["6.8.0-9.9", "6.8.0-31.31~22.04.1", "6.8.0-31.31", "6.8.0-31.31+a", "6.8.0-100.1", "6.10"];
        for pair in ordered.windows(2) {
            assert_eq!(by_version(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(by_version(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(by_version("6.08", "6.8"), Ordering::Equal);
        assert_eq!(
            version_of(Path::new("/x/linux-image-6.8.0-31-generic_6.8.0-31.31_amd64.deb")),
            "6.8.0-31.31"
        );
        assert_eq!(version_of(Path::new("kernel.deb")), "");
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
