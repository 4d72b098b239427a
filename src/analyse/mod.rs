//! Records → paired (or unpaired) samples → [`Comparison`]s: effect, interval, verdict.
//!
//! Enters: a [`Run`]. Leaves: an [`Analysis`]. It reads stored records only, so that an old run
//! can be judged again with no device at hand; it must not know how a trial was executed or how a report looks.

mod afterwards;
mod alone;
mod analysis;
mod anytime;
mod bisected;
mod budget;
#[cfg(test)]
mod budget_tests;
mod carry_over;
mod clustered;
#[cfg(test)]
mod clustered_tests;
mod clusters;
mod comparison;
mod curves;
mod draft;
mod drift;
#[cfg(test)]
mod early_tests;
mod effects;
mod facts;
mod failing;
mod gate;
mod layout;
mod limits;
#[cfg(test)]
mod made_up;
mod noise_floor;
#[cfg(test)]
mod one_story_tests;
mod options;
mod order;
mod paired;
mod pairs;
mod per_operation;
mod probed;
mod progress;
mod quantile_guard;
mod ranking;
#[cfg(test)]
mod ranking_tests;
mod rounds_difference;
mod scale;
mod scaling;
mod settling;
mod steps;
mod summary;
mod table;
#[cfg(test)]
mod tests;
mod tick_guard;
mod ties;
mod unlisted;
#[cfg(test)]
mod unlisted_tests;
mod unpaired;
mod verdict;
mod watched_places;
mod watching;
mod why;

pub use analysis::{Analysis, Steady};
pub use bisected::{
    Another, Bisected, BisectedRound, Ends, Estimate, Found, Look, LookKind, Next, Outcome, lost_end,
};
pub use budget::{Asleep, Budget, BudgetLine, BudgetPart, InFlight, Operation};
pub use comparison::{
    ArmSummary, Caveat, Comparison, FactDifference, FailureCounts, Interval, Method, NoiseFloor,
    QuantileCurve, Role, RowKey, Unlisted, Verdict,
};
pub use effects::{Change, Effect, Effects, NoEffects, Shares, Within};
pub use gate::{Gate, Gated};
pub use limits::{Limit, LimitKind, is_near_limit, limits, share_of_limit};
pub use noise_floor::{AaClaims, aa_claims, claims_a_difference, noise_floor, pooled_noise_floor};
pub use options::{Beyond, Options, OptionsError};
pub use per_operation::metrics_of;
pub use probed::{Ceiling, Saturation, best, ceilings, is_same_device, is_same_machine, saturated};
pub use progress::{Progress, decided, deciding, progress};
pub use ranking::{Place, Ranking};
pub use scaling::{NoLaw, Scaling, ScalingCurve, ScalingDifference, ScalingLaw, ScalingPoint};
pub use watching::{MOVED, WatchingLoss, WatchingPrice, measured_again, watching_losses, watching_prices};
pub use why::{
    Cause, Evidence, Flame, Grade, LatencyPart, OfRequests, RequestStage, RequestTimes, SlowPart, Slowest,
    Stack, Standing, Unsure, Watching, What, Why, flames, request_times, why,
};

use std::collections::BTreeMap;

use draft::{Case, Draft, EXPLORATORY_Q, Setting, Worst};
use layout::{Layout, Row};
use table::Table;

use crate::record::{FailureRule, FixedRounds, Run, Status};

