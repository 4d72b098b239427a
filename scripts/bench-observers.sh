#!/usr/bin/env bash
# What each observer costs a loop of direct reads of 4 KiB (psync) on zram: unwatched and watched runs in turn, in an order that changes
# from round to round. Needs root. ROUNDS (5) says how often, TIME (2s) how long a trial takes.
# Exit 1 when an observer does not watch; when cpu takes more than 2 %, or locks or blocks more than 5 %, and no note of the trial says that
# watching distorts it.
set -euo pipefail
cd "$(dirname "$0")/.."
assay=${ASSAY:-$PWD/target/release/assay}
[ "$(id -u)" = 0 ] || { echo "make bench-observers needs root: it makes zram devices, and watches the kernel" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '[r]\nrw=randread\nbs=4k\nsize=32m\ndirect=1\nioengine=psync\ntime_based\nruntime=%s\n' "${TIME:-2s}" > "$work/job.fio"

# One trial: the observer, I/Os, I/Os a second, events, and whether the trial says that it is distorted.
trial() {
    local name=$1 target=(-t zram:64m) observe=()
    case $name in
        # The one needs a filesystem, the others have the plain device.
        fs | ext4) target+=(-t fs=ext4) ;;
    esac
    case $name in
        none | ext4) ;;
        *) observe=(--observe "$name") ;;
    esac
    "$assay" run "$work/job.fio" -q --aa --rounds 1 --no-lead-in --keep-disturbed "${target[@]}" "${observe[@]}" --db "$work/bench.db" \
        > "$work/run.txt" 2>&1 || { cat "$work/run.txt" >&2; return 1; }
    "$assay" export latest --format csv --db "$work/bench.db" > "$work/run.csv"
    "$assay" show latest --db "$work/bench.db" > "$work/show.txt"
    if [ "${#observe[@]}" -gt 0 ] && { grep -q "not watched" "$work/show.txt" || ! grep -q "$name\.lost\|cpu\.samples" "$work/run.csv"; }; then
        echo "bench-observers: $name did not watch" >&2
        return 1
    fi
    local marked=0
    if grep -q "distorts this trial" "$work/show.txt"; then marked=1; fi
    awk -F, -v name="$name" -v marked="$marked" '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { value[$at["metric"]] += $at["value"]; count[$at["metric"]]++ }
        END {
            ios = value["read.total_ios"] / count["read.total_ios"]
            rate = value["read.iops"] / count["read.iops"]
            events = 0
            if (name == "blocks") events = value["blocks.events"] / count["blocks.events"]
            if (name == "cpu") events = value["cpu.samples"] / count["cpu.samples"]
            # A wait and a sleep begin and end.
            if (name == "locks") events = 2 * value["locks.waits"] / count["locks.waits"]
            if (name == "waits") events = 2 * value["waits.sleeps"] / count["waits.sleeps"]
            if (name == "fs") for (metric in value) if (metric ~ /^fs\.count\./) events += value[metric] / count[metric]
            printf "%s %d %.1f %d %d\n", name, ios, rate, events, marked
        }' "$work/run.csv" >> "$work/trials.txt"
}

names=(none cpu locks waits blocks ext4 fs)
for round in $(seq "${ROUNDS:-5}"); do
    echo "bench-observers: round $round" >&2
    for place in "${!names[@]}"; do
        trial "${names[(place + round) % ${#names[@]}]}"
    done
done

echo "What an observer costs a loop of direct reads of 4 KiB on zram, the mean of ${ROUNDS:-5} rounds of two trials ($(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)):"
awk '
    { n[$1]++; ios[$1] += $2; rate[$1] += $3; events[$1] += $4; marked[$1] += $5 }
    END {
        printf "%-8s %12s %8s %12s %12s\n", "", "I/Os a s", "cost", "events", "ns an event"
        split("none cpu locks waits blocks ext4 fs", order, " ")
        for (i = 1; i <= 7; i++) {
            name = order[i]
            base = name == "fs" ? "ext4" : "none"
            rate_of = rate[name] / n[name]; rate_base = rate[base] / n[base]
            cost = 100 * (1 - rate_of / rate_base)
            is_base = name == "none" || name == "ext4"
            printf "%-8s %12.0f %8s", name, rate_of, is_base ? "" : sprintf("%.1f %%", cost)
            if (events[name] > 0) {
                spent = (1e9 / rate_of - 1e9 / rate_base) * ios[name]
                printf " %12.0f %12.0f", events[name] / n[name], spent / events[name]
            }
            if (is_base) { print ""; continue }
            limit = name == "cpu" ? 2 : 5
            if (cost > limit && marked[name] < n[name]) { printf "  above %d %%, and not marked", limit; if (name == "cpu" || name == "locks" || name == "blocks") bad = 1 }
            else if (marked[name] > 0) printf "  marked as distorting"
            print ""
        }
        exit bad
    }' "$work/trials.txt"
