# Two commands are all a newcomer needs: `make demo` and `make test`. Each does its own set-up.
CARGO ?= cargo
SHELL := /bin/bash
ASSAY := target/release/assay
# Simulated experiments a figure; CI has fewer.
REPLICATES ?= 4000
# What the tests need.
TESTED := compiler fio chromium e2fsprogs xfsprogs btrfs-progs f2fs-tools dbench fsmark qemu valgrind zstd blktrace kernel-build

.PHONY: demo test kernels ci build lint structure simulate truth aa scale bench instructions bench-trace bench-observers explain-shown why-real published promised-time stress stress-patches designs bisect-kernels torture rooms fuzz man deb clean

## A real A/B on files in a temporary directory: no root, no other tool
demo:
	@scripts/packages.sh compiler
	@$(CARGO) build --release --quiet
	@scripts/demo.sh

## Everything a change must pass; missing packages are installed first
test:
	@OPTIONAL=1 scripts/packages.sh $(TESTED)
	@scripts/kernels.sh || [ -z "$$CI" ]
	@scripts/kernel-source.sh || [ -z "$$CI" ]
	CARGO="$(CARGO)" scripts/test.sh

## Debian's 6.1 and 6.12 kernels in target/kernels, with the source and headers of 6.12; on Debian 12, elsewhere put the packages there
kernels:
	@scripts/kernels.sh
	@scripts/kernel-source.sh

## What continuous integration runs
ci: REPLICATES = 1000
ci: lint test simulate rooms

lint:
	@scripts/packages.sh compiler
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings

build:
	@scripts/packages.sh compiler
	$(CARGO) build --release

## The pictures of the structure in docs/ARCHITECTURE.md, from what the sources import now
structure:
	@scripts/packages.sh compiler graphviz
	UPDATE_GOLDEN=1 $(CARGO) test --quiet --test it -- drawing::the_drawing
	for drawn in before now; do dot -Tsvg docs/structure-$$drawn.dot -o docs/structure-$$drawn.svg; done
	$(CARGO) test --quiet --test it -- drawing::

## Reprint the simulation table from the shipped code; fails when a figure is off from METHODOLOGY's
simulate:
	@scripts/packages.sh compiler
	$(CARGO) run --quiet --profile figures -- simulate --replicates $(REPLICATES)

## 40 A/A experiments on real files: at most 4 may claim a difference
aa: build
	scripts/aa.sh

## The noise table again, from 5,400 real runs of a program whose noise is known: half an hour (TRUTH_RUNS: runs a figure)
truth: build
	$(CARGO) build --release --quiet --example truth
	work=$$(mktemp -d -p "$$([ -d /dev/shm ] && echo /dev/shm || echo "$${TMPDIR:-/tmp}")") && trap 'rm -rf "$$work"' EXIT && \
	    target/release/examples/truth table $(ASSAY) $${TRUTH_RUNS:-300} "$$work"

## 10,000 fio files compared, 100,000 stored trials reported: time and memory
scale: build
	$(CARGO) build --release --quiet --example many-trials
	scripts/scale.sh

## The native engine against fio and bare system calls, which writes docs/performance.md; then what traces and observers cost; needs root
bench: build
	@scripts/packages.sh fio procps valgrind blktrace time
	$(CARGO) build --release --quiet --example bench-table --example bench-instructions --example block-trace
	failed=0; for part in bench bench-trace bench-observers; do scripts/$$part.sh || failed=1; done; exit $$failed

## Count the instructions per I/O of each loop again, and write bench/instructions.txt
instructions: build
	@scripts/packages.sh fio valgrind
	$(CARGO) build --release --quiet --example bench-instructions
	UPDATE_INSTRUCTIONS=1 target/release/examples/bench-instructions $(ASSAY)
	UPDATE_INSTRUCTIONS=1 $(CARGO) test --quiet --test it -- instructions::the_null_loop

## assay trace against blkparse -d and btt on 1.5 million events; ROUNDS (9) says how often
bench-trace: build
	@scripts/packages.sh blktrace time
	$(CARGO) build --release --quiet --example block-trace
	scripts/bench-trace.sh

