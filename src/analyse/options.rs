//! What a reader may ask of an analysis beyond what the run's own design says.
//!
//! Enters: command-line wishes. Leaves: the settings an analysis runs with. It must not know how they were typed.

use super::comparison::Verdict;
use super::per_operation::metrics_of;
use crate::record::{
    Deltas, FailureRule, Metric, MetricDelta, Run, StopRule, deciding_metrics, delta_of, metric_advice,
};

/// Wishes; `None` and empty mean what the run's design says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The smallest differences that matter. Where any metric's is said, those that the run's design has for some are not asked.
    pub delta: Deltas,
    /// Family-wise error rate.
    pub alpha: Option<f64>,
    /// Name of the primary metric, or `SECTION:METRIC`, several with commas.
    pub primary: Option<String>,
    /// Name of the factor to compare.
    pub compare: Option<String>,
    /// Label of the baseline level.
    pub baseline: Option<String>,
    /// Only these metrics besides the primary ones; a name matches itself and everything below it
    /// (`write.clat_ns` takes `write.clat_ns.p99`).
    pub metrics: Vec<String>,
    /// Also metrics whose value never changed in the run.
    pub all_metrics: bool,
    /// Compare every pair of arms, not each with the baseline only; all of them share α.
    pub all_pairs: bool,
    /// Also the interval of each deciding row as if it were the only one; it takes as long again.
    pub alone: bool,
    /// What failed trials mean.
    pub failures: Option<FailureRule>,
    /// Of what must be known whether it is beyond δ before a pair is decided.
    pub beyond_delta: Beyond,
}

/// Which claims decide nothing while they may be below δ. Looks go on all the same: the boundary is planned for all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// None: that there is a difference is enough.
    #[default]
    Nothing,
    /// That the candidate is worse.
    Worse,
    /// Any.
    Either,
}

impl Beyond {
    /// Whether a verdict is open to who asks for this.
    pub(super) fn is_open(self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Slower { beyond_delta: false } => self != Beyond::Nothing,
            Verdict::Faster { beyond_delta: false } => self == Beyond::Either,
            _ => false,
        }
    }
}

/// A wish the run cannot fulfil.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum OptionsError {
    /// No such factor.
    #[error("the run has no factor '{asked}'; it has {known}")]
    Factor {
        /// The name asked for.
        asked: String,
        /// The names there are.
        known: String,
    },
    /// No such level of the compared factor.
    #[error("factor '{factor}' has no level '{asked}'; it has {known}")]
    Level {
        /// The compared factor.
        factor: String,
        /// The label asked for.
        asked: String,
        /// The labels there are.
        known: String,
    },
    /// No such section.
    #[error("no section of the run is called '{asked}'; it has {known}")]
    Section {
        /// The name asked for.
        asked: String,
        /// The names there are.
        known: String,
    },
    /// No such metric.
    #[error("the run has no metric '{asked}'{advice}")]
    Metric {
        /// The name asked for.
        asked: String,
        /// A clause with what was probably meant, or what there is.
        advice: String,
    },
    /// δ or α out of range.
    #[error("{name} is {value}; it must be {range}")]
    Range {
        /// `delta` or `alpha`.
        name: &'static str,
        /// The value asked for.
        value: f64,
        /// What would be right.
        range: &'static str,
    },
}

impl Options {
    /// Whether `run` can fulfil every wish. [`super::analyse`] ignores those it cannot.
    ///
    /// # Errors
    /// [`OptionsError`] names the first wish that fails and what there is instead.
    pub fn check(&self, run: &Run) -> Result<(), OptionsError> {
        let mut deltas = self.delta.of_metrics.iter().map(|one| one.delta).chain(self.delta.others);
        if let Some(value) = deltas.find(|delta| !(*delta > 0.0 && *delta < 10.0)) {
            return Err(OptionsError::Range { name: "delta", value, range: "a ratio above 0, e.g. 0.02" });
        }
        if let Some(value) = self.alpha.filter(|alpha| !(1e-6..=0.5).contains(alpha)) {
            return Err(OptionsError::Range { name: "alpha", value, range: "between 0.000001 and 0.5" });
        }
        let factors = || run.design.factors.iter().map(|factor| factor.name.as_str());
        if let Some(asked) = self.compare.as_ref().filter(|asked| factors().all(|name| name != **asked)) {
            return Err(OptionsError::Factor { asked: asked.clone(), known: list(factors()) });
        }
        let factor = &run.design.factors[self.compared(run)];
        if let Some(asked) = self.baseline.as_ref().filter(|asked| !factor.levels.contains(asked)) {
            let known = list(factor.levels.iter().map(String::as_str));
            return Err(OptionsError::Level { factor: factor.name.clone(), asked: asked.clone(), known });
        }
        if let Some(primary) = &self.primary {
            check_deciding(primary, run)?;
        }
        let metrics = metrics_of(run);
        let unknown = |asked: &&String| metrics.iter().all(|m| !names(asked, &m.name));
        match self.metrics.iter().find(unknown) {
            Some(asked) => {
                Err(OptionsError::Metric { asked: asked.clone(), advice: advice(asked, &metrics) })
            }
            None => Ok(()),
        }
    }

