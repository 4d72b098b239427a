//! The one document that every format writes down.
//!
//! Enters: a [`Run`] and its [`Analysis`]. Leaves: a [`Document`]: sentences, tables, footnotes and lists in
//! reading order, beside the numbers themselves for formats that want them raw. Nothing is computed or judged.

use jiff::Timestamp;

use super::counts::merged;
use super::factor_words;
use super::failures::{Failure, failures};
use super::footnotes::{Footnotes, caveat_text, told_from};
use super::format::{Detail, Options};
use super::left_out;
use super::manner::is_speed;
use super::noise_words::noise;
use super::ranking::{self, RankingList};
use super::table::{self, Table};
use super::trial_notes::trial_notes;
use super::words::{
    COUNTED, NBSP, Names, Tone, counted, counted_as, plain_percent, refused, row_label, sentence, tone,
    verdict_word,
};
use crate::analyse::{Analysis, Caveat, Comparison, FactDifference, Role, RowKey, Verdict};
use crate::record::{Run, RunState, SoFar, Source};
use crate::units::pretty_duration;

/// A verdict in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Sentence {
    /// What it means to the reader.
    pub tone: Tone,
    /// The verdict in at most 13 characters.
    pub word: &'static str,
    /// The words.
    pub text: String,
    /// Numbers of its footnotes, from 1.
    pub notes: Vec<usize>,
}

/// How the run can be repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    /// The command line, quoted for a shell; empty when unknown.
    pub command: String,
    /// The seed; `None` for imported results, where assay chose nothing.
    pub seed: Option<u64>,
    /// The job text as given.
    pub job: Option<String>,
}

/// One report, before it is written in a format.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// The run it is about.
    pub run: &'a Run,
    /// What was found.
    pub analysis: &'a Analysis,
    /// What the reader asked for.
    pub options: Options,
    /// `randwrite.fio: direct=1 against direct=0`.
    pub title: String,
    /// Run number, time, rounds, engine: one line.
    pub summary: String,
    /// How many rows were faster, slower …; `None` for fewer than four.
    pub tally: Option<String>,
    /// One sentence a row and candidate, in the order of the primary comparisons.
    pub verdicts: Vec<Sentence>,
    /// The same, but comparisons that could not be judged for one reason told together.
    pub headlines: Vec<Sentence>,
    /// The order of three or more arms, as far as it is proven; then which factor does what, and how it scales.
    pub rankings: Vec<RankingList>,
    /// Tables of the metrics that decide.
    pub tables: Vec<Table>,
    /// Beside the tables the interval of each row alone, where several rows share α and all is told, and the effects of factors.
    pub alone: Vec<Table>,
    /// Tables of metrics that the experiment wants shown besides, without a verdict.
    pub beside: Vec<Table>,
    /// Tables of the metrics that only accompany.
    pub exploratory: Vec<Table>,
    /// Which exploratory comparisons no table shows, in sentences.
    pub left_out: Vec<String>,
    /// Footnotes, number 1 first.
    pub footnotes: Vec<String>,
    /// What must be known of the whole: interrupted, drift, unpaired, notes of the run.
    pub notes: Vec<String>,
    /// The noise floor in words, or how to measure it.
    pub noise: Option<String>,
    /// Facts in which arms differ undeclared.
    pub differences: &'a [FactDifference],
    /// Facts of the host, all.
    pub host: Vec<(&'a str, String)>,
    /// Trials that failed or were skipped, those with the same reason together.
    pub failures: Vec<Failure>,
    /// How to repeat it.
    pub repeat: Repeat,
}

