#!/usr/bin/env bash
# Experiments whose cause is known: runs each with --explain, or what its question needs, prints the command and the first screen of its
# report, and looks for the words that it must or must not have. Needs root: it makes loop and zram devices. ONLY="lock demo" runs these;
# GUEST=1 adds dax-write, which boots a kernel. One line a failure goes to standard error; the exit code is their number, at most 99.
set -uo pipefail
cd "$(dirname "$0")/.."
assay=${ASSAY:-$PWD/target/release/assay}
[ "$(id -u)" = 0 ] || { echo "explain-shown needs root: it makes loop and zram devices, and watches the kernel" >&2; exit 1; }
out=$PWD/target/explain-shown
mkdir -p "$out"
rm -f "$out"/*.db
# Beside the build rather than in /tmp, which is often memory.
work=$(mktemp -d "$PWD/target/explain-shown-XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
lines=${LINES_OF_A_SCREEN:-40}
all="lock shared-lock flush-ext4 flush-xfs no-barrier demo dio-append dio-append-requests dio-scaling bdev-mix same slower-device dax-write"
for name in ${ONLY:-}; do
    case " $all " in
        *" $name "*) ;;
        *) echo "explain-shown: there is no $name; there are $all" >&2; exit 1 ;;
    esac
done

# expect NAME [not] WORDS: what the whole report of an experiment must say, or must not; an extended regular expression, case ignored.
expect() {
    local name=$1 wanted=0
    shift
    case " ${ONLY:-$name} " in
        *" $name "*) ;;
        *) return 0 ;;
    esac
    if [ "$1" = not ]; then wanted=1; shift; fi
    local found=0
    # Not through a pipe: grep -q ends at the first match, and a writer that is killed by that counts as a failure.
    grep -qiE -- "$1" <<< "$(tr -s ' \n' ' ' < "$out/$name.report" 2> /dev/null | sed 's/\xc2\xa0/ /g')" || found=1
    if [ "$found" != "$wanted" ]; then
        echo "explain-shown: $name: the report $([ "$wanted" = 0 ] && echo lacks || echo has): $1" >&2
        failed=$((failed + 1))
    fi
}

# expect_listed NAME METRIC: what the report has where all metrics are asked for.
expect_listed() {
    case " ${ONLY:-$1} " in
        *" $1 "*) ;;
        *) return 0 ;;
    esac
    grep -qF -- "$2" "$out/$1.all" || {
        echo "explain-shown: $1: no metric is called $2" >&2
        failed=$((failed + 1))
    }
}

# What it is called, what is asked, then the words of the command. EXPLAIN_ROUNDS: watched behind it in so many rounds.
shown() {
    local name=$1 asks=$2
    shift 2
    case " ${ONLY:-$name} " in
        *" $name "*) ;;
        *) return 0 ;;
    esac
    local db="$out/$name.db" place=$work
    # Kernels are looked for in target/kernels of where it is called.
    if [ "$name" = dax-write ]; then place=$PWD; fi
    echo
    echo "## $name: $asks"
    echo
    local word line="    assay"
    for word in "$@"; do
        case $word in
            *" "*) line+=" '$word'" ;;
            *) line+=" $word" ;;
        esac
    done
    echo "$line"
    echo
    if (cd "$place" && "$assay" "$@" -q --keep-disturbed --db "$db") > "$out/$name.txt" 2> "$out/$name.err"; then
        grep -v '^$' "$out/$name.err" | sed 's/^/    /'
        if [ -n "${EXPLAIN_ROUNDS:-}" ]; then
            echo "    assay explain latest --rounds $EXPLAIN_ROUNDS"
            echo
            "$assay" explain latest -q --rounds "$EXPLAIN_ROUNDS" --db "$db" > /dev/null 2> "$out/$name.err" || {
                cat "$out/$name.err" >&2
                failed=$((failed + 1))
            }
        fi
        "$assay" report latest --db "$db" | sed "${lines}q" | sed 's/^/    /'
        # Behind the first screen: main effects, and how it scales.
        "$assay" report latest --verbose --db "$db" > "$out/$name.report" || failed=$((failed + 1))
        "$assay" report latest --all-metrics --db "$db" > "$out/$name.all" || failed=$((failed + 1))
        sed -n '/^which factor/,/^$/p' "$out/$name.report" | sed 's/^/    /'
    else
        echo "explain-shown: $name failed" >&2
        cat "$out/$name.err" >&2
        failed=$((failed + 1))
    fi
}

# flame_difference NAME: the flame graph of the difference of an experiment that was watched is a picture with functions in it.
flame_difference() {
    case " ${ONLY:-$1} " in
        *" $1 "*) ;;
        *) return 0 ;;
    esac
    "$assay" explain latest --no-watch --flame "$work/flames" --db "$out/$1.db" > /dev/null 2> "$out/$1.err" || cat "$out/$1.err" >&2
    if ! grep -q "<title>" "$work/flames/"cpu*difference*.svg 2> /dev/null; then
        echo "explain-shown: $1: there is no flame graph of the difference" >&2
        failed=$((failed + 1))
    fi
}

cat > "$work/writers.toml" << 'END'
job_text = """
[w]
rw=randwrite
bs=64k
size=${SIZE}
numjobs=4
time_based
runtime=1s
group_reporting
invalidate=0
"""

[variables]
SIZE = "4m"

[target]
device = "loop:400m"
state = "overwrite"

[stop]
rounds = 8

[[factor]]
name = "files"
level = [{ label = "four", set = {} }, { label = "one", set = { filename = "one" } }]
END
printf '[w]\nrw=write\nbs=4k\nsize=1m\nfsync=1\n' > "$work/sync.fio"
printf '[w]\nrw=write\nbs=4k\nsize=1m\n' > "$work/same.fio"
printf '[w]\nrw=write\nbs=4k\ndirect=1\nnumjobs=8\nsize=8m\ngroup_reporting\n' > "$work/append.fio"
printf '[r]\nrw=randread\nbs=64k\ndirect=1\ntime_based\nruntime=1s\n' > "$work/reads.fio"
# Long enough for samples of what takes microseconds, in no more pages than the demo's: more would wait for their write-back.
sed 's/^io_size=.*/io_size=160m/' examples/randwrite.fio > "$work/randwrite.fio"

