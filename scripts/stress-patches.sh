#!/usr/bin/env bash
# The five ideas of patches/ under stress, in guests whose kernels watch themselves (src/kernel_build/checks.config: lockdep, KASAN, the
# filesystems' own checks) while several workers write, sync and read back what they wrote. A patch that is known to be wrong comes first:
# it must be caught. Exit 1 where something is wrong. The first kernel is compiled whole: a quarter of an hour on 2 processors.
# ONLY="dio-append journal-flush" runs these alone.
set -euo pipefail
cd "$(dirname "$0")/.."
assay=$PWD/target/release/assay
checks=$PWD/src/kernel_build/checks.config
work=$(mktemp -d "$PWD/target/stress-XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
all="dio-scaling journal-flush dax-write dio-append bdev-mix"
for name in ${ONLY:-}; do
    [[ " $all " == *" $name "* ]] || { echo "stress: there is no $name; there are $all" >&2; exit 1; }
done

# In the guest behind each trial: lockdep switches itself off when it has found something. 3: a lock that is taken twice.
watched='grep -q "debug_locks: *1" /proc/lockdep_stats || {
    if dmesg | grep -q "possible recursive locking"; then exit 3; fi
    dmesg | grep -A 12 -E "WARNING:|BUG:"
    exit 1
}
if dmesg | grep -E "BUG:|WARNING:|suspicious RCU"; then exit 1; fi'

# stress NAME JOB OPTIONS...: whether the job does its work, and reads back what it wrote, with nothing found.
stress() {
    local name=$1 job=$2 begun=$SECONDS
    shift 2
    printf '%s\n' "$job" > "$work/$name.fio"
    if "$assay" run "$work/$name.fio" --db "$work/stress.db" -q -d "$work" --source newest -t kernel=host --config "$checks" --rounds 2 \
        --no-lead-in --settle 0 --keep-disturbed --after "$watched" "$@" > "$work/said.txt" 2>&1; then
        echo "$name: nothing found, $((SECONDS - begun)) s"
    else
        tail -n 40 "$work/said.txt"
        return 1
    fi
}
is_asked() { [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $1 "* ]]; }

# Four workers, each with a part of one file, that verify what they wrote.
four() {
    printf '[global]\nfilename=shared\nsize=8m\nverify=crc32c\n%s\n' "$1"
    for at in 0 1 2 3; do printf '[w%s]\noffset=%sm\n' "$at" $((8 * at)); done
}

# Known to be wrong: whoever syncs a file takes a lock twice.
cat > "$work/wrong.patch" << 'P'
--- a/fs/xfs/xfs_file.c
+++ b/fs/xfs/xfs_file.c
@@ -131,8 +131,13 @@ xfs_file_fsync(
 	struct xfs_inode	*ip = XFS_I(file->f_mapping->host);
 	struct xfs_mount	*mp = ip->i_mount;
 	int			error, err2;
 	int			log_flushed = 0;
+	static DECLARE_RWSEM(taken_twice);
 
+	down_read(&taken_twice);
+	down_read(&taken_twice);
+	up_read(&taken_twice);
+	up_read(&taken_twice);
 	trace_xfs_file_fsync(ip);
 
 	error = file_write_and_wait_range(file, start, end);
P

echo "stress: the first time a kernel is compiled whole" >&2
disk=(-t virtio_blk:320m:cache=unsafe)
syncs=$(four $'rw=randwrite\nbs=4k\nfsync=8')
if stress wrong "$syncs" "${disk[@]}" -t fs=xfs --vary "patch=none,$work/wrong.patch" > "$work/wrong.txt" 2>&1; then
    echo "wrong: a lock that is taken twice was not found" >&2
    exit 1
fi
grep -q "exit status: 3" "$work/wrong.txt" || { cat "$work/wrong.txt" >&2; exit 1; }
echo "wrong: the lock that is taken twice was found"

if is_asked dio-scaling; then
    stress dio-scaling "$(four $'direct=1\nrw=randrw\nbs=4k')" "${disk[@]}" -t fs=xfs \
        --vary patch=none,assay:dio-scaling-lookup,assay:dio-scaling-write || failed=1
fi
if is_asked journal-flush; then
    stress journal-flush "$syncs" "${disk[@]}" -t fs=xfs --vary patch=none,assay:journal-flush || failed=1
fi
if is_asked dax-write; then
    # The last two write the same pages, by write(2) and through a mapping: nothing of theirs can be compared.
    stress dax-write "$(four $'rw=randwrite\nbs=2k\nfsync=16')"$'\n[mapped]\nioengine=mmap\nrw=randwrite\nbs=4k\noffset=32m
[written]\nrw=randwrite\nbs=2k\nfsync=16\noffset=40m\nverify=0\n[mapped-too]\nioengine=mmap\nrw=randwrite\nbs=4k\noffset=40m\nverify=0' \
        -t pmem:384m -t fs=xfs -t mount=dax=always --vary patch=none,assay:dax-write || failed=1
fi
if is_asked dio-append; then
    knobs=/sys/fs/f2fs/DEVICE/dio_serialize
    # Files that grow at the same time and are cut off again.
    cut_and_grown='cd "$ASSAY_DIRECTORY"
        for worker in 1 2 3; do
            (for n in 1 2 3 4; do dd if=/dev/zero of=cut$worker bs=64k count=16 oflag=direct,append conv=notrunc; : > cut$worker; done) 2> /dev/null &
        done
        wait'
    for new in 0 1; do
        stress "dio-append-$new" $'[global]\ndirect=1\nrw=write\nbs=64k\nsize=8m\nverify=crc32c\nnumjobs=2\n[large]\n[small]\nbs=4k\nsize=2m' \
            "${disk[@]}" -t fs=f2fs -t patch=assay:dio-append -t "sysfs:${knobs}_new=$new" --vary "sysfs:${knobs}_blocks=0,1,8" \
            --before "$cut_and_grown" || failed=1
    done
fi
if is_asked bdev-mix; then
    # The block size changes while what was written is read back. A guard that lets it warns, which the other hook sees.
    resized='set -e
        (for n in $(seq 60); do blockdev --setbsz 512 "$ASSAY_DEVICE" && blockdev --setbsz 4096 "$ASSAY_DEVICE" || exit 1; done; touch /tmp/resized) &
        for n in 1 2 3; do
            head -c 1048576 /dev/urandom > /tmp/pattern
            dd if=/tmp/pattern of="$ASSAY_DEVICE" bs=4k oflag=direct conv=notrunc 2> /dev/null
            dd if="$ASSAY_DEVICE" bs=4k count=256 iflag=direct 2> /dev/null | cmp - /tmp/pattern
        done
        wait
        rm /tmp/resized'
    stress bdev-mix $'[r]\nrw=randrw\nbs=4k\nsize=8m\ndirect=1\nioengine=libaio\niodepth=8\nverify=crc32c' \
        "${disk[@]}" -t patch=assay:bdev-mix --vary kernel_args=bdev_guard=none,bdev_guard=rwsem,bdev_guard=percpu,bdev_guard=srcu \
        --before "$resized" || failed=1
fi
exit "$failed"
