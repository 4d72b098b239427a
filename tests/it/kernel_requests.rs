//! Kernels that cannot be had: each wrong request gets one clear message with what helps, and leaves nothing behind. None of them compiles or
//! boots anything; what a compiler refuses and what dies in a guest is in `guests_source`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failing_case::Mounted;
use crate::sandbox::{Sandbox, errors};
use crate::tools::{available, is_root};

const PATCH: &str = "--- a/fs/one.c\n+++ b/fs/one.c\n@@ -1,2 +1,2 @@\n first\n-second\n+changed\n";

/// What git prints.
fn git(place: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(place).args(words).stdin(Stdio::null());
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "t").env(format!("GIT_{who}_EMAIL"), "t@t");
    }
    let ended = git.output().unwrap();
    assert!(ended.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap().trim().to_owned()
}

/// A sandbox with what looks like a kernel, as a tree and as a repository of four commits.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for place in ["tree", "repository"] {
        for below in ["init", "fs"] {
            std::fs::create_dir_all(sandbox.path().join(place).join(below)).unwrap();
        }
        sandbox.write(&format!("{place}/Makefile"), "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n");
        sandbox.write(&format!("{place}/Kconfig"), "\n");
        sandbox.write(&format!("{place}/init/main.c"), "\n");
        sandbox.write(&format!("{place}/fs/one.c"), "first\nsecond\n");
    }
    let repository = sandbox.path().join("repository");
    git(&repository, &["init", "-q", "-b", "main"]);
    for number in 0..4 {
        sandbox.write("repository/fs/one.c", &format!("first\nsecond\n{number}\n"));
        git(&repository, &["add", "."]);
        git(&repository, &["commit", "-q", "-m", &format!("change {number}")]);
        git(&repository, &["tag", &format!("v{number}")]);
    }
    std::fs::create_dir(sandbox.path().join("empty")).unwrap();
    for (name, text) in [
        ("job.fio", "[w]\nrw=write\nbs=4k\nsize=1m\n"),
        ("one.patch", PATCH),
        ("other.patch", &PATCH.replace("-second", "-of another version")),
        ("outside.patch", &PATCH.replace("/fs/one.c", "/../../etc/passwd")),
        ("binary.patch", "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 0\n"),
        ("text.patch", "no patch at all\n"),
        ("notes.txt", "notes\n"),
        ("words.config", "CONFIG_XFS_FS=y\nand some words\n"),
        ("no-xfs.config", "# CONFIG_XFS_FS is not set\n"),
        ("no-aio.config", "# CONFIG_AIO is not set\n"),
        ("empty.config", "\n"),
        ("vmlinuz", "no kernel\n"),
        ("varied.toml", "job = \"job.fio\"\n[[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n"),
    ] {
        sandbox.write(name, text);
    }
    sandbox
}

/// The program's exit code and what it says, with a cache of the test's own.
fn said(sandbox: &Sandbox, words: &[&str], cache: &Path, path: Option<&str>) -> (Option<i32>, String) {
    let mut command = sandbox.assay(words);
    command.env("XDG_CACHE_HOME", cache);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let ended = command.output().unwrap();
    (ended.status.code(), errors(&ended))
}

fn nothing_left(sandbox: &Sandbox) {
    let left: Vec<String> = sandbox.names().into_iter().filter(|name| name.contains("assay")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!sandbox.records().exists());
    let kinds = std::fs::read_dir(sandbox.path().join("cache/assay")).into_iter().flatten().flatten();
    for entry in kinds.flat_map(|kind| std::fs::read_dir(kind.path()).into_iter().flatten().flatten()) {
        assert!(!entry.file_name().to_string_lossy().starts_with('.'), "{entry:?} is left");
    }
}

const RUN: [&str; 9] = ["run", "job.fio", "-q", "--rounds", "1", "-t", "virtio_blk:512m", "-t", "fs=xfs"];
const TREE: [&str; 2] = ["--source", "tree"];
const PATCHED: [&str; 2] = ["--vary", "patch=none,one.patch"];

