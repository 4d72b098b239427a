//! Prints docs/published.md: each published study beside what its recipe measured here, and what came of each of its claims.
//!
//! Enters: the store with the runs of `scripts/published.sh`, the commit of now, and the file with those of the runs. Leaves:
//! Markdown on standard output. It measures nothing; every figure is from the store or from tests/data/published.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a page")]

mod bdev_mix;
mod because;
mod claims;
mod commits;
mod dax_write;
mod dio_append;
mod dio_scaling;
mod journal_flush;
mod judge;
mod page;
mod study;

use std::path::Path;
use std::process::ExitCode;

use assay::record::{Run, RunState};
use assay::store::Store;

use claims::Claim;
use commits::Commits;
use judge::Verdict;
use study::{Found, Study};

/// All studies, in the order of the page.
const STUDIES: [Study; 5] =
    [dax_write::STUDY, dio_scaling::STUDY, journal_flush::STUDY, dio_append::STUDY, bdev_mix::STUDY];

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
    let usage = "usage: published STORE COMMIT FILE-OF-COMMITS FILE-OF-TIMES";
    let mut arguments = std::env::args().skip(1);
    let store = Store::open_existing(Path::new(&arguments.next().ok_or(usage)?))?;
    let commit = arguments.next().ok_or(usage)?;
    let commits = Commits::parse(&std::fs::read_to_string(arguments.next().ok_or(usage)?)?);
    let times = std::fs::read_to_string(arguments.next().ok_or(usage)?)?;
    let mut runs = Vec::new();
    for summary in store.list()? {
        runs.push(store.load_run(summary.id)?);
    }
    runs.retain(|run| run.state == RunState::Finished);
    // What watched a recipe's run has its name, and is none of it.
    let (watched, runs): (Vec<Run>, Vec<Run>) =
        runs.into_iter().partition(|run| run.design.explains.is_some());
    heading(runs.first().ok_or("the store has no finished run")?, &commit);
    if let Some(took) = took(&times) {
        println!("\n{took}");
    }
    let mut chapters = Vec::new();
    for study in STUDIES {
        let mine = runs_of(&study, &runs);
        let judged = judged(&study, mine.as_deref())?;
        chapters.push((study, mine, judged));
    }
    summary(&chapters);
    for (study, mine, judged) in &chapters {
        chapter(study, mine.as_deref(), judged, &watched, (&commit, &commits))?;
    }
    Ok(())
}

/// A study, its runs where all are there, and what came of its claims.
type Chapter<'r> = (Study, Option<Vec<&'r Run>>, Vec<(Claim, Verdict)>);

/// The latest run of each name; `None`: one is missing.
fn runs_of<'r>(study: &Study, runs: &'r [Run]) -> Option<Vec<&'r Run>> {
    study.runs.iter().map(|name| runs.iter().rev().find(|run| run.name == **name)).collect()
}

fn judged(study: &Study, runs: Option<&[&Run]>) -> Found<Vec<(Claim, Verdict)>> {
    let of = |claim: Claim| {
        let verdict = match runs {
            Some(runs) => judge::judge(&claim, runs)?,
            None if claim.here.is_some() => Verdict::LeftOut,
            None => Verdict::NotThere,
        };
        Ok((claim, verdict))
    };
    claims::read(study.claims)?.into_iter().map(of).collect()
}

