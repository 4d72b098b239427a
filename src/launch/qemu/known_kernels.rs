//! The kernels that can be found without being named: for `kernel=newest`, and for people to see.
//!
//! Enters: directories. Leaves: [`KnownKernel`]s; nothing is unpacked, a package says its release by its name. This is the only
//! list of such places.

use std::cmp::Reverse;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::kernel_image::KernelImage;
use crate::sys::cache;
use crate::sys::private_directory::trusted_file;
use crate::sys::regular_file::{self, Unfit};

/// Flavours that stand behind the plain kernel of the same release.
const FLAVOURS: [&str; 4] = ["rt", "cloud", "lowlatency", "debug"];

/// A kernel that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownKernel {
    /// As `uname -r` will say.
    pub(super) release: String,
    /// The image or package.
    pub(super) path: PathBuf,
    /// Whether `newest` may take it: it lies where kernels are put to be booted, with its modules.
    pub(super) offered: bool,
}

/// Where is looked.
struct Places {
    /// Packages, and images with their modules.
    put: Vec<PathBuf>,
    /// Images that somebody points at.
    beside: Option<PathBuf>,
    /// Packages as they were unpacked, a directory each.
    unpacked: Option<PathBuf>,
}

impl Places {
    /// `target/kernels` (where `make kernels` puts them), `~/.cache/assay/kernels` and `/boot`.
    fn here(beside: Option<&Path>) -> Places {
        let cached = cache::place("kernels");
        let mut put = vec![PathBuf::from("target/kernels"), PathBuf::from("/boot")];
        let by_hand = cache::put_by_hand().filter(|place| Some(place) != cached.as_ref());
        put.splice(1..1, cached.iter().cloned().chain(by_hand));
        Places { put, beside: beside.map(Path::to_owned), unpacked: cached }
    }

    /// All of them, each release once: rather what was put there than what was unpacked.
    fn kernels(&self) -> Vec<KnownKernel> {
        let mut found: Vec<KnownKernel> =
            self.put.iter().flat_map(|place| in_directory(place, true)).collect();
        found.extend(self.beside.iter().flat_map(|place| in_directory(place, false)));
        let unpacked =
            self.unpacked.iter().flat_map(|place| entries(place)).map(|package| package.join("boot"));
        found.extend(unpacked.flat_map(|boot| in_directory(&boot, false)));
        // Stable: the first of a release stays.
        found.sort_by(|a, b| {
            order(&a.release).cmp(&order(&b.release)).then_with(|| a.release.cmp(&b.release))
        });
        found.dedup_by(|later, first| {
            let same = later.release == first.release;
            if same && later.offered && !first.offered {
                std::mem::swap(later, first);
            }
            same
        });
        found
    }
}

/// Where packages of kernels are put.
pub(super) fn packages() -> Vec<PathBuf> {
    let places = Places::here(None);
    places.put.iter().filter_map(|place| std::path::absolute(place).ok()).collect()
}

/// All kernels that are known here, the oldest first; those beside `beside`, too.
pub(super) fn all(beside: &Path) -> Vec<KnownKernel> {
    Places::here(Some(beside)).kernels()
}

/// Releases and files of all kernels that are found here, the oldest first; those beside `beside`, too.
#[must_use]
pub fn known_releases(beside: &Path) -> Vec<(String, PathBuf)> {
    let absolute = |kernel: KnownKernel| Some((kernel.release, std::path::absolute(kernel.path).ok()?));
    all(beside).into_iter().filter_map(absolute).collect()
}

/// An image that only its owner may read, as Ubuntu's in `/boot`: it is known to nobody else.
#[must_use]
pub fn unreadable_kernel() -> Option<PathBuf> {
    unreadable_in(&Places::here(None).put)
}

fn unreadable_in(places: &[PathBuf]) -> Option<PathBuf> {
    let is_closed = |path: &PathBuf| {
        let is_denied =
            |unfit: Unfit| matches!(unfit, Unfit::Io(error) if error.kind() == ErrorKind::PermissionDenied);
        is_image(path) && regular_file::open(path).is_err_and(is_denied)
    };
    let closed = places.iter().flat_map(|place| entries(place)).filter(is_closed);
    // Links without a number are the lowest.
    closed.max_by_key(|path| order(&path.file_name().unwrap_or_default().to_string_lossy()))
}

/// By its name.
fn is_image(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ["vmlinuz", "bzImage"].iter().any(|start| name.starts_with(start))
}

/// The package or image with the highest release, the plain flavour first: in `target/kernels`,
/// `~/.cache/assay/kernels`, and `/boot` as far as there are modules for it.
#[must_use]
pub fn newest_kernel() -> Option<PathBuf> {
    newest(&Places::here(None).kernels()).and_then(|path| std::path::absolute(path).ok())
}

