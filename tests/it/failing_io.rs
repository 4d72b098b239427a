//! Machines and files that fail: two levels of which one cannot work. The bad one ends with one clear error, the good
//! one's trials are all in the store, the exit code is 1, and nothing is left behind. What is refused before anything
//! is touched is in `bad_inputs.rs`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::failing_case::{Case, Mounted, PLAIN, failing};
use crate::loop_device::LoopDevice;
use assay::record::{FailureKind, Status};

use crate::sandbox::{Sandbox, errors};
use crate::target_bench::EmptyZram;
use crate::tools::{available, impossible_here, is_root};

#[test]
fn files_that_cannot_be_worked_on() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("dir")).unwrap();
    sandbox.write("data", &"d".repeat(1 << 18));
    let here = sandbox.path().to_string_lossy().into_owned();
    let at = |name: &str| format!("{here}/{name}");
    let read = "[r]\nrw=read\nbs=4k\nsize=64k\nfilename=${X}\n";
    let data = at("data");
    let case = |bad: &str, words: &[&str]| {
        Case { job: read, good: &data, bad, words, refused: true, ..PLAIN }.fails(&sandbox);
    };
    case(&at("none/file"), &["none/file", "ENOENT"]);
    case(&at("dir"), &["is a directory", "name a file"]);
    let made = Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(made.success());
    case(&at("pipe"), &["pipe", "is a FIFO", "name a file or a block device"]);
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    case(&at("socket"), &["socket", "is a socket"]);
    case("/dev/zero", &["/dev/zero", "is a character device"]);
    // They have no bandwidth in common.
    let by_runtime = ["--primary", "runtime"];
    let trim = "[t]\nrw=${X}\nbs=4k\nsize=64k\n";
    Case {
        job: trim,
        good: "write",
        bad: "trim",
        options: &by_runtime,
        words: &["trim", "t.0.0"],
        refused: true,
        ..PLAIN
    }
    .fails(&sandbox);
}

#[test]
fn direct_io_that_is_not_aligned() {
    let sandbox = Sandbox::new();
    let block = "[w]\nrw=randwrite\nbs=${X}\nsize=256k\ndirect=1\n";
    let words = ["w.0.0", "EINVAL", "logical block", "1000 is none"];
    Case { job: block, good: "4k", bad: "1000", words: &words, refused: true, ..PLAIN }.fails(&sandbox);
    let offset = "[r]\nrw=read\nbs=4k\nsize=256k\ndirect=1\noffset=${X}\nioengine=libaio\n";
    let words = ["r.0.0", "EINVAL", "logical block", "100 is none"];
    Case { job: offset, good: "4k", bad: "100", words: &words, refused: true, ..PLAIN }.fails(&sandbox);
}

#[test]
fn devices_that_are_too_small_or_break() {
    let sandbox = Sandbox::new();
    let image = sandbox.path().join("image");
    let Some(device) = LoopDevice::on(&image, 1 << 20) else { return };
    let at = device.path.to_string_lossy().into_owned();
    let job = |rw: &str| format!("[d]\nrw={rw}\nbs=4k\nsize=${{X}}\ndirect=1\nfilename={at}\n");
    let words = [at.as_str(), "has 1048576 bytes", "goes up to 4194304"];
    Case { job: &job("randread"), good: "512k", bad: "4m", words: &words, refused: true, ..PLAIN }
        .fails(&sandbox);
    let destroy = ["--destroy", &at];
    let written = Case { job: &job("write"), good: "512k", bad: "4m", options: &destroy, ..PLAIN };
    Case { words: &[at.as_str(), "goes up to 4194304", "too small"], refused: true, ..written }
        .fails(&sandbox);
    // What a time may end before is tried.
    let timed = job("write") + "runtime=20\n";
    let words = ["no space for", &at, "bytes are missing"];
    Case { job: &timed, words: &words, ios: Some(256), ..written }.fails(&sandbox);
    let trim = format!("[d]\nrw=trim\nbs=${{X}}\nsize=512k\nfilename={at}\n");
    let words = ["rw=trim", "sectors", &at, "1000", "EINVAL"];
    Case { job: &trim, good: "4k", bad: "1000", options: &destroy, words: &words, refused: true, ..PLAIN }
        .fails(&sandbox);
    // The medium ends where the image was cut off: what is behind cannot be read.
    std::fs::OpenOptions::new().write(true).open(&image).unwrap().set_len(768 << 10).unwrap();
    let words = ["read of 4096 bytes at offset 786432 of", &at, "EIO"];
    Case { job: &job("read"), good: "512k", bad: "1m", words: &words, ios: Some(192), ..PLAIN }
        .fails(&sandbox);
    let queued =
        format!("[d]\nrw=read\nbs=4k\nsize=${{X}}\ndirect=1\nfilename={at}\nioengine=io_uring\niodepth=8\n");
    Case {
        job: &queued,
        good: "512k",
        bad: "1m",
        words: &["read of 4096 bytes at offset", &at, "EIO"],
        // Those that ended well beside or after the first that did not count, too.
        ios: Some(192),
        ..PLAIN
    }
    .fails(&sandbox);
    // A device that is there and has no medium: a loop device without one is the next test's.
    let Some(empty) = EmptyZram::new() else { return };
    let bad = empty.path.to_string_lossy().into_owned();
    let words = [bad.as_str(), "has 0 bytes", "too small"];
    let good = image.to_string_lossy().into_owned();
    let either = "[d]\nrw=read\nbs=4k\nsize=64k\nfilename=${X}\n";
    Case { job: either, good: &good, bad: &bad, words: &words, refused: true, ..PLAIN }.fails(&sandbox);
}

