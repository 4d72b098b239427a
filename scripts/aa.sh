#!/usr/bin/env bash
# 40 A/A experiments: real direct I/O on a real directory, the baseline against itself, ten rounds each.
# Prints each claim and their number; exit 1 when more than 4 claim a difference (at a true rate of 5 % that happens
# by chance in 5 of 100 such series). AA_RUNS and AA_MOST change the numbers.
set -euo pipefail
cd "$(dirname "$0")/.."
assay=$PWD/target/release/assay
runs=${AA_RUNS:-40}
most=${AA_MOST:-4}
# Beside the build rather than in /tmp, which is often memory.
work=$(mktemp -d "$PWD/target/aa-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

# Direct, synchronous and small: every trial waits for the device some hundred times.
cat > aa.fio <<'JOB'
[aa]
rw=randwrite
bs=16k
size=8m
io_size=4m
direct=1
ioengine=psync
JOB

begun=$SECONDS
claims=0
for ((number = 1; number <= runs; number++)); do
    code=0
    "$assay" run aa.fio --aa --quiet --fail-if changed > report.txt 2> errors.txt || code=$?
    case $code in
    0) ;;
    3)
        claims=$((claims + 1))
        echo "experiment $number claims a difference:"
        sed -n '5,7p' report.txt
        ;;
    *)
        cat report.txt errors.txt >&2
        exit 1
        ;;
    esac
    if [ -t 2 ]; then
        printf '\r%d of %d, %d claims, %d s ' "$number" "$runs" "$claims" $((SECONDS - begun)) >&2
    fi
done
[ -t 2 ] && echo >&2
if compgen -G 'assay-*' > left.txt; then
    echo "left behind in $work: $(cat left.txt)" >&2
    exit 1
fi
echo "$claims of $runs A/A experiments claim a difference (at most $most may), $((SECONDS - begun)) s"
[ "$claims" -le "$most" ]
