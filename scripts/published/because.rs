//! The reasons that a study gives for its figures, and whether assay names them of the recipe's run.
//!
//! Enters: the `[[because]]` of `claims/STUDY.toml`, the study's runs, and the runs that watched them (`--explain`). Leaves: a line each.
//! What finds causes are the rules of docs/why.md; what they find is not judged here.

use assay::analyse::{Analysis, Effect, Options, Standing, Verdict, Why, analyse, why};
use assay::record::Run;
use serde::Deserialize;
use toml::{Table, Value};

use crate::claims::Place;
use crate::study::Found;

/// Rules that need nothing but what every trial counts: docs/why.md.
const COUNTED: [&str; 9] = [
    "device_bytes", "machine", "more_flushes", "page_cache", "queue_depth", "slower_device",
    "smaller_requests", "waiting_to_run", "worker_threads",
];
/// What accounts for less than this is not the reason.
const LEAST_SHARE: f64 = 0.1;

/// A reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Because {
    /// In one line.
    says: String,
    /// The run of the recipe; empty: its only one.
    #[serde(default)]
    run: String,
    /// Levels of the pair: of the compared factor that of the candidate. `job` names one of several.
    #[serde(default)]
    at: Place,
    /// Rules that would name it, each perhaps with a word that its cause must have: `lock_wait rwsem_W`.
    #[serde(default)]
    rules: Vec<String>,
    /// Two factors of which the first one's effect would depend on the second.
    #[serde(default)]
    depends: Vec<String>,
    /// The level of the second of them at which the first one serves worse; empty: the study does not say.
    #[serde(default)]
    worse_at: String,
    /// Why nothing here could name it.
    not_there: Option<String>,
}

/// All reasons of one file, in its order.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(text: &str) -> Found<Vec<Because>> {
    let file: Table = text.parse()?;
    let written = file.get("because").and_then(Value::as_array).ok_or("no because")?;
    let mut all = Vec::new();
    for one in written {
        let because: Because = one.clone().try_into()?;
        let is_asked = !because.rules.is_empty() || !because.depends.is_empty();
        if is_asked == because.not_there.is_some() {
            return Err(format!("'{}' has what would name it, or a reason why not", because.says).into());
        }
        all.push(because);
    }
    Ok(all)
}

/// The lines of a study's reasons. `runs`: `None` where one is missing.
pub(crate) fn lines(all: &[Because], runs: Option<&[&Run]>, watched: &[Run]) -> Vec<String> {
    let line = |because: &Because| {
        let rule = |rule: &String| match rule.split_once(' ') {
            Some((name, word)) => format!("`{name}`: {word}"),
            None => format!("`{rule}`"),
        };
        let mut asked: Vec<String> = because.rules.iter().map(rule).collect();
        if let [one, other] = because.depends.as_slice() {
            asked.push(format!("{one} depends on {other}"));
        }
        let asked = if asked.is_empty() { "—".to_owned() } else { asked.join(", ") };
        format!("| {} | {asked} | {} |", because.says, answer(because, runs, watched))
    };
    all.iter().map(line).collect()
}

fn answer(because: &Because, runs: Option<&[&Run]>, watched: &[Run]) -> String {
    if let Some(reason) = &because.not_there {
        return format!("cannot be asked here: {reason}");
    }
    let run = runs.and_then(|runs| runs.iter().find(|run| because.run.is_empty() || run.name == because.run));
    let Some(run) = run else { return "not run yet".to_owned() };
    let by = watched.iter().rev().find(|by| by.design.explains.as_ref().is_some_and(|of| of.is(run)));
    let analysis = analyse(run, &Options::default());
    if let Some(words) = interaction(because, &analysis) {
        return words;
    }
    let pairs = why(run, &analysis, by);
    let Some(pair) = pairs.iter().find(|pair| is_asked(because, run, pair)) else {
        return "not in this size".to_owned();
    };
    match (named(because, pair), pair.standing) {
        (Some(words), _) => words,
        (None, Standing::NothingDiffers) => "nothing differs here".to_owned(),
        (None, Standing::NotDecided | Standing::NotJudged) => "not decided here".to_owned(),
        // What looks closer has not looked.
        (None, Standing::Differs)
            if by.is_none() && because.rules.iter().any(|rule| is_watched(rule, run)) =>
        {
            format!("not run yet: `assay run {} --quick --explain`", run.name)
        }
        (None, Standing::Differs) => "not named".to_owned(),
    }
}

/// Whether a rule needs what only watched trials have.
fn is_watched(rule: &str, run: &Run) -> bool {
    match rule {
        "owner_changes" => !run.metrics.iter().any(|metric| metric.name.starts_with("extents.")),
        rule => !COUNTED.contains(&rule),
    }
}

