//! What was chosen or looked at after the data were there.
//!
//! Enters: judged comparisons. Leaves: caveats on those whose figures depend on a choice made afterwards: a primary
//! metric that is not the run's own, and exploratory metrics of a run that its primary metric has ended early.

use super::comparison::{Caveat, Comparison, Role, RowKey};
use super::layout::Layout;
use super::options::Options;
use super::table::Table;
use crate::record::{Run, Source};

/// Marks primary comparisons whose metric was wished for and is not the one that decided the run itself.
pub(super) fn mark_chosen_primaries(
    comparisons: &mut [Comparison],
    run: &Run,
    options: &Options,
    table: &Table,
) {
    if options.primary.is_none() || run.source != Source::Measured {
        return;
    }
    let own = Layout::new(run, &Options { primary: None, ..options.clone() }, table);
    let own_of = |row: &RowKey| -> Vec<String> {
        let row = own.rows.iter().find(|known| known.key == *row);
        let metrics = row.map_or(&[][..], |row| &row.primaries);
        metrics.iter().map(|metric| table.metrics()[*metric as usize].name.clone()).collect()
    };
    for comparison in comparisons.iter_mut().filter(|c| c.role == Role::Primary) {
        let own = own_of(&comparison.row);
        if !own.contains(&comparison.metric.name) {
            let instead_of = (!own.is_empty()).then(|| own.join(","));
            comparison.caveats.push(Caveat::ChosenAfterwards { instead_of });
        }
    }
}

/// Marks the p values of exploratory metrics where a primary comparison ended the run early: the data stopped at a
/// moment that suited the primary metric, and whatever moves with it.
pub(super) fn mark_early_stop(comparisons: &mut [Comparison]) {
    let early = |c: &Comparison| {
        c.caveats.iter().any(|told| matches!(told, Caveat::StoppedEarly | Caveat::StoppedAlike))
    };
    let stopped = comparisons.iter().any(|c| c.role == Role::Primary && early(c));
    let tested = |c: &&mut Comparison| c.role == Role::Exploratory && c.p.is_some();
    for comparison in comparisons.iter_mut().filter(tested).filter(|_| stopped) {
        comparison.caveats.push(Caveat::AfterEarlyStop);
    }
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::super::{Analysis, analyse};
    use super::*;
    use crate::record::StopRule;

    fn marked(analysis: &Analysis, caveat: &Caveat) -> usize {
        analysis.comparisons.iter().filter(|c| c.caveats.contains(caveat)).count()
    }

    #[test]
    fn another_primary_metric_is_told() {
        let run = run_of(&Made::default(), 6);
        let with = |primary: &str| {
            analyse(&run, &Options { primary: Some(primary.to_owned()), ..Options::default() })
        };
        let told = Caveat::ChosenAfterwards { instead_of: Some("write.bw".to_owned()) };
        assert_eq!(marked(&with("write.iops"), &told), 1);
        assert_eq!(marked(&with("write.bw"), &told), 0, "the run's own");
        assert_eq!(marked(&analyse(&run, &Options::default()), &told), 0);
    }

    #[test]
    fn exploratory_figures_of_a_run_that_stopped_early_are_marked() {
        let of = |stop: StopRule| analyse(&run_of(&Made { stop, ..Made::default() }, 8), &Options::default());
        assert_eq!(marked(&of(StopRule::default()), &Caveat::AfterEarlyStop), 2);
        let once = StopRule { rounds: Some(8), ..StopRule::default() };
        assert_eq!(marked(&of(once), &Caveat::AfterEarlyStop), 0);
    }
}
