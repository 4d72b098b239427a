//! What to search next, behind the answer of a search.
//!
//! Enters: a run that is a search, and what it found. Leaves: sentences with what is to be typed.

use super::bisected::step_name;
use crate::analyse::{Another, Bisected, Found};
use crate::record::Run;

/// What is searched for, in words.
pub(super) struct Sense {
    /// What the last step is by it: `worse` or `better`.
    pub(super) sought: &'static str,
    /// The other one.
    pub(super) other: &'static str,
    /// What the first end and the last end are called.
    pub(super) ends: (&'static str, &'static str),
}

impl Sense {
    pub(super) fn of(run: &Run) -> Sense {
        match is_for_better(run) {
            true => Sense { sought: "better", other: "worse", ends: ("bad", "good") },
            false => Sense { sought: "worse", other: "better", ends: ("good", "bad") },
        }
    }

    /// How the other one is searched for.
    pub(super) fn turned_round(&self, run: &Run) -> String {
        let other = self.other;
        match run.design.bisects.as_ref().is_some_and(|bisects| bisects.source.is_some()) {
            true => format!("to find what made it {other}, exchange --good and --bad"),
            false if is_for_better(run) => format!("to find what made it {other}, leave --better out"),
            false => format!("--better finds what made it {other}"),
        }
    }
}

fn is_for_better(run: &Run) -> bool {
    run.design.bisects.as_ref().is_some_and(|bisects| bisects.for_better)
}

/// What the search has missed, and what is looked at more closely with another one.
pub(super) fn further(run: &Run, searched: &Bisected, found: &Found) -> Vec<String> {
    let others = searched.others.iter().map(|another| missed(run, searched, found, *another));
    others.chain(of_left_out(run, found)).chain(of_merge(run, found)).collect()
}

/// What a search, whose model is of one change, has missed.
fn missed(run: &Run, searched: &Bisected, found: &Found, another: Another) -> String {
    let name = |step: usize| step_name(run, step);
    let Sense { sought, other, ends } = Sense::of(run);
    match another {
        Another::Before => format!(
            "there is another change before it: the steps from {} to {} that were run are {sought} than {}; search them with \
             {} as the {} end",
            name(0),
            name(found.first - 1),
            name(0),
            name(found.first - 1),
            ends.1
        ),
        Another::Behind => format!(
            "there is another change behind it: the steps from {} on that were run are {other} than {}; search them with {} as \
             the {} end",
            name(found.last),
            name(searched.steps),
            name(found.last),
            ends.0
        ),
    }
}

/// Commits that were left out lie in the step of the next one that was not.
fn of_left_out(run: &Run, found: &Found) -> Option<String> {
    let bisects = run.design.bisects.as_ref()?;
    if bisects.left_out.beside_paths == 0 || found.first != found.last {
        return None;
    }
    let (before, name) = (commit_name(run, found.first - 1)?, commit_name(run, found.last)?);
    let (first, last) = Sense::of(run).ends;
    Some(format!(
        "it may also have come with a commit before {name} that was left out: the same search with --{first} {before} --{last} {name} \
         and without --path looks at each"
    ))
}

/// What helps further with a commit that is many.
fn of_merge(run: &Run, found: &Found) -> Option<String> {
    let bisects = run.design.bisects.as_ref()?;
    let step = found.last;
    if found.first != found.last || !bisects.merges.contains(&(step as u32)) {
        return None;
    }
    let source = bisects.source.as_ref()?.display().to_string();
    let source = shlex::try_quote(&source).ok()?.into_owned();
    let name = commit_name(run, step)?;
    let (first, last) = Sense::of(run).ends;
    Some(format!(
        "{name} is a merge: the same search with --{first} \"$(git -C {source} merge-base {name}^1 {name}^2)\" --{last} {name}^2 is \
         over the commits that came with it"
    ))
}

/// What is to be typed is a commit's name: whoever wrote the store chose what it is called.
fn commit_name(run: &Run, step: usize) -> Option<&str> {
    let name = step_name(run, step);
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(name)
}
