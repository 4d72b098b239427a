//! Extents beside throughput: what the observer says is what filefrag says; preallocation and the hint as levels.
//!
//! These need root and loop devices with XFS and ext4; where that is missing they say so, and fail in CI.

use std::collections::BTreeSet;
use std::path::Path;

use assay::record::{Run, Status};

use crate::failing_case::{Case, PLAIN};
use crate::sandbox::{Sandbox, errors};
use crate::spoiled::texts;
use crate::target_bench::{can_make, fact, left_behind, run, succeed};
use crate::tools::{available, installed, is_root};

/// Four files that grow in turns, a block at a time: they lie in one another on the device.
const IN_TURNS: &str = "[w]\nrw=write\nbs=4k\nsize=1m\nnrfiles=4\ndirect=1\nfallocate=none\n";

fn value(run: &Run, cell: u32, metric: &str) -> Option<f64> {
    let at = run.metrics.iter().position(|known| known.name == metric)?;
    let trial = run.trials.iter().find(|trial| trial.cell == cell)?;
    trial.values.iter().find(|(known, _)| *known as usize == at).map(|(_, value)| *value)
}

/// (first block, blocks) of every extent that `filefrag -b1024 -v` lists, those that go on in one piece put together; a list a file.
fn filefrag(text: &str) -> Vec<Vec<(u64, u64)>> {
    let mut files: Vec<Vec<(u64, u64, u64)>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("File size of ") {
            files.push(Vec::new());
        }
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let first = |field: &str| field.split("..").next().and_then(|number| number.parse::<u64>().ok());
        if fields.len() < 5 || fields[0].parse::<u32>().is_err() {
            continue;
        }
        let (logical, physical, blocks) =
            (first(fields[1]).unwrap(), first(fields[2]).unwrap(), fields[3].parse::<u64>().unwrap());
        let file = files.last_mut().unwrap();
        match file.last_mut() {
            Some((l, p, b)) if *l + *b == logical && *p + *b == physical => *b += blocks,
            _ => file.push((logical, physical, blocks)),
        }
    }
    files
        .into_iter()
        .map(|file| file.into_iter().map(|(_, place, blocks)| (place, blocks)).collect())
        .collect()
}

