#!/usr/bin/env bash
# Makes N fio JSON files a side from one real output: many-fio-results.sh REAL.json OUT N
# OUT/before and OUT/after get N files each, every one with its own factor on all that fio measured, so that a file stays
# consistent in itself; 'after' is 3 % faster.
set -euo pipefail
real=$1 out=$2 count=$3
mkdir -p "$out/before" "$out/after"
awk -v out="$out" -v count="$count" '
function normal(   sum, i) { sum = 0; for (i = 0; i < 12; i++) sum += rand(); return sum - 6 }
{
    text[NR] = $0
    # "name" : number,
    if (match($0, /^[ \t]*"[^"]*" : [0-9.]+,?$/)) {
        split($0, quoted, "\"")
        key = quoted[2]
        value = $0; sub(/^.* : /, "", value); sub(/,$/, "", value)
        if (key ~ /^(bw_bytes|bw|iops)$/) kind[NR] = 1
        else if (key ~ /^(runtime|mean|max|min|stddev|job_runtime|[0-9]+\.[0-9]+)$/) kind[NR] = -1
        else if (key ~ /^timestamp(_ms)?$/) kind[NR] = key == "timestamp" ? 2 : 3
        head[NR] = substr($0, 1, index($0, " : ") + 2)
        number[NR] = value
        tail[NR] = $0 ~ /,$/ ? "," : ""
    }
}
END {
    srand(1)
    for (side = 0; side < 2; side++)
        for (file = 0; file < count; file++) {
            name = sprintf("%s/%s/%05d.json", out, side ? "after" : "before", file)
            factor = (side ? 1.03 : 1) * exp(0.03 * normal())
            for (line = 1; line <= NR; line++) {
                k = kind[line]
                if (!k) { print text[line] > name; continue }
                value = number[line]
                if (k == 2) value += file * 60
                else if (k == 3) value = sprintf("%.0f", value + file * 60000)
                else value = sprintf(value ~ /\./ ? "%.6f" : "%.0f", k == 1 ? value * factor : value / factor)
                print head[line] value tail[line] > name
            }
            close(name)
        }
}' "$real"
