#!/usr/bin/env bash
# Runs the recipes and writes docs/published.md: what was published beside what is measured here.
# Without more it is their --quick size; FULL=1 runs them in full. ONLY="bdev-mix dio-scaling" runs these anew and keeps the
# other runs of the last time. EXPLAIN=1 watches each run's cells behind it, so that the page can say why: four to five times as long.
# Exit 1 where a recipe decides none of its questions, or their --quick size takes longer than 10 minutes without EXPLAIN.
set -euo pipefail
cd "$(dirname "$0")/.."
assay=$PWD/target/release/assay
out=target/published
mkdir -p "$out"
size=--quick
[ -z "${FULL:-}" ] || size=
explain=${EXPLAIN:+--explain}
only=${ONLY:-$("$assay" recipes | grep -E '^[a-z0-9-]+$')}
[ -n "${ONLY:-}" ] || rm -f "$out/assay.db" "$out/commits"

# What is measured from now on is of this commit; what is kept stays with its own.
commit=$(scripts/commit.sh)
echo "$(date +%s%N) $commit" >> "$out/commits"

failed=0
for recipe in $only; do
    echo "published: $recipe" >&2
    begun=$SECONDS
    # shellcheck disable=SC2086 # no size is no word
    "$assay" run "$recipe" $size $explain --db "$out/assay.db" > "$out/$recipe.txt" || {
        cat "$out/$recipe.txt" >&2
        exit 1
    }
    echo "published: $recipe took $((SECONDS - begun)) s" >&2
    # The verdicts of the head; what is said below them is of other metrics.
    head=$(sed '/^why: /,$d' "$out/$recipe.txt" | tr -s ' \n' ' ')
    if ! grep -qE " ([1-9][0-9]* (faster|slower|better|worse|fewer|more|no difference)|is (faster|slower|better|worse) than|has (fewer|more) )" <<< "$head"; then
        echo "published: $recipe decides none of its questions" >&2
        failed=1
    fi
done

echo "published: $(echo $only | wc -w) recipes took $SECONDS s" >&2
if [ -z "${FULL:-}${EXPLAIN:-}" ] && [ "$SECONDS" -gt 600 ]; then
    echo "published: that is longer than 10 minutes" >&2
    failed=1
fi
[ -n "${FULL:-}${EXPLAIN:-}${ONLY:-}" ] || echo "$commit $SECONDS" >> "$out/times"
touch "$out/times"
target/release/examples/published "$out/assay.db" "$commit" "$out/commits" "$out/times" > "$out/published.md"
cp "$out/published.md" docs/published.md
exit $failed
