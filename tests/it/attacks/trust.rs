//! A store, a journal or a directory made by others: read as data, never obeyed.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::victims::{is_whole, precious, quoted, sql, sum};
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{JOB, PATIENCE, kill_all, paused_at};
use crate::tools::is_root;

const TWO: [&str; 9] = ["run", "-q", "--vary", "n=1,2", "--rounds", "2", "--", "true", "${n}"];

fn both(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors(output)
}

/// A store with a run that was stopped after its first round.
fn stopped(sandbox: &Sandbox) {
    sandbox.succeed(&TWO);
    let store = sandbox.path().join("assay.db");
    sql(
        &store,
        "UPDATE run SET state = '\"interrupted\"'; DELETE FROM trial WHERE round = 1; DELETE FROM value;",
    );
}

#[test]
fn a_file_or_directory_that_a_store_names_is_not_removed() {
    let sandbox = Sandbox::new();
    stopped(&sandbox);
    let (victim, file) = (precious(&sandbox, "victim"), sandbox.write("file", "precious"));
    let marked = precious(&sandbox, "assay-0123456789abcdef");
    let text = "made by assay; `assay cleanup` removes it\n0123456789abcdef\n";
    std::fs::write(marked.join(".assay-work"), text).unwrap();
    // Somebody's own, into which the mark was put, or copied.
    let touched = precious(&sandbox, "assay-fedcba9876543210");
    std::fs::write(touched.join(".assay-work"), "").unwrap();
    let copied = precious(&sandbox, "results");
    std::fs::write(copied.join(".assay-work"), text).unwrap();
    let link = sandbox.path().join("link");
    std::os::unix::fs::symlink(&victim, &link).unwrap();
    for path in [&victim, &file, &marked, &touched, &copied, &link] {
        sql(&sandbox.path().join("assay.db"), &format!("INSERT INTO leftover VALUES (1, {})", quoted(path)));
    }
    let before = sum(&file);
    for command in [&["cleanup", "--dry-run"][..], &["cleanup"], &["run", "--resume", "1"]] {
        let said = both(&sandbox.run(command));
        assert!(is_whole(&victim) && is_whole(&marked) && sum(&file) == before && link.exists(), "{said}");
    }
    let said = sandbox.succeed(&["cleanup"]);
    assert_eq!(said.matches("left alone: ").count(), 6, "{said}");
    assert_eq!(said.matches("`assay cleanup --trust` removes it").count(), 1, "{said}");
    // A person may say that the marked one is assay's; that takes nothing else along, and no link is followed.
    let said = both(&sandbox.run(&["cleanup", "--trust"]));
    assert!(!marked.exists() && is_whole(&victim) && sum(&file) == before, "{said}");
    assert!(is_whole(&touched) && is_whole(&copied), "{said}");
}

#[test]
fn hooks_and_commands_of_a_changed_store_are_not_run() {
    let sandbox = Sandbox::new();
    stopped(&sandbox);
    let store = sandbox.path().join("assay.db");
    let proof = sandbox.path().join("proof");
    let forge =
        format!("UPDATE run SET experiment = json_set(experiment, '$.before', 'touch {}')", proof.display());
    sql(&store, &forge);
    let refused = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(refused.status.code(), Some(2), "{}", both(&refused));
    assert!(both(&refused).contains("was not begun by you on this machine, or was changed since"));
    assert!(!proof.exists());
    // What it would do is said before it is done.
    let trusted = sandbox.run(&["run", "--resume", "1", "--trust"]);
    let said = both(&trusted);
    assert!(said.contains(&format!("run: touch {}  (before each trial)", proof.display())), "{said}");
    assert!(said.contains("run: true 1") && proof.exists(), "{said}");
}

#[test]
fn a_run_of_another_user_or_machine_is_not_resumed() {
    let sandbox = Sandbox::new();
    stopped(&sandbox);
    // Another machine has another secret.
    let other = sandbox.records().with_file_name("other");
    let output = sandbox.assay(&["run", "--resume", "1"]).env("ASSAY_STATE_DIR", other).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(both(&output).contains("--trust says what it would run and write"), "{}", both(&output));
    // It can be read all the same.
    sandbox.succeed(&["report", "1"]);
    sandbox.succeed(&["run", "-q", "--resume", "1"]);
}