/// The same of the version that the package of a source has in its name, or a tree in its Makefile; `None`: there is none of that version.
#[must_use]
pub fn newest_kernel_of(source: &Path) -> Option<PathBuf> {
    let all = of_version(source, Places::here(None).kernels());
    newest(&all).and_then(|path| std::path::absolute(path).ok())
}

/// The kernels whose release or package has the first three numbers of a source's package: `6.12.117+deb12-amd64`, or
/// `linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb` of `linux-source-6.1_6.1.192-2_all.deb`.
fn of_version(source: &Path, mut all: Vec<KnownKernel>) -> Vec<KnownKernel> {
    let three = |text: &str| numbers(text).into_iter().take(3).collect::<Vec<i64>>();
    let of_package = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split('_').nth(1).map(three)
    };
    let of_tree =
        || makefiles_version(&regular_file::read_text(&source.join("Makefile"), MOST_MAKEFILE).ok()?);
    let Some(wanted) = of_package(source).or_else(of_tree).filter(|version| version.len() == 3) else {
        return Vec::new();
    };
    all.retain(|kernel| {
        three(&kernel.release) == wanted || of_package(&kernel.path).as_ref() == Some(&wanted)
    });
    all
}

/// A larger one is no Makefile of a kernel.
const MOST_MAKEFILE: u64 = 1 << 20;

/// The three numbers at the top of a kernel's Makefile.
fn makefiles_version(text: &str) -> Option<Vec<i64>> {
    let number = |key: &str| {
        let line = text.lines().take(10).find_map(|line| line.strip_prefix(key))?;
        line.trim().strip_prefix('=')?.trim().parse().ok()
    };
    ["VERSION", "PATCHLEVEL", "SUBLEVEL"].into_iter().map(number).collect()
}

/// Why no source of a kernel is taken that nobody named.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSource {
    /// There is none.
    #[error("no source of a kernel is found to build")]
    Absent,
    /// There is one.
    #[error("{} is not built unless it is named, as its makefiles would be run: {reason}", path.display())]
    PassedOver {
        /// The newest.
        path: PathBuf,
        /// Who else can change it.
        reason: String,
    },
}

/// The Debian package of a kernel's source with the highest version, where packages of kernels are put, or what such a one has installed.
///
/// # Errors
/// There is none; or none that only root and this user can have put there: building it runs its makefiles, and nobody named it.
pub fn newest_source() -> Result<PathBuf, NoSource> {
    newest_source_in(packages().into_iter().chain([PathBuf::from("/usr/src")]))
}

fn newest_source_in(places: impl Iterator<Item = PathBuf>) -> Result<PathBuf, NoSource> {
    let version = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let version = name.strip_prefix("linux-source-").map(numbers)?;
        [".deb", ".tar.xz"].iter().any(|end| name.ends_with(end)).then_some(version)
    };
    let mut all: Vec<(Vec<i64>, PathBuf)> = places
        .flat_map(|place| entries(&place))
        .filter_map(|path| version(&path).map(|version| (version, path)))
        .collect();
    all.sort();
    let mut refused = None;
    for (_, path) in all.into_iter().rev() {
        match trusted_file(&path) {
            Ok(()) => return Ok(path),
            Err(reason) => refused = refused.or(Some(NoSource::PassedOver { path, reason })),
        }
    }
    Err(refused.unwrap_or(NoSource::Absent))
}

/// What `newest` takes of these.
pub(super) fn newest(known: &[KnownKernel]) -> Option<&Path> {
    let offered = known.iter().filter(|kernel| kernel.offered);
    offered.max_by_key(|kernel| order(&kernel.release)).map(|kernel| kernel.path.as_path())
}

/// What comes later is newer, and of the same numbers the plain flavour.
fn order(release: &str) -> (Vec<i64>, bool) {
    let plain = !release.split(['-', '+']).any(|word| FLAVOURS.contains(&word));
    (numbers(release), plain)
}

/// `6.12.100-1` as 6, 12, 100, 1 and an end; `6.13-rc7` as 6, 13, −1, 7 and an end: a candidate comes before what it is a candidate for.
fn numbers(text: &str) -> Vec<i64> {
    const CANDIDATE: i64 = -1;
    const END: i64 = 0;
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let of = |word: &str| {
        let candidate = word.strip_prefix("rc").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let digits = word.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok());
        candidate.map(|_| CANDIDATE).into_iter().chain(digits).collect::<Vec<i64>>()
    };
    words.flat_map(of).chain([END]).collect()
}

/// Entries that somebody meant to be there: what is being unpacked begins with a dot.
fn entries(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let shown = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    shown.map(|entry| entry.path()).collect()
}

