//! Guests that hang, take too long, do not come up, or refuse what is asked of them; and kernels that are not fetched yet.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assay::record::{Status, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::failing_case::Mounted;
use crate::guests::{JOB, PATIENCE, assay, kernels, nothing_left, packages, refused, run};
use crate::sandbox::{Sandbox, errors};
use crate::tools::is_root;

/// Waits until this is on the console of the first guest; the run takes place below `place`. Patience begins when there is a console, as
/// its kernel may have to be compiled before.
pub(crate) fn wait_for_console(place: &Path, child: &mut Child, words: &str) -> String {
    const COMPILED: Duration = Duration::from_secs(30 * 60);
    let console = || {
        let works = std::fs::read_dir(place).unwrap().flatten().map(|entry| entry.path());
        let mut works = works.filter(|path| path.join(assay::target::MARK).exists());
        std::fs::read(works.next()?.join("guest-0.console")).ok()
    };
    let (mut begun, mut patience) = (Instant::now(), COMPILED);
    loop {
        let said = console();
        let text = said.as_ref().map(|text| String::from_utf8_lossy(text).into_owned());
        if let Some(text) = text.filter(|text| text.contains(words)) {
            return text;
        }
        if said.is_some() && patience == COMPILED {
            (begun, patience) = (Instant::now(), 4 * PATIENCE);
        }
        if child.try_wait().unwrap().is_some() {
            let mut said = String::new();
            let _ = std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said);
            panic!("it has ended: {said}");
        }
        let said = said.unwrap_or_default();
        assert!(begun.elapsed() < patience, "{words} is not said:\n{}", String::from_utf8_lossy(&said));
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_guest_that_hangs_ends_its_trial_the_next_is_fresh() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    let kernel = format!("kernel={}", kernels[0]);
    let words = ["run", "-q", "-t", &kernel, "--vary", "n=1,2", "--rounds", "1", "--"];
    let mut command = assay(
        &sandbox,
        &[&words[..], &["sh", "-c", "echo trial has begun >/dev/console; sleep 2; : ${n}"]].concat(),
    );
    // A guest says every 5 s that it lives.
    command.env("ASSAY_TEST_SILENCE", "15");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_console(sandbox.path(), &mut child, "trial has begun");
    let emulator = sandbox.processes().into_iter().find(|(_, line)| line.contains("qemu-system")).unwrap();
    kill_process(Pid::from_raw(emulator.0 as i32).unwrap(), Signal::STOP).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    nothing_left(&sandbox);
    let run = sandbox.export("1");
    assert_eq!(run.trials.len(), 3, "{}", errors(&output));
    let Status::Failed { reason, output, .. } = &run.trials[0].status else { panic!("{:?}", run.trials[0]) };
    assert_eq!(reason, "the guest hangs: it said nothing for 15 s");
    assert!(output.contains("last lines of the console:") && output.contains("trial has begun"), "{output}");
    assert!(run.trials[1..].iter().all(|trial| trial.status == Status::Done));
    assert_eq!((run.trials[1].cell, run.trials[1].attempt), (run.trials[0].cell, 1));
}