/// Whether this is the pair that a reason is about.
fn is_asked(because: &Because, run: &Run, pair: &Why) -> bool {
    let factor = run.design.factors.get(run.design.compare).map_or("", |factor| factor.name.as_str());
    because.at.iter().all(|(name, level)| match name.as_str() {
        "job" => pair.row.job == *level,
        name if name == factor => pair.candidate == *level,
        name => pair.row.levels.iter().any(|(known, of)| known == name && of == level),
    })
}

/// The first cause that a reason's rules have found, with its share where it is a part of the time.
fn named(because: &Because, pair: &Why) -> Option<String> {
    let is_it = |wanted: &String, rule: &str, what: &str| match wanted.split_once(' ') {
        Some((name, word)) => name == rule && what.contains(word),
        None => wanted == rule,
    };
    let found = pair.causes.iter().find(|cause| {
        let what = serde_json::to_string(&cause.what).unwrap_or_default();
        because.rules.iter().any(|wanted| is_it(wanted, cause.rule, &what))
    })?;
    Some(match found.share {
        None => format!("named: `{}`, goes with it", found.rule),
        Some(share) if share < LEAST_SHARE => {
            format!("hardly: `{}` accounts for {:.0} % of it", found.rule, share * 100.0)
        }
        Some(share) => format!("named: `{}`, {:.0} %", found.rule, share * 100.0),
    })
}

/// Whether one factor's effect depends on another, where that was asked.
fn interaction(because: &Because, analysis: &Analysis) -> Option<String> {
    let [one, other] = because.depends.as_slice() else { return None };
    let is_of = |effect: &&Effect| {
        let [a, b] = effect.of.as_slice() else { return false };
        [&a.factor, &b.factor] == [one, other] || [&b.factor, &a.factor] == [one, other]
    };
    // Of the level that is said to be the worse one the sign is known.
    let fits = |effect: &Effect| {
        let of = effect.of.iter().find(|change| change.factor == *other);
        let worse = matches!(effect.verdict, Verdict::Slower { .. });
        of.is_none_or(|change| match &because.worse_at {
            level if change.to == *level => worse,
            level if change.from == *level => !worse,
            _ => true,
        })
    };
    let (mut claimed, mut contrary): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut asked, mut open) = (false, false);
    for effects in &analysis.effects {
        for effect in effects.effects.iter().filter(is_of) {
            asked = true;
            match effect.verdict {
                Verdict::Faster { .. } | Verdict::Slower { .. } => {
                    let of_its_sign = if fits(effect) { &mut claimed } else { &mut contrary };
                    of_its_sign.push(effects.metric.name.clone());
                }
                Verdict::NoDifference { .. } => {}
                _ => open = true,
            }
        }
    }
    claimed.dedup();
    contrary.dedup();
    Some(match (claimed.as_slice(), asked, open) {
        (_, false, _) => "not in this size".to_owned(),
        ([], ..) if !contrary.is_empty() => {
            let metrics = contrary.join(" and ");
            format!(
                "contrary: the effect of {one} on {metrics} depends on {other}, and is not the worse at {}",
                because.worse_at
            )
        }
        ([], _, true) => "not decided here".to_owned(),
        ([], ..) => "not named".to_owned(),
        (metrics, ..) => {
            format!("named: the effect of {one} on {} depends on {other}", metrics.join(" and "))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STUDIES;

    const RULES: &str = include_str!("../../docs/why.md");

    #[test]
    fn every_study_has_reasons_and_their_rules_are_known() {
        for study in STUDIES {
            let all = read(study.claims).unwrap();
            assert!(all.len() >= 2, "{}", study.name);
            for because in &all {
                assert!(because.run.is_empty() || study.runs.contains(&because.run.as_str()), "{because:?}");
                assert!(because.depends.is_empty() || because.depends.len() == 2, "{because:?}");
                for rule in &because.rules {
                    let name = rule.split(' ').next().unwrap();
                    assert!(RULES.contains(&format!("`{name}`")), "{because:?}");
                }
            }
        }
    }

    #[test]
    fn what_was_not_run_is_said_to_be_so() {
        let text = "[[because]]\nsays = \"it copies\"\nrules = [\"copying\", \"lock_wait rwsem_W\"]\n\
                    [[because]]\nsays = \"it is the patch\"\nnot_there = \"it is in no kernel\"\n";
        let said = lines(&read(text).unwrap(), None, &[]);
        assert_eq!(said[0], "| it copies | `copying`, `lock_wait`: rwsem_W | not run yet |");
        assert_eq!(said[1], "| it is the patch | — | cannot be asked here: it is in no kernel |");
        assert!(read("[[because]]\nsays = \"x\"\n").is_err(), "neither rules nor a reason");
    }
}
