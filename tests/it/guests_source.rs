//! Modules of a kernel built from source with a patch, and booted: the whole road from the patch to the verdict. A kernel that is built
//! whole takes minutes of a machine for itself; its tests are in `whole_kernel`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use assay::record::Status;

use crate::guests::{assay, fact, kernels, nothing_left, packages, value};
use crate::sandbox::{Sandbox, errors, failure};
use crate::tools;

/// Debian's linux-source package.
pub(crate) fn source() -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/kernels");
    let mut found = std::fs::read_dir(place).ok()?.flatten().map(|entry| entry.path());
    let package = found.find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("linux-source-6.12"))
    });
    if package.is_none() {
        tools::skipped("target/kernels has no linux-source-6.12; `make kernels` fetches it");
    }
    package.filter(|_| tools::available("bison") && tools::available("gcc-12"))
}

/// What a program says that is found where this package is.
pub(crate) fn run(sandbox: &Sandbox, arguments: &[&str]) -> Output {
    assay(sandbox, arguments).output().unwrap()
}

#[test]
fn a_module_patched_for_dio_append_lays_files_in_one_piece() {
    let (Some((kernels, turn)), Some(source)) = (kernels(), source()) else { return };
    let sandbox = Sandbox::new();
    let (source, kernel) = (format!("source={}", source.display()), format!("kernel={}", kernels[1]));
    let words = [
        "run",
        "dio-append",
        "--vary",
        "design=never,always,when needed",
        "--vary",
        "write=append 2m,overwrite 4k",
        "--rounds",
        "1",
        "-t",
        &kernel,
        "-t",
        &source,
    ];
    let output = run(&sandbox, &words);
    assert!(output.status.success(), "{}", failure(&words, &output));
    nothing_left(&sandbox);
    drop(turn);
    let stored = sandbox.export("1");
    assert_eq!(stored.trials.len(), 6);
    let factor = |name: &str| stored.design.factors.iter().position(|factor| factor.name == name).unwrap();
    let (design, write) = (factor("design"), factor("write"));
    let of = |wanted: [u32; 2], metric: &str| -> f64 {
        let is_it = |at: &usize| {
            let levels = &stored.cells[stored.trials[*at].cell as usize].levels;
            [levels[design], levels[write]] == wanted
        };
        let one = |at: usize| {
            assert_eq!(stored.trials[at].status, Status::Done, "{:?}", stored.trials[at]);
            assert_eq!(fact(&stored, at, "kernel.patch_digest").len(), 16);
            assert!(fact(&stored, at, "kernel.compiler").contains("gcc"));
            value(&stored, at, metric).unwrap()
        };
        (0..stored.trials.len()).find(is_it).map(one).unwrap()
    };
    let (append, overwrite) = (0, 1);
    // A file of 8 MiB is four writes, each in one piece; block by block it is hundreds of pieces, fewer the less runs at a time.
    for serialized in [1, 2] {
        let pieces = of([serialized, append], "extents.per_file");
        assert!(pieces <= 8.0, "{pieces} pieces a file");
        for metric in ["extents.per_file", "extents.owner_changes_per_mib"] {
            let counts = [0, serialized].map(|design| of([design, append], metric));
            assert!(counts[0] > counts[1], "{metric}: {counts:?}");
        }
    }
    // Each write that appends takes its turn, of 32 files in writes of 2 MiB; one that overwrites only where all do.
    let turns = [append, overwrite].map(|row| [0, 1, 2].map(|design| of([design, row], "hook.turns")));
    assert_eq!(turns[0], [0.0, 128.0, 128.0]);
    let writes = of([1, overwrite], "write.total_ios");
    assert!(turns[1][1] >= writes && [turns[1][0], turns[1][2]] == [0.0, 0.0], "{turns:?}, {writes} writes");
    // What was built is taken from the cache, which the plan knows.
    let plan = run(&sandbox, &[&words[..], &["--plan"]].concat());
    let said = String::from_utf8_lossy(&plan.stdout).into_owned();
    assert!(said.contains("with dio-append.patch: is in the cache"), "{said}");
    every_design_applies(&sandbox, &kernel, &source);
}

