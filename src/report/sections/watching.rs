//! What watching cost, and what it lost, where the run's cells were watched.
//!
//! Enters: the run that watched them. Leaves: a line a cell and group of observers, and one for each observer that lost events. It must
//! not compute: prices and losses are analyse's.

use super::Material;
use crate::analyse::{
    self, Comparison, Interval, MOVED, WatchingLoss, WatchingPrice, measured_again, watching_losses,
    watching_prices,
};
use crate::record::Run;
use crate::report::document::Document;
use crate::report::json::written;
use crate::report::section::{Block, Heading, Line, List, Section};
use crate::report::verdict_words::verdict_word;
use crate::report::words::{NBSP, Names, change, count, effect_decimals, interval, percent, shown_change};
use crate::units::format_number;

/// Cells with a line of their own.
const MOST_LINES: usize = 3;

/// The section: nothing where no cell was watched.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let blocks = watching(material.run, material.watched).map(|watched| {
        let prices = watching_prices(watched);
        let lost = watching_losses(watched);
        let lines = lines(&prices, &material.names)
            .into_iter()
            .chain(lost.iter().map(loss))
            .map(Line::from)
            .collect();
        let list = List { caption: Some(caption(watched, &prices)), lines };
        let again = again(material, watched);
        let again = (!again.is_empty()).then(|| {
            let run = watched.id.map(|id| format!(", run {id}")).unwrap_or_default();
            Block::List(List { caption: Some(format!("measured again without watching{run}")), lines: again })
        });
        again.into_iter().chain([Block::List(list), Block::Raw { name: "watching", json }]).collect()
    });
    Section::new("watching", Heading::None, blocks.unwrap_or_default())
}

/// The run that watched: another one, or the run itself, where it was made to watch another one's cells.
pub(super) fn watching<'r>(run: &'r Run, watched: Option<&'r Run>) -> Option<&'r Run> {
    watched.or_else(|| run.design.explains.is_some().then_some(run))
}

/// What decided, measured again: a reader must see when the machine is another one now, or the difference is gone.
fn again(material: &Material<'_>, watched: &Run) -> Vec<Line> {
    if material.run.design.explains.is_some() {
        return Vec::new();
    }
    let by_the_same =
        analyse::Options { compare: Some(material.analysis.factor.clone()), ..Default::default() };
    let again = analyse::analyse(watched, &by_the_same).comparisons;
    let found = measured_again(material.analysis, watched, again);
    let line = |again: &Comparison| {
        let then = material.primary.iter().find(|then| {
            then.candidate.arm == again.candidate.arm
                && then.metric == again.metric
                && then.row.job == again.row.job
                && then.row.levels.iter().all(|level| again.row.levels.contains(level))
        });
        let row = then.map(|then| material.names.before(&then.row)).unwrap_or_default();
        let level = then.map(|then| level_then(then, again, &material.names)).unwrap_or_default();
        format!(
            "{row}{}: {} {} {}, {}{level}",
            material.names.against(&again.candidate.arm, &again.baseline.arm),
            again.metric.name,
            change(shown_change(again), effect_decimals(again.effect)),
            interval(again.effect),
            verdict_word(again)
        )
    };
    let mut lines: Vec<Line> = found.iter().take(MOST_LINES).map(|again| Line::from(line(again))).collect();
    let more = found.len().saturating_sub(MOST_LINES);
    lines.extend((more > 0).then(|| {
        Line::from(format!("{} more; assay report of that run has them", count(more as u64, "pair")))
    }));
    lines
}

/// `; direct=0 has 11.5 MiB/s now, 3.42 MiB/s then`: where the baseline alone moved by a quarter.
fn level_then(then: &Comparison, again: &Comparison, names: &Names<'_>) -> String {
    let (before, now) = (then.baseline.median, again.baseline.median);
    let moved = (now / before - 1.0).abs();
    if !moved.is_finite() || moved < MOVED {
        return String::new();
    }
    let number = |value: f64| format_number(&then.metric.unit, value);
    format!(
        "; {} has {} now and had {}: the machine is not as it was",
        names.arm(&again.baseline.arm),
        number(now),
        number(before)
    )
}