/// Judges a run.
///
/// Pairs are made by round in paired designs; imported results are compared unpaired. A wish in `options` that
/// the run cannot fulfil is ignored; [`Options::check`] names it beforehand. `noise_floor` and `limits` are left empty:
/// the caller knows the store.
#[must_use]
pub fn analyse(run: &Run, options: &Options) -> Analysis {
    let table = Table::with(run, &options.named_metrics());
    let layout = Layout::new(run, options, &table);
    let cases: Vec<Case> =
        layout.rows.iter().flat_map(|row| cases(run, options, &layout, row, &table)).collect();
    let exploratory = cases.iter().filter(|case| case.role == Role::Exploratory && !case.beside).count();
    let clusters = clusters::Clusters::of(run);
    let setting = Setting {
        family: layout.family(options.all_pairs),
        exploratory,
        clusters: clusters.as_ref(),
        ..Setting::deciding(run, options, &table, &layout)
    };
    let fixed = FixedRounds::of(run);
    let draft = |setting: &Setting, case: &Case| {
        let cells: Vec<u32> = case.cells().into_iter().flatten().collect();
        let mut draft = compare(setting, case);
        draft.not_before_the_last(fixed.as_ref().and_then(|rounds| rounds.so_far(&cells)));
        draft
    };
    let mut drafts: Vec<Draft> = cases.iter().map(|case| draft(&setting, case)).collect();
    // How wide exploratory intervals are depends on how many differences are claimed, which depends on p alone.
    let setting = Setting { exploratory_outside: verdict::exploratory_outside(&drafts), ..setting };
    if setting.exploratory_outside < EXPLORATORY_Q {
        for (known, case) in drafts.iter_mut().zip(&cases).filter(|(_, case)| case.role == Role::Exploratory)
        {
            *known = draft(&setting, case);
        }
    }
    let stop = setting.stop;
    let mut comparisons = verdict::judge(drafts, &stop);
    if options.alone {
        alone::fill(&mut comparisons, &cases, &setting, draft);
    }
    afterwards::mark_chosen_primaries(&mut comparisons, run, options, &table);
    afterwards::mark_early_stop(&mut comparisons);
    // Metrics that the reader named are listed whatever they say.
    if options.metrics.is_empty() {
        unlisted::mark(&mut comparisons, &cases, &table);
    }
    // All of them share q, whatever is listed.
    comparisons.retain(|c| c.role == Role::Primary || options.wants(&c.metric.name));
    let primary = comparisons.iter().filter(|c| c.role == Role::Primary);
    let rounds = primary.clone().chain(&comparisons).map(|c| c.n).max().unwrap_or(0) as u32;
    let caveats = whole_run_caveats(&setting);
    let whole = is_whole(run, &comparisons);
    Analysis {
        arms: layout.arms.clone(),
        factor: layout.factor.clone(),
        delta: stop.delta,
        deltas: options.own_deltas(run).to_vec(),
        alpha: stop.alpha,
        rounds,
        rankings: ranking::rankings(&comparisons, &layout.arms, options.all_pairs),
        effects: if whole {
            not_refused(effects::effects(&setting, &comparisons), &comparisons)
        } else {
            Vec::new()
        },
        scaling: if whole { scaling::scaling(&setting) } else { Vec::new() },
        comparisons,
        steady: layout.rows.iter().flat_map(|row| steady(run, options, &layout, row, &table)).collect(),
        // Another δ is another verdict; where the time went stays what it is.
        budgets: budget::budgets(run, &layout, &table, run.design.stop.delta),
        curves: curves::curves(&layout, &table),
        differences: facts::differences(run, &layout, &table),
        noise_floor: None,
        limits: Vec::new(),
        caveats,
    }
}

/// Whether cells may be compared beyond the verdicts: not in an A/A run, and not before the last of a fixed number of rounds.
fn is_whole(run: &Run, comparisons: &[Comparison]) -> bool {
    let waits = match comparisons {
        // One level of the compared factor has none.
        [] => run.so_far().is_some(),
        all => all.iter().any(|comparison| comparison.so_far().is_some()),
    };
    !run.aa && !waits
}

/// The comparisons of one row: those with the baseline by candidate, the primary metrics first; of other pairs those metrics alone.
fn cases<'a>(run: &Run, options: &Options, layout: &Layout, row: &'a Row, table: &Table) -> Vec<Case<'a>> {
    let accompanies = |metric: &u32| {
        let is_of_family = is_of_family(row, table, *metric);
        let is_told = is_of_family || is_compared(run, options, row, table, *metric);
        (!row.primaries.contains(metric) && is_told).then_some((*metric, !is_of_family))
    };
    let others: Vec<(u32, bool)> = row.metrics.iter().filter_map(accompanies).collect();
    let mut cases = Vec::new();
    for (base, arm) in layout.pairs(row, options.all_pairs) {
        cases.extend(row.primaries.iter().map(|metric| Case::deciding(row, *metric, (base, arm))));
        if base == 0 {
            cases.extend(others.iter().map(|(metric, beside)| Case {
                row,
                metric: *metric,
                role: Role::Exploratory,
                base,
                arm,
                beside: *beside,
            }));
        }
    }
    cases
}

/// Whether a metric that does not decide is compared.
fn is_compared(run: &Run, options: &Options, row: &Row, table: &Table, metric: u32) -> bool {
    let name = &table.metrics()[metric as usize].name;
    let asked = options.all_metrics || !options.metrics.is_empty() || run.design.shows(name);
    options.wants(name) && (asked || is_of_family(row, table, metric))
}

/// Whether a metric that does not decide shares q, listed or not.
fn is_of_family(row: &Row, table: &Table, metric: u32) -> bool {
    varies(table, row, metric) && !budget::is_kept_for(&table.metrics()[metric as usize].name)
}

/// What a row's comparisons leave out because it never changed.
fn steady(run: &Run, options: &Options, layout: &Layout, row: &Row, table: &Table) -> Vec<Steady> {
    let left_out = row.metrics.iter().copied().filter(|metric| {
        !row.primaries.contains(metric)
            && options.wants(&table.metrics()[*metric as usize].name)
            && !varies(table, row, *metric)
            && !is_compared(run, options, row, table, *metric)
    });
    left_out
        .map(|metric| Steady {
            row: row.key.clone(),
            metric: table.metrics()[metric as usize].clone(),
            arms: std::iter::zip(&layout.arms, &row.cells)
                .filter_map(|(arm, cell)| Some(summary::summarise(arm, table.column((*cell)?, metric), None)))
                .collect(),
        })
        .collect()
}

