//! Which factor, in words; and the list that these sentences share with those of scaling.
//!
//! Enters: effects of an analysis. Leaves: one list of sentences, short where the whole report is to fit one screen. It must not judge:
//! what is claimed, and what depends on what, is the analysis'.

use super::scaling_words;
use crate::analyse::{Analysis, Change, Effect, Effects, Interval, NoEffects, Shares, Verdict, Within};
use crate::report::format::Detail;
use crate::report::layout::{one_line, wrap};
use crate::report::section::{Line, List};
use crate::report::words::{Names, change, effect_decimals, interval_beside, plain_percent, short_key};

/// Lines of all this, with its heading, where the whole report is to fit one screen.
const MOST_LINES: usize = 6;
/// Columns of that screen.
const COLUMNS: usize = 80;
/// Fewer rounds have no interval.
const FEWEST: usize = 4;
/// Letters that are sure to fit in its lines.
const BEGINNING: usize = 280;
/// Effects within levels that one sentence names.
const MOST_WITHIN: usize = 6;
/// Main effects that one sentence names.
const MOST_MAIN: usize = 4;

/// The sentences of a run; none where no factors were crossed and nothing counts workers.
pub(super) fn lists(analysis: &Analysis, detail: Detail, names: &Names<'_>) -> Vec<List> {
    // The most telling first: a list that is cut short ends early. What depends on a number of workers, a law says better.
    let counts = |effect: &Effect| {
        let mut laws =
            analysis.scaling.iter().filter(|scaling| scaling.curves.iter().any(|curve| curve.law.is_some()));
        laws.any(|scaling| effect.of.iter().any(|change| change.factor == scaling.factor))
    };
    let depends = |wanted: bool| {
        let of = move |effects| dependences(effects, &|effect| counts(effect) == wanted);
        analysis.effects.iter().flat_map(of)
    };
    let mut lines: Vec<String> = depends(false).collect();
    let depend = lines.len();
    let laws = analysis.scaling.iter().flat_map(|scaling| scaling_words::sentences(scaling, names, detail));
    lines.extend(laws);
    let scale = lines.len() - depend;
    lines.extend(depends(true));
    lines.extend(analysis.effects.iter().filter_map(main_effects));
    lines.extend(analysis.effects.iter().filter_map(|effects| same_everywhere(effects, analysis)));
    lines.extend(analysis.effects.iter().filter_map(shares));
    lines.extend(analysis.effects.iter().filter_map(undecided));
    if detail > Detail::Screen {
        lines.extend(analysis.effects.iter().filter_map(refusal));
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let family = analysis.effects.first().map_or(0, |effects| effects.family);
    let mut caption = match (lines.len() - scale, scale) {
        (0, _) => "how it scales".to_owned(),
        (_, 0) => format!("which factor, {family} effects judged together"),
        _ => format!("which factor, {family} effects judged together, and how it scales"),
    };
    if detail == Detail::Screen && shorten(&mut lines) {
        caption.push_str(" (--verbose has all)");
    }
    vec![List { caption: Some(caption), lines: lines.into_iter().map(Line::from).collect() }]
}

/// Keeps what fits, and in any case the beginning of the first sentence; whether something was left out.
fn shorten(lines: &mut Vec<String>) -> bool {
    let needed = |line: &str| wrap(line, COLUMNS, "  ", "    ").lines().count();
    let (all, mut room) = (lines.len(), MOST_LINES - 1);
    let mut cut = false;
    if let Some(first) = lines.first_mut().filter(|first| needed(first) > room) {
        *first = first.chars().take(BEGINNING).chain(" …".chars()).collect();
        cut = true;
    }
    lines.retain(|line| {
        let left = room.checked_sub(needed(line));
        room = left.unwrap_or(room);
        left.is_some()
    });
    cut || lines.len() < all
}

/// `write.bw: the effect of direct depends on bs, so neither has one alone; take bs out of it: direct=1 against 0 is −31.2 % at bs=4k
/// and +21.0 % at bs=1m, which as ratios differ by +75.4 % [+70.1, +80.9]`: one sentence for each two factors, the largest dependence first.
fn dependences(effects: &Effects, wanted: &dyn Fn(&Effect) -> bool) -> Vec<String> {
    let mut pairs: Vec<Vec<&Effect>> = Vec::new();
    for effect in effects.effects.iter().filter(|effect| effect.of.len() == 2 && wanted(effect)) {
        let same = |known: &Effect| (0..2).all(|at| known.of[at].factor == effect.of[at].factor);
        match pairs.iter_mut().find(|pair| same(pair[0])) {
            Some(pair) => pair.push(effect),
            None => pairs.push(vec![effect]),
        }
    }
    let mut claimed: Vec<(&Effect, Vec<&Effect>)> =
        pairs.into_iter().filter_map(|pair| Some((largest_claimed(&pair)?, pair))).collect();
    claimed.sort_by(|(a, _), (b, _)| size(b).total_cmp(&size(a)));
    claimed.iter().filter_map(|(most, pair)| dependence(effects, most, pair)).collect()
}

/// How far an effect is from none, on the log scale.
fn size(effect: &Effect) -> f64 {
    effect.change.ln_1p().abs()
}

fn largest_claimed<'e>(effects: &[&'e Effect]) -> Option<&'e Effect> {
    let claimed = effects.iter().copied().filter(|effect| effect.is_claimed());
    claimed.max_by(|a, b| size(a).total_cmp(&size(b)))
}

