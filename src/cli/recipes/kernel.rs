//! The newest kernel that can be found, for recipes that boot one.
//!
//! Enters: the usual places. Leaves: the path of a package or an image.

use std::path::{Path, PathBuf};

/// How to get one where there is none.
pub(in crate::cli) const KERNEL_HINT: &str = "fetch Debian's, which installs nothing: \
     mkdir -p ~/.cache/assay/kernels && cd ~/.cache/assay/kernels\n      \
     apt-get download $(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p')\n      \
     or give one: --target kernel=FILE";

/// The package or image with the highest release: in `target/kernels` (where `make kernels` puts them),
/// `~/.cache/assay/kernels`, and `/boot` as far as there are modules for it.
pub(in crate::cli) fn newest_kernel() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")));
    let mut places = vec![PathBuf::from("target/kernels"), PathBuf::from("/boot")];
    places.extend(cache.map(|cache| cache.join("assay/kernels")));
    newest_in(&places, Path::new("/lib/modules"))
}

fn newest_in(places: &[PathBuf], modules: &Path) -> Option<PathBuf> {
    let entries = places.iter().filter_map(|place| std::fs::read_dir(place).ok()).flatten().flatten();
    let found = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let package = name.strip_prefix("linux-image-").filter(|_| name.ends_with(".deb"));
        let image = name.strip_prefix("vmlinuz-").filter(|release| modules.join(release).is_dir());
        package
            .or(image)
            .filter(|release| release.starts_with(|c: char| c.is_ascii_digit()))
            .map(numbers)
            .map(|release| (release, entry.path()))
    });
    found.max().and_then(|(_, path)| std::path::absolute(path).ok())
}

/// `6.12.100-1` as 6, 12, 100, 1: what comes later is newer.
fn numbers(release: &str) -> Vec<u64> {
    let release = release.split('_').next().unwrap_or(release);
    release.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_release_is_the_newest_wherever_it_is() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        for directory in ["packages", "boot", "modules/6.13.0-amd64"] {
            std::fs::create_dir_all(place(directory)).unwrap();
        }
        for file in [
            "packages/linux-image-6.1.0-50-amd64_6.1.176-1_amd64.deb",
            "packages/linux-image-6.12.100+deb12-amd64_6.12.100-1_amd64.deb",
            "packages/linux-image-amd64_6.99_amd64.deb",
            "packages/linux-image-7.0-amd64.deb.part",
            "boot/vmlinuz-6.99.0-none",
        ] {
            std::fs::write(place(file), "").unwrap();
        }
        let newest = || {
            let found = newest_in(&[place("packages"), place("boot"), place("nowhere")], &place("modules"));
            found.unwrap().file_name().unwrap().to_string_lossy().into_owned()
        };
        assert_eq!(newest(), "linux-image-6.12.100+deb12-amd64_6.12.100-1_amd64.deb");
        std::fs::write(place("boot/vmlinuz-6.13.0-amd64"), "").unwrap();
        assert_eq!(newest(), "vmlinuz-6.13.0-amd64");
        assert_eq!(newest_in(&[place("nowhere")], &place("modules")), None);
    }
}
