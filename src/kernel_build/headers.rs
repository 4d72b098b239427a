//! Debian's headers of a kernel, which its modules are built against: three packages, unpacked into the cache and never installed.
//!
//! Enters: a release, directories to look in. Leaves: a directory for `make -C`, with the compiler it asks for.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::entries::Kept;
use super::error::BuildError;
use super::make::Watch;
use super::source::{archive_of, unpack_package, version_in};
use super::{digests, entries, tree};
use crate::sys::private_directory::{Untrusted, trusted_directory, trusted_file};
use crate::sys::{cache, clean_command};

/// Headers that were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Headers {
    /// As the system has them.
    Installed(PathBuf),
    /// Packages with the digest of all of them: headers, those that all flavours share, programs.
    Packages([PathBuf; 3], String),
}

impl Headers {
    /// Looks for those of a release.
    ///
    /// # Errors
    /// [`BuildError::NoHeaders`] with the first package that is missing; [`BuildError::UntrustedHeaders`]: others can change all that
    /// there are, and nobody named them.
    pub(super) fn find(release: &str, places: &[PathBuf]) -> Result<Headers, BuildError> {
        let link = Path::new("/lib/modules").join(release).join("build");
        let mut refused = match installed(&link) {
            Some(Ok(directory)) => return Ok(Headers::Installed(directory)),
            other => other.and_then(Result::err),
        };
        let mut found = Vec::new();
        for names in package_names(release) {
            // One that may be taken, under whatever name, before the complaint about another.
            let all: Vec<_> = names.iter().map(|name| newest(name, places)).collect();
            let taken = all.iter().flatten().flatten().next().cloned();
            let package = match taken {
                Some(package) => Some(package),
                None => all.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next(),
            };
            let missing = || BuildError::NoHeaders {
                release: release.to_owned(),
                missing: names[0].clone(),
                places: places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", "),
            };
            found.push(package.ok_or_else(|| refused.take().unwrap_or_else(missing))?);
        }
        let digests = found.iter().map(|path| digests::of_file(path)).collect::<Result<Vec<_>, _>>()?;
        let digest = digests::of_texts(digests.iter().map(String::as_str));
        let packages = <[PathBuf; 3]>::try_from(found).unwrap_or_default();
        Ok(Headers::Packages(packages, digest))
    }

    /// What tells them from others.
    pub(super) fn digest(&self) -> Result<String, BuildError> {
        match self {
            Headers::Installed(path) => installed_digest(path),
            Headers::Packages(_, digest) => Ok(digest.clone()),
        }
    }

    /// `gcc-12`, which Debian's headers ask for, without unpacking them; `None`: they ask for none.
    ///
    /// # Errors
    /// Programs that are missing.
    pub(super) fn compiler(&self, release: &str) -> Result<Option<String>, BuildError> {
        const NAME: &str = ".kernelvariables";
        let text = match self {
            Headers::Installed(path) => std::fs::read_to_string(path.join(NAME)).ok(),
            Headers::Packages([own, ..], _) => {
                file_in(own, &format!("usr/src/linux-headers-{release}/{NAME}"))?
            }
        };
        Ok(text.as_deref().and_then(compiler_in))
    }

    /// The directory for make, unpacked if need be, for as long as that is held.
    ///
    /// # Errors
    /// A package cannot be unpacked, or is another one than its name says.
    pub(super) fn unpacked(&self, release: &str, watch: &mut Watch<'_>) -> Result<Kept, BuildError> {
        let (packages, digest) = match self {
            Headers::Installed(path) => return Ok(Kept::elsewhere(path)),
            Headers::Packages(packages, digest) => (packages, digest),
        };
        let key = format!("headers-{digest}");
        let below = format!("usr/src/linux-headers-{release}");
        let final_place = cache::directory(entries::SOURCES)?.join(&key);
        let entry = entries::made(entries::SOURCES, &key, &mut |place, lock| {
            let watch = &mut watch.holding(lock);
            packages.iter().try_for_each(|package| unpack_package(package, place, watch))?;
            let headers = place.join(&below);
            let makefile = headers.join("Makefile");
            let text =
                std::fs::read_to_string(&makefile).map_err(BuildError::io("cannot read", &makefile))?;
            // They are made for /usr/src.
            let moved = text.replace("/usr/src/", &format!("{}/usr/src/", final_place.display()));
            std::fs::write(&makefile, moved).map_err(BuildError::io("cannot write", &makefile))?;
            // With the kernel's type information there make would want pahole, to add that of the module.
            let _ = std::fs::remove_file(headers.join("vmlinux"));
            Ok(())
        })?;
        Ok(Kept::of(entry, &below))
    }
}