#[test]
fn filesystems_that_are_full_read_only_or_without_a_feature() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    let small = ["-t", "tmpfs", "-o", "size=2m,nr_inodes=16", "none"];
    let Some(tmpfs) = Mounted::new(&sandbox, "small", &small) else { return };
    let here = ["-d", "small"];
    // Room for the whole file is reserved in any case: it is refused before the first trial, also with a runtime.
    let size = "[w]\nrw=write\nbs=4k\nsize=${X}\nfallocate=none\nruntime=60\n";
    let words = ["X=8m: the job's files take 8", "has room for"];
    Case { job: size, good: "64k", bad: "8m", options: &here, words: &words, refused: true, ..PLAIN }
        .fails(&sandbox);
    let words = ["no space for", "small/assay-", "w.0.0", "bytes are missing"];
    // Another fills it while the job runs.
    let filler = tmpfs.0.join("filler");
    let fill = format!("[ $X = 64k ] || (sleep 0.3; cat /dev/zero >{}) >/dev/null 2>&1 &", filler.display());
    let free = format!("sleep 0.2; rm -f {}", filler.display());
    let options = ["-d", "small", "--before", &fill, "--after", &free];
    let slow = "[w]\nrw=write\nbs=4k\nsize=${X}\nfallocate=none\nthinktime=20ms\n";
    Case { job: slow, good: "64k", bad: "1m", options: &options, words: &words, ..PLAIN }.fails(&sandbox);
    let files = "[w]\nrw=write\nbs=4k\nsize=128k\nfallocate=none\nnrfiles=${X}\n";
    let words = ["w.0.", "ENOSPC", "cannot make"];
    Case { job: files, good: "2", bad: "32", options: &here, words: &words, ..PLAIN }.fails(&sandbox);
    let path = sandbox.path().to_string_lossy().into_owned();
    let named = |rw: &str| format!("[w]\nrw={rw}\nbs=4k\nsize=64k\nfilename={path}/${{X}}/file\n");
    let Some(_sealed) = Mounted::new(&sandbox, "sealed", &["-t", "tmpfs", "-o", "ro", "none"]) else {
        return;
    };
    Case {
        job: &named("write"),
        good: "small",
        bad: "sealed",
        words: &["sealed/file", "EROFS"],
        refused: true,
        ..PLAIN
    }
    .fails(&sandbox);
    let Some(_plain) = Mounted::new(&sandbox, "plain", &["-t", "ramfs", "none"]) else { return };
    let direct = named("write") + "direct=1\n";
    let words = ["plain/file", "direct=1", "no O_DIRECT"];
    Case { job: &direct, good: "small", bad: "plain", words: &words, ..PLAIN }.fails(&sandbox);
    let keep = named("write") + "fallocate=keep\n";
    let words = ["cannot allocate", "plain/file", "EOPNOTSUPP"];
    Case { job: &keep, good: "small", bad: "plain", words: &words, ..PLAIN }.fails(&sandbox);
}

