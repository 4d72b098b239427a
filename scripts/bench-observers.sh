#!/usr/bin/env bash
# What each observer costs a loop of direct reads of 4 KiB (psync) on zram: unwatched and watched trials in turn, in the order that
# `assay explain` makes. Needs root. ROUNDS (120 for cpu and locks, 16 for the others) says how often, TIME (200ms and 500ms) how long a trial
# takes: these limits are as small as the noise of a trial, and many short ones say more than a few long ones.
# The cost is the median over the rounds, against the unwatched trials of the same round; the interval is that of the sign test.
# Exit 1 when an observer does not watch; when cpu takes more than 2 %, or locks or blocks more than 5 %, the whole interval lying above,
# and no note of the trials says that watching distorts them. Where the interval lies on both sides of the limit, it says so.
set -euo pipefail
cd "$(dirname "$0")/.."
assay=${ASSAY:-$PWD/target/release/assay}
[ "$(id -u)" = 0 ] || { echo "make bench-observers needs root: it makes zram devices, and watches the kernel" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quietly() { "$@" > "$work/said.txt" 2>&1 || { cat "$work/said.txt" >&2; return 1; }; }

echo "What an observer costs a loop of direct reads of 4 KiB on zram ($(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)):"
printf '%-8s %7s %10s %9s %16s %10s %12s\n' "" rounds "I/Os a s" "cost, %" "95 % interval" events "ns an event"
bad=0
for name in cpu locks waits blocks fs; do
    target=(-t zram:64m) rounds=${ROUNDS:-16} time=${TIME:-500ms}
    # The one needs a filesystem, the others have the plain device.
    if [ "$name" = fs ]; then target+=(-t fs=ext4); fi
    if [ "$name" = cpu ] || [ "$name" = locks ]; then rounds=${ROUNDS:-120} time=${TIME:-200ms}; fi
    printf '[r]\nrw=randread\nbs=4k\nsize=32m\ndirect=1\nioengine=psync\ntime_based\nruntime=%s\n' "$time" > "$work/job.fio"
    echo "bench-observers: $name, $rounds rounds" >&2
    # The experiment is run 1, its explanation run 2.
    db=$work/$name.db
    quietly "$assay" run "$work/job.fio" -q --aa --rounds 1 --no-lead-in --keep-disturbed "${target[@]}" --db "$db"
    quietly "$assay" explain 1 -q --only "$name" --rounds "$rounds" --db "$db"
    "$assay" show 2 --db "$db" > "$work/show.txt"
    "$assay" export 2 --format csv --db "$db" > "$work/run.csv"
    if grep -q "not watched" "$work/show.txt" || ! grep -q "$name\.lost\|cpu\.samples" "$work/run.csv"; then
        echo "bench-observers: $name did not watch" >&2
        exit 1
    fi
    marked=0
    if grep -q "distorts this trial" "$work/show.txt"; then marked=1; fi
    awk -F, -v name="$name" -v marked="$marked" -v limit="$([ "$name" = cpu ] && echo 2 || echo 5)" '
        # How many of the lowest and highest values lie outside of an interval of 95 %.
        function outside(rounds,   k, below, chance) {
            chance = exp(-rounds * log(2))
            below = 0
            for (k = 0; k < rounds; k++) {
                below += chance
                if (2 * below > 0.05) return k
                chance *= (rounds - k) / (k + 1)
            }
            return 0
        }
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        {
            metric = $at["metric"]; value = $at["value"]; watched = $at["watched"]
            if (metric == "read.iops") { sum[watched, $at["round"]] += value; rate[watched] += value; trials[watched]++; seen[$at["round"]] = 1 }
            if (metric == "read.total_ios" && watched == "yes") ios += value
            # A wait and a sleep begin and end.
            if (metric == "blocks.events" || metric == "cpu.samples" || metric ~ /^fs\.count\./) events += value
            if (metric == "locks.waits" || metric == "waits.sleeps") events += 2 * value
        }
        END {
            if (!trials["yes"] || !trials["no"]) { print name ": no trials"; exit 1 }
            for (round in seen) {
                kept = 100 * (1 - sum["yes", round] / sum["no", round])
                for (j = n++; j > 0 && loss[j - 1] > kept; j--) loss[j] = loss[j - 1]
                loss[j] = kept
            }
            cost = (loss[int((n - 1) / 2)] + loss[int(n / 2)]) / 2
            k = outside(n)
            interval = k > 0 ? sprintf("[%.1f, %.1f]", loss[k - 1], loss[n - k]) : "too few rounds"
            printf "%-8s %7d %10.0f %9.1f %16s %10.0f", name, n, rate["no"] / trials["no"], cost, interval, events / trials["yes"]
            if (events / trials["yes"] > 20 && cost > 0) printf " %12.0f", 1e9 * trials["no"] / rate["no"] * cost / 100 * ios / events
            is_limited = !marked && name ~ /^(cpu|locks|blocks)$/
            # A cost that is no number is above it, too.
            is_above = !(cost <= limit) && (k == 0 || !(loss[k - 1] <= limit))
            if (is_limited && is_above) { printf "  above %d %%, and not marked", limit; bad = 1 }
            else if (is_limited && k > 0 && loss[n - k] > limit) printf "  undecided (%d %%)", limit
            else if (marked) printf "  distorting"
            print ""
            exit bad
        }' "$work/run.csv" || bad=1
done
exit "$bad"
