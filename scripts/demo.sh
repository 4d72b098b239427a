#!/usr/bin/env bash
# A real A/B of buffered against direct 4 KiB random writes, on files in a temporary directory.
set -euo pipefail
cd "$(dirname "$0")/.."
out=target/demo
mkdir -p "$out"
# Beside the build rather than in /tmp, which is often memory.
work=$(mktemp -d "$PWD/target/demo-XXXXXX")
trap 'rm -rf "$work"' EXIT
rm -f "$out/assay.db" "$out/report.html"
# Rounds from which a hypervisor took time count as well: a first look ends on any machine.
target/release/assay run examples/randwrite.fio --vary direct=0,1 \
    --directory "$work" --db "$out/assay.db" --html "$out/report.html" --max-rounds 15 --keep-disturbed "$@"
if [ -n "$(ls -A "$work")" ]; then
    echo "left behind in $work: $(ls -A "$work")" >&2
    exit 1
fi
