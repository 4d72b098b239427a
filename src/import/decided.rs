//! What decided runs of assay that are compared: it decides here, too, where they agree.
//!
//! Enters: the primary metric, δ and α of each run that became an arm. Leaves: those of the comparison, and notes where runs differ.

use crate::record::{Design, MetricDelta, StopRule, deltas_in_words, without_syncs};

/// By what a run was judged.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Judged {
    primary: Option<String>,
    asked: bool,
    delta: f64,
    deltas: Vec<MetricDelta>,
    alpha: f64,
}

impl Judged {
    pub(super) fn of(design: &Design) -> Judged {
        let StopRule { delta, alpha, .. } = design.stop;
        let (primary, deltas) = (design.primary.clone(), design.deltas.clone());
        Judged { primary, asked: design.asked, delta, deltas, alpha }
    }
}

/// What decides a comparison.
#[derive(Debug, Default)]
pub(super) struct Decided {
    pub(super) primary: Option<String>,
    /// Somebody named it for each of them.
    pub(super) asked: bool,
    pub(super) stop: Option<StopRule>,
    /// δ of some metrics.
    pub(super) deltas: Vec<MetricDelta>,
    /// What decided each, where they do not agree.
    pub(super) note_of_primary: Option<String>,
    /// The same of δ and α.
    pub(super) note_of_error: Option<String>,
}

/// Of runs of assay that are all there is to compare; each way of judging once.
pub(super) fn decided(ways: &[Judged]) -> Decided {
    let Some(first) = ways.first() else { return Decided::default() };
    let mut decided = Decided::default();
    if ways.iter().all(|way| way.primary == first.primary) {
        decided.primary.clone_from(&first.primary);
        decided.asked = ways.iter().all(|way| way.asked);
    } else {
        let by = listed(ways, |way| way.primary.clone().unwrap_or_else(|| "their usual metric".to_owned()));
        let common = |way: &Judged| way.primary.as_deref().map(without_syncs);
        decided.primary = common(first).filter(|of| ways.iter().all(|way| common(way).as_ref() == Some(of)));
        decided.note_of_primary = Some(match &decided.primary {
            None => format!("the runs were decided by {by}: --primary says which decides here"),
            Some(common) => format!(
                "the runs were decided by {by}: here {common} decides, which all of them have, unless --primary says another"
            ),
        });
    }
    let rest = StopRule::default();
    if ways.iter().all(|way| (way.delta, &way.deltas, way.alpha) == (first.delta, &first.deltas, first.alpha))
    {
        decided.deltas.clone_from(&first.deltas);
        decided.stop = Some(StopRule { delta: first.delta, alpha: first.alpha, ..rest });
    } else {
        let by = listed(ways, |way| {
            format!("δ {} and α {}", deltas_in_words(way.delta, &way.deltas, percent), percent(way.alpha))
        });
        decided.note_of_error = Some(format!(
            "the runs were judged with {by}: here they are {} and {}, or what --delta and --alpha say",
            percent(rest.delta),
            percent(rest.alpha)
        ));
    }
    decided
}

/// Each once, in the order of the runs.
fn listed(ways: &[Judged], word: impl Fn(&Judged) -> String) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in ways.iter().map(word) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(", ")
}

/// `2 %`, without what doubles add behind it.
fn percent(ratio: f64) -> String {
    format!("{} %", (ratio * 1e6).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(primary: Option<&str>, delta: f64) -> Judged {
        Judged { primary: primary.map(str::to_owned), asked: false, delta, deltas: Vec::new(), alpha: 0.05 }
    }

    #[test]
    fn runs_that_agree_decide_and_others_are_named() {
        let same = decided(&[way(Some("tps"), 0.07)]);
        assert_eq!(same.primary.as_deref(), Some("tps"));
        assert_eq!(same.stop.map(|stop| (stop.delta, stop.alpha)), Some((0.07, 0.05)));
        assert_eq!((same.note_of_primary, same.note_of_error), (None, None));

        let synced =
            decided(&[way(Some("a:write.lat_ns.mean"), 0.02), way(Some("a:durable.lat_ns.mean"), 0.02)]);
        assert_eq!(
            synced.primary.as_deref(),
            Some("a:write.lat_ns.mean"),
            "not the bandwidth, which a rate fixes"
        );
        assert_eq!(
            synced.note_of_primary.as_deref(),
            Some(
                "the runs were decided by a:write.lat_ns.mean, a:durable.lat_ns.mean: here a:write.lat_ns.mean decides, which all of \
                 them have, unless --primary says another"
            )
        );
        let other = decided(&[way(Some("tps"), 0.07), way(None, 0.05)]);
        assert_eq!((other.primary, other.stop), (None, None));
        assert_eq!(
            other.note_of_primary.as_deref(),
            Some("the runs were decided by tps, their usual metric: --primary says which decides here")
        );
        assert_eq!(
            other.note_of_error.as_deref(),
            Some(
                "the runs were judged with δ 7 % and α 5 %, δ 5 % and α 5 %: here they are 2 % and 5 %, or what --delta and \
                 --alpha say"
            )
        );
        assert_eq!(decided(&[]).primary, None);
    }
}
