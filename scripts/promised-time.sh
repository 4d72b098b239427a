#!/bin/bash
# Ten short experiments: the time that --plan promises, the first time left that a run says, and the time it takes.
# Usage: scripts/promised-time.sh [ASSAY [DIRECTORY]]; as root, with fio, dbench, fs_mark and mkfs.xfs. "-" is a time that nobody knew.
# Exits with 1 when fewer than eight of the first promises (the plan's, else the run's first) are within a factor of 1.3.
set -u
assay=$(realpath "${1:-target/debug/assay}")
work=$(mktemp -d "${2:-/var/tmp}/promised-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

job() { printf '[w]\nrw=%s\nbs=4k\nsize=16m\nioengine=psync\ntime_based\nruntime=%s\n' "$1" "$2"; }
job randwrite 2 >two.fio
job randwrite 1 >one.fio
job randread 1 >read.fio
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

printf '%-22s %8s %8s %8s %6s\n' experiment plan first real ratio
held=0
number=0
one() {
    local name=$1 plan first begun real line
    shift
    number=$((number + 1))
    plan=$("$assay" run --plan "$@" | sed -n '/^longest time/{n;s/^ *//;p}' | seconds)
    begun=$(date +%s.%N)
    "$assay" run --db "$number.db" "$@" 2>&1 >report | while IFS= read -r line; do
        printf '%s %s\n' "$(date +%s.%N)" "$line"
    done >said
    real=$(echo "$(date +%s.%N) $begun" | awk '{ printf "%.1f", $1 - $2 }')
    # The first promise of the run, with the time that had passed by then.
    line=$(grep -m1 'at most' said)
    first=$(sed 's/.*at most //' <<<"$line" | seconds)
    if [ -n "$line" ] && [ "$first" != - ]; then
        first=$(echo "${line%% *} $begun $first" | awk '{ printf "%.1f", $1 - $2 + $3 }')
    fi
    local promised=$plan
    [ "$promised" = - ] && promised=$first
    local ratio=-
    if [ "$promised" != - ]; then
        ratio=$(echo "$real $promised" | awk '{ printf "%.2f", $1 / $2 }')
        awk -v r="$ratio" 'BEGIN { exit !(r <= 1.3 && r >= 1 / 1.3) }' && held=$((held + 1))
    fi
    printf '%-22s %8s %8s %8s %6s\n' "$name" "$plan" "$first" "$real" "$ratio"
}

one "native, directory" one.fio --vary bs=4k,8k --rounds 5
one "fio, directory" one.fio --engine fio --vary bs=4k,8k --rounds 5
one "xfs on loop" one.fio -t loop:512m -t fs=xfs --vary bs=4k,8k --rounds 5
one "ext4 on loop" one.fio -t loop:512m -t fs=ext4 --vary bs=4k,8k --rounds 5
one "command" --vary n=1,2 --rounds 8 -- sh -c 'sleep 0.5 # ${n}'
one "dbench" --engine dbench --vary clients=1,2 --vary time=2 --rounds 4
one "fs_mark" --engine fs_mark --vary files=100,200 --rounds 8
one "simulated, undecided" made-up.toml
one "twelve rows, null" two.fio --engine null --vary bs=4k,8k --vary rw=randread,randwrite --vary direct=0,1 --rounds 1
one "reads, laid out" read.fio --vary direct=0,1 --rounds 5
printf '%s of %s held within a factor of 1.3; load %s\n' "$held" "$number" "$(cut -d' ' -f1-3 /proc/loadavg)"
[ "$held" -ge 8 ]