#[test]
fn permissions_and_programs_that_run() {
    if !is_root() || !available("setpriv") {
        return;
    }
    let sandbox = Sandbox::new();
    let open =
        |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    open(sandbox.path(), 0o777);
    let here = sandbox.path().to_string_lossy().into_owned();
    let read = format!("[r]\nrw=read\nbs=4k\nsize=64k\nfilename={here}/${{X}}\n");
    for (name, mode) in [("good", 0o644), ("secret", 0o600)] {
        open(&sandbox.write(name, &"d".repeat(1 << 16)), mode);
    }
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    Case {
        job: &read,
        good: "good",
        bad: "secret",
        under: &nobody,
        words: &["secret", "EACCES"],
        refused: true,
        ..PLAIN
    }
    .fails(&sandbox);
    // As root it works in no directory that others can change.
    open(sandbox.path(), 0o755);
    // Writing to a program while it runs; not from the sandbox, which must have no process left.
    let elsewhere = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = elsewhere.path().join("program");
    // By another process: while this one has it open for writing, a child of another test may inherit that, and it could not be run.
    assert!(Command::new("cp").arg("/bin/sleep").arg(&program).status().unwrap().success());
    let mut running = Command::new(&program).arg("60").spawn().unwrap();
    let (good, bad) = (format!("{here}/good"), program.to_string_lossy().into_owned());
    let options = ["--destroy", &good, "--destroy", &bad];
    let write = "[w]\nrw=write\nbs=4k\nsize=16k\nfilename=${X}\n";
    let case = Case {
        job: write,
        good: &good,
        bad: &bad,
        options: &options,
        words: &["program", "ETXTBSY"],
        ..PLAIN
    };
    case.fails(&sandbox);
    running.kill().unwrap();
    running.wait().unwrap();
}

/// For a hook, whose parent is the agent: waits until a child of the agent has worked for a while under the agent's
/// own name, which a program that is only being started does not; `$job` is its number.
const VICTIM: &str = "while [ -d /proc/$PPID ]; do for job in $(cat /proc/$PPID/task/*/children); do \
                      [ $(cat /proc/$job/comm) = assay ] && sleep 0.3 && [ $(cat /proc/$job/comm) = assay ] && break 2; \
                      done; sleep 0.05; done;";

#[test]
fn processes_that_are_killed_or_stopped() {
    let sandbox = Sandbox::new();
    let slow = "[w]\nrw=write\nbs=4k\nsize=${X}\nthinktime=25ms\n";
    for (signal, options, words) in [
        ("KILL", &[][..], &["job 'w'", "its process was killed by SIGKILL"][..]),
        ("STOP", &["--timeout", "8s"][..], &["longer than the limit of 8 s"][..]),
    ] {
        let hook = format!("[ $X = 64k ] || ({VICTIM} kill -{signal} $job) >/dev/null 2>&1 &");
        let mut all = vec!["--before", hook.as_str()];
        all.extend(options);
        Case { job: slow, good: "64k", bad: "2m", options: &all, words, ..PLAIN }.fails(&sandbox);
    }
    // Another program cuts off the file that is read.
    let data = sandbox.path().join("data").to_string_lossy().into_owned();
    let read = format!("[r]\nrw=read\nbs=4k\nsize=256k\nfilename={data}\nthinktime=${{X}}\n");
    let cut = format!(
        "truncate -s 256k {data}; [ $X = 1us ] || ({VICTIM} truncate -s 1000 {data}) >/dev/null 2>&1 &"
    );
    sandbox.write("data", &"d".repeat(1 << 18));
    let words = ["short read at offset", "data", "0 of 4096 bytes"];
    let options = ["--before", &cut];
    Case { job: &read, good: "1us", bad: "150ms", options: &options, words: &words, ..PLAIN }.fails(&sandbox);
    // Through a mapping that is a SIGBUS.
    sandbox.write("data", &"d".repeat(1 << 18));
    let mapped = read.clone() + "ioengine=mmap\n";
    let words = ["read of 4096 bytes at offset", "data"];
    Case { job: &mapped, good: "1us", bad: "150ms", options: &options, words: &words, ..PLAIN }
        .fails(&sandbox);
}

#[test]
fn processors_that_are_not_there() {
    let sandbox = Sandbox::new();
    let pinned = "[r]\nrw=read\nbs=4k\nsize=64k\ncpus_allowed=${X}\n";
    for (bad, words) in
        [("900", ["cpus_allowed", "no CPU", "900"]), ("2000", ["cpus_allowed", "no CPU", "2000"])]
    {
        Case { job: pinned, good: "0", bad, words: &words, refused: true, ..PLAIN }.fails(&sandbox);
    }
}

