#!/usr/bin/env bash
# The commit that measured pages name: "-dirty" where a file differs from it. The pages themselves are no part of what is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(git describe --always 2> /dev/null) || { echo unknown; exit 0; }
git diff --quiet HEAD -- . ':!docs/published.md' ':!docs/performance.md' || commit=$commit-dirty
echo "$commit"