/// The plan of each recipe's designs, whose patches are tried on the source: it is unpacked.
fn every_design_applies(sandbox: &Sandbox, kernel: &str, source: &str) {
    let whole: &[&str] = &["-t", source];
    let modules: &[&str] = &["-t", source, "-t", kernel];
    for (recipe, of, patches) in [
        ("bdev-mix", whole, &["bdev-mix.patch"][..]),
        ("dax-write", whole, &["dax-write.patch"]),
        ("dio-append", modules, &["dio-append.patch"]),
        ("dio-scaling", modules, &["dio-scaling-lookup.patch", "dio-scaling-write.patch"]),
        ("journal-flush", modules, &["journal-flush.patch"]),
    ] {
        let words = [&["run", recipe, "--vary", "design=all", "--plan"], of].concat();
        let output = run(sandbox, &words);
        assert!(output.status.success(), "{}", failure(&words, &output));
        let plan = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!plan.contains("unpacks the source"), "{plan}");
        for patch in patches {
            assert!(plan.contains(&format!("with {patch}")), "{recipe} builds no {patch}: {plan}");
        }
    }
}

#[test]
fn what_cannot_be_built_is_refused_before_anything_is_booted() {
    let (Some(kernels), Some(source)) = (packages(), source()) else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=1m\n");
    let hunk = |file: &str, before: &str, added: &str| {
        format!(
            "--- a/{file}\n+++ b/{file}\n@@ -1,2 +1,3 @@\n // SPDX-License-Identifier: GPL-2.0\n {before}\n+{added}\n"
        )
    };
    let other = "--- a/fs/f2fs/file.c\n+++ b/fs/f2fs/file.c\n@@ -9,3 +9,3 @@\n never\n-was\n+is\n there\n";
    sandbox.write("other-version.patch", other);
    sandbox.write("no-file.patch", &hunk("fs/f2fs/nowhere.c", "/*", "int x;"));
    sandbox.write("built-in.patch", &hunk("fs/dax.c", "/*", "int x;"));
    sandbox.write(
        "broken.patch",
        &hunk("fs/f2fs/hash.c", "/*", "*/ int broken(void) { return no_such_name; } /*"),
    );
    let symbol =
        "*/ int no_such_export(void); int uses_it(void); int uses_it(void) { return no_such_export(); } /*";
    sandbox.write("symbol.patch", &hunk("fs/f2fs/hash.c", "/*", symbol));
    sandbox.write("text.patch", "not a patch\n");
    sandbox.write("both.config", "CONFIG_XFS_FS=y\n");
    let (source, kernel) = (format!("source={}", source.display()), format!("kernel={}", kernels[1]));
    let old = format!("kernel={}", kernels[0]);
    let module: &[&str] = &["-t", &kernel, "-t", &source];
    for (more, code, words) in [
        (&["--vary", "patch=none,other-version.patch"][..], 2, "does not apply to linux-source-6.12"),
        (&["--vary", "patch=none,no-file.patch"], 2, "is in no module of 6.12"),
        (&["--vary", "patch=none,text.patch"], 2, "is no unified diff"),
        (&["--vary", "patch=none,absent.patch"], 2, "there is no file absent.patch"),
        (&["--vary", "patch=none,assay:absent"], 2, "the program has no patch of that name"),
        (&["--vary", "patch=none,built-in.patch"], 2, "without kernel= a whole kernel is built"),
        (&["--vary", "patch=none,broken.patch"], 1, "no_such_name"),
        (&["--vary", "patch=none,symbol.patch"], 1, "\"no_such_export\""),
        // Before a build that takes minutes.
        (&["--vary", "patch=none,broken.patch", "--db", "absent/a.db"], 2, "absent/a.db"),
        (&["--vary", "patch=none,assay:dio-append", "-t", &old], 2, "there are no headers of 6.1."),
        (
            &["--vary", "patch=none,assay:dio-append", "--config", "both.config"],
            2,
            "config is of a whole kernel",
        ),
        (&["--vary", "rev=v6.11,v6.12"], 2, "rev"),
        // What is wrong with guests is told before anything is built.
        (&["--vary", "patch=none,assay:dio-append", "-t", "memory=8000g"], 2, "is larger than this machine"),
        (
            &["--vary", "patch=none,assay:dio-append", "-t", "modules=no_such"],
            2,
            "has no no_such: it is neither",
        ),
        (&["--vary", "patch=none,assay:dio-append", "-t", "fs=ext4"], 2, "no trial loads f2fs, which is all"),
        (
            &["--vary", "patch=none,assay:dio-append", "-t", "fs=ext4", "--plan"],
            2,
            "no trial loads f2fs, which is all",
        ),
    ] {
        let arguments =
            [&["run", "job.fio", "-q", "--rounds", "1", "-t", "ram:64m", "-t", "fs=f2fs"], module, more]
                .concat();
        let output = run(&sandbox, &arguments);
        assert_eq!(output.status.code(), Some(code), "{}", failure(&arguments, &output));
        assert!(errors(&output).contains(words), "{arguments:?}: {}", errors(&output));
        assert_eq!(errors(&output).contains(".log has all that the build said"), code == 1, "{arguments:?}");
        nothing_left(&sandbox);
    }
    // The source of another version.
    for (name, text) in [
        ("Makefile", "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n"),
        ("Kconfig", "\n"),
        ("init/main.c", "\n"),
        ("fs/f2fs/Makefile", "obj-$(CONFIG_F2FS_FS) += f2fs.o\nf2fs-y := hash.o\n"),
        ("fs/f2fs/hash.c", "// SPDX-License-Identifier: GPL-2.0\n/*\n */\n"),
    ] {
        std::fs::create_dir_all(sandbox.path().join("other").join(name).parent().unwrap()).unwrap();
        sandbox.write(&format!("other/{name}"), text);
    }
    let words = ["run", "job.fio", "-q", "--rounds", "1", "-t", "ram:64m", "-t", "fs=f2fs", "-t", &kernel];
    let words = [&words[..], &["-t", "source=other", "--vary", "patch=none,symbol.patch"]].concat();
    let output = run(&sandbox, &words);
    assert_eq!(output.status.code(), Some(2), "{}", failure(&words, &output));
    assert!(errors(&output).contains("source 6.12.1 is not that of kernel 6.12."), "{}", errors(&output));
    nothing_left(&sandbox);
}