#[test]
fn memory_that_is_not_to_be_had() {
    let sandbox = Sandbox::new();
    let open =
        |mode| std::fs::set_permissions(sandbox.path(), std::fs::Permissions::from_mode(mode)).unwrap();
    let memory = "[r]\nrw=read\nbs=2m\nsize=4m\nmem=${X}\n";
    // As many as are free, and one more.
    let free = std::fs::read_to_string("/proc/meminfo").unwrap();
    let free = free.lines().find_map(|line| line.strip_prefix("HugePages_Free:")).map(str::trim);
    if free == Some("0") {
        Case {
            job: memory,
            good: "malloc",
            bad: "mmaphuge",
            words: &["job 'r'", "huge"],
            refused: true,
            ..PLAIN
        }
        .fails(&sandbox);
    } else {
        impossible_here("huge pages are reserved: mem=mmaphuge would get them");
    }
    if is_root() && available("prlimit") && available("setpriv") {
        // Root may lock what it likes, but works in no directory that others can change.
        open(0o777);
        let limited =
            ["prlimit", "--memlock=65536", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let locked = "[r]\nrw=read\nbs=4k\nsize=64k\nlockmem=${X}\n";
        let words = ["job 'r'", "lock", "ENOMEM"];
        Case { job: locked, good: "4k", bad: "64m", under: &limited, words: &words, refused: true, ..PLAIN }
            .fails(&sandbox);
        let fixed = "[r]\nrw=read\nbs=64k\nsize=1m\nioengine=io_uring\niodepth=16\nfixedbufs=${X}\n";
        let words = ["io_uring", "ENOMEM", "ulimit -l"];
        Case { job: fixed, good: "0", bad: "1", under: &limited, words: &words, ..PLAIN }.fails(&sandbox);
        // A user of its own: the limit counts all of a user's processes.
        let limited =
            ["setpriv", "--reuid=65432", "--regid=65432", "--clear-groups", "prlimit", "--nproc=24"];
        let clones = "[r]\nrw=read\nbs=4k\nsize=64k\nnumjobs=${X}\n";
        let words = ["job 'r'", "cannot fork", "EAGAIN"];
        Case { job: clones, good: "1", bad: "64", under: &limited, words: &words, ..PLAIN }.fails(&sandbox);
        open(0o755);
    }
    let node = "[r]\nrw=read\nbs=4k\nsize=64k\nnuma_mem_policy=${X}\n";
    Case {
        job: node,
        good: "default",
        bad: "bind:63",
        words: &["job 'r'", "numa", "63"],
        refused: true,
        ..PLAIN
    }
    .fails(&sandbox);
}

#[test]
fn data_that_is_not_what_was_written() {
    let sandbox = Sandbox::new();
    let data = sandbox.path().join("data").to_string_lossy().into_owned();
    let job = |rest: &str| format!("[v]\nbs=4k\nsize=64k\nverify=crc32c\nfilename={data}\n{rest}\n");
    sandbox.write("job.fio", &job("rw=${RW}\ndo_verify=0"));
    // Written by a job that proves nothing itself; then one bit is not what it was.
    let keep = format!("cp $ASSAY_DIRECTORY/../data {data}.kept || cp {data} {data}.kept");
    let write = ["run", "job.fio", "--vary", "RW=write,randwrite", "--rounds", "1", "-q", "--after", &keep];
    sandbox.succeed(&write);
    std::fs::remove_file(sandbox.path().join("assay.db")).unwrap();
    let mut bytes = std::fs::read(format!("{data}.kept")).unwrap();
    sandbox.write("good", "");
    std::fs::write(sandbox.path().join("good"), &bytes).unwrap();
    bytes[5 * 4096 + 1000] ^= 1;
    std::fs::write(sandbox.path().join("bad"), &bytes).unwrap();
    std::fs::remove_file(format!("{data}.kept")).unwrap();
    let here = sandbox.path().to_string_lossy().into_owned();
    let read =
        format!("[v]\nrw=read\nbs=4k\nsize=64k\nverify=crc32c\nverify_fatal=1\nfilename={here}/${{X}}\n");
    Case { job: &read, good: "good", bad: "bad", words: &["bad", "20480", "crc32c"], ..PLAIN }
        .fails(&sandbox);
    // Wrong once, then right again: no second attempt may hide it.
    for engine in ["native", "fio"] {
        if engine == "fio" && !available("fio") {
            continue;
        }
        std::fs::remove_file(sandbox.path().join("assay.db")).unwrap();
        let _ = std::fs::remove_file(sandbox.path().join("once"));
        sandbox.write("job.fio", &read.replace("${X}", "data").replace("bs=4k", "bs=${BS}"));
        let turn = "if [ -e once ]; then cp good data; else touch once; cp bad data; fi";
        let hook = format!("cd {here} && {turn}");
        let run = ["run", "job.fio", "--vary", "BS=4k,4096", "--rounds", "4", "--engine"];
        let output = sandbox.run(&[&run[..], &[engine, "--no-lead-in", "--before", &hook]].concat());
        let (said, report) = (errors(&output), String::from_utf8_lossy(&output.stdout).into_owned());
        assert_eq!(output.status.code(), Some(1), "{engine}: {said}");
        assert!(said.contains("verification failed: one trial found data"), "{engine}: {said}");
        assert!(report.contains("1 trial of BS="), "{report}");
        let run = sandbox.export("1");
        let wrong = |status: &Status| matches!(status, Status::Failed { kind: FailureKind::WrongData, .. });
        assert!(wrong(&run.trials[0].status), "{engine}: {:?}", run.trials[0]);
        assert_eq!((run.trials.len(), run.trials.iter().filter(|t| t.counts()).count()), (8, 7), "{engine}");
    }
    // In a trial that is not judged they are wrong as well.
    std::fs::remove_file(sandbox.path().join("once")).unwrap();
    let hook = format!("cd {here} && if [ -e once ]; then cp good data; else touch once; cp bad data; fi");
    let output = sandbox.run(&["run", "job.fio", "--vary", "BS=4k,4096", "--rounds", "4", "--before", &hook]);
    let (said, report) = (errors(&output), String::from_utf8_lossy(&output.stdout).into_owned());
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("verification failed: one trial found data"), "{said}");
    assert!(report.contains("the trial that led into round 1 found wrong data"), "{report}");
}

