//! A kernel that is built whole with a patch: some minutes of a machine for itself, once, and kept in target/ afterwards.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::Stdio;

use assay::record::Status;
use rustix::process::{Pid, Signal, kill_process};

use crate::failing_case::Mounted;
use crate::guests::{assay, fact, kernels, nothing_left, value};
use crate::guests_failing::wait_for_console;
use crate::guests_source::{run, source};
use crate::sandbox::{Sandbox, errors, failure};
use crate::tools::is_root;

/// Writes and reads back with direct I/O while another process changes the block size; what was read is compared.
const RACE: &str = r#"
set -e
# By this a trial's own reads are told from others'.
grep -q read_bytes: /proc/self/io
head -c 1048576 /dev/urandom > /tmp/pattern
( n=0
  while [ ! -e /tmp/end ]; do
      blockdev --setbsz 512 "$ASSAY_DEVICE" && blockdev --setbsz 4096 "$ASSAY_DEVICE" && n=$((n+1))
  done
  echo "changed=$n:higher" > /tmp/changed ) &
end=$(($(date +%s) + 8))
n=0
none=$(grep -c bdev_guard=none /proc/cmdline || true)
torn() { dmesg | grep -c "bdev_guard.* block size of .* chang" || true; }
# Without a guard the race is there, or nothing is shown with one.
while [ "$(date +%s)" -lt $end ] || [ $n -lt 6 ] || { [ "$none" = 1 ] && [ "$(torn)" = 0 ] && [ $n -lt 500 ]; }; do
    dd if=/tmp/pattern of="$ASSAY_DEVICE" bs=4k oflag=direct conv=notrunc 2>/dev/null
    dd if="$ASSAY_DEVICE" bs=4k count=256 iflag=direct 2>/dev/null | cmp - /tmp/pattern
    n=$((n+1))
done
touch /tmp/end
wait
cat /tmp/changed >> "$ASSAY_METRICS"
echo "compared=$n:higher" >> "$ASSAY_METRICS"
echo "torn=$(torn):lower" >> "$ASSAY_METRICS"
rm /tmp/end
"#;

/// `assay run job.fio` on a small disk of a kernel that is built from this source.
fn on_a_built_kernel<'a>(source: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let first = ["run", "job.fio", "-t", "kernel=host", "-t", source, "-t", "virtio_blk:16m"];
    [&first[..], more].concat()
}

#[test]
fn guards_of_bdev_mix_keep_the_block_size_from_direct_io() {
    let (Some((_, _alone)), Some(source)) = (kernels(), source()) else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[r]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nioengine=libaio\niodepth=8\n");
    let source = format!("source={}", source.display());
    let args = "kernel_args=bdev_guard=none,bdev_guard=rwsem,bdev_guard=percpu,bdev_guard=srcu";
    let events = "block:block_guard_none,block:block_guard_shared,block:block_guard_local";
    let more = ["-t", "patch=assay:bdev-mix", "--vary", args, "--before", RACE, "--observe", events];
    let words = on_a_built_kernel(&source, &[&more[..], &["--rounds", "1", "--no-lead-in"]].concat());
    let output = run(&sandbox, &words);
    assert!(output.status.success(), "{}", failure(&words, &output));
    nothing_left(&sandbox);
    let mut stored = sandbox.export("1");
    // A guest that emulation loses is booted again.
    stored.trials.retain(|trial| trial.status == Status::Done);
    assert_eq!(stored.trials.len(), 4);
    for (at, trial) in stored.trials.iter().enumerate() {
        assert!(value(&stored, at, "hook.changed").unwrap() >= 6.0, "{trial:?}");
        assert!(value(&stored, at, "hook.compared").unwrap() >= 6.0, "{trial:?}");
        let guarded = !fact(&stored, at, "kernel.cmdline").contains("bdev_guard=none");
        assert_eq!(value(&stored, at, "hook.torn").unwrap() == 0.0, guarded, "{trial:?}");
        assert!(fact(&stored, at, "kernel.release").starts_with("6.12"), "{trial:?}");
        assert!(fact(&stored, at, "kernel.cmdline").contains("bdev_guard="), "{trial:?}");
        // Each I/O takes its guard once; only a rw_semaphore is written to by all processors.
        let ios = value(&stored, at, "read.total_ios").unwrap();
        let taken = |how: &str| value(&stored, at, &format!("events.block.block_guard_{how}")).unwrap();
        let cmdline = fact(&stored, at, "kernel.cmdline");
        let guard = cmdline.split("bdev_guard=").nth(1).and_then(|rest| rest.split_whitespace().next());
        let expected = match guard.unwrap() {
            "none" => [ios, 0.0, 0.0],
            "rwsem" => [0.0, ios, 0.0],
            _ => [0.0, 0.0, ios],
        };
        assert_eq!(["none", "shared", "local"].map(taken), expected, "{cmdline}: {ios} I/Os");
    }
}