/// Packages and images of a directory; of several packages of a release the one with the highest version first.
fn in_directory(place: &Path, put: bool) -> Vec<KnownKernel> {
    let mut found = Vec::new();
    for path in entries(place) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((release, version)) = packaged(&name) {
            found.push((numbers(version), KnownKernel { release: release.to_owned(), path, offered: put }));
        } else if is_image(&path)
            && let Ok(image) = KernelImage::open(&path)
        {
            let offered = put && image.modules.is_some();
            found.push((Vec::new(), KnownKernel { release: image.release, path, offered }));
        }
    }
    found.sort_by(|(a, one), (b, other)| (Reverse(a), &one.path).cmp(&(Reverse(b), &other.path)));
    found.into_iter().map(|(_, kernel)| kernel).collect()
}

/// Release and version of a Debian package of a kernel by its name, `linux-image-RELEASE_VERSION_ARCHITECTURE.deb`. One of
/// debugging symbols boots nothing.
fn packaged(name: &str) -> Option<(&str, &str)> {
    let stem = name.strip_prefix("linux-image-")?.strip_suffix(".deb")?;
    let (release, version) = stem.split_once('_').unwrap_or((stem, ""));
    let release = release.strip_suffix("-unsigned").unwrap_or(release);
    let symbols = ["-dbg", "-dbgsym"].iter().any(|end| release.ends_with(end));
    (release.starts_with(|c: char| c.is_ascii_digit()) && !symbols).then_some((release, version))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_newest_source_is_that_of_the_highest_version() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(newest_source_in([place.path().to_owned()].into_iter()), Err(NoSource::Absent));
        let newest = "linux-source-6.12_6.12.117-1_all.deb";
        packages(
            place.path(),
            &[
                "linux-source-6.1_6.1.9-1_all.deb",
                newest,
                "linux-source-6.12_6.12.94-1_all.deb",
                "linux-image-7.deb",
            ],
        );
        let found = || newest_source_in([place.path().to_owned()].into_iter());
        assert_eq!(found(), Ok(place.path().join(newest)));
        // Its makefiles would be run: not if others can write to it, or to the directory, nor where a link leads.
        let mode = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        mode(&place.path().join(newest), 0o666);
        assert_eq!(found(), Ok(place.path().join("linux-source-6.12_6.12.94-1_all.deb")));
        std::os::unix::fs::symlink(newest, place.path().join("linux-source-9_9.9-1_all.deb")).unwrap();
        assert_eq!(found(), Ok(place.path().join("linux-source-6.12_6.12.94-1_all.deb")));
        mode(place.path(), 0o777);
        let refused = found().unwrap_err().to_string();
        let newest = place.path().join("linux-source-9_9.9-1_all.deb");
        assert!(
            refused.starts_with(&format!("{} is not built unless it is named", newest.display())),
            "{refused}"
        );
        std::fs::remove_file(newest).unwrap();
        mode(&place.path().join("linux-source-6.12_6.12.117-1_all.deb"), 0o644);
        let refused = found().unwrap_err().to_string();
        assert!(
            refused.contains(&place.path().display().to_string()) && refused.contains("as its makefiles"),
            "{refused}"
        );
    }

    #[test]
    fn the_kernel_of_a_source_is_of_its_version() {
        let place = tempfile::tempdir().unwrap();
        packages(
            &place.path().join("packages"),
            &[
                "linux-image-6.12.117+deb12-amd64_6.12.117-1~deb12u1_amd64.deb",
                "linux-image-6.13.2-amd64_6.13.2-1_amd64.deb",
                "linux-image-6.1.0-56-amd64_6.1.192-2_amd64.deb",
            ],
        );
        let of = |source: &str| {
            let all = of_version(Path::new(source), places(place.path()).kernels());
            newest(&all).map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        };
        let newest = of("/k/linux-source-6.12_6.12.117-1~deb12u1_all.deb").unwrap();
        assert!(newest.starts_with("linux-image-6.12.117"), "{newest}");
        assert_eq!(of("linux-source-6.12_6.12.118-1_all.deb"), None);
        assert!(of("linux-source-6.1_6.1.192-2_all.deb").unwrap().starts_with("linux-image-6.1.0-56"));
        assert_eq!(of("/usr/src/linux-source-6.1.tar.xz"), None);
        // A tree says its version in its Makefile.
        let makefile = "# SPDX\nVERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n";
        std::fs::write(place.path().join("Makefile"), makefile).unwrap();
        assert!(of(place.path().to_str().unwrap()).unwrap().starts_with("linux-image-6.12.117"));
    }

    /// An image that says this release, as its header does.
    fn image(path: &Path, release: &str) {
        let mut bytes = vec![0_u8; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        bytes[0x300..0x300 + release.len()].copy_from_slice(release.as_bytes());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, &bytes).unwrap();
    }

    fn packages(place: &Path, names: &[&str]) {
        std::fs::create_dir_all(place).unwrap();
        names.iter().for_each(|name| std::fs::write(place.join(name), "").unwrap());
    }

    fn places(root: &Path) -> Places {
        let put = ["packages", "cache", "boot"].map(|name| root.join(name)).to_vec();
        Places { put, beside: Some(root.join("mine")), unpacked: Some(root.join("cache")) }
    }

    fn newest_name(places: &Places) -> Option<String> {
        let known = places.kernels();
        newest(&known).map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
    }

    #[test]
    fn a_candidate_is_older_than_its_release() {
        let sorted =
            ["6.12.9", "6.13.0-rc2", "6.13.0-rc7-amd64", "6.13.0", "6.13.0-1-amd64", "6.13.1-rc1", "6.13.1"];
        assert!(sorted.is_sorted_by_key(|release| order(release)), "{:?}", sorted.map(order));
        assert!(numbers("6.13~rc7-1~exp1") < numbers("6.13-1~exp1"));
        assert!(numbers("6.12.117-1~deb12u1") < numbers("6.12.117-1~deb12u2"));
    }

    #[test]
    fn the_highest_release_is_the_newest_wherever_it_is() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        assert_eq!(newest_name(&places), None, "no place is there");
        packages(
            &places.put[0],
            &[
                "linux-image-6.1.0-50-amd64_6.1.176-1_amd64.deb",
                "linux-image-6.12.100+deb12-amd64_6.12.100-1_amd64.deb",
                "linux-image-amd64_6.99_amd64.deb",
                "linux-image-7.0-amd64.deb.part",
            ],
        );
        // Without its modules nothing of it works.
        image(&root.path().join("boot/vmlinuz-6.99.0-none"), "6.99.0-none");
        assert_eq!(newest_name(&places).unwrap(), "linux-image-6.12.100+deb12-amd64_6.12.100-1_amd64.deb");
        image(&root.path().join("boot/vmlinuz-6.13.0-amd64"), "6.13.0-amd64");
        std::fs::create_dir_all(root.path().join("lib/modules/6.13.0-amd64")).unwrap();
        assert_eq!(newest_name(&places).unwrap(), "vmlinuz-6.13.0-amd64");
    }

    #[test]
    fn of_a_release_the_plain_flavour_is_taken_and_never_symbols() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        let plain = "linux-image-6.12.9+deb12-amd64_6.12.9-1_amd64.deb";
        packages(
            &places.put[0],
            &[
                "linux-image-6.12.9+deb12-amd64-dbg_6.12.9-1_amd64.deb",
                "linux-image-6.12.9+deb12-cloud-amd64_6.12.9-1_amd64.deb",
                "linux-image-6.12.9+deb12-rt-amd64_6.12.9-1_amd64.deb",
                plain,
            ],
        );
        assert_eq!(newest_name(&places).unwrap(), plain);
        let newer = "linux-image-6.12.9+deb12-amd64_6.12.9-2_amd64.deb";
        packages(&places.put[1], &["linux-image-6.12.10-rt-amd64-unsigned_6.12.10-1_amd64.deb"]);
        assert_eq!(
            newest_name(&places).unwrap(),
            "linux-image-6.12.10-rt-amd64-unsigned_6.12.10-1_amd64.deb"
        );
        packages(&places.put[0], &[newer]);
        let known = places.kernels();
        let of = |release: &str| known.iter().find(|kernel| kernel.release == release).unwrap();
        assert_eq!(of("6.12.9+deb12-amd64").path.file_name().unwrap(), newer);
        assert!(known.iter().all(|kernel| !kernel.release.ends_with("-dbg")), "{known:?}");
    }

    #[test]
    fn what_is_being_unpacked_is_not_known_yet() {
        let root = tempfile::tempdir().unwrap();
        let places = places(root.path());
        packages(&places.put[0], &["linux-image-6.1.0-50-amd64_6.1.176-1_amd64.deb"]);
        for (path, release) in [
            ("cache/0123/boot/vmlinuz-6.1.0-50-amd64", "6.1.0-50-amd64"),
            ("cache/4567/boot/vmlinuz-6.2.0", "6.2.0"),
            ("cache/.tmpAbC/boot/vmlinuz-6.3.0", "6.3.0"),
            ("mine/bzImage", "9.9.9-mine"),
        ] {
            image(&root.path().join(path), release);
        }
        std::fs::write(root.path().join("mine/bzImage.old"), "none").unwrap();
        let known = places.kernels();
        let releases: Vec<&str> = known.iter().map(|kernel| kernel.release.as_str()).collect();
        assert_eq!(releases, ["6.1.0-50-amd64", "6.2.0", "9.9.9-mine"]);
        assert!(known[0].path.starts_with(root.path().join("packages")), "{known:?}");
        assert_eq!(known.iter().filter(|kernel| kernel.offered).count(), 1);
    }
}
