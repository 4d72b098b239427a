//! The null loop, which transfers nothing, takes no more instructions than bench/instructions.txt says. It is counted of the
//! build that is tested, which is the debug build in `make test`; `make bench` counts the release build of all loops.

#[path = "../../bench/callgrind.rs"]
mod callgrind;
#[path = "../../bench/stored_counts.rs"]
mod stored_counts;

use std::path::Path;

use crate::tools::{available, impossible_here};

/// I/Os of the two runs whose difference is counted.
const FEW: u64 = 2_000;
const MANY: u64 = 102_000;
/// What the busy machine adds, where a slow I/O makes a histogram longer, is about 1 %: a count that is too high is made again.
const ATTEMPTS: usize = 3;

#[test]
fn the_null_loop_takes_no_more_instructions_than_stored() {
    if !available("valgrind") {
        return;
    }
    let count = || {
        let agent = |ios: u64, directory: &Path| {
            callgrind::agent(env!("CARGO_BIN_EXE_assay"), callgrind::job("ioengine=null", ios), directory)
        };
        callgrind::per_io(FEW, MANY, agent).unwrap()
    };
    let mut per_io = count();
    let Some(stored) = stored_counts::stored("null", per_io).unwrap() else {
        impossible_here(&format!(
            "no instructions are stored for this architecture, clock and build (counted: {per_io:.1})"
        ));
        return;
    };
    for _ in 1..ATTEMPTS {
        if per_io > stored.most() {
            per_io = per_io.min(count());
        }
    }
    println!("{per_io:.1} instructions an I/O, stored {}", stored.per_io);
    assert!(
        per_io <= stored.most(),
        "the null loop takes {per_io:.1} instructions an I/O, which is over 10 % more than the {} of bench/instructions.txt \
         (compiled by {}, now by {}); if that is meant: make instructions",
        stored.per_io,
        stored.compiler,
        stored_counts::compiler(),
    );
}
