#!/usr/bin/env bash
# Each recipe's design=all from nothing: source unpacked, kernels or modules built with an empty cache, booted, judged; dio-append once more
# with what the first time has left. Prints the first screen of each report and the seconds. Exit 1 where a run fails, decides no count, does
# not say that times under tcg are emulated, lacks the audit of flushes in journal-flush (or it finds a violation), or takes longer than 900 s from
# nothing, or 240 s again. ONLY="dio-append bdev-mix" runs these. An hour on 2 processors, emulated.
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

# once NAME WHAT LIMIT: one run, whose cache stays for the next.
once() {
    local name=$1 what=$2 limit=$3 begun=$SECONDS
    if ! XDG_CACHE_HOME=$work/$name "$assay" run "$name" --vary design=all --db "$work/$name.db" > "$work/report.txt" 2> "$work/said.txt"; then
        tail -n 20 "$work/said.txt" >&2
        failed=1
        return
    fi
    local took=$((SECONDS - begun))
    echo "## $name, $what: $took s (at most $limit)"
    sed 40q "$work/report.txt"
    # Every design against the first, by a metric that decides.
    local alike
    alike=$("$assay" report latest --format csv --db "$work/$name.db" | awk '
        # A field in quotes may have commas.
        function split_line(line, fields,    n, part) {
            n = 0
            while (length(line)) {
                match(line, /^("([^"]|"")*"|[^,]*)/)
                part = substr(line, 1, RLENGTH)
                line = substr(line, RLENGTH + 2)
                gsub(/^"|"$/, "", part)
                fields[++n] = part
            }
        }
        NR == 1 { split_line($0, heads); for (i in heads) at[heads[i]] = i; next }
        {
            split("", row)
            split_line($0, row)
            if (row[at["role"]] != "primary") next
            design = row[at["candidate"]]
            known[design] = 1
            if (row[at["verdict"]] ~ /^(faster|slower)/) differs[design] = 1
        }
        END { for (design in known) { n++; if (!(design in differs)) print design }; if (!n) print "any design, as none was judged" }')
    if [ -n "$alike" ]; then
        echo "designs: $name: nothing that decides differs with: $alike" >&2
        failed=1
    fi
    local whole
    whole=$("$assay" report latest --verbose --db "$work/$name.db" | tr -s " \n" " ")
    # With KVM they are not.
    if grep -q '"guest.accelerator": *"tcg' <<< "$("$assay" export latest --db "$work/$name.db")" && [[ $whole != *emulated* ]]; then
        echo "designs: $name: it does not say that times are emulated" >&2
        failed=1
    fi
    if [ "$name" = journal-flush ]; then
        grep -o "audit of flushes ([a-z0-9]*): [^.;]*" <<< "$whole" || true
        case $whole in *"audit of flushes (xfs): PASS"*) ;; *) echo "designs: $name: no audit of flushes" >&2; failed=1 ;; esac
        case $whole in *UNDECIDABLE*) echo "designs: $name: the audit leaves an arm undecided" >&2; failed=1 ;; esac
        case $whole in *VIOLATION*) echo "designs: $name: the audit found a violation" >&2; failed=1 ;; esac
    fi
    if [ "$took" -gt "$limit" ]; then
        echo "designs: $name took $took s, $what" >&2
        failed=1
    fi
}

for name in ${ONLY:-$all}; do
    once "$name" "from nothing" 900
    if [ "$name" = dio-append ]; then once "$name" "again" 240; fi
    rm -rf "${work:?}/$name"
done
exit $failed