fn json(document: &Document<'_>) -> String {
    let watched = watching(document.run, document.watched);
    let run = watched.and_then(|watched| watched.id);
    let prices = watched.map(watching_prices).unwrap_or_default();
    let losses = watched.map(watching_losses).unwrap_or_default();
    let (run, prices, losses) = (written(&run), written(&prices), written(&losses));
    format!("{{\"run\":{run},\"prices\":{prices},\"losses\":{losses}}}")
}

fn caption(watched: &Run, prices: &[WatchingPrice]) -> String {
    let rounds = prices.iter().map(|price| price.rounds).max();
    let rounds = rounds.map(|rounds| format!(" ({})", count(rounds as u64, "round"))).unwrap_or_default();
    let run = watched.id.map(|id| format!(", run {id}")).unwrap_or_default();
    format!("price of watching{run}{rounds}")
}

fn lines(prices: &[WatchingPrice], names: &Names<'_>) -> Vec<String> {
    if prices.is_empty() {
        return vec![
            "nobody knows it: fewer than 4 rounds have both trials, or their values have no ratio".to_owned(),
        ];
    }
    // One cell more than there is room for has the line that would say so.
    let most = if prices.len() == MOST_LINES + 1 { MOST_LINES + 1 } else { MOST_LINES };
    let mut lines: Vec<String> = prices.iter().take(most).map(|price| line(price, names)).collect();
    let others = prices.get(most..).unwrap_or_default();
    if !others.is_empty() {
        let known = others.iter().find(|price| price.is_known());
        let known = known.map(|price| match is_faster(price) {
            false => format!("at most {}", cost(price)),
            true => "watching made nothing slower".to_owned(),
        });
        let unknown = others.iter().any(|price| !price.is_known()).then(|| "not known".to_owned());
        let said: Vec<String> = known.into_iter().chain(unknown).collect();
        let what = if others[0].by.is_empty() { "more cell" } else { "more price" };
        lines.push(format!("{}: {}", count(others.len() as u64, what), said.join(", or ")));
    }
    lines
}

fn line(price: &WatchingPrice, names: &Names<'_>) -> String {
    let row = names.row(&price.row);
    let place = [row.as_str(), price.by.as_str()].into_iter().filter(|part| !part.is_empty());
    let place = place.collect::<Vec<_>>().join(", by ");
    let row = if place.is_empty() { place } else { format!("{place}: ") };
    let metric = &price.metric.name;
    if !price.is_known() {
        let Interval { low, high, .. } = price.interval;
        return format!(
            "{row}watching cost is not known: between {} and {} of {metric}",
            end(low),
            end(high)
        );
    }
    let (gained, other) = match is_faster(price) {
        true => ("watched trials were better by", "faster"),
        false => ("watching cost", "slower"),
    };
    let distorted = match price.is_distorted {
        true => format!("; distorted: times are those of a {other} run, counts hold"),
        false => String::new(),
    };
    format!("{row}{gained} {} of {metric}{distorted}", cost(price))
}

/// Whether the watched trials were surely the better ones.
fn is_faster(price: &WatchingPrice) -> bool {
    price.interval.high < 0.0
}

fn loss(lost: &WatchingLoss) -> String {
    // Its counts are the kernel's own.
    let what = if lost.observer == "fs" { "times" } else { "figures" };
    format!(
        "{}: events were lost in {} of {} watched trials, at most {}: its {what} lack them",
        lost.observer, lost.trials, lost.of, lost.most
    )
}

