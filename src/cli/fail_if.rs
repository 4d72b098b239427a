//! `--fail-if`: which verdict makes a command exit with 3.
//!
//! Enters: the condition and an [`Analysis`]. Leaves: the exit code. It judges nothing.

use std::io::Write;
use std::process::ExitCode;

use super::Failure;
use crate::analyse::{Analysis, Beyond, Comparison, Gate, Gated, Role, Verdict};
use crate::record::SoFar;
use crate::report;
use crate::sys::terminal::tell;

/// The exit code where a condition holds.
pub(super) const HOLDS: u8 = 3;

/// What makes `--fail-if` exit with 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FailIf {
    /// A row that decides is slower by more than delta
    Slower,
    /// A row that decides is slower, by however little
    #[value(name = "slower:any")]
    SlowerAny,
    /// A row that decides is slower or faster by more than delta
    Changed,
    /// A row that decides is slower or faster, by however little
    #[value(name = "changed:any")]
    ChangedAny,
    /// A row that decides could not be decided
    Undecided,
    /// Slower, or undecided: only what is known to be no slower passes
    #[value(name = "slower,undecided", alias = "undecided,slower")]
    SlowerOrUndecided,
    /// Changed, or undecided
    #[value(name = "changed,undecided", alias = "undecided,changed")]
    ChangedOrUndecided,
}

impl FailIf {
    /// What it asks for before a run may end: of a difference whether it is beyond delta.
    pub(super) fn beyond_delta(self) -> Beyond {
        match self {
            FailIf::Slower | FailIf::SlowerOrUndecided => Beyond::Worse,
            FailIf::Changed | FailIf::ChangedOrUndecided => Beyond::Either,
            FailIf::SlowerAny | FailIf::ChangedAny | FailIf::Undecided => Beyond::Nothing,
        }
    }

    /// Whether it turns on what is better.
    pub(super) fn asks_for_direction(self) -> bool {
        matches!(self, FailIf::Slower | FailIf::SlowerAny | FailIf::SlowerOrUndecided)
    }

    fn asks_for_undecided(self) -> bool {
        matches!(self, FailIf::Undecided | FailIf::SlowerOrUndecided | FailIf::ChangedOrUndecided)
    }

    /// As it is typed.
    pub(super) fn name(self) -> String {
        let name = clap::ValueEnum::to_possible_value(&self);
        name.map_or_else(String::new, |name| name.get_name().to_owned())
    }

    /// Whether it holds for any row's primary metric. Where nothing could be compared nothing was decided.
    pub(super) fn holds(self, analysis: &Analysis) -> bool {
        let mut primary = primary(analysis).peekable();
        match primary.peek() {
            None => self.asks_for_undecided(),
            Some(_) => primary.any(|comparison| self.holds_for(comparison)),
        }
    }

    /// What it does not let pass.
    pub(super) fn gate(self) -> Gate {
        let of = match self {
            FailIf::Slower | FailIf::SlowerAny | FailIf::SlowerOrUndecided => Some(Gated::Worse),
            FailIf::Changed | FailIf::ChangedAny | FailIf::ChangedOrUndecided => Some(Gated::Either),
            FailIf::Undecided => None,
        };
        let however_little = matches!(self, FailIf::SlowerAny | FailIf::ChangedAny);
        Gate { of, however_little, undecided: self.asks_for_undecided() }
    }

    fn holds_for(self, comparison: &Comparison) -> bool {
        self.gate().holds_for(comparison)
    }

    /// Whether it holds of a verdict, and of what is better or worse by however little.
    pub(super) fn holds_of(self, verdict: &Verdict, is_better: Option<bool>) -> bool {
        self.gate().holds_of(verdict, is_better)
    }
}

fn primary(analysis: &Analysis) -> impl Iterator<Item = &Comparison> {
    analysis.comparisons.iter().filter(|comparison| comparison.role == Role::Primary)
}

/// Whether one side has values and the other has none.
fn is_lost(c: &Comparison) -> bool {
    matches!(c.verdict, Verdict::NotMeasured(_)) && (c.baseline.n == 0) != (c.candidate.n == 0)
}

/// Rows of results that one side has and the other has not: a gate that passed without them would not have looked.
///
/// # Errors
/// A [`Failure`] with exit code 1 where there are such rows.
pub(super) fn none_is_lost(analysis: &Analysis) -> Result<(), Failure> {
    let (all, lost) = (primary(analysis).count(), primary(analysis).filter(|c| is_lost(c)).count());
    if lost == 0 {
        return Ok(());
    }
    let why = format!(
        "--fail-if asks for a verdict of each row, and {lost} of {all} were measured on one side only: a job, a metric or an arm is \
         missing on the other"
    );
    Err(Failure::tool(why)
        .hint("the report names them; --primary SECTION:METRIC asks for those alone that both sides have"))
}