#[test]
fn a_kernel_that_cannot_be_built_is_refused_with_what_helps() {
    if !["git", "bison", "flex", "bc", "qemu-system-x86_64"].into_iter().all(available) {
        return;
    }
    let sandbox = sandbox();
    let cache = sandbox.path().join("cache");
    let cases: &[(&[&[&str]], &str, &str)] = &[
        (&[&PATCHED, &["--source", "nowhere"]], "source=nowhere: no such file or directory", ""),
        (
            &[&PATCHED, &["--source", "empty"]],
            "a directory without a kernel's Makefile, Kconfig and init",
            "a git repository",
        ),
        (
            &[&PATCHED, &["--source", "notes.txt"]],
            "neither a Debian package nor a tarball",
            "linux-source .deb",
        ),
        (&[&["--vary", "rev=v1,v9", "--source", "repository"]], "has no revision v9", "git tag"),
        (&[&["--vary", "rev=v1,--all", "--source", "repository"]], "has no revision --all", "git tag"),
        (&[&["--vary", "rev=v1,v2"], &TREE], "rev=v1: ", "--source REPOSITORY"),
        (&[&["--vary", "rev=v1,v2"]], "no source is given", "--source REPOSITORY"),
        (&[&["--vary", "patch=none,absent.patch"], &TREE], "there is no file absent.patch", "FILE+FILE"),
        (&[&["--vary", "patch=none,text.patch"], &TREE], "text.patch is no unified diff", "git diff"),
        (&[&["--vary", "patch=none,binary.patch"], &TREE], "binary.patch", "git diff"),
        (&[&["--vary", "patch=none,outside.patch"], &TREE], "outside.patch", "git diff"),
        (
            &[&["--vary", "patch=none,other.patch"], &TREE],
            "other.patch does not apply to tree",
            "another version",
        ),
        (
            &[&["--vary", "patch=one.patch,one.patch+one.patch"], &TREE],
            "does not apply to tree",
            "in front of it",
        ),
        (&[&["--vary", "patch=none,none"], &TREE], "level none of patch is given twice", ""),
        (
            &[&PATCHED, &TREE, &["--config", "absent.config"]],
            "config=absent.config: no such file",
            "a .config",
        ),
        (
            &[&PATCHED, &TREE, &["--config", "words.config"]],
            "words.config, line 2: no option",
            "CONFIG_XFS_RT=y",
        ),
        (&[&PATCHED, &TREE, &["--config", "empty.config"]], "sets no option", "CONFIG_XFS_RT=y"),
        (
            &[&PATCHED, &TREE, &["--config", "no-xfs.config"]],
            "would be without XFS_FS",
            "add CONFIG_XFS_FS=y",
        ),
        (
            &[&PATCHED, &TREE, &["--config", "no-aio.config", "--vary", "ioengine=psync,libaio"]],
            "would be without AIO",
            "add CONFIG_AIO=y",
        ),
        (&[&PATCHED, &TREE, &["-t", "kernel=vmlinuz"]], "vmlinuz", "kernel"),
        (&[&PATCHED, &TREE, &["-t", "kernel=absent"]], "kernel=absent: no such file", "newest"),
        (&[&PATCHED, &TREE, &["-t", "memory=8000g"]], "is larger than this machine", "a smaller memory="),
    ];
    for (more, expected, helps) in cases {
        let words: Vec<&str> = RUN.iter().copied().chain(more.iter().copied().flatten().copied()).collect();
        let (code, text) = said(&sandbox, &words, &cache, None);
        assert_eq!(code, Some(2), "{words:?}: {text}");
        assert!(text.contains(expected) && text.contains(helps), "{words:?}: {text}");
        assert!(text.lines().count() <= 6, "{words:?}: {text}");
        nothing_left(&sandbox);
    }
    assert_eq!(git(&sandbox.path().join("repository"), &["status", "--porcelain"]), "");
}