#[test]
fn a_full_disk_here_is_an_error_of_the_disk_there() {
    let Some((kernels, _alone)) = kernels() else { return };
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(small) = Mounted::new(&sandbox, "small", &["-t", "tmpfs", "-o", "size=80m", "none"]) else {
        return;
    };
    sandbox.write("job.fio", "[w]\nrw=write\nbs=64k\nio_size=48m\ndirect=1\n");
    let kernel = format!("kernel={}", kernels[0]);
    let words =
        ["run", "job.fio", "-q", "-d", "small", "-t", &kernel, "-t", "virtio_blk:64m:cache=writeback"];
    let before = "[ -e /tmp/begun ] || { echo trial has begun >/dev/console; sleep 4; }; touch /tmp/begun";
    let more = ["--vary", "bs=32k,64k", "--rounds", "1", "--before", before];
    let mut command = assay(&sandbox, &[&words[..], &more].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_console(&small.0, &mut child, "trial has begun");
    // As much as fits.
    let filler = std::fs::File::create(small.0.join("filler")).unwrap();
    let full = (0..80).find_map(|at| {
        rustix::fs::fallocate(&filler, rustix::fs::FallocateFlags::empty(), at << 20, 1 << 20).err()
    });
    assert_eq!(full, Some(rustix::io::Errno::NOSPC));
    let output = child.wait_with_output().unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    drop(filler);
    nothing_left(&sandbox);
    let run = sandbox.export("1");
    assert!(!run.trials.is_empty(), "{said}");
    for trial in &run.trials {
        let Status::Failed { reason, output, .. } = &trial.status else { panic!("{:?}", trial.status) };
        assert!(reason.contains("write of") && reason.contains("EIO"), "{reason}");
        assert!(
            output.contains("MiB are free in ") && output.contains("where the disks of guests grow"),
            "{output}"
        );
    }
}

#[test]
fn a_disk_without_direct_io_is_told_with_what_helps() {
    let Some(kernels) = packages() else { return };
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let Some(_plain) = Mounted::new(&sandbox, "plain", &["-t", "ramfs", "none"]) else { return };
    sandbox.write("job.fio", JOB);
    let kernel = format!("kernel={}", kernels[0]);
    let words = ["run", "job.fio", "-q", "-d", "plain", "-t", &kernel, "--vary", "bs=4k,64k", "-t"];
    let output = run(&sandbox, &[&words[..], &["virtio_blk:16m"]].concat());
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in
        ["guest-0.disk0 cannot be opened for direct I/O, which cache=none asks for", "hint: cache=writeback"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    nothing_left(&sandbox);
}

#[test]
fn the_time_limit_holds_in_guests_and_the_guest_lives_on() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    let kernel = format!("kernel={}", kernels[0]);
    let words = ["run", "-q", "-t", &kernel, "--vary", "n=0,300", "--rounds", "1", "--timeout", "8s", "--"];
    let begun = Instant::now();
    let output = run(&sandbox, &[&words[..], &["sh", "-c", "sleep ${n}"]].concat());
    assert!(begun.elapsed() < Duration::from_secs(600));
    nothing_left(&sandbox);
    let run = sandbox.export("1");
    let of = |cell: u32| run.trials.iter().filter(move |trial| trial.cell == cell);
    assert!(of(0).all(|trial| trial.status == Status::Done), "{}", errors(&output));
    assert_eq!(of(1).count(), 2);
    for trial in of(1) {
        let Status::Failed { reason, .. } = &trial.status else { panic!("{:?}", trial.status) };
        assert!(reason.contains("8 s"), "{reason}");
    }
    let boots: std::collections::BTreeSet<_> =
        run.trials.iter().filter_map(|t| run.facts[t.facts? as usize].get("now.guest.boot_s")).collect();
    assert_eq!(boots.len(), 1, "{boots:?}");
}

#[test]
fn a_kernel_that_does_not_boot_is_told_before_the_trials() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    let kernel = format!("kernel={}", kernels[1]);
    let vary = "kernel_args=default,rdinit=/nonexistent";
    let words = ["run", "-q", "-t", &kernel, "--vary", vary, "--rounds", "2", "--", "true"];
    let output = run(&sandbox, &words);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for words in [
        "kernel_args=rdinit=/nonexistent: the guest ended before it came up: Kernel panic - not syncing: ",
        "/nonexistent",
        "hint: kernel_args=loglevel=7",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    nothing_left(&sandbox);
    assert!(sandbox.export("1").trials.is_empty());
}

#[test]
fn a_guest_that_the_emulator_made_die_is_booted_again() {
    use std::os::unix::fs::PermissionsExt;
    let Some((kernels, _alone)) = kernels() else { return };
    let real = assay::sys::find_system_program("qemu-system-x86_64").unwrap();
    let (int3, timer) = (
        "Oops: int3: 0000 [#1] PREEMPT SMP NOPTI",
        "Kernel panic - not syncing: IO-APIC + timer doesn t work!",
    );
    let stuck = "sleep 1000";
    for (deaths, oops, fate, most) in [
        (1, int3, "died of int3", None),
        (9, int3, "", Some(3)),
        (1, timer, "died of a missing timer", None),
        (9, timer, "", Some(1)),
        (1, stuck, "got stuck while it booted", None),
    ] {
        let succeeds = most.is_none();
        let sandbox = Sandbox::new();
        // What a kernel that died so has put on its console, and the end of the machine; or none.
        let end = if oops == stuck { format!("exec {stuck}") } else { String::new() };
        let script = format!(
            "#!/bin/sh\ncase $* in *tcg*id=console*) ;; *) exec {real} \"$@\" ;; esac\n\
             [ $(ls {place} | grep -c '^died') -lt {deaths} ] || exec {real} \"$@\"\n\
             touch {place}/died.$$\n\
             for word; do case $word in *id=console*) console=${{word##*path=}};; esac; done\n\
             echo '[    2.322799] {oops}' > $console\n{end}\n",
            real = real.display(),
            place = sandbox.path().display(),
        );
        std::fs::create_dir(sandbox.path().join("bin")).unwrap();
        let wrapper = sandbox.write("bin/qemu-system-x86_64", &script);
        std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", wrapper.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let kernel = format!("kernel={}", kernels[0]);
        let words = ["run", "-q", "-t", &kernel, "--vary", "n=1,2", "--rounds", "1", "--", "true", "${n}"];
        let mut command = assay(&sandbox, &words);
        if oops == stuck {
            command.env("ASSAY_TEST_PATIENCE", "60");
        }
        let output = command.env("PATH", path).output().unwrap();
        let said = errors(&output);
        let boots = said.matches("it is booted again").count();
        if succeeds {
            assert!(output.status.success() && boots >= deaths, "{said}");
            let run = sandbox.export("1");
            assert_eq!(run.trials.len(), 2);
            let told = |trial: &Trial| trial.notes.iter().any(|note| note.text.contains(fate));
            assert!(run.trials.iter().all(told), "{:?}", run.trials);
        } else {
            assert_eq!((output.status.code(), Some(boots)), (Some(1), most), "{said}");
            assert!(said.contains(oops) && said.contains("hint: under qemu's tcg "), "{said}");
        }
        nothing_left(&sandbox);
    }
}

#[test]
fn what_a_guest_refuses_is_told_in_its_own_words() {
    let Some((kernels, _alone)) = kernels() else { return };
    let kernel = format!("kernel={}", kernels[0]);
    for (settings, expected) in [
        // By this machine's mkfs, which guests use, too: nothing is booted for it.
        (["fs=ext4", "mkfs=-O nosuchfeature"], "nosuchfeature"),
        // Written to the kernel's log only.
        (["fs=btrfs", "mount=nosuchoption"], "unrecognized mount option 'nosuchoption'"),
        (["fs=xfs", "mount=nosuchoption"], "nknown parameter 'nosuchoption'"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("job.fio", JOB);
        let words = ["run", "job.fio", "-q", "-t", &kernel, "-t", "virtio_blk:400m", "--vary", "bs=4k,64k"];
        let output = run(&sandbox, &[&words[..], &["-t", settings[0], "-t", settings[1]]].concat());
        let said = errors(&output);
        assert!(said.contains("cannot be made: ") && said.contains(expected), "{said}");
        assert!(said.contains("hint: ") && said.contains("man "), "{said}");
        nothing_left(&sandbox);
        if settings[1].starts_with("mkfs") {
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(!sandbox.path().join("assay.db").exists(), "{said}");
        } else {
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(sandbox.export("1").trials.is_empty());
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_booted() {
    let Some(kernels) = packages() else { return };
    let kernel = format!("kernel={}", kernels[0]);
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", JOB);
    let common = ["run", "job.fio", "--vary", "bs=4k,8k", "-t", &kernel, "-t"];
    let with = |more: &[&'static str]| -> Vec<&str> { [&common[..], more].concat() };
    let fits = "a device of 512 MiB does not fit into a guest with memory=512m";
    refused(&sandbox, &with(&["ram:512m", "-t", "memory=512m"]), fits);
    let begun = Instant::now();
    let little = "kernel_args=mem=48M: too little memory for a guest, which needs 192 MiB";
    refused(&sandbox, &with(&["virtio_blk:64m", "-t", "kernel_args=mem=48M"]), little);
    assert!(begun.elapsed() < Duration::from_secs(60));
    refused(&sandbox, &with(&["pmem:8t"]), "the guest will take about 8388928 MiB of memory, and");
    let scheduler = ["virtio_blk:64m", "-t", "scheduler=nonsense"];
    refused(&sandbox, &with(&scheduler), "has no scheduler nonsense: it is neither built in nor in");
    refused(&sandbox, &with(&["nvme:800t"]), "disks of the guest may take 838860800 MiB, and");
    let release = ["run", "job.fio", "--vary", "bs=4k,8k", "-t", "kernel=9.9.9-none"];
    refused(&sandbox, &release, "kernel=9.9.9-none: there is no such file, and no kernel of this release");
    // What is in no module of this kernel, and what is no kernel although it is large.
    std::fs::write(sandbox.path().join("picture"), vec![0x89; 1 << 20]).unwrap();
    let picture = ["run", "job.fio", "--vary", "bs=4k,8k", "-t", "kernel=picture"];
    refused(&sandbox, &picture, "picture is no x86 Linux kernel: it has no boot header");
    refused(
        &sandbox,
        &with(&["modules=no_such_module"]),
        "has no no_such_module: it is neither built in nor in",
    );
}

/// The script where it would run, with an apt that knows packages once its lists were updated.
fn script_with_apt(sandbox: &Sandbox, fails: &str) -> std::process::Output {
    let path = |name: &str| sandbox.path().join(name);
    for directory in ["scripts", "bin"] {
        let _ = std::fs::create_dir(path(directory));
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/kernels.sh");
    std::fs::copy(script, path("scripts/kernels.sh")).unwrap();
    let marks = sandbox.path().display();
    let depends = "case $2 in linux-image-amd64) v=6.1.0-1-amd64;; linux-image-6.12-amd64) v=6.12.1-amd64;; *) exit 0;; esac\n\
                   echo \"$2\"; echo \"  Depends: linux-image-$v\"";
    let programs = [
        ("apt-cache", format!("[ -e {marks}/updated ] || [ {fails} != lists ] || exit 100\n{depends}")),
        (
            "apt-get",
            format!(
                "echo \"$@\" >>{marks}/calls\ncase \"$*\" in\n\
                 *update*) [ {fails} != all ] || {{ echo 'E: no network' >&2; exit 100; }}; touch {marks}/updated;;\n\
                 *download*) for p; do :; done; [ -e {marks}/updated ] || [ {fails} = none ] || {{ echo '404 Not Found' >&2; exit 100; }}\n\
                 echo package >${{p}}_1_amd64.deb;;\nesac"
            ),
        ),
        ("sudo", "shift; [ \"$1\" = true ] || exec \"$@\"".to_owned()),
    ];
    for (name, body) in programs {
        std::fs::write(path("bin").join(name), format!("#!/bin/sh\n{body}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path("bin").join(name), mode).unwrap();
    }
    let search = format!("{}:{}", path("bin").display(), std::env::var("PATH").unwrap());
    Command::new("bash").arg(path("scripts/kernels.sh")).env("PATH", search).output().unwrap()
}

#[test]
fn kernels_are_fetched_with_lists_that_are_missing_or_old() {
    let calls = |sandbox: &Sandbox| std::fs::read_to_string(sandbox.path().join("calls")).unwrap_or_default();
    for (fails, updates) in [("none", 0), ("lists", 1), ("download", 1)] {
        let sandbox = Sandbox::new();
        let output = script_with_apt(&sandbox, fails);
        assert!(output.status.success(), "{fails}: {}", errors(&output));
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        for name in ["linux-image-6.1.0-1-amd64_1_amd64.deb", "linux-image-6.12.1-amd64_1_amd64.deb"] {
            assert!(printed.contains(&format!("target/kernels/{name}  0 MiB")), "{fails}: {printed}");
        }
        assert_eq!(calls(&sandbox).matches("update").count(), updates, "{fails}: {}", calls(&sandbox));
        // What is there already is not fetched again.
        let before = calls(&sandbox);
        assert!(script_with_apt(&sandbox, fails).status.success());
        assert_eq!(calls(&sandbox), before);
    }
    let sandbox = Sandbox::new();
    let output = script_with_apt(&sandbox, "all");
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("could not fetch linux-image-6.1.0-1-amd64"), "{}", errors(&output));
    assert!(output.stdout.is_empty());
}