/// A store that another user gives away holds a finished run that may be extended, with a command of his.
#[test]
fn a_run_of_another_user_is_not_extended() {
    let sandbox = Sandbox::new();
    let proof = sandbox.path().join("proof");
    let prints = format!("touch {}; echo x=${{n}}0", proof.display());
    let metric = ["--metric", "x=x=([0-9]+)", "--anytime", "--max-rounds", "4"];
    let begun = [&["run", "-q", "--vary", "n=1,2"], &metric[..], &["--", "sh", "-c", &prints]].concat();
    sandbox.succeed(&begun);
    let as_another = |words: &[&str]| {
        let mut command = sandbox.assay(words);
        command.env("ASSAY_STATE_DIR", sandbox.state_of_another_user()).output().unwrap()
    };
    std::fs::remove_file(&proof).unwrap();
    let output = as_another(&["run", "--more", "2", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(both(&output).contains("run 1 was not begun by you on this machine"), "{}", both(&output));
    assert!(both(&output).contains("--more 2 1 --trust says what it would run"), "{}", both(&output));
    assert!(!proof.exists());
    assert_eq!(sandbox.export("1").design.stop.max_rounds, 4);
    // Changed by somebody else it is refused to the one who began it, too.
    let store = sandbox.path().join("assay.db");
    let whole = std::fs::read(&store).unwrap();
    sql(&store, "UPDATE run SET experiment = json_set(experiment, '$.before', 'true')");
    assert_eq!(sandbox.run(&["run", "--more", "2", "1"]).status.code(), Some(2));
    assert!(!proof.exists());
    std::fs::write(&store, whole).unwrap();
    let output = as_another(&["run", "--more", "2", "1", "--trust"]);
    assert!(both(&output).contains("run: sh -c") && proof.exists(), "{}", both(&output));
}

#[test]
fn a_secret_that_others_could_change_is_not_used_and_said() {
    let sandbox = Sandbox::new();
    let shared = sandbox.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o777)).unwrap();
    let state = |words: &[&str]| {
        let output = sandbox.assay(words).env("ASSAY_STATE_DIR", shared.join("state")).output().unwrap();
        (output.status.code(), both(&output))
    };
    let (code, said) = state(&TWO);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("cannot keep the key that would show who began this run")
            && said.contains("can be written by everyone"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 0);
    sql(&sandbox.path().join("assay.db"), "UPDATE run SET state = '\"interrupted\"'");
    let (code, said) = state(&["run", "--resume", "1"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("has no seal"), "{said}");
}

/// A row that claims everything a seal covers, one at a time.
#[test]
fn each_part_of_a_run_is_sealed() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nbs=4k\nsize=64k\nfsync=${N}\n");
    sandbox.succeed(&["run", "job.fio", "-q", "--vary", "N=1,2", "--rounds", "2"]);
    let store = sandbox.path().join("assay.db");
    let whole = std::fs::read(&store).unwrap();
    for forge in [
        "command_line = json_insert(command_line, '$[#]', '--destroy', '$[#]', '/dev/vda')",
        "seed = seed + 1",
        "job_text = job_text || 'unlink=1'",
        "experiment = json_set(experiment, '$.after', 'true')",
        "seal = ''",
        "seal = 'zz'",
        "seal = substr(seal, 1, 62) || '00'",
    ] {
        std::fs::write(&store, &whole).unwrap();
        let delete =
            "DELETE FROM value; DELETE FROM histogram; DELETE FROM series; DELETE FROM trial WHERE round = 1";
        sql(&store, &format!("UPDATE run SET state = '\"interrupted\"', {forge}; {delete};"));
        let output = sandbox.run(&["run", "--resume", "1"]);
        assert_eq!(output.status.code(), Some(2), "{forge}: {}", both(&output));
        let why = if forge == "seal = ''" { "has no seal" } else { "was not begun by you" };
        assert!(both(&output).contains(why), "{forge}: {}", both(&output));
    }
    sql(&store, "INSERT INTO claim VALUES (1, 0, '{}')");
    assert_eq!(sandbox.run(&["run", "--resume", "1"]).status.code(), Some(2));
}