#[test]
fn the_observer_counts_what_filefrag_counts() {
    if !can_make() || !installed("filefrag") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", IN_TURNS);
    let after =
        format!("/usr/sbin/filefrag -b1024 -v $ASSAY_DIRECTORY/w.* > {}/frag-$fs", sandbox.path().display());
    let words = ["run", "job.fio", "-q", "--rounds", "1", "--observe", "extents", "--after", &after];
    succeed(&sandbox, &[&words[..], &["-t", "loop:310m", "--vary", "fs=xfs,ext4"]].concat());
    let lkml = sandbox.succeed(&["report", "1", "--format", "lkml"]);
    assert!(lkml.contains("\nextents.per_file"), "{lkml}");
    let run = sandbox.export("1");
    for (cell, fs) in [(0, "xfs"), (1, "ext4")] {
        let text = std::fs::read_to_string(sandbox.path().join(format!("frag-{fs}"))).unwrap();
        let files = filefrag(&text);
        assert_eq!(files.len(), 4, "{text}");
        let count: usize = files.iter().map(Vec::len).sum();
        let mut places: Vec<(u64, usize)> = Vec::new();
        for (owner, file) in files.iter().enumerate() {
            places.extend(file.iter().map(|(place, _)| (*place, owner)));
        }
        places.sort_unstable();
        let changes = places.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
        let bytes = 1024.0 * files.iter().flatten().map(|(_, blocks)| *blocks as f64).sum::<f64>();
        let most = files.iter().map(Vec::len).max().unwrap();
        for (metric, expected) in [
            ("extents.files", 4.0),
            ("extents.count", count as f64),
            ("extents.per_file", count as f64 / 4.0),
            ("extents.max", most as f64),
            ("extents.mean_bytes", bytes / count as f64),
            ("extents.owner_changes", changes as f64),
            ("extents.owner_changes_per_mib", changes as f64 / (bytes / 1_048_576.0)),
        ] {
            assert_eq!(value(&run, cell, metric), Some(expected), "{fs} {metric}: {text}");
        }
        assert!(count > 4 && changes > 3, "{fs}: files that grow in turns lie in one another: {text}");
    }
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn preallocation_and_hint_are_levels_what_cannot_be_is_skipped() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", IN_TURNS);
    sandbox.write(
        "e.toml",
        "job = \"job.fio\"\nobserve = [\"extents\"]\n[stop]\nrounds = 1\n[target]\ndevice = \"loop:310m\"\n\
         [[factor]]\nname = \"allocation\"\n\
         [[factor.level]]\nlabel = \"plain\"\nset = { fallocate = \"none\" }\n\
         [[factor.level]]\nlabel = \"fallocate\"\nset = { fallocate = \"keep\" }\n\
         [[factor.level]]\nlabel = \"extsize\"\nset = { fallocate = \"none\", extsize = \"256k\" }\n\
         [[factor]]\nname = \"fs\"\nlevels = [\"xfs\", \"ext4\"]\n",
    );
    let plan = succeed(&sandbox, &["run", "e.toml", "--plan"]);
    assert!(plan.contains("extsize: 262144 bytes for every file"), "{plan}");
    assert!(plan.contains("skipped: ext4 has no extent-size hint, only XFS has one"), "{plan}");
    let report = succeed(&sandbox, &["run", "e.toml", "-q"]);
    let run = sandbox.export("1");
    let per_file = |cell: u32| value(&run, cell, "extents.per_file");
    // Cells: plain, fallocate, extsize; XFS and ext4 of each.
    assert!(per_file(0).unwrap() > 8.0, "{:?}", per_file(0));
    assert_eq!(per_file(2), Some(1.0), "one file, one piece, where it was allocated beforehand");
    assert!(per_file(4).unwrap() <= 4.0, "a quarter of a MiB at once: {:?}", per_file(4));
    assert_eq!(fact(&sandbox, "1", 4, "target.extsize"), "262144");
    assert_eq!(fact(&sandbox, "1", 0, "target.extsize"), "");
    let skipped = run.trials.iter().find(|trial| trial.cell == 5).unwrap();
    let reason = "ext4 has no extent-size hint, only XFS has one";
    assert_eq!(skipped.status, Status::Skipped { reason: reason.to_owned() });
    let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(reason), "{report}");
    // One reason is told once, with what its cells share.
    let report = succeed(&sandbox, &["run", "e.toml", "-q", "--vary", "bs=4k,8k"]);
    let flat = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let told = format!("2 trials of allocation=extsize, fs=ext4 skipped (round 1): {reason}");
    assert!(flat.contains(&told) && flat.matches(reason).count() == 1, "{report}");
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn a_hint_that_cannot_be_at_all_is_refused() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", IN_TURNS);
    let words = ["run", "job.fio", "--vary", "bs=4k,8k", "-t", "loop:310m"];
    let code = |more: &[&str]| {
        let output = run(&sandbox, &[&words[..], more].concat());
        (output.status.code(), errors(&output))
    };
    let (exit, said) = code(&["-t", "fs=ext4", "-t", "extsize=1m"]);
    assert!(exit == Some(2) && said.contains("ext4 has no extent-size hint"), "{said}");
    let (exit, said) = code(&["-t", "extsize=1m"]);
    assert!(exit == Some(2) && said.contains("extsize is given, but no fs"), "{said}");
    // Half a block: only XFS knows, and it says so before the first trial.
    let (exit, said) = code(&["-t", "fs=xfs", "-t", "extsize=512"]);
    assert_eq!(exit, Some(1), "{said}");
    assert!(said.contains("extsize=512 is refused: Invalid argument") && said.contains("hint: "), "{said}");
    let (exit, said) = code(&["--observe", "extends"]);
    assert!(exit == Some(2) && said.contains("no observer 'extends'; write extents"), "{said}");
    assert_eq!(left_behind(&sandbox, 0), BTreeSet::new());
}