#[test]
fn calls_that_the_kernel_refuses() {
    let sandbox = Sandbox::new();
    let method = "[m]\nrw=randwrite\nbs=4k\nsize=64k\niodepth=4\nioengine=${X}\n";
    for (bad, call, errno, words) in [
        (
            "io_uring",
            libc::SYS_io_uring_setup,
            libc::EPERM,
            ["io_uring: EPERM", "/proc/sys/kernel/io_uring_disabled"],
        ),
        (
            "io_uring",
            libc::SYS_io_uring_setup,
            libc::ENOSYS,
            ["io_uring: ENOSYS", "ioengine=psync or libaio"],
        ),
        ("io_uring", libc::SYS_io_uring_setup, libc::ENOMEM, ["io_uring: ENOMEM", "ulimit -l"]),
        ("libaio", libc::SYS_io_setup, libc::EAGAIN, ["libaio: EAGAIN", "/proc/sys/fs/aio-max-nr"]),
        ("libaio", libc::SYS_io_submit, libc::EAGAIN, ["libaio: EAGAIN", "/proc/sys/fs/aio-max-nr"]),
    ] {
        let refused = call == libc::SYS_io_uring_setup;
        let case = Case { job: method, good: "psync", bad, words: &words, ios: Some(0), refused, ..PLAIN };
        let mut command = case.prepared(&sandbox);
        failing(&mut command, call, None, errno);
        case.fails_as(&sandbox, &mut command);
    }
    // A length that nothing else has: only the job's own transfers fail.
    let block = "[b]\nrw=write\nbs=${X}\nsize=144k\nfallocate=none\n";
    for (errno, name) in [(libc::EDQUOT, "EDQUOT"), (libc::EIO, "EIO"), (libc::EREMOTEIO, "EREMOTEIO")] {
        let words = ["write of 36864 bytes at offset 0 of", "b.0.0", name];
        let case = Case { job: block, good: "4k", bad: "36k", words: &words, ios: Some(0), ..PLAIN };
        let mut command = case.prepared(&sandbox);
        failing(&mut command, libc::SYS_pwrite64, Some(36864), errno);
        case.fails_as(&sandbox, &mut command);
    }
}

/// A program may wait for what it likes: a ring or an aio context can be a server's for its clients. (What waits for I/O on
/// storage is in `hanging_io.rs`.)
#[test]
fn a_command_may_wait_for_completions() {
    if !cfg!(target_arch = "x86_64") {
        return impossible_here("the script has the size of x86-64's pointers");
    }
    if !available("perl") {
        return;
    }
    let sandbox = Sandbox::new();
    // io_setup(2), then io_getevents(2) for four seconds.
    let script = format!(
        "my $c = \"\\0\" x 8; syscall({}, 1, $c); my $e = \"\\0\" x 32; my $t = pack(\"qq\", 4, 0); $x = ${{X}}; \
         exit 0 if $x == 1; exit(syscall({}, unpack(\"Q\", $c), 1, 1, $e, $t) == 0 ? 0 : 9);",
        libc::SYS_io_setup,
        libc::SYS_io_getevents
    );
    let run = ["run", "--vary", "X=1,2", "--rounds", "1", "--", "perl", "-e", &script];
    let output = sandbox.assay(&run).env("ASSAY_TEST_STALL_S", "2").output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert!(sandbox.export("1").trials[..2].iter().all(|trial| trial.elapsed_s < 20.0));
}