#[test]
fn a_work_directory_that_was_exchanged_is_not_emptied() {
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    if !crate::target_bench::can_make() {
        return;
    }
    let mut child =
        paused_at(&sandbox, "stack", &["run", "job.fio", "-q", "--vary", "bs=4k,8k", "-t", "fs=tmpfs"]);
    kill_all(&sandbox);
    child.wait().unwrap();
    sandbox.no_process_left(PATIENCE);
    let work = sandbox.names().into_iter().find(|name| name.starts_with("assay-")).unwrap();
    let (work, away) = (sandbox.path().join(work), sandbox.path().join("away"));
    // Somebody who may rename puts a directory of his choice in its place, with the very mark in it.
    std::fs::rename(&work, &away).unwrap();
    let victim = precious(&sandbox, "victim");
    std::fs::copy(away.join(".assay-work"), victim.join(".assay-work")).unwrap();
    std::fs::rename(&victim, &work).unwrap();
    let said = both(&sandbox.run(&["cleanup"]));
    assert!(said.contains("was to be removed and stays: it is another directory"), "{said}");
    assert!(is_whole(&work), "{said}");
    // The filesystem that was mounted in it is known by its number, wherever it is now.
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&*sandbox.path().to_string_lossy()), "{mounts}");
}

#[test]
fn as_root_no_directory_is_used_in_which_others_can_rename() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let shared = sandbox.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let shown = shared.to_string_lossy().into_owned();
    let words =
        [&["run", "-q", "-d", &shown, "--vary", "n=1,2", "--rounds", "1"][..], &["--", "true", "${n}"]]
            .concat();
    let set = |mode: u32, owner: u32| {
        std::os::unix::fs::chown(&shared, Some(owner), Some(owner)).unwrap();
        std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for (mode, owner, why) in [
        (0o777, 0, "can be written by everyone"),
        (0o775, 0, ""),
        (0o755, 65534, "belongs to user 65534"),
        (0o1777, 65534, "belongs to user 65534"),
        (0o1777, 0, ""),
    ] {
        set(mode, owner);
        let output = sandbox.run(&words);
        let said = both(&output);
        assert_eq!(
            output.status.code(),
            Some(if why.is_empty() { 0 } else { 2 }),
            "{mode:o} {owner}: {said}"
        );
        assert!(said.contains(why), "{said}");
        assert_eq!(std::fs::read_dir(&shared).unwrap().count(), 0, "{said}");
    }
    set(0o777, 0);
    let trusted = [&["run", "--trust"][..], &words[1..]].concat();
    sandbox.succeed(&trusted);
}

/// A directory that somebody has prepared with the names that assay uses.
#[test]
fn prepared_names_lead_to_no_file_of_others() {
    let sandbox = Sandbox::new();
    let protected = sandbox.write("protected", "secret");
    std::fs::set_permissions(&protected, std::fs::Permissions::from_mode(0o700)).unwrap();
    stopped(&sandbox);
    let prepared = sandbox.path().join("prepared");
    std::fs::create_dir(&prepared).unwrap();
    std::fs::write(prepared.join(".assay-work"), "made by assay\n").unwrap();
    for name in [".assay-journal.new", ".assay-lock", ".assay-record", "paused"] {
        std::os::unix::fs::symlink(&protected, prepared.join(name)).unwrap();
    }
    std::fs::write(prepared.join(".assay-journal"), "{\"boot\":\"x\",\"entries\":[],\"standing\":{}}")
        .unwrap();
    sql(&sandbox.path().join("assay.db"), &format!("INSERT INTO leftover VALUES (1, {})", quoted(&prepared)));
    for command in [&["cleanup"][..], &["cleanup", "--trust"], &["run", "-q", "--resume", "1"]] {
        let said = both(&sandbox.run(command));
        assert_eq!(std::fs::read_to_string(&protected).unwrap(), "secret", "{command:?}: {said}");
    }
}

/// The names of forged paths do nothing to a terminal, and one that cannot be undone keeps no other from it.
#[test]
fn one_leftover_of_an_unknown_run_blocks_nothing() {
    let sandbox = Sandbox::new();
    stopped(&sandbox);
    let victim = precious(&sandbox, "victim");
    sql(&sandbox.path().join("assay.db"), &format!("INSERT INTO leftover VALUES (99, {})", quoted(&victim)));
    let said = sandbox.succeed(&["cleanup"]);
    assert!(said.contains("left alone: ") && said.contains("run 99"), "{said}");
    sandbox.succeed(&["run", "-q", "--resume", "1"]);
    assert!(is_whole(&victim) && Path::new(&victim).exists());
}
