#!/usr/bin/env bash
# Each recipe's design=all from nothing: source unpacked, kernels or modules built with an empty cache, booted, judged; dio-append once more
# with what the first time has left. Prints the first screen of each report and the seconds. Exit 1 where a run fails, decides no count, does
# not say that times under tcg are emulated, or takes longer than 900 s from nothing (240 s again); and where the audit of flushes in
# journal-flush finds a violation or leaves more than one call in a hundred undecided. ONLY="dio-append bdev-mix" runs these. Three quarters of
# an hour on 2 processors, emulated.
set -euo pipefail
cd "$(dirname "$0")/.."
assay=$PWD/target/release/assay
work=$(mktemp -d "$PWD/target/designs-XXXXXX")
trap 'rm -rf "$work"' EXIT
all="dio-append journal-flush bdev-mix dio-scaling dax-write"
for name in ${ONLY:-}; do
    [[ " $all " == *" $name "* ]] || { echo "designs: there is no $name; there are $all" >&2; exit 1; }
done
failed=0

# For awk: the fields of a line of CSV, where one in quotes may have commas; `at` has the number of each head.
csv='
    function split_line(line, fields,    n, part) {
        split("", fields)
        while (length(line)) {
            match(line, /^("([^"]|"")*"|[^,]*)/)
            part = substr(line, 1, RLENGTH)
            line = substr(line, RLENGTH + 2)
            gsub(/^"|"$/, "", part)
            fields[++n] = part
        }
    }
    { split_line($0, row) }
    NR == 1 { for (i in row) at[row[i]] = i; next }'

# wrong WHAT: a check that does not hold.
wrong() {
    echo "designs: $*" >&2
    failed=1
}

# judged NAME RUN: prints the first screen, and checks that each design differs from the first by a metric that decides.
judged() {
    local name=$1 run=$2 alike whole
    "$assay" report "$run" --db "$work/$name.db" > "$work/report.txt"
    sed 40q "$work/report.txt"
    alike=$("$assay" report "$run" --format csv --db "$work/$name.db" | awk "$csv"'
        row[at["role"]] == "primary" {
            design = row[at["candidate"]]
            known[design] = 1
            if (row[at["verdict"]] ~ /^(faster|slower)/) differs[design] = 1
        }
        END { for (design in known) { n++; if (!(design in differs)) print design }; if (!n) print "any design, as none was judged" }')
    [ -z "$alike" ] || wrong "$name: nothing that decides differs with: $alike"
    # With KVM they are not.
    whole=$("$assay" report "$run" --verbose --db "$work/$name.db" | tr -s " \n" " ")
    if grep -q '"guest.accelerator": *"tcg' <<< "$("$assay" export "$run" --db "$work/$name.db")" && [[ $whole != *emulated* ]]; then
        wrong "$name: it does not say that times are emulated"
    fi
}

# audited NAME RUN: prints what became of the fsyncs of each design, and checks that they were audited and behind their flushes.
audited() {
    local name=$1 run=$2
    "$assay" export "$run" --format csv --db "$work/$name.db" | awk "$csv"'
        row[at["metric"]] ~ /^blocks\.audit_(passed|undecided|violations)$/ {
            designs[row[at["design"]]] = 1
            calls[row[at["design"]], row[at["metric"]]] += row[at["value"]]
        }
        END {
            for (design in designs) {
                n++
                passed = calls[design, "blocks.audit_passed"]
                undecided = calls[design, "blocks.audit_undecided"]
                violations = calls[design, "blocks.audit_violations"]
                printf "audit of flushes, design=%s: %d calls passed, %d undecided, %d violations\n", design, passed, undecided, violations
                if (violations || !passed || undecided * 100 > passed) bad = 1
            }
            exit bad || n < 2
        }' || wrong "$name: the audit of flushes"
}

# once NAME WHAT LIMIT: one time, whose cache stays for the next.
once() {
    local name=$1 what=$2 limit=$3 begun=$SECONDS took run runs
    rm -f "$work/$name.db"
    if ! XDG_CACHE_HOME=$work/$name "$assay" run "$name" --vary design=all --db "$work/$name.db" > /dev/null 2> "$work/said.txt"; then
        tail -n 20 "$work/said.txt" >&2
        failed=1
        return
    fi
    took=$((SECONDS - begun))
    echo "## $name, $what: $took s (at most $limit)"
    # A recipe may be several experiments.
    runs=$("$assay" list --db "$work/$name.db" | awk 'NR > 1 { print $1 }')
    [ -n "$runs" ] || wrong "$name: no run is stored"
    for run in $runs; do
        judged "$name" "$run"
        if [ "$name" = journal-flush ]; then audited "$name" "$run"; fi
    done
    [ "$took" -le "$limit" ] || wrong "$name took $took s, $what"
}

for name in ${ONLY:-$all}; do
    once "$name" "from nothing" 900
    if [ "$name" = dio-append ]; then once "$name" "again" 240; fi
    rm -rf "${work:?}/$name"
done
exit $failed