/// Whether a metric ever changed in a row: a count fixed by the job tells nothing.
fn varies(table: &Table, row: &Row, metric: u32) -> bool {
    let mut values =
        row.cells.iter().flatten().flat_map(|cell| table.column(*cell, metric)).map(|point| point.value);
    let first = values.next();
    values.any(|value| Some(value) != first)
}

fn compare(setting: &Setting, case: &Case) -> Draft {
    let refused = quantile_guard::refusal(setting, case);
    let mut draft = compare_by(setting, case);
    let failures = setting.failures(case);
    if setting.rule == FailureRule::Compare && failures.is_some_and(|counts| counts.are_unequal()) {
        let worst = compare_by(&setting.strict_with_worst(), case);
        let ranks = worst.comparison.method.ranks_failures();
        draft.worst = Some(Worst { log: worst.log.filter(|_| ranks), p: worst.comparison.p });
    } else if setting.rule == FailureRule::Worst
        && let Some(counts) = failures
    {
        if draft.comparison.method.ranks_failures() {
            draft.comparison.caveats.push(Caveat::FailuresAsWorst);
        } else if counts.are_unequal() {
            draft = draft.not_comparable();
        }
    }
    draft.comparison.failures = failures;
    if case.role == Role::Primary {
        draft.comparison.caveats.extend(settling::caveat(setting, case));
    }
    match refused {
        Some(Caveat::QuantileRefused { metric, needed, had }) => {
            let reason = format!("{metric} needs {needed} operations a trial, the smallest had {had}");
            let mut draft = draft.not_measured(reason);
            (draft.comparison.effect, draft.comparison.difference) = (None, None);
            draft.comparison.method = Method::ChangeOnly;
            (draft.comparison.p, draft.comparison.p_adjusted) = (None, None);
            draft.comparison.caveats = vec![Caveat::QuantileRefused { metric, needed, had }];
            draft
        }
        _ => match tick_guard::refusal(setting, case) {
            Some(caveat) => refused_for_ticks(draft, caveat),
            None => draft,
        },
    }
}

/// Settles it: what the clock could not see has no figures.
fn refused_for_ticks(draft: Draft, caveat: Caveat) -> Draft {
    let mut draft = draft.not_measured("too short for a clock of ticks of up to 10 ms".to_owned());
    let found = &mut draft.comparison;
    (found.effect, found.difference, found.typical) = (None, None, None);
    found.mean_change = Interval { estimate: f64::NAN, low: f64::NAN, high: f64::NAN };
    found.method = Method::ChangeOnly;
    (found.p, found.p_adjusted) = (None, None);
    found.caveats = vec![caveat];
    draft
}

/// What was refused in a row says nothing of factors either.
fn not_refused(effects: Vec<Effects>, comparisons: &[Comparison]) -> Vec<Effects> {
    let refused = |found: &Comparison| {
        let is_refusal = |caveat: &Caveat| {
            matches!(caveat, Caveat::QuantileRefused { .. } | Caveat::ProcessorTimeRefused { .. })
        };
        found.caveats.iter().any(is_refusal)
    };
    let of =
        |effects: &Effects| comparisons.iter().any(|found| found.metric == effects.metric && refused(found));
    effects.into_iter().filter(|effects| !of(effects)).collect()
}

fn compare_by(setting: &Setting, case: &Case) -> Draft {
    if setting.run.design.paired {
        paired::compare(setting, case)
    } else if let Some(clusters) = setting.clusters {
        clustered::compare(setting, case, clusters)
    } else {
        unpaired::compare(setting, case)
    }
}

fn whole_run_caveats(setting: &Setting) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    if !setting.run.design.paired {
        caveats.extend(order_caveat(setting));
    }
    caveats.extend(carry_over::caveats(setting));
    let mut rules: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut failed = 0;
    for trial in setting.table.latest() {
        if let Some(rule) = &trial.excluded {
            rules.entry(rule).or_default().push(trial.round);
        }
        failed += u32::from(matches!(trial.status, Status::Failed { .. }));
    }
    for (rule, mut rounds) in rules {
        rounds.sort_unstable();
        rounds.dedup();
        caveats.push(Caveat::ExcludedRounds { count: rounds.len() as u32, rule: rule.to_owned() });
    }
    if failed > 0 {
        caveats.push(Caveat::FailedTrials { count: failed });
    }
    if setting.family > 1 {
        caveats.push(Caveat::Family { m: setting.family as u32 });
    }
    caveats
}

/// What is known about the order of the arms, the worst of all rows.
fn order_caveat(setting: &Setting) -> Option<Caveat> {
    let mut known = Vec::new();
    for row in &setting.layout.rows {
        let Some(metric) = row.primary() else { continue };
        for arm in setting.layout.candidates(row) {
            let (baseline, candidate) = setting.columns(&Case::deciding(row, metric, (0, arm)));
            if !baseline.is_empty() && !candidate.is_empty() {
                known.push(unpaired::order_known(&baseline, &candidate));
            }
        }
    }
    let worst = [Caveat::Sequential, Caveat::OrderUnknown, Caveat::Interleaved];
    worst.into_iter().find(|caveat| known.contains(caveat))
}