/// The compiler of a file `.kernelvariables`.
fn compiler_in(text: &str) -> Option<String> {
    let word = text.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c))).find(|word| {
        word.strip_prefix("gcc-").is_some_and(|version| version.chars().all(|c| c.is_ascii_digit()))
    })?;
    Some(word.to_owned())
}

/// A small file of a package that is not unpacked; `None`: it has none of this name.
fn file_in(package: &Path, name: &str) -> Result<Option<String>, BuildError> {
    let mut dpkg = archive_of(package)?;
    let archive = dpkg.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let mut tar = clean_command("tar");
    tar.args(["--extract", "--to-stdout", "--occurrence", "--file", "-"]).arg(format!("./{name}"));
    let found = tar.stdin(archive).stderr(Stdio::null()).output();
    // It need not read on when it has what it wants.
    let _ = dpkg.kill();
    let _ = dpkg.wait();
    let found =
        found.map_err(|_| BuildError::NoTools { what: vec!["tar"], packages: vec!["tar".to_owned()] })?;
    Ok(found.status.success().then(|| String::from_utf8_lossy(&found.stdout).into_owned()))
}

/// The headers that the system has, if this is where they are: the directory itself, in which nobody but root and this user may put
/// anything, because building runs its makefiles and programs.
fn installed(link: &Path) -> Option<Result<PathBuf, BuildError>> {
    let directory = link.canonicalize().ok()?;
    let files = ["Module.symvers", "Makefile"].map(|name| directory.join(name));
    if !files.iter().all(|file| file.is_file()) {
        return None;
    }
    for file in files.into_iter().chain(included(&directory)) {
        // A flavour's may be links to those that all share.
        let real = file.canonicalize().unwrap_or(file);
        if let Err(reason) = trusted_file(&real) {
            return Some(Err(untrusted(real, reason)));
        }
    }
    Some(match trusted_directory(&directory) {
        Ok(_) => Ok(directory),
        Err(error) => Err(untrusted(directory, error.to_string())),
    })
}

/// The refusal of a file or directory for this reason; with the directory above it, where that is what others can change.
fn untrusted(path: PathBuf, reason: String) -> BuildError {
    let directory = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
    let above = match trusted_directory(directory) {
        Err(error) if error.to_string() == reason => match error {
            Untrusted::Others { place, .. } if place != path => Some(place),
            _ => None,
        },
        _ => None,
    };
    BuildError::UntrustedHeaders { path, reason, above }
}

/// What makes a build with installed headers another one: the kernel's symbols, its options, and the headers themselves as they lie there.
fn installed_digest(directory: &Path) -> Result<String, BuildError> {
    let mut pieces = vec![digests::of_file(&directory.join("Module.symvers"))?];
    for name in [".config", "include/generated/autoconf.h"] {
        let file = directory.join(name);
        pieces.push(if file.is_file() { digests::of_file(&file)? } else { String::new() });
    }
    let shared = included(directory).and_then(|makefile| makefile.parent().map(Path::to_owned));
    for place in [Some(directory.to_owned()), shared].into_iter().flatten() {
        for below in ["include", "arch/x86/include"].map(|name| place.join(name)) {
            pieces.push(if below.is_dir() { tree::stamps(&below)? } else { String::new() });
        }
    }
    Ok(digests::of_texts(pieces.iter().map(String::as_str)))
}

/// The Makefile that the one of a flavour only includes, which all flavours share.
fn included(headers: &Path) -> Option<PathBuf> {
    let own = std::fs::read_to_string(headers.join("Makefile")).ok()?;
    // The kernel's own Makefile includes others, by variables.
    let is_whole = |path: &&str| path.ends_with("/Makefile") && !path.contains('$');
    let mut paths = own.lines().filter_map(|line| line.strip_prefix("include ").map(str::trim));
    paths.find(is_whole).map(|path| headers.join(path)).filter(|path| path.is_file())
}