## What each observer costs direct reads of 4 KiB on zram, watched and unwatched in turn; needs root, 6 minutes
bench-observers: build
	scripts/bench-observers.sh

## Experiments in which each rule of Why must fire or keep silent, one at a time on a quiet machine; needs root, 5 minutes
why-real:
	@scripts/packages.sh $(TESTED)
	RUST_TEST_THREADS=1 $(CARGO) test --test it -- why_real --include-ignored

## Experiments whose cause is known, and the first screen of what assay says of each; needs root, 15 minutes. ONLY="NAMES", GUEST=1: dax-write, too
explain-shown: build
	@scripts/packages.sh xfsprogs e2fsprogs $(if $(GUEST),qemu)
	$(if $(GUEST),@scripts/kernels.sh)
	scripts/explain-shown.sh

## The recipes beside the studies they come from; needs root, 10 minutes (FULL=1: hours; EXPLAIN=1: watched as well). Writes docs/published.md
published: build
	@scripts/packages.sh xfsprogs e2fsprogs f2fs-tools dbench fsmark qemu
	@scripts/kernels.sh || ls target/kernels/linux-image-*.deb > /dev/null
	$(CARGO) build --release --quiet --example published
	scripts/published.sh

## The integration tests beside bursts of a busy machine; needs root, half an hour
stress:
	@scripts/packages.sh $(TESTED)
	@scripts/kernels.sh
	@scripts/kernel-source.sh
	$(CARGO) build --quiet
	scripts/stress.sh

## The time that ten experiments take beside what --plan and the first words of the run promise; needs root and an idle machine
promised-time: build
	@scripts/packages.sh $(TESTED)
	@scripts/kernels.sh
	scripts/promised-time.sh $(ASSAY)

## The patches of the recipes in kernels that watch themselves (lockdep, KASAN), with data verified, and one known to be wrong; half an hour
stress-patches: build
	@scripts/packages.sh $(TESTED)
	@scripts/kernels.sh
	@scripts/kernel-source.sh
	scripts/stress-patches.sh

## design=all of each recipe with an empty cache, and dio-append once more with a full one; three quarters of an hour (ONLY="NAMES")
designs: build
	@scripts/packages.sh $(TESTED)
	@scripts/kernels.sh
	@scripts/kernel-source.sh
	scripts/designs.sh

## A search over eight commits of a kernel, in guests, of which one makes writes slower; half an hour
bisect-kernels: build
	@scripts/packages.sh $(TESTED)
	@scripts/kernels.sh
	@scripts/kernel-source.sh
	scripts/bisect-kernels.sh

## 200 runs (ASSAY_TORTURE) of which any process is killed at any moment; ASSAY_TORTURE_SEED repeats one; needs root
torture:
	@scripts/packages.sh $(TESTED)
	$(CARGO) build --quiet
	ASSAY_TORTURE=$${ASSAY_TORTURE:-200} $(CARGO) test --test it torture:: -- --nocapture

## A dummy engine, filesystem, launcher, observer and section (tests/rooms), built into a copy of this tree and used
rooms:
	@scripts/packages.sh compiler
	CARGO="$(CARGO)" scripts/rooms.sh

## Fuzz the parsers of jobs, TOML, imports, tools' output and block traces, 60 s each; property tests without a nightly toolchain
fuzz:
	@scripts/packages.sh compiler
	fuzz/run 60

## Man page and completions in target/generated
man: build
	@mkdir -p target/generated
	$(ASSAY) generate man -o target/generated/assay.1
	for shell in bash zsh fish elvish; do $(ASSAY) generate $$shell -o target/generated/assay.$$shell; done

## A Debian package in target/debian, with man page and completions; fetches cargo-deb when it is missing
deb: man
	@$(CARGO) deb --version > /dev/null 2>&1 || $(CARGO) install --quiet --locked cargo-deb
	$(CARGO) deb --no-build --strip

clean:
	$(CARGO) clean
