//! Writes a large block trace for scripts/bench-trace.sh.
//!
//! Enters: BASE and, if wished, the number of I/Os and of CPUs. Leaves: BASE.blktrace.0 and so on; what was written, on standard
//! output.

#![expect(clippy::print_stdout, reason = "a program that says what it has written")]

#[path = "../tests/it/made_trace.rs"]
mod made_trace;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let base = arguments.next().unwrap_or_else(|| "made".to_owned());
    let mut number = |default: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (ios, cpus) = (number(300_000), number(2).clamp(1, 256));
    let mut written = 0;
    for (cpu, stream) in made_trace::made_trace(ios, usize::try_from(cpus).unwrap_or(1)).iter().enumerate() {
        std::fs::write(format!("{base}.blktrace.{cpu}"), stream)?;
        written += stream.len();
    }
    println!("{ios} I/Os, {written} bytes");
    Ok(())
}