/// The version of the source that headers were made from.
pub(super) fn version_of(headers: &Path) -> String {
    let makefile = included(headers).unwrap_or_else(|| headers.join("Makefile"));
    version_in(&std::fs::read_to_string(makefile).unwrap_or_default())
}

/// The names that each of the three packages may have for a release such as `6.12.117+deb12-amd64`.
fn package_names(release: &str) -> [Vec<String>; 3] {
    let (version, flavour) = release.rsplit_once('-').unwrap_or((release, ""));
    let (version, special) = match version.rsplit_once('-') {
        Some((version, kind @ ("rt" | "cloud"))) => (version, kind),
        _ => (version, ""),
    };
    let _ = flavour;
    let common = if special == "rt" { "-common-rt" } else { "-common" };
    let series: Vec<&str> = version.split(['.', '+', '-']).take(2).collect();
    [
        vec![format!("linux-headers-{release}")],
        vec![format!("linux-headers-{version}{common}")],
        vec![format!("linux-kbuild-{version}"), format!("linux-kbuild-{}", series.join("."))],
    ]
}

/// The newest package of a name that only root and this user can change: building runs its makefiles and programs.
fn newest(name: &str, places: &[PathBuf]) -> Result<Option<PathBuf>, BuildError> {
    let start = format!("{name}_");
    let entries = places.iter().flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten());
    let is_it = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        file.starts_with(&start) && file.ends_with(".deb")
    };
    let numbers = |path: &PathBuf| -> Vec<u64> {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        file.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
    };
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_it).collect();
    all.sort_by_key(numbers);
    let mut refused = None;
    for path in all.into_iter().rev() {
        match trusted_file(&path) {
            Ok(()) => return Ok(Some(path)),
            Err(reason) => refused = refused.or_else(|| Some(untrusted(path, reason))),
        }
    }
    refused.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_packages_of_a_release_are_found_by_name() {
        let place = tempfile::tempdir().unwrap();
        let release = "6.12.117+deb12-amd64";
        for name in [
            "linux-headers-6.12.117+deb12-amd64_6.12.117-1~deb12u1_amd64.deb",
            "linux-headers-6.12.117+deb12-common_6.12.117-1~deb12u1_all.deb",
            "linux-headers-6.12.117+deb12-common-rt_6.12.117-1~deb12u1_all.deb",
            "linux-kbuild-6.12_6.12.117-1~deb12u1_amd64.deb",
        ] {
            let error = Headers::find(release, &[place.path().to_owned()]).unwrap_err();
            assert!(matches!(error, BuildError::NoHeaders { .. }), "{error}");
            std::fs::write(place.path().join(name), name).unwrap();
        }
        let found = Headers::find(release, &[place.path().to_owned()]).unwrap();
        let Headers::Packages([_, common, programs], _) = &found else { panic!("{found:?}") };
        assert!(common.ends_with("linux-headers-6.12.117+deb12-common_6.12.117-1~deb12u1_all.deb"));
        assert!(programs.ends_with("linux-kbuild-6.12_6.12.117-1~deb12u1_amd64.deb"));
        // A newer one that anybody could have changed is passed over; where there is no other, that is said.
        use std::os::unix::fs::PermissionsExt;
        let open = |name: &str| {
            let path = place.path().join(name);
            std::fs::write(&path, name).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        };
        open("linux-kbuild-6.12_6.12.200-1_amd64.deb");
        assert_eq!(Headers::find(release, &[place.path().to_owned()]).unwrap(), found);
        open("linux-kbuild-6.12_6.12.117-1~deb12u1_amd64.deb");
        let error = Headers::find(release, &[place.path().to_owned()]).unwrap_err();
        assert!(error.to_string().ends_with("others can write to it"), "{error}");
        assert_eq!(package_names("6.1.0-56-rt-amd64")[1], ["linux-headers-6.1.0-56-common-rt"]);
        assert_eq!(package_names("6.1.0-56-amd64")[2], ["linux-kbuild-6.1.0-56", "linux-kbuild-6.1"]);
    }

    /// Headers as a distribution splits them, found by a link.
    fn split(place: &Path) -> [PathBuf; 3] {
        let [own, common, link] = ["own", "common", "build"].map(|name| place.join(name));
        let put = |root: &Path, name: &str, text: &str| {
            tree::put(root, name, Some((text.as_bytes(), false))).unwrap();
        };
        put(&own, "Makefile", &format!("include {}\n", common.join("Makefile").display()));
        put(&own, "Module.symvers", "0x1 printk vmlinux\n");
        put(&own, "include/generated/autoconf.h", "#define CONFIG_A 1\n");
        put(&common, "Makefile", "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\n");
        put(&common, "include/linux/fs.h", "struct a;\n");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        [own, common, link]
    }

    #[test]
    fn installed_headers_that_others_can_change_are_not_run() {
        use std::os::unix::fs::PermissionsExt;
        let place = tempfile::tempdir().unwrap();
        assert!(installed(&place.path().join("none")).is_none());
        let [own, common, link] = split(place.path());
        assert_eq!(installed(&link).unwrap().unwrap(), own.canonicalize().unwrap());
        assert_eq!(version_of(&own), "6.12.117");
        let mode = |path: &Path, mode: u32| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        for (path, open, closed) in [
            (own.clone(), 0o777, 0o755),
            (own.join("Makefile"), 0o666, 0o644),
            (own.join("Module.symvers"), 0o666, 0o644),
            (common.join("Makefile"), 0o666, 0o644),
            (common.clone(), 0o777, 0o755),
        ] {
            mode(&path, open);
            let error = installed(&link).unwrap().unwrap_err();
            assert!(matches!(error, BuildError::UntrustedHeaders { .. }), "{error}");
            // What lies in a directory that is not trusted cannot help it.
            let of_above = format!("chmod go-w {}", common.canonicalize().unwrap().display());
            assert_eq!(error.hint() == of_above, path == common, "{}", error.hint());
            mode(&path, closed);
            assert!(installed(&link).unwrap().is_ok(), "{}", path.display());
        }
    }

    #[test]
    fn installed_headers_that_were_changed_are_others() {
        let place = tempfile::tempdir().unwrap();
        let [own, common, _] = split(place.path());
        let headers = Headers::Installed(own.clone());
        let mut before = headers.digest().unwrap();
        assert_eq!(headers.digest().unwrap(), before);
        for (root, name, text) in [
            (&common, "include/linux/fs.h", "struct b;\n"),
            (&own, "include/generated/autoconf.h", "#define CONFIG_B 1\n"),
            (&own, ".config", "CONFIG_B=y\n"),
            (&own, "Module.symvers", "0x2 printk vmlinux\n"),
        ] {
            tree::put(root, name, Some((text.as_bytes(), false))).unwrap();
            let now = headers.digest().unwrap();
            assert_ne!(now, before, "{name}");
            before = now;
        }
    }

    #[test]
    fn the_compiler_is_that_of_the_headers() {
        let place = tempfile::tempdir().unwrap();
        let installed = Headers::Installed(place.path().to_owned());
        assert_eq!(installed.compiler("6.12").unwrap(), None);
        let text = "CC = $(if $(X),$(CCACHE)) $(CROSS_COMPILE)gcc-12\n";
        std::fs::write(place.path().join(".kernelvariables"), text).unwrap();
        assert_eq!(installed.compiler("6.12").unwrap().as_deref(), Some("gcc-12"));
    }

    #[test]
    fn the_compiler_is_read_from_a_package_that_is_not_unpacked() {
        if crate::sys::find_program("dpkg-deb").is_none() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let (root, package) = (place.path().join("root"), place.path().join("headers.deb"));
        let put = |name: &str, text: &str| {
            tree::put(&root, name, Some((text.as_bytes(), false))).unwrap();
        };
        put(
            "DEBIAN/control",
            "Package: headers\nVersion: 1\nArchitecture: all\nMaintainer: x <x@y>\nDescription: x\n",
        );
        put("usr/src/linux-headers-6.12-amd64/.kernelvariables", "CC = $(CROSS_COMPILE)gcc-12\n");
        let built = clean_command("dpkg-deb").arg("--build").arg(&root).arg(&package).output().unwrap();
        assert!(built.status.success(), "{built:?}");
        let none = PathBuf::new();
        let headers = Headers::Packages([package, none.clone(), none], String::new());
        assert_eq!(headers.compiler("6.12-amd64").unwrap().as_deref(), Some("gcc-12"));
        assert_eq!(headers.compiler("6.1-amd64").unwrap(), None);
    }
}
