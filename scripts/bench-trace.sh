#!/usr/bin/env bash
# `assay trace` against blkparse -d and btt on the same made-up trace of 1.5 million events, in turns. Prints the medians, the median of the
# ratios of the rounds with the interval of the sign test, and the memory assay took. Exit 1 when it takes 200 MB, or is not 15 times as
# fast, the whole interval lying below; where that lies on both sides, it says so. ROUNDS says how many (9; fewer than 9 have no interval).
set -euo pipefail
# What programs say is read.
export LC_ALL=C
cd "$(dirname "$0")/.."
assay=$PWD/target/release/assay
for tool in blkparse btt; do
    command -v "$tool" > /dev/null || { echo "bench-trace: $tool is missing (package blktrace)" >&2; exit 1; }
done
work=$(mktemp -d "$PWD/target/bench-trace-XXXXXX")
trap 'rm -rf "$work"' EXIT
target/release/examples/block-trace "$work/made" 300000 2 >&2
now() { date +%s%N; }
cd "$work"
for ((round = 0; round < ${ROUNDS:-9}; round++)); do
    begin=$(now)
    blkparse -q -i made -d made.bin -O > /dev/null
    btt -i made.bin -o made.btt > /dev/null
    middle=$(now)
    # The last line of time's output is the largest resident set in KiB.
    { command time -f %M "$assay" trace made --fs xfs --json > made.json; } 2> memory.txt
    echo "$((middle - begin)) $(($(now) - middle)) $(tail -n 1 memory.txt)" >> rounds.txt
done
median() { cut -d ' ' -f "$1" rounds.txt | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
awk '{ print $1 / $2 }' rounds.txt | sort -n > ratios.txt
awk -v theirs="$(median 1)" -v ours="$(median 2)" -v memory="$(median 3)" '
    { ratio[NR] = $1 }
    END {
        middle = (ratio[int((NR + 1) / 2)] + ratio[int(NR / 2) + 1]) / 2
        # From 9 rounds on, all but the lowest and the highest are an interval of 96 % or more.
        low = NR < 9 ? middle : ratio[2]
        high = NR < 9 ? middle : ratio[NR - 1]
        interval = NR < 9 ? "" : sprintf(" [%.1f, %.1f]", low, high)
        doubt = (high >= 15 && low < 15) ? "; undecided whether 15" : ""
        printf "blkparse -d and btt %.3f s, assay trace %.3f s: %.1f times as fast%s, %.1f MB%s\n",
            theirs / 1e9, ours / 1e9, middle, interval, memory / 1024, doubt
        exit !(high >= 15 && memory / 1024 < 200)
    }' ratios.txt
