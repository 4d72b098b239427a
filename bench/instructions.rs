//! Counts the instructions that an I/O takes in each loop of the native engine, and in fio.
//!
//! Enters: the path of assay. Leaves: for each loop a line `instructions LOOP NATIVE FIO STORED MOST` on standard output, with
//! `-` for what there is not. Nothing else is measured, and nothing judged.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints counts")]

mod callgrind;
mod stored_counts;

use std::path::Path;
use std::process::ExitCode;

use callgrind::Program;

/// I/Os of the two runs whose difference is counted. fio spins for some 0.1 s when it starts, which is not the same each time.
const FEW: u64 = 20_000;
const MANY: u64 = 420_000;

const LIBAIO: &str = "ioengine=libaio\niodepth=32\npre_read=1";
const URING: &str = "ioengine=io_uring\niodepth=32\npre_read=1";
const BATCHES: &str = "iodepth_batch=32\niodepth_batch_complete_min=1\niodepth_batch_complete_max=32";
const REGISTERED: &str = "fixedbufs=1\nregisterfiles=1";

/// The loops: name and options.
fn loops() -> [(&'static str, String); 6] {
    [
        ("null", "ioengine=null".to_owned()),
        ("psync", "ioengine=psync\npre_read=1".to_owned()),
        ("libaio", LIBAIO.to_owned()),
        ("libaio-tuned", format!("{LIBAIO}\n{BATCHES}")),
        ("io_uring", URING.to_owned()),
        ("io_uring-tuned", format!("{URING}\n{BATCHES}\n{REGISTERED}")),
    ]
}

fn main() -> ExitCode {
    let Some(assay) = std::env::args().nth(1) else {
        eprintln!("usage: bench-instructions ASSAY");
        return ExitCode::FAILURE;
    };
    let mut code = ExitCode::SUCCESS;
    for (name, options) in loops() {
        if let Err(error) = count(&assay, name, &options) {
            eprintln!("bench-instructions: {name}: {error}");
            code = ExitCode::FAILURE;
        }
    }
    code
}

fn count(assay: &str, name: &str, options: &str) -> Result<(), String> {
    let native = callgrind::per_io(FEW, MANY, |ios, directory| {
        callgrind::agent(assay, callgrind::job(options, ios), directory)
    })?;
    let fio = callgrind::per_io(FEW, MANY, |ios, directory| fio(callgrind::job(options, ios), directory))?;
    let stored = match stored_counts::stored(name, native)? {
        Some(stored) => format!("{:.1} {:.1}", stored.per_io, stored.most()),
        None => "- -".to_owned(),
    };
    println!("instructions {name} {native:.1} {fio:.1} {stored}");
    Ok(())
}

/// fio with its job in a file.
fn fio(job: String, directory: &Path) -> Result<Program, String> {
    let file = directory.join("loop.fio");
    std::fs::write(&file, job + &format!("directory={}\n", directory.display()))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let words = ["fio".to_owned(), "--output=/dev/null".to_owned(), file.display().to_string()];
    Ok(Program { words: words.to_vec(), input: Vec::new() })
}