impl<'a> Document<'a> {
    /// Words everything a report says about `run` and its `analysis`.
    #[must_use]
    pub fn build(run: &'a Run, analysis: &'a Analysis, options: &Options) -> Document<'a> {
        let names = Names::new(run, &analysis.factor);
        let primary: Vec<&Comparison> = of_role(analysis, Role::Primary).collect();
        let mut footnotes = Footnotes::besides(common_caveats(&primary), options.detail);
        let verdicts: Vec<Sentence> = primary
            .iter()
            .map(|c| Sentence {
                tone: tone(&c.verdict),
                word: verdict_word(c),
                text: sentence(c, &names, analysis.delta) + busy_mark(run),
                notes: footnotes.of(c, &names),
            })
            .collect();
        let headlines = headlines(&primary, &verdicts);
        let tables: Vec<Table> = group(&primary, |c| (arms_of(c), &c.metric.name, &c.metric.unit))
            .iter()
            .filter_map(|rows| table::primary(rows, &names, &mut footnotes))
            .collect();
        let mut alone: Vec<Table> = match options.detail {
            Detail::All => group(&primary, |c| (arms_of(c), &c.metric.name))
                .iter()
                .filter_map(|rows| table::alone(rows, &names))
                .collect(),
            Detail::Screen | Detail::Page => Vec::new(),
        };
        alone.extend(factor_words::tables(analysis, options.detail));
        let mut rankings = ranking::lists(run, analysis, &names);
        rankings.extend(factor_words::lists(analysis, options.detail, &names));
        let (beside, others) = beside(run, analysis);
        let beside = group(&beside, |c| (c.candidate.arm.as_str(), &c.metric.name, &c.metric.unit))
            .iter()
            .filter_map(|rows| table::beside(rows, &names))
            .collect();
        let (shown, hidden): (Vec<&Comparison>, Vec<&Comparison>) =
            others.into_iter().partition(|c| options.all_metrics || table::stands_out(c));
        let listed = options.detail > Detail::Screen || options.all_metrics || options.named_metrics;
        let (shown, clear) = if listed { (shown, Vec::new()) } else { (Vec::new(), shown) };
        let exploratory = group(&shown, |c| (c.candidate.arm.as_str(), &c.row))
            .iter()
            .filter_map(|rows| table::exploratory(rows, &names, &mut footnotes))
            .collect();
        Document {
            run,
            analysis,
            options: options.clone(),
            title: title(run, analysis, &names),
            summary: summary(run, analysis),
            tally: tally(&primary).filter(|_| headlines.len() > 1),
            headlines,
            verdicts,
            rankings,
            tables,
            alone,
            beside,
            exploratory,
            left_out: left_out::sentences(&clear, &hidden),
            footnotes: footnotes.into_texts(),
            notes: notes(run, analysis, &common_caveats(&primary), options.detail, &names),
            noise: noise(run, analysis.noise_floor.as_ref()),
            differences: &analysis.differences,
            host: host(run),
            failures: failures(run, &names),
            repeat: repeat(run),
        }
    }

    /// The label of an arm as the reader knows it: `direct=1`.
    #[must_use]
    pub fn arm(&self, label: &str) -> String {
        Names::new(self.run, &self.analysis.factor).arm(label)
    }

    /// ` so far` in headings, while there is no verdict before the last round.
    #[must_use]
    pub fn so_far(&self) -> &'static str {
        if self.analysis.so_far().is_some() { " so far" } else { "" }
    }

    /// The label of a row, empty when there is one only.
    #[must_use]
    pub fn row(&self, row: &RowKey) -> String {
        row_label(row)
    }
}

/// Comparisons without a judgement are told one by one only up to this many for a reason.
const MOST_UNJUDGED: usize = 3;

/// Sentences for people: what could not be judged for one and the same reason is said once.
fn headlines(primary: &[&Comparison], verdicts: &[Sentence]) -> Vec<Sentence> {
    let reason = |c: &Comparison| match &c.verdict {
        Verdict::TooFew { n } => Some((
            "too few",
            format!("have too few {} for a verdict ({n} of the 4 that an interval needs)", counted(c).0),
        )),
        Verdict::NotMeasured(reason) if refused(c) => {
            Some(("too few I/Os", format!("have too few I/Os for a verdict: {reason}")))
        }
        Verdict::NotMeasured(reason) => Some(("not measured", format!("were not measured: {reason}"))),
        _ => None,
    };
    let mut told: Vec<String> = Vec::new();
    let mut sentences = Vec::new();
    for (comparison, sentence) in primary.iter().zip(verdicts) {
        let Some((word, why)) = reason(comparison) else {
            sentences.push(sentence.clone());
            continue;
        };
        let same = primary.iter().filter(|c| reason(c).is_some_and(|(_, other)| other == why)).count();
        if same <= MOST_UNJUDGED {
            sentences.push(sentence.clone());
        } else if !told.contains(&why) {
            let text = format!("{same} comparisons {why}; the tables have what there is");
            sentences.push(Sentence { tone: Tone::Unclear, word, text, notes: Vec::new() });
            told.push(why);
        }
    }
    sentences
}

/// Caveats that every row bears: they are told once, as notes to the whole.
fn common_caveats<'c>(primary: &[&'c Comparison]) -> Vec<&'c Caveat> {
    match primary {
        [first, others @ ..] if !others.is_empty() => first
            .caveats
            .iter()
            .filter(|caveat| !matches!(caveat, Caveat::MeanDisagrees { .. }))
            .filter(|caveat| others.iter().all(|c| c.caveats.contains(caveat)))
            .collect(),
        _ => Vec::new(),
    }
}

/// The comparisons that tables show: those that decide, and of the others those asked for.
pub(super) fn shown<'a>(document: &Document<'a>) -> Vec<&'a Comparison> {
    let all = document.options.all_metrics;
    let comparisons = &document.analysis.comparisons;
    let (beside, _) = beside(document.run, document.analysis);
    let is_beside = |c: &Comparison| beside.iter().any(|other| std::ptr::eq(*other, c));
    comparisons
        .iter()
        .filter(|c| c.role == Role::Primary || all || table::stands_out(c) || is_beside(c))
        .collect()
}