/// How many claims there are of each outcome.
fn summary(chapters: &[Chapter<'_>]) {
    let row = |name: &str, judged: &[&(Claim, Verdict)]| {
        let of = |at: usize| judged.iter().filter(|(_, verdict)| page::outcome(verdict) == at).count();
        let counts = (0..page::OUTCOMES.len()).map(|at| of(at).to_string());
        [name.to_owned(), judged.len().to_string()].into_iter().chain(counts).collect::<Vec<String>>()
    };
    let mut rows: Vec<Vec<String>> = chapters
        .iter()
        .map(|(study, _, judged)| row(study.name, &judged.iter().collect::<Vec<_>>()))
        .collect();
    rows.push(row("all", &chapters.iter().flat_map(|(_, _, judged)| judged).collect::<Vec<_>>()));
    let heads: Vec<&str> = ["study", "claims"].into_iter().chain(page::OUTCOMES).collect();
    println!("\n{}", study::table(&heads, 1, &rows).trim_end());
}

fn heading(run: &Run, commit: &str) {
    println!(
        "# Five published studies, run again\n\n\
         `make published` writes this page: it runs the five recipes with `--quick` (`FULL=1`: in full) and sets what they\n\
         measured beside what was published. No figure here was typed in. The machines, kernels and devices are other\n\
         ones, so what is compared is the *shape*: which is more, and roughly how many times. Every table and claim of the studies is\n\
         listed (`scripts/published/claims/*.toml`). A ratio is the median of the ratios within rounds (Hodges–Lehmann) with its\n\
         95 % signed-rank interval (Student's t where there are few rounds). A claim is *reproduced* when it holds in the whole\n\
         interval, *contrary* when it holds nowhere in it, else *undecided*, with the rounds that would probably decide it; *not in this\n\
         size* when the run left it out, with what the full size takes, or an earlier assay measured it; *not there* when no run of this\n\
         page answers it, with the reason: some claims are of kernels that `--vary design=all` builds, and [docs/recipes](recipes/) has\n\
         what came of those. Each interval stands for itself: of a hundred, five miss.\n\
         A chapter whose runs were kept from an earlier time says at which commit they were measured. Behind its claims stand the\n\
         study's reasons, the rules ([why](why.md)) or the two factors that would name each, and whether assay does: with the share of\n\
         the time that it accounts for; *not run yet* where only watched trials (`--explain`) can tell.\n"
    );
    println!("Commit {commit}, assay {}, {}.", run.assay_version, study::day(run.started_unix_ns));
    let facts = run.facts.first();
    for key in ["cpu.model", "cpu.count", "virt", "kernel.release"] {
        println!("- {key}: {}", facts.and_then(|facts| facts.get(key)).unwrap_or("unknown"));
    }
}

/// How long all recipes took the last times, from lines of `COMMIT SECONDS`.
fn took(times: &str) -> Option<String> {
    let all: Vec<(&str, &str)> = times.lines().filter_map(|line| line.split_once(' ')).collect();
    let last = &all[all.len().saturating_sub(3)..];
    let each: Vec<String> =
        last.iter().map(|(commit, seconds)| format!("{seconds} s (commit {commit})")).collect();
    (!each.is_empty()).then(|| {
        format!(
            "With `--quick` and without `--explain` the five recipes together took, the last times, {}.",
            each.join(", ")
        )
    })
}

fn chapter(
    study: &Study,
    runs: Option<&[&Run]>,
    judged: &[(Claim, Verdict)],
    watched: &[Run],
    (commit, commits): (&str, &Commits),
) -> Found<()> {
    println!("\n## {}\n\n{}\n\nPublished:\n\n{}", study.name, study.was, (study.published)());
    match runs {
        None => println!("Here: not run; the store has no finished run of {}.", study.runs.join(" and ")),
        Some(mine) => {
            println!("Here, {}:\n", study::place(mine));
            let began = mine.iter().map(|run| (run.name.clone(), run.started_unix_ns));
            if let Some(earlier) = commits.of_chapter(commit, began) {
                println!("{earlier}\n");
            }
            println!("{}", (study.ours)(mine)?);
            for run in mine {
                println!("    {}", study::command(run));
            }
        }
    }
    println!("\n| table | claim | published | here | |\n|---|---|---:|---|---|");
    for (claim, verdict) in judged {
        println!("{}", page::line(claim, verdict)?);
    }
    println!("\n| because | what would name it | assay |\n|---|---|---|");
    for line in because::lines(&because::read(study.claims)?, runs, watched) {
        println!("{line}");
    }
    let reasons = page::reasons(judged, study.in_full);
    if !reasons.is_empty() {
        println!(
            "\nWhat is not there, and what may lie behind the rest (nobody has tried it):\n\n{}",
            reasons.join("\n")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use toml::{Table, Value};

    /// Levels that no recipe has, as its page says: so many clients take a larger device and a longer time.
    const LEFT_OUT: [(&str, &str); 1] = [("clients", "512")];

    /// The labels of each factor of a recipe's full size.
    fn factors_of(run: &str) -> BTreeMap<String, Vec<String>> {
        let path = format!("{}/recipes/{run}.toml", env!("CARGO_MANIFEST_DIR"));
        let file: Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let of = |factor: &Value| {
            let plain = factor.get("levels").and_then(Value::as_array).into_iter().flatten().map(text);
            let told = factor.get("level").and_then(Value::as_array).into_iter().flatten();
            (text(&factor["name"]), plain.chain(told.map(|level| text(&level["label"]))).collect())
        };
        file["factor"].as_array().unwrap().iter().map(of).collect()
    }

    #[test]
    fn the_last_three_times_are_told() {
        assert_eq!(took(""), None);
        let said = took("a 700\nb 438\nc 419\nc 423\n").unwrap();
        assert!(
            said.ends_with("took, the last times, 438 s (commit b), 419 s (commit c), 423 s (commit c)."),
            "{said}"
        );
    }

    #[test]
    fn every_claim_is_of_levels_that_its_recipe_has() {
        for study in STUDIES {
            for claim in claims::read(study.claims).unwrap() {
                let Some(here) = &claim.here else { continue };
                for mut place in [Some(here.over()), here.under()].into_iter().flatten() {
                    let run = place.remove("run").unwrap_or_else(|| study.runs[0].to_owned());
                    assert!(study.runs.contains(&run.as_str()), "{run}: {}", claim.says);
                    let factors = factors_of(&run);
                    place.retain(|key, _| key != "job" && key != "metric");
                    for (factor, level) in &place {
                        let is_there = factors.get(factor).is_some_and(|labels| labels.contains(level));
                        let is_left_out = LEFT_OUT.contains(&(factor.as_str(), level.as_str()));
                        assert!(is_there || is_left_out, "{run} has no {factor}={level}: {}", claim.says);
                    }
                }
            }
        }
    }
}
