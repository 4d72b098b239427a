//! What to search next, behind the answer of a search.
//!
//! Enters: a run that is a search, and what it found. Leaves: sentences with what is to be typed.

use super::bisected::step_name;
use crate::analyse::{Another, Bisected, Found};
use crate::record::Run;

/// What the search has missed, and what is looked at more closely with another one.
pub(super) fn further(run: &Run, searched: &Bisected, found: &Found) -> Vec<String> {
    let others = searched.others.iter().map(|another| missed(run, searched, found, *another));
    others.chain(of_left_out(run, found)).chain(of_merge(run, found)).collect()
}

/// What a search, whose model is of one change, has missed.
fn missed(run: &Run, searched: &Bisected, found: &Found, another: Another) -> String {
    let name = |step: usize| step_name(run, step);
    let (good, bad) = (name(0), name(searched.steps));
    match another {
        Another::Before => format!(
            "there is another change before it: the steps from {good} to {} that were run are worse than {good}; search them with \
             {} as the bad end",
            name(found.first - 1),
            name(found.first - 1)
        ),
        Another::Behind => format!(
            "there is another change behind it: the steps from {} on that were run are better than {bad}; search them with {} as \
             the good end",
            name(found.last),
            name(found.last)
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
    Some(format!(
        "it may also have come with a commit before {name} that was left out: the same search with --good {before} --bad {name} and \
         without --path looks at each"
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
    Some(format!(
        "{name} is a merge: the same search with --good \"$(git -C {source} merge-base {name}^1 {name}^2)\" --bad {name}^2 is over the \
         commits that came with it"
    ))
}

/// What is to be typed is a commit's name: whoever wrote the store chose what it is called.
fn commit_name(run: &Run, step: usize) -> Option<&str> {
    let name = step_name(run, step);
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(name)
}

/// How to search for what made it better.
pub(super) fn turned_round(run: &Run) -> &'static str {
    match run.design.bisects.as_ref().is_some_and(|bisects| bisects.source.is_some()) {
        // Commits have an order.
        true => {
            "what made it better is not searched for; of a command it is, with a --metric whose good direction is turned round \
             (:lower, :higher)"
        }
        false => "to find what made it better, exchange good and bad",
    }
}