/// Of what does not decide, the comparisons that the experiment wants shown, and the others. Of a metric that jobs have, those of
/// the jobs are shown, as they are the ones that decide.
fn beside<'c>(run: &Run, analysis: &'c Analysis) -> (Vec<&'c Comparison>, Vec<&'c Comparison>) {
    // What an arm has no value of is told where it decides; a value of 0, of which there is no ratio, is a value.
    let wanted = |c: &&Comparison| run.design.shows(&c.metric.name) && c.baseline.n > 0 && c.candidate.n > 0;
    let of_jobs = |name: &str| {
        of_role(analysis, Role::Exploratory).any(|c| !c.row.job.is_empty() && c.metric.name == name)
    };
    of_role(analysis, Role::Exploratory)
        .partition(|c| wanted(c) && !(c.row.job.is_empty() && of_jobs(&c.metric.name)))
}

/// Comparisons of one role.
pub(super) fn of_role(analysis: &Analysis, role: Role) -> impl Iterator<Item = &Comparison> {
    analysis.comparisons.iter().filter(move |c| c.role == role)
}

/// The two arms of a comparison.
fn arms_of(comparison: &Comparison) -> [&str; 2] {
    [&comparison.baseline.arm, &comparison.candidate.arm]
}

/// Comparisons with the same key together, keys in the order of their first use.
pub(super) fn group<'c, K: PartialEq>(
    comparisons: &[&'c Comparison],
    key: impl Fn(&'c Comparison) -> K,
) -> Vec<Vec<&'c Comparison>> {
    let mut groups: Vec<(K, Vec<&Comparison>)> = Vec::new();
    for comparison in comparisons {
        let own = key(comparison);
        match groups.iter_mut().find(|(known, _)| *known == own) {
            Some((_, members)) => members.push(comparison),
            None => groups.push((own, vec![comparison])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

fn title(run: &Run, analysis: &Analysis, names: &Names<'_>) -> String {
    let mut arms = analysis.arms.iter().map(|arm| names.arm(arm));
    let baseline = arms.next().unwrap_or_default();
    let candidates: Vec<String> = arms.collect();
    let name = if run.name.is_empty() { String::new() } else { format!("{}: ", run.name) };
    let chosen = chosen_afterwards(analysis);
    let title = match candidates.as_slice() {
        _ if run.aa => format!("{name}A/A, {baseline} against itself"),
        [] => format!("{name}{baseline}"),
        [one] => format!("{name}{one} against {baseline}"),
        many if many.len() <= 3 => format!("{name}{} against {baseline}", many.join(", ")),
        many => format!("{name}{} candidates against {baseline}", many.len()),
    };
    title + &chosen
}

/// What the headline adds when the metric that decides is not the run's own.
fn chosen_afterwards(analysis: &Analysis) -> String {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for comparison in of_role(analysis, Role::Primary) {
        for caveat in &comparison.caveats {
            if let Caveat::ChosenAfterwards { instead_of } = caveat {
                let pair = (comparison.metric.name.as_str(), instead_of.as_deref().unwrap_or("none"));
                if !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
    }
    let told = pairs
        .iter()
        .map(|(chosen, own)| format!(" (judged by {chosen}, chosen after the run; its own: {own})"));
    told.collect()
}

/// What a verdict adds when others used the machine.
fn busy_mark(run: &Run) -> &'static str {
    if run.busy_machine().is_some() { " (busy machine)" } else { "" }
}

fn summary(run: &Run, analysis: &Analysis) -> String {
    let mut parts = Vec::new();
    if let Some(id) = run.id {
        parts.push(format!("run{NBSP}{id}"));
    }
    if let Ok(start) = Timestamp::from_nanosecond(i128::from(run.started_unix_ns))
        && run.started_unix_ns > 0
    {
        parts.push(start.strftime("%Y-%m-%d %H:%M UTC").to_string());
    }
    match &run.source {
        Source::Measured => parts.push(match analysis.so_far() {
            Some(SoFar { rounds, of }) => format!("{rounds} of {of} rounds so far").replace(' ', "\u{a0}"),
            None => count(u64::from(analysis.rounds), "round"),
        }),
        Source::Imported(format) => parts.push(format!("imported from {format}")),
    }
    parts.push(count(run.trials.len() as u64, "trial"));
    let elapsed: f64 = run.trials.iter().map(|trial| trial.elapsed_s).filter(|s| s.is_finite()).sum();
    if elapsed > 0.0 {
        parts.push(pretty_duration(elapsed));
    }
    if !run.engine.is_empty() {
        parts.push(format!("engine{NBSP}{}", run.engine.replace(' ', "\u{a0}")));
    }
    if !run.assay_version.is_empty() {
        parts.push(format!("assay{NBSP}{}", run.assay_version));
    }
    parts.push(format!("δ{NBSP}{}", plain_percent(analysis.delta)));
    parts.extend(run.busy_machine().map(|why| format!("busy machine at the start: {why}")));
    parts.join("\u{a0}· ")
}

/// `1 round`, `8 rounds`.
pub(super) fn count(n: u64, what: &str) -> String {
    if n == 1 { format!("1{NBSP}{what}") } else { format!("{n}{NBSP}{what}s") }
}

fn tally(primary: &[&Comparison]) -> Option<String> {
    if primary.len() < 4 {
        return None;
    }
    let mut counts = [0usize; COUNTED.len()];
    for comparison in primary {
        counts[counted_as(&comparison.verdict)] += 1;
    }
    // Of what is counted there is fewer or more: together with others it is better or worse.
    let speeds = primary.iter().all(|c| is_speed(&c.metric));
    let word = |word: &str| match speeds {
        true => word.to_owned(),
        false => word.replace("faster", "better").replace("slower", "worse"),
    };
    let parts: Vec<String> = counts
        .iter()
        .zip(COUNTED)
        .filter(|(n, _)| **n > 0)
        .map(|(n, counted)| format!("{n} {}", word(counted)))
        .collect();
    Some(format!("{} comparisons: {}", primary.len(), parts.join(", ")))
}

fn notes(
    run: &Run,
    analysis: &Analysis,
    common: &[&Caveat],
    detail: Detail,
    names: &Names<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(unfinished(run, analysis));
    let emulated = |facts: &crate::record::HostFacts| {
        facts.get("guest.accelerator").is_some_and(|accelerator| accelerator.starts_with("tcg"))
    };
    if run.facts.iter().any(emulated) {
        notes.push(
            "guests were run in an emulated processor (qemu's tcg, as KVM does not run here): they compare with each \
             other, but no time is a measurement of this hardware"
                .to_owned(),
        );
    }
    if run.aa {
        notes.push(
            "an A/A run compares the baseline with itself: a claimed difference would be false".to_owned(),
        );
    }
    let caveats = analysis.caveats.iter().chain(common.iter().copied());
    let caveats = caveats.filter(|caveat| told_from(caveat) <= detail);
    notes.extend(caveats.map(|caveat| caveat_text(caveat, None, names)));
    notes.extend(merged(run.notes.iter().map(String::as_str)));
    // The emulated processor is told above, for all trials.
    notes.extend(trial_notes(run, names, |text| text.starts_with("run in an emulated processor")));
    let mut seen: Vec<String> = Vec::new();
    notes.retain(|note| {
        !seen.contains(note) && {
            seen.push(note.clone());
            true
        }
    });
    notes
}

/// That the run is not all there, and what that does to its verdict.
fn unfinished(run: &Run, analysis: &Analysis) -> Option<String> {
    let what = match run.state {
        RunState::Finished => "this run has ended without all its rounds",
        RunState::Running => "this run has not ended",
        RunState::Interrupted => "this run was interrupted",
        RunState::Failed => "this run ended with an error",
    };
    let Some(SoFar { rounds, of }) = analysis.so_far() else {
        return (run.state != RunState::Finished).then(|| format!("{what}: the verdict so far"));
    };
    let on = run.id.map_or_else(String::new, |id| format!("; `assay run --resume {id}` goes on with it"));
    // Of runs that are compared with each other each says this of itself.
    (run.source == Source::Measured).then(|| {
        format!(
            "{what}: {rounds} of {of} rounds so far. A fixed number of rounds is judged once, with all of them: looking \
             earlier and stopping there would make more claims false{on}"
        )
    })
}

fn host(run: &Run) -> Vec<(&str, String)> {
    // In the order of the cells, so that values stand as the levels do.
    let mut used: Vec<(u32, u32)> =
        run.trials.iter().filter_map(|trial| Some((trial.cell, trial.facts?))).collect();
    used.sort_unstable();
    let mut seen = std::collections::BTreeSet::new();
    let used: Vec<u32> =
        used.into_iter().map(|(_, facts)| facts).filter(|facts| seen.insert(*facts)).collect();
    super::host_facts::host_facts(&run.facts, &used)
}

fn repeat(run: &Run) -> Repeat {
    let measured = run.source == Source::Measured;
    let mut words: Vec<&str> = run.command_line.iter().map(String::as_str).collect();
    if let Some(program) = words.first_mut()
        && program.rsplit('/').next() == Some("assay")
    {
        // Where the program lies on this machine says nothing to others.
        *program = "assay";
    }
    let command = shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "));
    Repeat { command, seed: measured.then_some(run.seed), job: run.job_text.clone() }
}