#[test]
fn a_machine_that_cannot_build_says_what_it_lacks() {
    if !["git", "bison", "flex", "bc", "qemu-system-x86_64"].into_iter().all(available) {
        return;
    }
    let sandbox = sandbox();
    let words: Vec<&str> = RUN.iter().chain(&PATCHED).chain(&TREE).copied().collect();
    // All programs but two.
    let programs = sandbox.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    for place in std::env::var("PATH").unwrap().split(':').map(PathBuf::from) {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            if !["flex", "bison"].iter().any(|lacking| entry.file_name() == **lacking) {
                let _ = std::os::unix::fs::symlink(entry.path(), programs.join(entry.file_name()));
            }
        }
    }
    let cache = sandbox.path().join("cache");
    let (code, text) = said(&sandbox, &words, &cache, Some(&programs.to_string_lossy()));
    assert_eq!(code, Some(2), "{text}");
    for expected in ["building a kernel needs flex, bison", "sudo apt-get install flex bison"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    nothing_left(&sandbox);
    if !is_root() {
        return;
    }
    let Some(small) = Mounted::new(&sandbox, "small", &["-t", "tmpfs", "-o", "size=64m", "none"]) else {
        return;
    };
    let (code, text) = said(&sandbox, &words, &small.0, None);
    assert_eq!(code, Some(2), "{text}");
    for expected in ["building needs ", "MiB are free", "assay cleanup --cache"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    nothing_left(&sandbox);
}

#[test]
fn what_is_not_committed_is_told_before_it_is_built() {
    if !["git", "bison", "flex", "bc", "qemu-system-x86_64"].into_iter().all(available) {
        return;
    }
    let sandbox = sandbox();
    sandbox.write("repository/fs/one.c", "first\nsecond\nnot committed\n");
    let words: Vec<&str> =
        RUN.iter().chain(&["--source", "repository", "--plan"]).chain(&PATCHED).copied().collect();
    let mut command = sandbox.assay(&words);
    let ended = command.env("XDG_CACHE_HOME", sandbox.path().join("cache")).output().unwrap();
    let plan = String::from_utf8_lossy(&ended.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ended.status.success(), "{}", errors(&ended));
    assert!(plan.contains("repository has uncommitted changes in 1 files"), "{plan}");
    assert!(plan.contains("from repository@HEAD with one.patch"), "{plan}");
}

#[test]
fn a_search_over_kernels_is_checked_before_one_is_built() {
    if !["git", "bison", "flex", "bc", "qemu-system-x86_64"].into_iter().all(available) {
        return;
    }
    let sandbox = sandbox();
    let cache = sandbox.path().join("cache");
    let bisect = ["bisect", "--source", "repository", "--good", "v0", "--bad", "v3"];
    let disk = ["-t", "virtio_blk:64m"];
    let cases: &[(&[&str], &[&str], &str, &str)] = &[
        (&[], &[], "nothing says what is run on each kernel", "--engine dbench"),
        (&["--build", "make"], &["job.fio"], "--build is of programs", "leave it out"),
        (&[], &["dio-append"], "bisect does not search with a recipe", "JOB.fio"),
        (&[], &["varied.toml"], "varies bs itself", "take the factor out"),
        (&[], &["absent.fio"], "absent.fio", ""),
        (&["--engine", "fsmark"], &[], "no engine 'fsmark'", "did you mean fs_mark?"),
        (&["--config", "words.config"], &["job.fio"], "words.config, line 2", "CONFIG_XFS_RT=y"),
        (&["--primary", "write.bandwidth"], &["job.fio"], "write.bandwidth", "assay metrics JOB.fio"),
        (&["-t", "kernel=vmlinuz"], &["job.fio"], "vmlinuz", "kernel"),
        (&["-t", "filesystem=xfs"], &["job.fio"], "filesystem", "fs"),
        (&["-t", "memory=8000g"], &["job.fio"], "is larger than this machine", "a smaller memory="),
    ];
    for (more, job, expected, helps) in cases {
        let words = [&bisect[..], &disk, more, job].concat();
        let (code, text) = said(&sandbox, &words, &cache, None);
        assert_eq!(code, Some(2), "{words:?}: {text}");
        assert!(text.contains(expected) && text.contains(helps), "{words:?}: {text}");
        nothing_left(&sandbox);
    }
    let unknown = ["bisect", "--source", "repository", "--good", "v0", "--bad", "v9", "job.fio"];
    let (code, text) = said(&sandbox, &unknown, &cache, None);
    assert!(code == Some(2) && text.contains("--bad v9: no such revision in repository"), "{text}");
    let tree = ["bisect", "--source", "tree", "--good", "v0", "--bad", "v9", "job.fio"];
    let (code, _) = said(&sandbox, &tree, &cache, None);
    assert_eq!(code, Some(2));

    // A plan says what is built, and builds nothing.
    let mut command = sandbox.assay(&[&bisect[..], &disk, &["--plan", "job.fio"]].concat());
    let ended = command.env("XDG_CACHE_HOME", &cache).output().unwrap();
    let plan = String::from_utf8_lossy(&ended.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ended.status.success(), "{}", errors(&ended));
    for expected in [
        "3 steps from",
        "in a guest with the step's kernel",
        "built when a step is first asked for",
        "a kernel (assay's small configuration)",
    ] {
        assert!(plan.contains(expected), "{expected}: {plan}");
    }
    nothing_left(&sandbox);
}
