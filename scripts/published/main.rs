//! Prints docs/published.md: each published study beside what its recipe measured here, and whether the shapes agree.
//!
//! Enters: the store with the runs of `scripts/published.sh`, the commit of now, and the file with those of the runs. Leaves:
//! Markdown on standard output. It measures nothing; every figure is from the store or from tests/data/published.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a page")]

mod bdev_mix;
mod commits;
mod dax_write;
mod dio_append;
mod dio_scaling;
mod journal_flush;
mod shape;
mod study;

use std::path::Path;
use std::process::ExitCode;

use assay::record::{Run, RunState};
use assay::store::Store;

use commits::Commits;
use study::Study;

fn main() -> ExitCode {
    match print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("published: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "usage: published STORE COMMIT FILE-OF-COMMITS";
    let mut arguments = std::env::args().skip(1);
    let store = Store::open_existing(Path::new(&arguments.next().ok_or(usage)?))?;
    let commit = arguments.next().ok_or(usage)?;
    let commits = Commits::parse(&std::fs::read_to_string(arguments.next().ok_or(usage)?)?);
    let mut runs = Vec::new();
    for summary in store.list()? {
        runs.push(store.load_run(summary.id)?);
    }
    runs.retain(|run| run.state == RunState::Finished);
    heading(runs.first().ok_or("the store has no finished run")?, &commit);
    for study in
        [dax_write::STUDY, dio_scaling::STUDY, journal_flush::STUDY, dio_append::STUDY, bdev_mix::STUDY]
    {
        chapter(&study, &runs, &commit, &commits)?;
    }
    Ok(())
}

fn heading(run: &Run, commit: &str) {
    println!(
        "# Five published studies, run again\n\n\
         `make published` writes this page: it runs the five recipes with `--quick` (`FULL=1`: in full) and sets what they\n\
         measured beside what was published. No figure here was typed in. The machines, kernels and devices are other\n\
         ones, so what is compared is the *shape*: which is more, and roughly how many times. A ratio is the median of the ratios\n\
         within rounds (Hodges–Lehmann) with its 95 % signed-rank interval (Student's t where there are few rounds); it\n\
         *agrees* when the whole interval does, *does not agree* when all of it is on the other side, else it is *not clear here*.\n\
         A chapter whose runs were kept from an earlier time says at which commit they were measured.\n"
    );
    println!("Commit {commit}, assay {}, {}.", run.assay_version, study::day(run.started_unix_ns));
    let facts = run.facts.first();
    for key in ["cpu.model", "cpu.count", "virt", "kernel.release"] {
        println!("- {key}: {}", facts.and_then(|facts| facts.get(key)).unwrap_or("unknown"));
    }
}

fn chapter(
    study: &Study,
    runs: &[Run],
    commit: &str,
    commits: &Commits,
) -> Result<(), Box<dyn std::error::Error>> {
    let named = |name: &&str| runs.iter().rev().find(|run| run.name == **name);
    let mine: Vec<&Run> = study.runs.iter().filter_map(named).collect();
    println!("\n## {}\n\n{}\n\nPublished:\n\n{}", study.name, study.was, (study.published)());
    if mine.len() < study.runs.len() {
        println!("Here: not run; the store has no finished run of {}.", study.runs.join(" and "));
        return Ok(());
    }
    println!("Here, {}:\n", study::place(&mine));
    let began = mine.iter().map(|run| (run.name.clone(), run.started_unix_ns));
    if let Some(earlier) = commits.of_chapter(commit, began) {
        println!("{earlier}\n");
    }
    println!("{}", (study.ours)(&mine)?);
    for run in &mine {
        println!("    {}", study::command(run));
    }
    let shapes = (study.shapes)(&mine)?;
    println!("\n| shape | published | here | |\n|---|---:|---|---|");
    for shape in &shapes {
        println!("{}", shape.line());
    }
    let reasons: Vec<String> = shapes.iter().filter_map(shape::Shape::reason).collect();
    if !reasons.is_empty() {
        println!(
            "\nWhere they differ, or it is not clear, what may lie behind it (nobody has tried it):\n\n{}",
            reasons.join("\n")
        );
    }
    Ok(())
}
