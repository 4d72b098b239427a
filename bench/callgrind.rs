//! Instructions an I/O of a loop, counted by valgrind's callgrind: they are the same on a busy machine as on an idle one.
//!
//! Enters: how a program is started for a number of I/Os. Leaves: the instructions that each further I/O takes. Two runs
//! are counted that differ in nothing but their I/Os, so that the start, the end and the layout of files cancel out. What
//! the kernel does is not counted. It must not know what counts were stored.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use assay::engine::{EngineKind, Task};
use assay::launch::{PROTOCOL, Request};
use assay::target::{TargetSpec, WorkDirectory};

/// Bytes of an I/O.
const BLOCK: u64 = 4096;

/// A program and what it reads.
pub(crate) struct Program {
    /// Its command line.
    pub(crate) words: Vec<String>,
    /// Its standard input.
    pub(crate) input: Vec<u8>,
}

/// A job of `ios` reads with these options: a file of 1 MiB is read again and again.
pub(crate) fn job(options: &str, ios: u64) -> String {
    format!("[loop]\nrw=randread\nbs={BLOCK}\nsize=1m\nio_size={}\n{options}\n", ios * BLOCK)
}

/// `assay agent` with one trial of the native engine.
pub(crate) fn agent(assay: &str, job: String, directory: &Path) -> Result<Program, String> {
    let task = Task {
        job: Some(job),
        job_origin: "loop.fio".to_owned(),
        directory: directory.to_owned(),
        seed: 7,
        ..Task::default()
    };
    // Waiting for an idle device takes instructions, too, and not the same number each time.
    let target = TargetSpec { directory: directory.to_owned(), settle_ms: Some(0), ..TargetSpec::default() };
    let request = Request {
        protocol: PROTOCOL,
        engine: EngineKind::Native,
        task,
        target,
        rehearsal: false,
        observe: Vec::new(),
        before: None,
        after: None,
    };
    let input = serde_json::to_vec(&request).map_err(|error| error.to_string())?;
    Ok(Program { words: vec![assay.to_owned(), "agent".to_owned()], input })
}

/// The instructions of each I/O of `program`, which is made for a number of I/Os and an empty directory: of those from
/// `few` to `many`.
pub(crate) fn per_io(
    few: u64,
    many: u64,
    program: impl Fn(u64, &Path) -> Result<Program, String>,
) -> Result<f64, String> {
    let (before, _) = counted(few, &program)?;
    let (after, output) = counted(many, &program)?;
    let instructions = (after - before) / (many - few) as f64;
    if instructions < 1.0 {
        let said = [output.stdout, output.stderr].concat();
        return Err(format!("the program made no I/O: {}", String::from_utf8_lossy(&said)));
    }
    Ok(instructions)
}

/// The instructions of one whole run, and what it said.
fn counted(
    ios: u64,
    program: impl Fn(u64, &Path) -> Result<Program, String>,
) -> Result<(f64, Output), String> {
    let failed = |error: std::io::Error| format!("valgrind: {error}");
    let base = tempfile::tempdir().map_err(failed)?;
    let work = WorkDirectory::create(&WorkDirectory::path_for(base.path(), "loop"))
        .map_err(|error| error.to_string())?;
    let logs = base.path().join("logs");
    std::fs::create_dir(&logs).map_err(failed)?;
    let program = program(ios, work.path())?;
    let mut child = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--log-file={}/%p", logs.display()))
        .args(&program.words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&program.input).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    // A process that was forked counts what its parent had counted, too: the job's has the most.
    let most = logged(&logs).map_err(failed)?;
    let said = || String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((most.ok_or_else(|| format!("valgrind has counted nothing: {}", said()))?, output))
}

/// The largest count of all processes that wrote a log.
fn logged(logs: &Path) -> std::io::Result<Option<f64>> {
    let mut counts = Vec::new();
    for entry in std::fs::read_dir(logs)? {
        let text = std::fs::read_to_string(entry?.path())?;
        let words = text.lines().filter(|line| line.contains("Collected :"));
        counts.extend(words.filter_map(|line| line.split_whitespace().last()?.parse::<f64>().ok()));
    }
    Ok(counts.into_iter().reduce(f64::max))
}