fn dependence(effects: &Effects, most: &Effect, pair: &[&Effect]) -> Option<String> {
    let delta = effects.delta;
    let [first, second] = most.of.as_slice() else { return None };
    // The first factor's change that depends most, at every level of the second.
    let own = pair.iter().filter(|effect| effect.of[0] == *first);
    let mut levels: Vec<&Within> = Vec::new();
    for within in own.flat_map(|effect| &effect.within) {
        if !levels.iter().any(|known| known.level == within.level) {
            levels.push(within);
        }
    }
    if levels.len() > MOST_WITHIN {
        levels.retain(|within| within.level == second.from || within.level == second.to);
    }
    let at = |within: &&Within| {
        format!(
            "{} at {}={}",
            change_percent(within.effect.estimate, Some(within.effect)),
            second.factor,
            one_line(&within.level)
        )
    };
    let mut named: Vec<String> = levels.iter().map(at).collect();
    let last = named.pop()?;
    let beyond = match most.verdict {
        Verdict::Faster { beyond_delta: false } | Verdict::Slower { beyond_delta: false } => {
            format!(", maybe less than {}", plain_percent(delta))
        }
        _ => String::new(),
    };
    let between =
        if levels.len() > 2 { format!(" from {} to {}", second.from, second.to) } else { String::new() };
    Some(format!(
        "{}: the effect of {one} depends on {two}, so neither has one alone; {two} taken out: {} is {} and {last}, which as \
         ratios differ by {}{}{beyond}{between}",
        metric(effects),
        change_words(first),
        named.join(", "),
        change_percent(most.change, most.effect),
        with_blank(&interval_beside(delta, most.effect)),
        one = first.factor,
        two = second.factor,
    ))
}

/// The main effects that are claimed of factors that depend on no other.
fn main_effects(effects: &Effects) -> Option<String> {
    let delta = effects.delta;
    let alone = |effect: &&Effect| effect.of.len() == 1 && effect.depends_on.is_empty();
    let claimed: Vec<&Effect> =
        effects.effects.iter().filter(alone).filter(|effect| effect.is_claimed()).collect();
    let (first, many) = (claimed.first()?, claimed.len());
    let mut named: Vec<String> = claimed
        .iter()
        .take(MOST_MAIN)
        .map(|effect| {
            let maybe = match effect.verdict {
                Verdict::Faster { beyond_delta: true } | Verdict::Slower { beyond_delta: true } => {
                    String::new()
                }
                _ => format!(", maybe less than {}", plain_percent(delta)),
            };
            let change = change_percent(effect.change, effect.effect);
            let interval = with_blank(&interval_beside(delta, effect.effect));
            format!("{} {change}{interval}{maybe}", change_words(&effect.of[0]))
        })
        .collect();
    named.extend((many > MOST_MAIN).then(|| format!("{} more", many - MOST_MAIN)));
    let others: Vec<&str> =
        effects.factors.iter().map(String::as_str).filter(|name| *name != first.of[0].factor).collect();
    let over = if many == 1 { others.join(", ") } else { "the others".to_owned() };
    Some(format!("{}, averaged over {over}: {}", metric(effects), named.join("; ")))
}

