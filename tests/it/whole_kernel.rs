//! A kernel that is built whole with a patch: some minutes of a machine for itself, once, and kept in target/ afterwards.

use assay::record::Status;

use crate::guests::{fact, kernels, nothing_left, value};
use crate::guests_source::{run, source};
use crate::sandbox::{Sandbox, failure};

/// Writes and reads back with direct I/O while another process changes the block size; what was read is compared.
const RACE: &str = r#"
set -e
head -c 1048576 /dev/urandom > /tmp/pattern
( n=0
  while [ ! -e /tmp/end ]; do
      blockdev --setbsz 512 "$ASSAY_DEVICE" && blockdev --setbsz 4096 "$ASSAY_DEVICE" && n=$((n+1))
  done
  echo "changed=$n:higher" > /tmp/changed ) &
end=$(($(date +%s) + 4))
n=0
while [ "$(date +%s)" -lt $end ] || [ $n -lt 3 ]; do
    dd if=/tmp/pattern of="$ASSAY_DEVICE" bs=4k oflag=direct conv=notrunc 2>/dev/null
    dd if="$ASSAY_DEVICE" bs=4k count=256 iflag=direct 2>/dev/null | cmp - /tmp/pattern
    n=$((n+1))
done
touch /tmp/end
wait
cat /tmp/changed >> "$ASSAY_METRICS"
echo "compared=$n:higher" >> "$ASSAY_METRICS"
rm /tmp/end
"#;

#[test]
fn the_guards_of_bdev_mix_keep_the_block_size_away_from_direct_io() {
    let (Some((_, _alone)), Some(source)) = (kernels(), source()) else { return };
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[r]\nrw=randread\nbs=4k\nsize=8m\ndirect=1\nioengine=libaio\niodepth=8\n");
    let source = format!("source={}", source.display());
    let args = "kernel_args=bdev_guard=none,bdev_guard=rwsem,bdev_guard=percpu,bdev_guard=srcu";
    let words = [
        "run",
        "job.fio",
        "-t",
        "kernel=host",
        "-t",
        &source,
        "-t",
        "patch=assay:bdev-mix",
        "-t",
        "virtio_blk:16m",
        "--vary",
        args,
        "--before",
        RACE,
        "--rounds",
        "1",
        "--no-lead-in",
    ];
    let output = run(&sandbox, &words);
    assert!(output.status.success(), "{}", failure(&words, &output));
    nothing_left(&sandbox);
    let stored = sandbox.export("1");
    assert_eq!(stored.trials.len(), 4);
    for (at, trial) in stored.trials.iter().enumerate() {
        assert_eq!(trial.status, Status::Done, "{trial:?}");
        assert!(value(&stored, at, "hook.changed").unwrap() >= 3.0, "{trial:?}");
        assert!(value(&stored, at, "hook.compared").unwrap() >= 3.0, "{trial:?}");
        assert!(fact(&stored, at, "kernel.release").starts_with("6.12"), "{trial:?}");
        assert!(fact(&stored, at, "kernel.cmdline").contains("bdev_guard="), "{trial:?}");
    }
}