#[test]
fn a_filesystem_that_cannot_tell_is_a_note() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=64k\n");
    let words = ["run", "job.fio", "-q", "--rounds", "1", "--observe", "extents", "--vary", "bs=4k,8k"];
    succeed(&sandbox, &[&words[..], &["-t", "fs=tmpfs"]].concat());
    let run = sandbox.export("1");
    for trial in &run.trials {
        assert_eq!(trial.status, Status::Done);
        assert!(trial.notes.iter().any(|note| note.text.contains("no FIEMAP")), "{:?}", trial.notes);
    }
    assert!(run.metrics.iter().all(|metric| !metric.name.starts_with("extents.")));
}

#[test]
fn guests_tell_where_files_of_f2fs_lie() {
    let Some((kernels, _alone)) = crate::guests::kernels() else { return };
    if !installed("mkfs.f2fs") {
        return;
    }
    let sandbox = Sandbox::new();
    let kernel = format!("kernel={}", kernels[1]);
    let words = ["run", "dio-append", "--quick", "--rounds", "1", "-q"];
    let write = ["--vary", "write=append 4k"];
    let fewer = ["--vary", "allocation=plain,fallocate", "--vary", "fs=f2fs", "-t", &kernel, "-t", "ram:64m"];
    let output = crate::guests::assay(&sandbox, &[&words[..], &write, &fewer].concat()).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let run = sandbox.export("1");
    assert_eq!(run.cells.len(), 2);
    for cell in [0, 1] {
        assert_eq!(fact(&sandbox, "1", cell, "fs.type"), "f2fs");
        let of =
            |metric: &str| value(&run, cell, metric).unwrap_or_else(|| panic!("{metric}: {:?}", run.trials));
        assert_eq!(of("extents.files"), 32.0);
        let bytes = of("extents.count") * of("extents.mean_bytes");
        assert!((bytes - 32.0 * 131_072.0).abs() < 1.0, "{bytes}");
        assert!(of("extents.per_file") >= 1.0 && of("extents.owner_changes") >= 31.0, "{:?}", run.trials);
    }
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(report.contains("beside: extents.per_file, medians of allocation=fallocate against"), "{report}");
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
}

#[test]
fn files_the_job_has_elsewhere_are_looked_at() {
    let sandbox = Sandbox::new();
    let own = sandbox.path().join("elsewhere");
    sandbox.write("job.fio", &format!("[w]\nrw=write\nbs=4k\nsize=64k\nfilename={}\n", own.display()));
    let words = ["run", "job.fio", "-q", "--rounds", "1", "--observe", "extents", "--vary", "bs=4k,8k"];
    succeed(&sandbox, &words);
    let run = sandbox.export("1");
    let notes = texts(&run.trials[0].notes).join("\n");
    match value(&run, 0, "extents.files") {
        Some(files) => assert_eq!(files, 1.0),
        None => assert!(notes.contains("no FIEMAP"), "{notes}"),
    }
}

/// A file that belongs to somebody else, whom O_NOATIME is refused, reached by a link.
#[test]
fn files_of_another_user_are_looked_at() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let sandbox = Sandbox::new();
    let may = |path: &Path, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    may(sandbox.path(), 0o777);
    let file = sandbox.write("roots", &"d".repeat(1 << 16));
    may(&file, 0o666);
    let link = sandbox.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let at = link.to_string_lossy().into_owned();
    let case = Case {
        job: &format!("[w]\nrw=write\nbs=${{X}}\nsize=64k\nfilename={at}\n"),
        good: "4k",
        bad: "8k",
        under: &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
        options: &["--observe", "extents", "--destroy", &at],
        ..PLAIN
    };
    let output = case.prepared(&sandbox).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    let run = sandbox.export("1");
    let notes = texts(&run.trials[0].notes).join("\n");
    match value(&run, 0, "extents.files") {
        Some(files) => assert_eq!(files, 1.0),
        None => assert!(notes.contains("no FIEMAP"), "{notes}"),
    }
}

#[test]
fn every_observer_that_may_be_asked_for_is_there() {
    let place = assay::observe::Place::default();
    for name in assay::catalog::observer_names() {
        assert!(assay::observe::named(name, &place).is_some(), "{name}");
    }
    assert!(assay::observe::named("extends", &place).is_none());
}