/// An end of an interval that says little. Beyond ±100 % it is chance how far.
fn end(share: f64) -> String {
    let beyond = match share {
        _ if share < -1.0 => "less than ",
        _ if share > 1.0 => "more than ",
        _ => "",
    };
    format!("{beyond}{}{NBSP}%", percent(share.clamp(-1.0, 1.0), 1))
}

/// `1.8 % [+0.4, +3.2]`.
fn cost(price: &WatchingPrice) -> String {
    let of = price.interval;
    let gain = Interval { estimate: -of.estimate, low: -of.high, high: -of.low };
    let shown = if is_faster(price) { gain } else { of };
    let known = Some(shown);
    let share = change(shown.estimate, effect_decimals(known)).replace(NBSP, " ");
    format!("{} {}", share.trim_start_matches('+'), interval(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::RowKey;
    use crate::record::Metric;
    use crate::units::{Better, Unit};

    fn price(direct: &str, estimate: f64) -> WatchingPrice {
        let (job, name) = (String::new(), "write.bw".to_owned());
        WatchingPrice {
            row: RowKey { levels: vec![("direct".to_owned(), direct.to_owned())], job: job.clone() },
            by: String::new(),
            metric: Metric::new(job, name, Unit::BytesPerSecond, Better::Higher),
            rounds: 4,
            estimate,
            interval: Interval { estimate, low: estimate - 0.014, high: estimate + 0.014 },
            is_distorted: estimate - 0.014 > 0.05,
        }
    }

    fn words(prices: &[WatchingPrice]) -> Vec<String> {
        lines(prices, &Names::of_factor("direct"))
            .into_iter()
            .map(|line| line.replace('\u{a0}', " "))
            .collect()
    }

    #[test]
    fn a_price_has_its_interval_and_a_warning_beyond_5_percent() {
        let said = words(&[price("1", 0.082), price("0", 0.018)]);
        assert_eq!(
            said,
            [
                "direct=1: watching cost 8.2 % [+6.8, +9.6] of write.bw; distorted: times are those of a slower run, counts hold",
                "direct=0: watching cost 1.8 % [+0.4, +3.2] of write.bw"
            ]
        );
        assert!(
            words(&[price("0", -0.06)])[0]
                .ends_with("watched trials were better by 6.0 % [+4.6, +7.4] of write.bw")
        );
        let by = WatchingPrice { by: "cpu+locks".to_owned(), ..price("0", 0.018) };
        assert!(words(&[by])[0].starts_with("direct=0, by cpu+locks: watching cost 1.8 %"));
        assert!(words(&[])[0].starts_with("nobody knows it"));
    }

    #[test]
    fn what_was_lost_is_said_by_observer() {
        let lost = WatchingLoss { observer: "locks".to_owned(), trials: 2, of: 8, most: 41 };
        let expected = "locks: events were lost in 2 of 8 watched trials, at most 41: its figures lack them";
        assert_eq!(loss(&lost), expected);
    }

    #[test]
    fn a_price_that_is_noise_is_said_not_to_be_known() {
        let mut noise = price("0", -0.67);
        (noise.interval.low, noise.interval.high) = (-8.004, 0.792);
        assert_eq!(
            words(&[noise]),
            ["direct=0: watching cost is not known: between less than −100.0 % and +79.2 % of write.bw"]
        );
    }

    #[test]
    fn of_many_cells_the_others_are_counted() {
        let prices: Vec<WatchingPrice> =
            (0..6).map(|n| price(&n.to_string(), 0.04 - 0.005 * f64::from(n))).collect();
        assert_eq!(words(&prices[..4]).len(), 4);
        let said = words(&prices);
        assert_eq!((said.len(), said[3].as_str()), (4, "3 more cells: at most 2.5 % [+1.1, +3.9]"));
        let mut prices = prices;
        (prices[3].interval.low, prices[3].interval.high) = (-0.3, 0.3);
        assert_eq!(words(&prices)[3], "3 more cells: at most 2.0 % [+0.6, +3.4], or not known");
    }
}
