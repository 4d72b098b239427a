//! The first and only root of a guest: this program, the tools trials need with their libraries, and modules.
//!
//! Enters: a kernel, [`Needs`], the modules that were found for them. Leaves: the path of an archive in the cache; the same contents are the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::io::{BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use twox_hash::XxHash64;

use super::cpio::{Entry, archive};
use super::decompressed::MOST_BYTES;
use super::elf;
use super::error::GuestError;
use super::kernel_image::KernelImage;
use super::module_files::MOST_LIST;
use super::modules::ModuleSet;
use super::needs::Needs;
use crate::sys::cache;
use crate::sys::regular_file;

/// Where the guest finds the names of the modules to load first, a line each.
pub(super) const LOADED: &str = "/etc/assay-modules";
/// Where the guest finds how many disks of which name it is to wait for, a line each: `nvme 2`.
pub(super) const DISKS: &str = "/etc/assay-disks";
/// Where the guest finds the directory that commands run in.
pub(super) const DIRECTORY: &str = "/etc/assay-directory";

/// This many are kept.
const KEPT: usize = 8;

/// Packs it, unless the same is in the cache.
///
/// # Errors
/// [`GuestError`]: a program is missing or unreadable, or the cache cannot be written.
pub(super) fn packed(
    kernel: &KernelImage,
    needs: &Needs,
    modules: &ModuleSet,
) -> Result<PathBuf, GuestError> {
    let mut entries = BTreeMap::new();
    // The kernel's own link, resolved: to ldd it would be another program's.
    let me = PathBuf::from("/proc/self/exe");
    let me = me.canonicalize().map_err(GuestError::io("cannot look at", &me))?;
    let program = std::fs::read(&me).map_err(GuestError::io("cannot read", &me))?;
    entries.insert("/init".to_owned(), Entry::File(elf::loaded_part(program), 0o755));
    let mut files: BTreeSet<PathBuf> = needs.programs.clone();
    let mut used = libraries(&me)?;
    for program in &needs.programs {
        used.extend(interpreter(program));
        used.extend(libraries(program)?);
    }
    // Interpreters of scripts have libraries, too.
    for program in used.clone().difference(&files) {
        used.extend(libraries(program)?);
    }
    files.extend(used);
    files.extend([PathBuf::from("/etc/mke2fs.conf")].into_iter().filter(|path| path.exists()));
    for path in needs.files.iter().map(|path| within(path)) {
        let bytes = regular_file::read(&path, MOST_BYTES).map_err(GuestError::unfit("cannot read", &path))?;
        entries.insert(path.to_string_lossy().into_owned(), Entry::File(bytes, 0o644));
    }
    for path in files {
        let path = within(&path);
        let bytes = regular_file::read(&path, MOST_BYTES).map_err(GuestError::unfit("cannot read", &path))?;
        entries.insert(path.to_string_lossy().into_owned(), Entry::File(bytes, 0o755));
    }
    surroundings(&mut entries, kernel, needs);
    add_modules(&mut entries, kernel, modules);
    kept(&archive(&entries))
}

/// The path without `.` in it, which the archive would take for a name.
fn within(path: &Path) -> PathBuf {
    path.components().collect()
}

/// What every system has.
fn surroundings(entries: &mut BTreeMap<String, Entry>, kernel: &KernelImage, needs: &Needs) {
    for directory in ["dev", "proc", "sys", "run", "tmp", "root", "var/tmp"] {
        entries.insert(format!("/{directory}"), Entry::Directory);
    }
    let mut file =
        |path: &str, text: String| entries.insert(path.to_owned(), Entry::File(text.into_bytes(), 0o644));
    file("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n".to_owned());
    file("/etc/group", "root:x:0:\n".to_owned());
    file("/etc/mtab", String::new());
    // Without modules all is taken to be built in: there is nothing to load, and nothing is amiss.
    let loaded = needs.loaded.iter().filter(|_| kernel.modules.is_some());
    file(LOADED, loaded.map(|name| format!("{name}\n")).collect());
    let disks = needs.disks_by_name();
    file(DISKS, disks.iter().map(|(prefix, count)| format!("{prefix} {count}\n")).collect());
    if let Some(directory) = &needs.directory {
        file(DIRECTORY, directory.to_string_lossy().into_owned());
        entries.insert(within(directory).to_string_lossy().into_owned(), Entry::Directory);
    }
    // The kernel's own place for it, and that of PATH.
    entries.insert("/sbin/modprobe".to_owned(), Entry::Link("/init".to_owned()));
    entries.insert("/etc/mtab".to_owned(), Entry::Link("/proc/self/mounts".to_owned()));
    entries.insert("/dev/console".to_owned(), Entry::Device(5, 1));
}