/// Why no row that decides was measured in both arms, where that is so.
pub(super) fn nothing_measured(analysis: &Analysis) -> Option<&str> {
    let mut reason = None;
    if primary(analysis).next().is_none() {
        return Some("no row has two arms with a value of the metric that decides");
    }
    for comparison in primary(analysis) {
        match &comparison.verdict {
            Verdict::NotMeasured(why) => reason = reason.or(Some(why.as_str())),
            _ => return None,
        }
    }
    reason
}

/// A [`Failure`] with exit code 1 where a row that decides has no verdict because its arms failed unequally. What holds of `condition`
/// is said before it.
pub(super) fn not_comparable(condition: Option<FailIf>, analysis: &Analysis, run: &str) -> Option<Failure> {
    if condition.is_some_and(|condition| condition.holds(analysis)) {
        return None;
    }
    let found = primary(analysis).any(|comparison| comparison.verdict == Verdict::NotComparable);
    found.then(|| Failure::tool(format!("{run}the arms are not comparable: one of them failed more often")))
}

/// 3 when the condition holds, else 0. What is said of one of several runs begins with its name.
///
/// # Errors
/// A [`Failure`] with exit code 1 where a condition is asked of arms that are not comparable, of none that were judged, or before the last of a fixed number of rounds; a terminal
/// that cannot be written to.
pub(super) fn fail_if(
    condition: Option<FailIf>,
    analysis: &Analysis,
    of_several: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let Some(asked) = condition else { return Ok(ExitCode::SUCCESS) };
    let run = of_several.map_or_else(String::new, |name| format!("{name}: "));
    if asked.holds(analysis) {
        let rows = primary(analysis).filter(|comparison| asked.holds_for(comparison)).count();
        let all = primary(analysis).count();
        let name = asked.name();
        // For the log of a build that it ends.
        let of = match all {
            0 => "nothing was compared".to_owned(),
            _ => format!("holds for {rows} of {all} rows that decide"),
        };
        tell(&format!("assay: {run}--fail-if {name}: {of}"));
        return Ok(ExitCode::from(HOLDS));
    }
    if let Some(failure) = not_comparable(condition, analysis, &run) {
        return Err(failure.hint("--failures worst counts each failed trial as worse than any value").into());
    }
    if let Some(SoFar { rounds, of }) = analysis.so_far() {
        let why = format!(
            "{run}{rounds} of {of} rounds so far: there is no verdict before the last, and --fail-if asks for one"
        );
        return Err(Failure::tool(why)
            .hint("`assay run --resume RUN` goes on with it; without --rounds a run looks after each round")
            .into());
    }
    let judged = |c: &&Comparison| !matches!(c.verdict, Verdict::NotMeasured(_) | Verdict::TooFew { .. });
    let (all, judged) = (primary(analysis).count(), primary(analysis).filter(judged).count());
    if judged == 0 {
        return Err(Failure::tool(format!("{run}--fail-if asks for a verdict, and no row that decides has one"))
            .hint("the report says why: both sides need 4 trials or more (4 runs, boots or hosts where these are judged), of the same jobs and metrics, with operations enough for a quantile")
            .into());
    }
    if judged < all {
        let text = format!(
            "assay: {run}{} of {all} rows that decide have no verdict: --fail-if is about the others",
            all - judged
        );
        writeln!(crate::sys::terminal::err(), "{}", report::wrapped(&text, "  "))?;
    }
    // Who reads the log of a build that passed must not take what is not known for what is.
    let undecided =
        primary(analysis).filter(|found| matches!(found.verdict, Verdict::Undecided { .. })).count();
    if undecided == 0 && of_several.is_some() {
        tell(&format!("assay: {run}--fail-if {} does not hold", asked.name()));
    }
    if undecided > 0 {
        let stricter = match asked {
            FailIf::Slower | FailIf::SlowerAny => "; slower,undecided fails on it",
            FailIf::Changed | FailIf::ChangedAny => "; changed,undecided fails on it",
            _ => "",
        };
        let text = format!(
            "assay: {run}--fail-if {} does not hold; {undecided} of {all} rows are undecided{stricter}",
            asked.name()
        );
        writeln!(crate::sys::terminal::err(), "{}", report::wrapped(&text, "  "))?;
    }
    Ok(ExitCode::SUCCESS)
}