/// A kernel that dies in the middle of a trial: of a file with this name, and no other.
const OOPS: &str = r#"--- a/fs/f2fs/hash.c
+++ b/fs/f2fs/hash.c
@@ -97,5 +97,6 @@ void f2fs_hash_filename(const struct inode *dir, struct f2fs_filename *fname)
 
 	WARN_ON_ONCE(!name);
+	BUG_ON(len == 9 && !memcmp(name, "oops-here", 9));
 
 	if (is_dot_dotdot(name, len)) {
 		fname->hash = 0;
"#;

#[test]
fn an_oops_in_a_trial_is_told_with_the_function_it_was_in() {
    let (Some((kernels, _alone)), Some(source)) = (kernels(), source()) else { return };
    let sandbox = Sandbox::new();
    sandbox.write("oops.patch", OOPS);
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nsize=1m\nfilename=oops-here\n");
    let (source, kernel) = (format!("source={}", source.display()), format!("kernel={}", kernels[1]));
    let words =
        ["run", "job.fio", "-q", "-t", &kernel, "-t", &source, "-t", "virtio_blk:96m", "-t", "fs=f2fs"];
    let words = [&words[..], &["--vary", "patch=none,oops.patch", "--rounds", "1", "--no-lead-in"]].concat();
    let output = run(&sandbox, &words);
    assert_eq!(output.status.code(), Some(1), "{}", failure(&words, &output));
    nothing_left(&sandbox);
    let stored = sandbox.export("1");
    let mut failed = 0;
    for trial in &stored.trials {
        match &trial.status {
            Status::Failed { reason, output, .. } => {
                assert_eq!(stored.cells[trial.cell as usize].levels[0], 1, "{trial:?}");
                assert!(reason.starts_with("the guest died during the trial: Kernel panic"), "{reason}");
                assert!(reason.contains("kernel BUG at fs/f2fs/hash.c:"), "{reason}");
                assert!(reason.ends_with(" in f2fs_hash_filename"), "{reason}");
                assert!(
                    output.contains("RIP: 0010:f2fs_hash_filename") && !output.contains("RAX:"),
                    "{output}"
                );
                failed += 1;
            }
            _ => assert_eq!(trial.status, Status::Done, "{trial:?}"),
        }
    }
    assert_eq!(failed, 2, "each failed trial is tried once more");
}

/// A repository with f2fs of that package as two revisions, each of which has a parameter of its own in the module, and a patch that adds
/// another one.
fn two_revisions(sandbox: &Sandbox, package: &Path) -> PathBuf {
    let linux = sandbox.path().join("linux");
    std::fs::create_dir(&linux).unwrap();
    let shell = |script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("set -euo pipefail\n{script}")]).current_dir(&linux);
        let output = command.env("PACKAGE", package).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    };
    shell(
        "dpkg-deb --fsys-tarfile \"$PACKAGE\" | tar -xOf - ./usr/src/linux-source-6.12.tar.xz | \
         tar -xJf - --strip-components=1 linux-source-6.12/{Makefile,Kconfig,init/main.c,fs/f2fs}",
    );
    let git = "git -c user.name=t -c user.email=t@t -c gc.auto=0";
    let parameter = |file: &str, name: &str, value: u32| {
        format!(
            "printf '\\n#include <linux/module.h>\\nstatic int {name} = {value};\\nmodule_param({name}, int, 0444);\\n' >> fs/f2fs/{file}"
        )
    };
    shell(&format!(
        "git init -q -b main && git add -A -f\n{}\n{git} commit -q -a -m first && git tag first\n\
         sed -i 's/assay_revision = 1;/assay_revision = 2;/' fs/f2fs/inline.c\n\
         {git} commit -q -a -m second && git tag second\n\
         {}\ngit diff > ../marked.patch && git checkout -q .",
        parameter("inline.c", "assay_revision", 1),
        parameter("hash.c", "assay_patched", 1),
    ));
    linux
}