shown lock "four writers of one file of ext4 through the page cache, against a file each" \
    run writers.toml -t fs=ext4 --explain
# The first of the parts, which is the largest.
expect lock "with files=one [+][0-9.]+[^:]*: waits for rwsem:W at ext4_buffered_write_iter"
expect lock "rwsem:W +ext4_buffered_write_iter"
shown shared-lock "the same around the page cache of XFS, which lets them share the lock" \
    run writers.toml -t fs=xfs --vary direct=1 --compare files --observe locks,waits
expect_listed shared-lock locks.waits
expect shared-lock not "(waits|spins) for rwsem:W"
for fs in ext4 xfs; do
    shown "flush-$fs" "an fsync after each 4 KiB on $fs, on a device with a write cache and without" \
        run sync.fio --vary 'sysfs:queue/write_cache=write through,write back' -t loop:400m -t "fs=$fs" --rounds 6 --observe blocks --explain
    expect "flush-$fs" "more flushes"
    # Their share of the time.
    expect "flush-$fs" "(waits for a (journal commit|flush) at|blocks.flush_time an operation 0 →)"
    expect "flush-$fs" "audit of flushes \($fs\): PASS by the word of the device"
    expect "flush-$fs" "audit of flushes \($fs\): PASS, each sync returned behind a flush"
    expect "flush-$fs" not "VIOLATION"
done
shown no-barrier "the same on ext4 that was told not to flush: what the audit says" \
    run sync.fio --vary mount=default,barrier=0 -t loop:400m -t fs=ext4 --rounds 6 --observe blocks --explain
expect no-barrier "VIOLATION.*first the f(data)?sync"
# The copy takes some 20 ms of a trial: six or seven samples.
EXPLAIN_ROUNDS=10 shown demo "the demo: buffered against direct writes" \
    run randwrite.fio --vary direct=0,1 -t loop:400m -t fs=ext4 --rounds 6
expect demo "(sleeps at __iomap_dio_rw|time of the device.s requests)"
expect demo "kernel CPU in copying|copying [+−]"
expect demo "(kernel|user) CPU"
shown dio-append "eight files that grow in turns, with their blocks beforehand and without" \
    run append.fio --vary fallocate=none,keep -t zram:400m -t fs=xfs --rounds 8 --observe extents --explain
expect dio-append "files lie (more|less) between each other"
# What allocates waits for it, or computes.
expect dio-append "(sleeps at|waits for [a-z:RW-]+ at|kernel CPU in) xfs"
shown dio-append-requests "the same on a device with requests, whose sizes are seen" \
    run append.fio --vary fallocate=none,keep -t loop:400m -t fs=xfs --rounds 8 --observe extents,blocks --primary write.bw,extents.owner_changes_per_mib --explain
expect dio-append-requests "has fewer extents.owner_changes_per_mib"
expect_listed dio-append-requests "blocks.write_request_size"
shown dio-scaling "direct I/O to one file by more and more threads" run dio-scaling --quick --explain
expect dio-scaling "scaling with threads: (no law, because .* at 1, |.*serial share)"
expect dio-scaling "price of watching"
expect dio-scaling not "waits for rwsem:W"
shown bdev-mix "small direct I/O through two schedulers" run bdev-mix --quick --explain
expect bdev-mix "ctx\.(in)?voluntary an operation"
expect bdev-mix "(usr_cpu|user CPU)"
expect bdev-mix "(sys_cpu|kernel CPU)"
flame_difference bdev-mix
shown same "an arm against itself" run same.fio --aa --rounds 6 --explain
expect same "nothing to explain"
shown slower-device "the same reads of a device that was made slower from outside" \
    run reads.fio --vary device=loop:64m:direct_io=0,loop:64m:direct_io=1 -t state=overwrite --rounds 6 --explain
expect slower-device "it is the device, not the software"
if [ -n "${GUEST:-}" ]; then
    shown dax-write "DAX against the page cache, in a guest" run dax-write --quick --explain
    expect dax-write "the effect of mount depends on bs"
    expect dax-write "the effect of mount depends on state"
    expect dax-write "taken out: "
elif [[ " ${ONLY:-dax-write} " == *" dax-write "* ]]; then
    echo "explain-shown: SKIPPED dax-write, which boots a kernel: GUEST=1 runs it" >&2
fi
if [ "$failed" -gt 99 ]; then failed=99; fi
exit "$failed"