fn add_modules(entries: &mut BTreeMap<String, Entry>, kernel: &KernelImage, set: &ModuleSet) {
    let root = format!("/lib/modules/{}", kernel.release);
    for (_, module) in &set.modules {
        entries.insert(format!("{root}/{}", module.path), Entry::File(module.bytes.clone(), 0o644));
    }
    let built_in = kernel.modules.as_ref().map(|place| place.join("modules.builtin"));
    let built_in = built_in.and_then(|path| regular_file::read(&path, MOST_LIST).ok()).unwrap_or_default();
    let texts = [
        ("modules.dep", set.dependencies().into_bytes()),
        ("modules.alias", set.aliases().into_bytes()),
        ("modules.builtin", built_in),
    ];
    for (name, bytes) in texts {
        entries.insert(format!("{root}/{name}"), Entry::File(bytes, 0o644));
    }
}

/// The libraries that a program is started with, by ldd(1); none for scripts and static programs.
fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>, GuestError> {
    let output = Command::new("ldd").arg(program).stdin(Stdio::null()).env("LC_ALL", "C").output();
    let output = output.map_err(|_| GuestError::NoProgram {
        program: "ldd".to_owned(),
        purpose: "find the libraries a guest needs".to_owned(),
        hint: "install libc-bin".to_owned(),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)` and `/lib64/ld-linux-x86-64.so.2 (0x…)`.
    let words = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    Ok(words.map(PathBuf::from).filter(|path| path.is_file()).collect())
}

/// The program that a script is run by.
fn interpreter(program: &Path) -> Option<PathBuf> {
    let file = regular_file::open(program).ok()?;
    let mut first = Vec::new();
    // As the kernel: no longer line names an interpreter.
    std::io::BufReader::new(file).take(256).read_until(b'\n', &mut first).ok()?;
    let line = String::from_utf8_lossy(first.strip_prefix(b"#!")?).into_owned();
    let mut words = line.split_whitespace();
    let named = words.next()?;
    if named.ends_with("/env") { words.next().and_then(crate::sys::find_program) } else { Some(named.into()) }
}

fn kept(bytes: &[u8]) -> Result<PathBuf, GuestError> {
    let mut hasher = XxHash64::with_seed(0);
    hasher.write(bytes);
    let place = cache::directory("initramfs")?;
    let path = place.join(format!("{}.cpio", cache::digits(&hasher)));
    kept_in(&place, path, bytes)
}

fn kept_in(place: &Path, path: PathBuf, bytes: &[u8]) -> Result<PathBuf, GuestError> {
    // One of another size was damaged.
    if path.metadata().is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64) {
        return Ok(path);
    }
    let failed = |source| GuestError::Io { what: "cannot write", path: path.clone(), source };
    let mut file = tempfile::NamedTempFile::new_in(place).map_err(failed)?;
    // It has its name when all of it is on the disk: after a power loss the name alone is believed.
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist(&path).map_err(|error| failed(error.error))?;
    cache::prune(place, KEPT);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_modules_is_asked_to_load_none() {
        let loaded = |modules: Option<PathBuf>| {
            let kernel = KernelImage {
                image: PathBuf::from("/none"),
                release: "6.12.0+".to_owned(),
                modules,
                config: None,
                doubt: None,
            };
            let needs = Needs { loaded: vec!["virtio_pci".to_owned()], ..Needs::default() };
            let mut entries = BTreeMap::new();
            surroundings(&mut entries, &kernel, &needs);
            match entries.remove(LOADED) {
                Some(Entry::File(bytes, _)) => String::from_utf8(bytes).unwrap(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(loaded(Some(PathBuf::from("/lib/modules/6.12.0+"))), "virtio_pci\n");
        assert_eq!(loaded(None), "");
    }

    #[test]
    fn an_archive_that_a_power_loss_has_cut_off_is_written_again() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.cpio");
        std::fs::write(&path, "").unwrap();
        for _ in 0..2 {
            assert_eq!(kept_in(place.path(), path.clone(), b"archive").unwrap(), path);
            assert_eq!(std::fs::read(&path).unwrap(), b"archive");
        }
    }

    #[test]
    fn a_program_comes_with_its_libraries() {
        let libraries = libraries(Path::new("/bin/sh")).unwrap();
        assert!(libraries.iter().any(|path| path.to_string_lossy().contains("libc.so")), "{libraries:?}");
        assert!(libraries.iter().any(|path| path.to_string_lossy().contains("ld-linux")), "{libraries:?}");
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script");
        std::fs::write(&script, "#!/bin/sh -e\ntrue\n").unwrap();
        assert_eq!(interpreter(&script), Some(PathBuf::from("/bin/sh")));
        assert_eq!(interpreter(Path::new("/bin/sh")), None);
        assert_eq!(self::libraries(&script).unwrap(), BTreeSet::new());
    }
}