    /// Whether the run has a metric for every smallest difference that is of some metrics only. Of several runs one may have it and another
    /// one not.
    ///
    /// # Errors
    /// [`OptionsError::Metric`] of the first that has none.
    pub fn check_deltas(&self, run: &Run) -> Result<(), OptionsError> {
        let metrics = metrics_of(run);
        let is_of_none = |own: &&MetricDelta| !metrics.iter().any(|m| own.is_of(&m.job, &m.name));
        let Some(own) = self.delta.of_metrics.iter().find(is_of_none) else { return Ok(()) };
        let advice = advice(&own.metric, &metrics);
        Err(OptionsError::Metric { asked: own.metric.clone(), advice })
    }

    /// Index of the compared factor.
    pub(super) fn compared(&self, run: &Run) -> usize {
        let named = |name: &String| run.design.factors.iter().position(|factor| factor.name == *name);
        self.compare.as_ref().and_then(named).unwrap_or(run.design.compare)
    }

    /// The stop rule with δ and α as wished.
    pub(super) fn stop(&self, run: &Run) -> StopRule {
        let stop = run.design.stop;
        let delta = self.delta.others.unwrap_or(stop.delta);
        StopRule { delta, alpha: self.alpha.unwrap_or(stop.alpha), ..stop }
    }

    /// The smallest differences that matter in some metrics, as wished.
    pub(super) fn own_deltas<'a>(&'a self, run: &'a Run) -> &'a [MetricDelta] {
        let said = self.delta != Deltas::default();
        if said { &self.delta.of_metrics } else { &run.design.deltas }
    }

    /// That of each of these.
    pub(super) fn deltas(&self, run: &Run, metrics: &[Metric]) -> Vec<f64> {
        let (own, others) = (self.own_deltas(run), self.stop(run).delta);
        metrics.iter().map(|metric| delta_of(metric, own, others)).collect()
    }

    /// What failed trials mean, as wished.
    pub(super) fn failures(&self, run: &Run) -> FailureRule {
        self.failures.unwrap_or(run.design.failures)
    }

    /// The wishes that name metrics.
    pub(super) fn named_metrics(&self) -> Vec<&str> {
        self.primary.iter().chain(&self.metrics).map(String::as_str).collect()
    }

    /// Whether an exploratory metric is wanted.
    pub(super) fn wants(&self, metric: &str) -> bool {
        self.metrics.is_empty() || self.metrics.iter().any(|asked| names(asked, metric))
    }
}

/// Whether each metric that shall decide was measured, and in the section it is asked of.
fn check_deciding(primary: &str, run: &Run) -> Result<(), OptionsError> {
    let metrics = metrics_of(run);
    let is_metric = |name: &str| metrics.iter().any(|metric| metric.name == name);
    for (section, asked) in deciding_metrics(primary, is_metric) {
        let here = || metrics.iter().filter(|m| section.is_none_or(|section| m.job == section));
        if let Some(section) = section.filter(|_| here().next().is_none()) {
            let known = list(metrics.iter().map(|m| m.job.as_str()).filter(|job| !job.is_empty()));
            return Err(OptionsError::Section { asked: section.to_owned(), known });
        }
        if here().all(|metric| metric.name != asked) {
            return Err(OptionsError::Metric { asked: asked.to_owned(), advice: advice(asked, here()) });
        }
    }
    Ok(())
}

