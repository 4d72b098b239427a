//! Debian's headers of a kernel, which its modules are built against: three packages, unpacked into the cache and never installed.
//!
//! Enters: a release, directories to look in. Leaves: a directory for `make -C`, with the compiler it asks for.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::entries::Kept;
use super::error::BuildError;
use super::make::Watch;
use super::source::{archive_of, unpack_package, version_in};
use super::{digests, entries};
use crate::sys::private_directory::trusted_file;
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
        let installed = Path::new("/lib/modules").join(release).join("build");
        if installed.join("Module.symvers").is_file() && installed.join("Makefile").is_file() {
            return Ok(Headers::Installed(installed));
        }
        let mut found = Vec::new();
        for names in package_names(release) {
            // One that may be taken, under whatever name, before the complaint about another.
            let all: Vec<_> = names.iter().map(|name| newest(name, places)).collect();
            let taken = all.iter().flatten().flatten().next().cloned();
            let package = match taken {
                Some(package) => Some(package),
                None => all.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next(),
            };
            found.push(package.ok_or_else(|| BuildError::NoHeaders {
                release: release.to_owned(),
                missing: names[0].clone(),
                places: places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", "),
            })?);
        }
        let digests = found.iter().map(|path| digests::of_file(path)).collect::<Result<Vec<_>, _>>()?;
        let digest = digests::of_texts(digests.iter().map(String::as_str));
        let packages = <[PathBuf; 3]>::try_from(found).unwrap_or_default();
        Ok(Headers::Packages(packages, digest))
    }

    /// What tells them from others.
    pub(super) fn digest(&self) -> Result<String, BuildError> {
        match self {
            Headers::Installed(path) => digests::of_file(&path.join("Module.symvers")),
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

/// The version of the source that headers were made from.
pub(super) fn version_of(headers: &Path) -> String {
    let own = std::fs::read_to_string(headers.join("Makefile")).unwrap_or_default();
    // That of a flavour only includes the other one.
    let included = own.lines().find_map(|line| line.strip_prefix("include "));
    let text = included.and_then(|path| std::fs::read_to_string(path.trim()).ok()).unwrap_or(own);
    version_in(&text)
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
            Err(reason) => refused = refused.or(Some(BuildError::UntrustedHeaders { path, reason })),
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
            super::super::tree::put(&root, name, Some((text.as_bytes(), false))).unwrap();
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
