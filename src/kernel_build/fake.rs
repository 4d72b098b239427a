//! What tests of builds need: a cache of their own, and a kernel that is built in no time.
//!
//! Enters: the name of a test. Leaves: the same test in a process of its own, for which the cache is an empty directory; trees whose
//! Makefile has the targets of a kernel's, and whose image is one file of theirs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use super::build::{Build, Kind};
use super::config::Configuration;
use super::make::Watch;
use super::patch::Patch;
use super::source::Source;
use super::tools::Compiler;
use super::tree;
use super::wanted::Wanted;

/// Says in the environment that this is that process, and where its directory is.
const PLACE: &str = "ASSAY_TEST_PLACE";
/// The same of a process that the test is to kill.
const VICTIM: &str = "ASSAY_TEST_VICTIM";

/// Makes what a kernel's own makes: `bzImage` is `fs/one.c`, after `fs/hook.sh` was run with the directory of the objects.
const MAKEFILE: &str = "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\nO ?= .\n\
    allnoconfig:\n\t@cp $(KCONFIG_ALLCONFIG) $(O)/.config\n\
    bzImage:\n\t@mkdir -p $(O)/arch/x86/boot $(O)/include/config; echo 6.12.117 > $(O)/include/config/kernel.release\n\
    \t@sh fs/hook.sh $(O)\n\
    \t@cp fs/one.c $(O)/arch/x86/boot/bzImage; cp fs/one.c $(O)/System.map\n";

/// Puts a kernel into a directory.
pub(super) fn kernel(root: &Path, hook: &str) {
    for (name, text) in [
        ("Makefile", MAKEFILE),
        ("Kconfig", "\n"),
        ("init/main.c", "main\n"),
        ("fs/one.c", "one\n"),
        ("fs/hook.sh", hook),
    ] {
        tree::put(root, name, Some((text.as_bytes(), false))).unwrap();
    }
}

/// What a test changes of `fs/one.c`.
pub(super) const PATCH: &str = "--- a/fs/one.c\n+++ b/fs/one.c\n@@ -1 +1 @@\n-one\n+two\n";

/// A whole kernel of such a directory, whatever compilers there are.
pub(super) fn build(root: &Path, patches: Vec<Patch>) -> Build {
    Build {
        wanted: Wanted::default(),
        source: Source::open(root, None).unwrap(),
        patches,
        compiler: Compiler { program: "gcc".to_owned(), version: "fake".to_owned() },
        kind: Kind::Whole(Configuration::read(None, &BTreeSet::new()).unwrap()),
    }
}

fn again(module: &str, name: &str, place: &Path) -> Command {
    let module = module.split_once("::").unwrap().1;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "--include-ignored", &format!("{module}::{name}")]);
    command.env(PLACE, place).env("XDG_CACHE_HOME", place.join("cache")).stdin(Stdio::null());
    command
}

/// Runs a test, `module_path!()` and its name, with a cache of its own. It gets an empty directory.
pub(super) fn alone(module: &str, name: &str, test: impl FnOnce(&Path)) {
    if let Some(place) = std::env::var_os(PLACE) {
        return test(&PathBuf::from(place));
    }
    let place = tempfile::tempdir().unwrap();
    let output = again(module, name, place.path()).output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", said(&output.stdout), said(&output.stderr));
    assert!(said(&output.stdout).contains("1 passed"), "{}", said(&output.stdout));
}

/// Starts the same test once more, as the process that it kills.
pub(super) fn victim(module: &str, name: &str, place: &Path) -> Child {
    let mut command = again(module, name, place);
    command.env(VICTIM, "1").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Whether this is the process that is killed.
pub(super) fn is_victim() -> bool {
    std::env::var_os(VICTIM).is_some()
}

/// Waits for a file of a test's and reads it.
pub(super) fn awaited(path: &Path) -> String {
    for _ in 0..3000 {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    }
    panic!("{} is not written", path.display())
}

/// Watches what nobody ends.
pub(super) fn watch<'w>(
    log: &'w Path,
    cancelled: &'w AtomicBool,
    objects: &'w mut dyn FnMut(u64),
) -> Watch<'w> {
    Watch { log, doing: "building", what: "mine", cancelled, objects, locks: Vec::new() }
}
