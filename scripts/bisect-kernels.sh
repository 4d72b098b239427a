#!/usr/bin/env bash
# A search over kernels, in guests: a repository is made of Debian's linux-source package, with eight commits on fs/f2fs of which the fifth makes
# each write slower, the third does not compile, and the kernel of the sixth dies when f2fs is loaded. Exit 1 unless assay bisect, killed
# (SIGKILL) after some trials and resumed, names the fifth; says that there is nothing to find where there is not; and skips the third and
# the sixth where it has to try them. Before that, ten searches over the same series with values that are made up, of which nine must name the
# fifth. Half an hour on 2 processors, emulated.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
assay=$PWD/target/release/assay
packages=$PWD/target/kernels
work=$(mktemp -d "$PWD/target/bisect-XXXXXX")
searches=
# A search in the background does not get Ctrl-C.
trap '[ -z "$searches" ] || kill "$searches" 2> /dev/null || true; rm -rf "$work"' EXIT

echo "bisect-kernels: making the repository" >&2
linux=$work/linux
mkdir "$linux"
dpkg-deb --fsys-tarfile "$packages"/linux-source-6.12_*.deb | tar -xOf - --wildcards './usr/src/linux-source-6.12.tar.xz' |
    xz -dc | tar -xf - --strip-components=1 -C "$linux"
git=(git -C "$linux" -c user.name=bisect -c user.email=bisect@localhost -c core.compression=0 -c gc.auto=0)
"${git[@]}" init -q -b main
# Whatever its .gitignore says.
"${git[@]}" add -A -f
"${git[@]}" commit -q -m "linux-source of Debian"
"${git[@]}" tag step-0

# commit N SUBJECT: what was changed below fs/f2fs is a commit.
commit() {
    "${git[@]}" commit -q -a -m "$2"
    "${git[@]}" tag "step-$1"
}
cd "$linux/fs/f2fs"
echo '/* Names are hashed as in ext3. */' >> hash.c
commit 1 "f2fs: say where the hash is from"
printf '\nstatic inline unsigned int f2fs_half(unsigned int n)\n{\n\treturn n / 2;\n}\n' >> hash.c
commit 2 "f2fs: a helper for halves"
echo 'static int f2fs_broken(void) { return no_such_name; }' >> inline.c
commit 3 "f2fs: does not compile"
sed -i '$d' inline.c
commit 4 "f2fs: compiles again"
# A loop in each write: the kind of check that nobody meant to leave in.
sed -i 's|^static ssize_t f2fs_file_write_iter(struct kiocb \*iocb, struct iov_iter \*from)$|static noinline void f2fs_check_write(size_t bytes)\n{\n\tvolatile size_t checked = 0;\n\n\twhile (checked < bytes)\n\t\tchecked++;\n}\n\n&|' file.c
sed -i '/^static ssize_t f2fs_file_write_iter/,/^}/ s|^\tssize_t ret;$|&\n\n\tf2fs_check_write(count);|' file.c
grep -q 'f2fs_check_write(count);' file.c || { echo "file.c is another one: the change was not planted" >&2; exit 1; }
commit 5 "f2fs: check each write"
cp super.c ../super.c.before
sed -i '/^static int __init init_f2fs_fs(void)$/,/^}/ s|^\tint err;$|&\n\n\tpanic("planted by bisect-kernels");|' super.c
grep -q planted super.c || { echo "super.c is another one: the panic was not planted" >&2; exit 1; }
commit 6 "f2fs: dies when it is loaded"
mv ../super.c.before super.c
commit 7 "f2fs: lives again"
echo '/* The end. */' >> super.c
commit 8 "f2fs: end of the series"
# Where kernels are looked for.
cd "$root"

# The series alone, and a program that takes 5 % longer where the loop is, with noise of 2 % that seed and trial decide.
series=$work/f2fs
git init -q -b main "$series"
alone=(git -C "$series" -c user.name=bisect -c user.email=bisect@localhost)
for step in 0 1 2 3 4 5 6 7 8; do
    rm -rf "$series/fs"
    "${git[@]}" archive "step-$step" fs/f2fs | tar -xf - -C "$series"
    "${alone[@]}" add -A -f
    "${alone[@]}" commit -q -m "step $step"
    "${alone[@]}" tag "step-$step"
done
cat > "$work/made-up.sh" << 'END'
tree=$1 seed=$2 count=$3
echo >> "$count"
n=$(wc -l < "$count")
noise=$(((n * 2654435761 + n * n * 40503 + seed * 97531) % 4294967296))
base=1000000
if grep -q f2fs_check_write "$tree/fs/f2fs/file.c"; then base=1050000; fi
echo "took $((base + (noise >> 8) % 70000 - 35000))"
END
fifth=$("${alone[@]}" rev-parse --short=12 step-5)
right=0
for seed in 1 2 3 4 5 6 7 8 9 10; do
    "$assay" bisect -q --db "$work/made-up.db" --source "$series" --good step-0 --bad step-8 --seed "$seed" --settle 0 --keep-disturbed \
        --metric 'took=took ([0-9]+):ns' -- sh "$work/made-up.sh" '{tree}' "$seed" "$work/count-$seed" > "$work/said.txt"
    if grep -qF "the change came with $fifth" "$work/said.txt"; then right=$((right + 1)); else cat "$work/said.txt" >&2; fi
done
echo "$right of 10 searches with made-up values name the fifth commit"
[ "$right" -ge 9 ] || exit 1

printf '[w]\nrw=write\nbs=4k\nsize=24m\nloops=2\n' > "$work/write.fio"
# With exec=exec it is this very process, which can be killed.
search() {
    ${exec:-} "$assay" bisect --db "$work/bisect.db" --source "$linux" "$@" "$work/write.fio" -d "$work" -t kernel=newest -t ram:256m -t fs=f2fs --settle 0
}
trials() { { "$assay" export 1 --db "$work/bisect.db" 2> /dev/null || true; } | { grep -o '"elapsed_s"' || true; } | wc -l; }
# says WORDS: whether the answer has them.
says() { grep -qF -- "$1" <<< "$(tr -s ' \n' ' ' < "$work/said.txt")" || { echo "bisect-kernels: not said: $1" >&2; exit 1; }; }

exec=exec search --good step-0 --bad step-8 > /dev/null 2> "$work/killed.txt" &
searches=$!
while [ "$(trials)" -lt 3 ]; do
    kill -0 "$searches" 2> /dev/null || { cat "$work/killed.txt" >&2; echo "bisect-kernels: ended before it was killed" >&2; exit 1; }
    sleep 2
done
kill -KILL "$searches"
wait "$searches" || true
searches=
echo "bisect-kernels: killed after $(trials) trials; it goes on" >&2
"$assay" bisect --resume 1 --db "$work/bisect.db" | tee "$work/said.txt"
says "the change came with $("${git[@]}" rev-parse --short=12 step-5) \"f2fs: check each write\""
search --good step-5 --bad step-8 --delta 10% | tee "$work/said.txt"
says "nothing to find"
# Two steps lie between these ends. Each round asks both, and the first cannot be built.
search --good step-2 --bad step-5 | tee "$work/said.txt"
says "skipped: $("${git[@]}" rev-parse --short=12 step-3): "
search --good step-4 --bad step-7 | tee "$work/said.txt"
says "skipped: $("${git[@]}" rev-parse --short=12 step-6): "
says "planted by bisect-kernels"
