#!/bin/bash
# Ten short experiments: the time that --plan promises, the first time left that a run says, and the time it takes. An eleventh is
# of the usual kind, which ends as soon as its verdict is clear: its difference is large, and the promise is that of the first look.
# Usage: scripts/promised-time.sh [ASSAY [DIRECTORY [NAME]]]; as root, with fio, dbench, mkfs.xfs, qemu and `make kernels`.
# NAME: only the experiments with this in their name. "-" is a time that nobody knows before the first trial.
# An experiment holds when both promises, as far as they were made, are within a factor of 1.3 of the real time. Exits with 1 when fewer
# than eight of the ten hold, when the eleventh does not, or when a run failed.
set -u
root=$(realpath "$(dirname "$0")/..")
assay=$(realpath "${1:-target/debug/assay}")
work=$(mktemp -d "${2:-/var/tmp}/promised-XXXXXX")
only=${3:-}
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

job() { printf '[w]\nrw=%s\nbs=4k\nsize=%s\nioengine=psync\ntime_based\nruntime=%s\n' "$1" "$2" "$3"; }
job randwrite 16m 1 >write.fio
job randread 256m 1 >read.fio
printf '[w]\nrw=write\nbs=64k\nsize=16m\nend_fsync=1\n' >sized.fio
cat >made-up.toml <<'T'
engine = "simulated"
[simulated]
bw = 1e8
cv = 0.2
sleep_ms = 500
[stop]
max_rounds = 12
delta = "0.1%"
[[factor]]
name = "n"
levels = [1, 2]
T

# Seconds of "1 min 05 s", "2 h 03 min", "850 ms" at the beginning of a text.
seconds() {
    awk '{ for (i = 1; i < NF; i += 2) { u = $(i + 1); sub(/[;,).].*/, "", u)
             f = u == "ms" ? 0.001 : u == "s" ? 1 : u == "min" ? 60 : u == "h" ? 3600 : 0
             if (f == 0) break; s += $i * f; if ($(i + 1) ~ /[;,).]/) break }
           if (s) printf "%.1f", s; else printf "-" }'
}

# REAL / PROMISED, or "-".
ratio() { if [ "$2" = - ]; then echo -; else echo "$1 $2" | awk '{ printf "%.2f", $1 / $2 }'; fi; }
within() { [ "$1" = - ] || awk -v r="$1" 'BEGIN { exit !(r <= 1.3 && r >= 1 / 1.3) }'; }

printf '%-24s %8s %8s %8s %10s %10s\n' experiment plan first real real/plan real/first
held=0
number=0
failed=0
one() {
    local name=$1 plan first begun real line
    shift
    case $name in *"$only"*) ;; *) return ;; esac
    number=$((number + 1))
    plan=$("$assay" run --plan "$@" | sed -n '/^longest time/{n;s/^ *//;p}' | sed "$promise" | seconds)
    begun=$(date +%s.%N)
    "$assay" run --db "$number.db" "$@" 2>&1 >report | while IFS= read -r line; do
        printf '%s %s\n' "$(date +%s.%N)" "$line"
    done >said
    local code=${PIPESTATUS[0]}
    real=$(echo "$(date +%s.%N) $begun" | awk '{ printf "%.1f", $1 - $2 }')
    # The first promise of the run, with the time that had passed by then.
    line=$(grep -m1 "$says" said)
    first=$(sed 's/.*up to about //' <<<"$line" | seconds)
    if [ "$first" != - ]; then
        first=$(echo "${line%% *} $begun $first" | awk '{ printf "%.1f", $1 - $2 + $3 }')
    fi
    local by_plan by_first
    by_plan=$(ratio "$real" "$plan")
    by_first=$(ratio "$real" "$first")
    if [ "$code" != 0 ]; then
        printf '%-24s failed with exit code %s:\n' "$name" "$code"
        cut -d' ' -f2- said | tail -n 3
        failed=1
        return
    fi
    if [ "$by_plan$by_first" != -- ] && within "$by_plan" && within "$by_first"; then held=$((held + 1)); fi
    printf '%-24s %8s %8s %8s %10s %10s\n' "$name" "$plan" "$first" "$real" "$by_plan" "$by_first"
    grep -h 'thrown out' said | cut -d' ' -f2- | sort | uniq -c | sed 's/^/    /'
}

# The first time of a plan is the longest, the second one that of the first look.
promise='' says='up to about'
one_soon() { promise='s/^[^;]*; //' says='a run does not say' one "$@"; }

one "native, directory" write.fio --vary bs=4k,8k --rounds 6
one "fio, directory" write.fio --engine fio --vary bs=4k,8k --rounds 6
one "xfs on loop" write.fio -t loop:512m -t fs=xfs --vary bs=4k,8k --rounds 6
one "fio, ext4 on loop" write.fio --engine fio -t loop:512m -t fs=ext4 --vary bs=4k,8k --rounds 5
one "reads of 256 MiB" read.fio --vary direct=0,1 --rounds 6
one "until 16 MiB are written" sized.fio --vary bs=64k,128k --rounds 25
one "command" --vary n=1,2 --rounds 10 -- sh -c 'sleep 0.5 # ${n}'
one "dbench" --engine dbench --vary clients=1,2 --vary time=5 --rounds 3
# With a seed that stays undecided: one in twenty others would claim a difference, and end early.
one "simulated, undecided" made-up.toml --seed 1
kernel=$(printf '%s\n' "$root"/target/kernels/linux-image-6.12*.deb | head -n 1)
guest=(write.fio -t "kernel=$kernel" -t device=ram:64m -t fs=ext4 --vary bs=4k,8k)
# Its package is unpacked and packed for booting once; that is not what is looked at here.
case guest in *"$only"*) "$assay" run -q --db before.db "${guest[@]}" --rounds 1 >/dev/null 2>&1 ;; esac
one "guest" "${guest[@]}" --rounds 3
ten=$held
# What a run says first is how long it takes at most. How many rounds a burst of stolen time costs nobody can promise: all count.
one_soon "ends by itself" write.fio --vary direct=0,1 --keep-disturbed
soon=$((held - ten))
printf '%s of %s held within a factor of 1.3; load %s\n' "$held" "$number" "$(cut -d' ' -f1-3 /proc/loadavg)"
[ "$failed" = 0 ] && { [ -n "$only" ] || { [ "$ten" -ge 8 ] && [ "$soon" = 1 ]; }; }