/// `direct has the same effect whatever bs, within 2 %`: dependences of the compared factor that were shown to be below δ.
fn same_everywhere(effects: &Effects, analysis: &Analysis) -> Option<String> {
    let own = |effect: &&Effect| effect.of.len() == 2 && effect.of[0].factor == analysis.factor;
    let mut same: Vec<String> = Vec::new();
    for other in effects.factors.iter().filter(|name| **name != analysis.factor) {
        let mut pair =
            effects.effects.iter().filter(own).filter(|effect| effect.of[1].factor == *other).peekable();
        let is_same = |effect: &Effect| matches!(effect.verdict, Verdict::NoDifference { .. });
        let Some(first) = pair.peek().copied() else { continue };
        let pair: Vec<&Effect> = pair.collect();
        if pair.iter().all(|effect| is_same(effect)) {
            // Each level was held against the first one, and two of them may lie on its two sides.
            let only_two = pair.iter().all(|effect| effect.of[1].to == first.of[1].to);
            same.push(match only_two {
                true => format!("whatever {other} is"),
                false => format!("at each {other} as at {}", one_line(&first.of[1].from)),
            });
        }
    }
    (!same.is_empty()).then(|| {
        format!(
            "{}: {} has the same effect {}, within {}",
            metric(effects),
            analysis.factor,
            same.join(" and "),
            plain_percent(effects.delta)
        )
    })
}

/// `from direct=0, bs=4k to direct=1, bs=1m: +310 % = direct +8 % and bs +280 % (shares multiply)`.
fn shares(effects: &Effects) -> Option<String> {
    let claimed = effects.effects.iter().any(Effect::is_claimed);
    let Shares { of, whole, parts } = effects.shares.as_ref().filter(|_| claimed)?;
    let corner = |level: fn(&Change) -> &str| {
        let levels: Vec<String> = of
            .iter()
            .map(|change| format!("{}={}", short_key(&change.factor), one_line(level(change))))
            .collect();
        levels.join(", ")
    };
    let part = |(change, part): (&Change, &Interval)| {
        format!("{} {}", short_key(&change.factor), change_percent(part.estimate, None))
    };
    let parts: Vec<String> = of.iter().zip(parts).map(part).collect();
    Some(format!(
        "{} from {} to {}: {}, of which {} (Shapley's shares, means over rounds; as ratios they multiply)",
        metric(effects),
        corner(|change| &change.from),
        corner(|change| &change.to),
        change_percent(whole.estimate, None),
        parts.join(", ")
    ))
}

/// That nothing is claimed although not all effects were shown to be below δ.
fn undecided(effects: &Effects) -> Option<String> {
    let open = |effect: &Effect| matches!(effect.verdict, Verdict::Undecided { .. } | Verdict::TooFew { .. });
    let is_open = !effects.effects.iter().any(Effect::is_claimed) && effects.effects.iter().any(open);
    let (n, family, factors) = (effects.n, effects.family, effects.factors.join(", "));
    is_open.then(|| {
        let why = match n {
            0..FEWEST => format!("it takes {FEWEST} rounds or repeats, and there are {n}"),
            _ => format!("{family} effects share the error rate, and {n} rounds or repeats do not tell"),
        };
        format!("{}: no effect of {factors} is claimed: {why}", metric(effects))
    })
}