/// What the module that a trial has loaded says it is.
const WHICH: &str = r#"
cd /sys/module/f2fs/parameters
echo "revision=$(cat assay_revision):higher" >> "$ASSAY_METRICS"
echo "patched=$(cat assay_patched 2>/dev/null || echo 0):higher" >> "$ASSAY_METRICS"
"#;

#[test]
fn revisions_and_patches_cross_as_levels() {
    let (Some((kernels, _alone)), Some(package)) = (kernels(), source()) else { return };
    if !tools::available("git") || !tools::available("xz") {
        return;
    }
    let sandbox = Sandbox::new();
    let linux = two_revisions(&sandbox, &package);
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nsize=1m\n");
    let (source, kernel) = (format!("source={}", linux.display()), format!("kernel={}", kernels[1]));
    let target = ["-t", &kernel, "-t", &source, "-t", "virtio_blk:96m", "-t", "fs=f2fs"];
    let vary = ["--vary", "rev=first,second", "--vary", "patch=none,marked.patch", "--vary", "bs=16k,64k"];
    let more = ["--before", WHICH, "--rounds", "1", "--no-lead-in"];
    let words = [&["run", "job.fio"], &target[..], &vary, &more].concat();
    let output = run(&sandbox, &words);
    assert!(output.status.success(), "{}", failure(&words, &output));
    nothing_left(&sandbox);
    let stored = sandbox.export("1");
    assert_eq!(stored.trials.len(), 8);
    let at = |name: &str| stored.design.factors.iter().position(|factor| factor.name == name).unwrap();
    let (rev, patch) = (at("rev"), at("patch"));
    for (at, trial) in stored.trials.iter().enumerate() {
        assert_eq!(trial.status, Status::Done, "{trial:?}");
        let levels = &stored.cells[trial.cell as usize].levels;
        let expected = [levels[rev] + 1, levels[patch]].map(f64::from);
        let seen = ["hook.revision", "hook.patched"].map(|name| value(&stored, at, name).unwrap());
        assert_eq!(seen, expected, "{trial:?}");
        assert_eq!(fact(&stored, at, "kernel.patch_digest") == "none", levels[patch] == 0, "{trial:?}");
    }
    let digests: BTreeSet<&str> = (0..8).map(|at| fact(&stored, at, "kernel.source_digest")).collect();
    assert_eq!(digests.len(), 2, "{digests:?}");
    let plan = run(&sandbox, &[&words[..], &["--plan"]].concat());
    // However its lines are wrapped.
    let plan = String::from_utf8_lossy(&plan.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(plan.matches("is in the cache").count(), 4, "{plan}");
}