/// It boots nothing, so it need not wait for those that do: the kernels of this file are compiled beside them.
#[test]
fn a_patch_of_what_a_whole_kernel_leaves_out_is_refused() {
    let Some(source) = source() else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[r]\nrw=randread\nbs=4k\nsize=8m\n");
    sandbox.write("dies.patch", DIES);
    // A line that is added in front of the first, which needs no other line to be known.
    let patch = "--- a/block/blk-wbt.c\n+++ b/block/blk-wbt.c\n@@ -1 +1,2 @@\n+/* slower */\n // SPDX-License-Identifier: GPL-2.0\n";
    sandbox.write("wbt.patch", patch);
    let source = format!("source={}", source.display());
    // Those of this file come first: they are built and kept, whatever becomes of the last.
    let others = "patch=assay:bdev-mix,assay:dax-write,dies.patch";
    let all = format!("{others},wbt.patch");
    let words = on_a_built_kernel(&source, &["--vary", &all]);
    let output = run(&sandbox, &words);
    assert_eq!(output.status.code(), Some(2), "{}", failure(&words, &output));
    let said = errors(&output);
    let expected = "wbt.patch changes nothing that this kernel is made of: block/blk-wbt.c is no part of it";
    assert!(said.contains(expected) && said.contains("hint: both arms would be the same kernel"), "{said}");
    nothing_left(&sandbox);
    let plan = run(&sandbox, &on_a_built_kernel(&source, &["--vary", others, "--plan"]));
    let plan = String::from_utf8_lossy(&plan.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(plan.matches("is in the cache").count(), 3, "{plan}");
}

/// MiB of the persistent memory, which is the last of the guest's.
const PMEM_MIB: u64 = 384;

/// Files written through the patch of dax-write and fsynced, and one that is not; then the machine may die.
const SYNCED: &str = r#"
set -e
cd "$ASSAY_DIRECTORY"
trace=/sys/kernel/tracing
mount -t tracefs none $trace 2>/dev/null || true
echo 1 > $trace/events/fs_dax/dax_writeback_one/enable
seq 1 200000 > whole
sync whole
head -c 4194304 /dev/zero > patched
sync patched
echo "pages written back: $(grep -c dax_writeback_one: $trace/trace)" > /dev/console
echo > $trace/trace
seq 1 60000 | dd of=patched bs=3000 seek=100 conv=notrunc,fsync 2>/dev/null
seq 1 200000 > never-synced
echo "pages written again: $(grep -c dax_writeback_one: $trace/trace)" > /dev/console
echo all is synced > /dev/console
sleep 300
"#;

/// It cannot show a flush that is missing: the emulator has no caches of a processor that a crash would empty. It shows that what is written
/// in another way is where the filesystem and its log say.
#[test]
fn what_dax_write_synced_survives_the_machine() {
    let (Some((_, _alone)), Some(source)) = (kernels(), source()) else { return };
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    // The guest's memory is a file, which outlives the emulator.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let real = assay::sys::find_system_program("qemu-system-x86_64").unwrap();
    let script = format!(
        "#!/bin/bash\ncase $* in *id=console*) ;; *) exec {real} \"$@\" ;; esac\n\
         for word; do [ \"$last\" = -m ] && size=$word; last=$word; done\n\
         exec {real} \"$@\" -object memory-backend-file,id=kept,size=$size,mem-path={place}/memory.$$,share=on \
         -machine memory-backend=kept\n",
        real = real.display(),
        place = memory.path().display(),
    );
    std::fs::create_dir(sandbox.path().join("bin")).unwrap();
    let wrapper = sandbox.write("bin/qemu-system-x86_64", &script);
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", wrapper.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let (source, pmem) = (format!("source={}", source.display()), format!("pmem:{PMEM_MIB}m"));
    let settings = ["kernel=host", &source, "patch=assay:dax-write", &pmem, "fs=xfs", "mount=dax=always"];
    let mut words = vec!["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--no-lead-in"];
    words.extend(settings.iter().flat_map(|setting| ["-t", setting]));
    words.extend(["--", "sh", "-c", SYNCED, "${n}"]);
    let mut command = assay(&sandbox, &words);
    let command = command.env("PATH", path).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let console = wait_for_console(sandbox.path(), &mut child, "all is synced");
    // Only what the patch writes through the caches is written back by a sync: 1,288,895 bytes and 4 MiB, then 348,894 bytes again.
    for (what, least) in [("back", 315 + 1024), ("again", 86)] {
        let said = console.split(&format!("pages written {what}: ")).nth(1);
        let pages: u32 =
            said.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default();
        assert!(pages >= least, "{pages} pages were written {what}, not {least}: {console}");
    }
    let (emulator, _) =
        sandbox.processes().into_iter().find(|(_, line)| line.contains("memory-backend-file")).unwrap();
    let kept = std::fs::File::open(memory.path().join(format!("memory.{emulator}"))).unwrap();
    kill_process(Pid::from_raw(emulator as i32).unwrap(), Signal::KILL).unwrap();
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", errors(&output));
    nothing_left(&sandbox);

    let start = kept.metadata().unwrap().len() - (PMEM_MIB << 20);
    let mut image = vec![0; (PMEM_MIB << 20) as usize];
    kept.read_exact_at(&mut image, start).unwrap();
    std::fs::write(sandbox.path().join("image"), image).unwrap();
    let image = sandbox.path().join("image");
    let Some(mounted) = Mounted::new(&sandbox, "mounted", &["-o", "loop", &image.to_string_lossy()]) else {
        return;
    };
    let found = |name: &str| {
        let mut places = vec![mounted.0.clone()];
        while let Some(place) = places.pop() {
            for entry in std::fs::read_dir(&place).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => places.push(entry.path()),
                    false if entry.file_name() == *name => return std::fs::read(entry.path()).unwrap(),
                    false => {}
                }
            }
        }
        panic!("{name} is not there")
    };
    let numbers = |last: u32| (1..=last).map(|n| format!("{n}\n")).collect::<String>().into_bytes();
    assert!(found("whole") == numbers(200_000), "what was synced is another one");
    let mut patched = vec![0; 4 << 20];
    let middle = numbers(60_000);
    patched[300_000..300_000 + middle.len()].copy_from_slice(&middle);
    assert!(found("patched") == patched, "what was overwritten and synced is another one");
}

/// A kernel that dies while it boots.
const DIES: &str = "--- a/init/main.c\n+++ b/init/main.c\n@@ -1438,3 +1438,4 @@ static int __ref kernel_init(void *unused)\n \
                    \twait_for_completion(&kthreadd_done);\n+\tpanic(\"planted by a test\");\n \n \tkernel_init_freeable();\n";

#[test]
fn a_built_kernel_that_panics_is_told_with_its_words() {
    let (Some((_, _alone)), Some(source)) = (kernels(), source()) else { return };
    let sandbox = Sandbox::new();
    let patch = format!("patch={}", sandbox.write("dies.patch", DIES).display());
    let source = format!("source={}", source.display());
    let targets = ["-t", "kernel=host", "-t", &source, "-t", &patch];
    let job = ["--vary", "n=1,2", "--rounds", "1", "--no-lead-in", "--", "true", "${n}"];
    let output = run(&sandbox, &[&["run", "-q"][..], &targets, &job].concat());
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Kernel panic - not syncing: planted by a test"), "{said}");
    nothing_left(&sandbox);
    assert!(sandbox.export("1").trials.is_empty());
}