/// Why there are no effects.
fn refusal(effects: &Effects) -> Option<String> {
    let why = match effects.refused.as_ref()? {
        NoEffects::Incomplete { measured, of } => {
            format!("{measured} of the {of} combinations of {} were measured", effects.factors.join(", "))
        }
        NoEffects::DifferentMetrics => "rows are judged by metrics of different kinds".to_owned(),
        NoEffects::NotPositive => "values of 0 or below have no ratio".to_owned(),
        NoEffects::NoCommonRound => "no round has a value of every combination".to_owned(),
        NoEffects::UnequalFailures => "arms failed so unequally that they are not comparable".to_owned(),
        NoEffects::FailuresAsWorst => "failed trials rank as the worst, and a rank is not a value".to_owned(),
        NoEffects::Clusters => "results in clusters are compared row by row only".to_owned(),
        NoEffects::TooMany { effects } => format!("{effects} effects are too many to be judged together"),
    };
    Some(format!("{}: no effects of factors, because {why}", metric(effects)))
}

/// `direct=1 against 0`.
pub(super) fn change_words(change: &Change) -> String {
    format!("{}={} against {}", short_key(&change.factor), one_line(&change.to), one_line(&change.from))
}

/// The metric, with the job where there is one.
pub(super) fn metric(effects: &Effects) -> String {
    let job =
        if effects.metric.job.is_empty() { String::new() } else { format!("job {}: ", effects.metric.job) };
    one_line(&format!("{job}{}", effects.metric.name))
}

/// `+75.4 %`, kept on one line, with the digits of its interval.
fn change_percent(ratio: f64, effect: Option<Interval>) -> String {
    change(ratio, effect_decimals(effect))
}

fn with_blank(interval: &str) -> String {
    if interval.is_empty() { String::new() } else { format!(" {interval}") }
}

#[cfg(test)]
mod tests {
    use super::super::factor_tables::table;
    use super::*;
    use crate::analyse::Method;
    use crate::record::Metric;
    use crate::units::{Better, Unit};

    fn metric() -> Metric {
        let unit = Unit::BytesPerSecond;
        Metric::new("", "write.bw", unit, Better::Higher)
    }

    fn change(factor: &str, from: &str, to: &str) -> Change {
        Change { factor: factor.to_owned(), from: from.to_owned(), to: to.to_owned() }
    }

    fn around(estimate: f64) -> Interval {
        Interval { estimate, low: estimate - 0.01, high: estimate + 0.01 }
    }

    fn effect(of: &[Change], estimate: f64, verdict: Verdict) -> Effect {
        Effect {
            of: of.to_vec(),
            change: estimate,
            effect: Some(around(estimate)),
            p: Some(0.001),
            p_adjusted: Some(0.003),
            method: Method::FixedSignedRank,
            verdict,
            within: Vec::new(),
            depends_on: Vec::new(),
            caveats: Vec::new(),
        }
    }

    /// direct × bs with an interaction, and sync beside them.
    fn effects() -> Effects {
        let (direct, bs, sync) =
            (change("direct", "0", "1"), change("bs", "4k", "1m"), change("sync", "none", "dsync"));
        let beyond = Verdict::Faster { beyond_delta: true };
        let same = Verdict::NoDifference { real_but_below_delta: false };
        let within = |level: &str, estimate| Within { level: level.to_owned(), effect: around(estimate) };
        let mut of_direct =
            effect(std::slice::from_ref(&direct), -0.1, Verdict::Slower { beyond_delta: true });
        of_direct.depends_on = vec!["bs".to_owned()];
        let mut both = effect(&[direct.clone(), bs.clone()], 0.754, beyond.clone());
        both.within = vec![within("4k", -0.312), within("1m", 0.21)];
        Effects {
            metric: metric(),
            delta: 0.02,
            factors: ["direct", "bs", "sync"].map(str::to_owned).to_vec(),
            n: 10,
            family: 6,
            effects: vec![
                of_direct,
                effect(std::slice::from_ref(&sync), -0.2, Verdict::Slower { beyond_delta: true }),
                both,
                effect(&[direct.clone(), sync.clone()], 0.001, same),
            ],
            shares: Some(Shares {
                of: vec![direct, bs, sync],
                whole: around(1.0),
                parts: vec![around(0.25), around(1.0), around(-0.2)],
            }),
            refused: None,
        }
    }

