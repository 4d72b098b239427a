#!/usr/bin/env bash
# All tests beside what a shared machine brings: bursts in which no processor runs anything of theirs, for about four
# tenths of the time, and three jobs that write and flush the disk. What fails here fails in CI one day.
# Arguments go to the test harness, e.g. stress.sh --skip guests. DISK=0 leaves the disk alone.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "make stress needs root: it takes processors with real-time priority" >&2; exit 1; }
chrt -f 51 true || { echo "make stress needs chrt and real-time priority (util-linux)" >&2; exit 1; }

work=$(mktemp -d "$PWD/target/stress-XXXXXX")
hogs=()
leave() {
    kill "${hogs[@]}" 2> /dev/null || true
    wait 2> /dev/null
    rm -rf "$work"
}
trap leave EXIT

# Busy for 10 to 390 ms, idle for half as long again on average. What ends it is of a higher priority: nothing else runs.
hog() {
    while :; do
        taskset -c "$1" chrt -f 51 timeout "0.$((RANDOM % 4))$((RANDOM % 9 + 1))" \
            chrt -f 50 sh -c 'while :; do :; done' || true
        sleep "0.$((RANDOM % 6))$((RANDOM % 9 + 1))"
    done
}
cpus=$(nproc)
for ((cpu = 0; cpu < cpus; cpu++)); do
    hog "$cpu" &
    hogs+=($!)
done
if [ "${DISK:-1}" = 1 ]; then
    fio --name=disk --directory="$work" --rw=randwrite --bs=256k --size=1g --fsync=8 --numjobs=3 --thread \
        --time_based --runtime=7200 > /dev/null &
    hogs+=($!)
fi
CI=true cargo test --test it -- "$@"