fn advice<'a>(asked: &str, metrics: impl IntoIterator<Item = &'a Metric>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for metric in metrics {
        if !names.contains(&metric.name.as_str()) {
            names.push(&metric.name);
        }
    }
    metric_advice(asked, &names)
}

/// Whether `asked` is `metric` or a part before one of its dots.
fn names(asked: &str, metric: &str) -> bool {
    metric.strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Made, run_of};
    use super::*;

    #[test]
    fn wishes_are_checked_against_the_run() {
        let run = run_of(&Made::default(), 4);
        let with = |options: Options| options.check(&run);
        assert_eq!(with(Options::default()), Ok(()));
        let factor = with(Options { compare: Some("fs".to_owned()), ..Options::default() }).unwrap_err();
        assert_eq!(factor.to_string(), "the run has no factor 'fs'; it has direct");
        let level = with(Options { baseline: Some("2".to_owned()), ..Options::default() }).unwrap_err();
        assert_eq!(level.to_string(), "factor 'direct' has no level '2'; it has 0, 1");
        assert!(with(Options { primary: Some("no".to_owned()), ..Options::default() }).is_err());
        assert_eq!(
            with(Options { primary: Some("write.bw,write.iops".to_owned()), ..Options::default() }),
            Ok(())
        );
        let section = with(Options { primary: Some("wal:write.bw".to_owned()), ..Options::default() });
        assert!(section.unwrap_err().to_string().starts_with("no section of the run is called 'wal'"));
        assert!(with(Options { metrics: vec!["write".to_owned()], ..Options::default() }).is_ok());
        assert!(with(Options { metrics: vec!["wri".to_owned()], ..Options::default() }).is_err());
        let delta = |said: Deltas| with(Options { delta: said, ..Options::default() });
        assert!(delta(Deltas { others: Some(0.0), of_metrics: Vec::new() }).is_err());
        let named =
            |said: &str| Options { delta: said.parse().unwrap(), ..Options::default() }.check_deltas(&run);
        assert_eq!(named("bw=5%"), Ok(()));
        let unknown = named("p98=5%").unwrap_err();
        assert!(unknown.to_string().starts_with("the run has no metric 'p98'"), "{unknown}");
        assert!(with(Options { alpha: Some(f64::NAN), ..Options::default() }).is_err());
    }

    #[test]
    fn each_metric_is_judged_by_its_own_delta() {
        let mut run = run_of(&Made { effect: 0.05, cv: 0.001, ..Made::default() }, 12);
        let judged = |run: &Run, options: &Options, name: &str| {
            let analysis = super::super::analyse(run, options);
            let found = analysis.comparisons.into_iter().find(|c| c.metric.name == name).unwrap();
            (found.delta, found.verdict)
        };
        let usual = Options::default();
        assert_eq!(judged(&run, &usual, "write.bw"), (0.02, Verdict::Faster { beyond_delta: true }));
        run.design.deltas = vec![MetricDelta { metric: "bw".to_owned(), delta: 0.1 }];
        let below = Verdict::NoDifference { real_but_below_delta: true };
        assert_eq!(judged(&run, &usual, "write.bw"), (0.1, below.clone()));
        assert_eq!(judged(&run, &usual, "write.iops").0, 0.02);
        // What is said of a report is all that holds for it.
        let said = |text: &str| Options { delta: text.parse().unwrap(), ..Options::default() };
        assert_eq!(judged(&run, &said("3%"), "write.bw"), (0.03, Verdict::Faster { beyond_delta: true }));
        assert_eq!(judged(&run, &said("iops=20%"), "write.bw").0, 0.02);
        assert_eq!(judged(&run, &said("bw=20%"), "write.bw"), (0.2, below));
    }

    #[test]
    fn a_run_goes_on_until_its_metric_is_decided_by_its_own_delta() {
        let mut run = run_of(&Made { effect: 0.0, cv: 0.03, ..Made::default() }, 8);
        let decided = |run: &Run| super::super::decided(run, &Options::default());
        assert!(!decided(&run), "8 rounds do not show that nothing differs by 2 %");
        run.design.deltas = vec![MetricDelta { metric: "write.bw".to_owned(), delta: 0.3 }];
        assert!(decided(&run), "they show that nothing differs by 30 %");
    }
}