    fn analysis(effects: Vec<Effects>) -> Analysis {
        Analysis {
            arms: vec!["0".to_owned(), "1".to_owned()],
            factor: "direct".to_owned(),
            delta: 0.02,
            alpha: 0.05,
            rounds: 10,
            effects,
            ..Analysis::default()
        }
    }

    fn plain(text: &str) -> String {
        text.replace('\u{a0}', " ")
    }

    #[test]
    fn a_dependence_comes_first_and_takes_the_main_effects_away() {
        let analysis = analysis(vec![effects()]);
        let line = |lines: Vec<String>| plain(&lines.join("|"));
        assert_eq!(
            line(dependences(&analysis.effects[0], &|_| true)),
            "write.bw: the effect of direct depends on bs, so neither has one alone; bs taken out: direct=1 against 0 is −31.2 % at \
             bs=4k and +21.0 % at bs=1m, which as ratios differ by +75.4 % [+74.4, +76.4]"
        );
        assert_eq!(
            line(main_effects(&analysis.effects[0]).into_iter().collect()),
            "write.bw, averaged over direct, bs: sync=dsync against none −20.0 % [−21.0, −19.0]"
        );
        assert_eq!(
            line(same_everywhere(&analysis.effects[0], &analysis).into_iter().collect()),
            "write.bw: direct has the same effect whatever sync is, within 2 %"
        );
        assert_eq!(
            line(shares(&analysis.effects[0]).into_iter().collect()),
            "write.bw from direct=0, bs=4k, sync=none to direct=1, bs=1m, sync=dsync: +100.0 %, of which direct +25.0 %, bs \
             +100.0 %, sync −20.0 % (Shapley's shares, means over rounds; as ratios they multiply)"
        );
        let table = table(&analysis.effects[0]);
        let words: Vec<&str> = table.rows.iter().map(|row| row.cells[3].as_str()).collect();
        assert_eq!(words, ["interacts", "worse by > δ", "interact", "independent"]);
    }

    #[test]
    fn what_was_not_decided_is_said_once() {
        let mut open = effects();
        let undecided_yet = Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
        open.effects.iter_mut().for_each(|effect| effect.verdict = undecided_yet.clone());
        assert_eq!(
            undecided(&open).unwrap(),
            "write.bw: no effect of direct, bs, sync is claimed: 6 effects share the error rate, and 10 rounds or repeats do not tell"
        );
        open.n = 3;
        assert!(undecided(&open).unwrap().ends_with("it takes 4 rounds or repeats, and there are 3"));
        assert!(shares(&open).is_none(), "nothing is shared out that was not claimed");
        assert!(undecided(&effects()).is_none());
    }

    #[test]
    fn on_one_screen_the_list_takes_six_lines() {
        let run = scaling_words::tests::run();
        let names = Names::new(&run, "direct");
        let screen = |analysis: &Analysis| lists(analysis, Detail::Screen, &names).remove(0);
        let text = |line: &Line| line.written(str::to_owned, str::to_owned);
        let lines = |list: &List| -> usize {
            list.lines.iter().map(|line| wrap(&text(line), COLUMNS, "  ", "    ").lines().count()).sum()
        };
        let all = analysis(vec![effects()]);
        let found = screen(&all);
        assert!(
            lines(&found) < MOST_LINES && found.caption.as_deref().unwrap().ends_with("(--verbose has all)"),
            "{found:?}"
        );
        assert!(lists(&all, Detail::All, &names)[0].lines.len() > found.lines.len());
        let mut long = effects();
        long.effects
            .iter_mut()
            .flat_map(|effect| &mut effect.of)
            .for_each(|change| change.factor = "long ".repeat(30));
        let found = screen(&analysis(vec![long]));
        assert!(lines(&found) < MOST_LINES && text(&found.lines[0]).ends_with(" …"), "{found:?}");
        assert!(lists(&analysis(Vec::new()), Detail::All, &names).is_empty());
    }
}
