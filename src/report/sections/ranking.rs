//! Rankings in words: `1st none, mq-deadline (not told apart); 3rd bfq`.
//!
//! Enters: rankings. Leaves: lists of sentences, one list for each metric that decides. It must not order anything itself.

use super::Material;
use super::together::some_rows;
use crate::analyse::{Analysis, Place, Ranking};
use crate::record::Run;
use crate::report::comparisons::group;
use crate::report::layout::one_line;
use crate::report::section::{Block, Heading, Line, List, Section};
use crate::report::words::{NBSP, Names};

/// The section: the rankings by one metric are one list.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { run, analysis, names, primary, .. } = material;
    let all = group(primary, |c| &c.row).len();
    let mut lists: Vec<(String, Vec<Ranked>)> = Vec::new();
    for ranking in &analysis.rankings {
        let caption = caption(run, analysis, ranking, names);
        let baseline = analysis.arms.first().filter(|_| !ranking.all_pairs);
        let ranked =
            Ranked { row: names.row(&ranking.row), order: order(ranking, baseline.map(String::as_str)) };
        match lists.iter_mut().find(|(known, _)| *known == caption) {
            Some((_, rows)) => rows.push(ranked),
            None => lists.push((caption, vec![ranked])),
        }
    }
    let list = |(caption, rows)| List { caption: Some(caption), lines: lines(rows, all) };
    Section::new("ranking", Heading::None, lists.into_iter().map(list).map(Block::List).collect())
}

/// The order of the arms in a row.
struct Ranked {
    row: String,
    order: String,
}

/// A line a row, of `all` that there are; one line where the order is the same in several.
fn lines(rows: Vec<Ranked>, all: usize) -> Vec<Line> {
    let mut orders: Vec<(String, Vec<String>)> = Vec::new();
    for Ranked { row, order } in rows {
        match orders.iter_mut().find(|(known, _)| *known == order) {
            Some((_, rows)) => rows.push(row),
            None => orders.push((order, vec![row])),
        }
    }
    let line = |(order, rows): (String, Vec<String>)| match rows.len() {
        2 if all == 2 => format!("in both{NBSP}rows: {order}"),
        n if n > 1 && n == all => format!("in all {n}{NBSP}rows: {order}"),
        _ if rows.iter().all(String::is_empty) => order,
        _ => format!("{}: {order}", some_rows(rows)),
    };
    orders.into_iter().map(line).map(Line::from).collect()
}

fn caption(run: &Run, analysis: &Analysis, ranking: &Ranking, names: &Names<'_>) -> String {
    let of = names.factor().map(|factor| format!(" of {factor}")).unwrap_or_default();
    // Elsewhere it counts those that stand before it.
    let counted = ranking.places.iter().zip(1_u32..).any(|(one, at)| {
        let first_of_place = ranking.places.iter().position(|other| other.place == one.place);
        first_of_place == Some(at as usize - 1) && one.place != at
    });
    let counted = if counted { " (a place counts the arms proven better)" } else { "" };
    let head = format!("ranking{of} by {}, the best first{counted}", ranking.metric);
    if ranking.all_pairs {
        return format!("{head}; every pair was compared");
    }
    let baseline = analysis.arms.first().map(|arm| one_line(arm)).unwrap_or_default();
    let how = match run.id {
        Some(id) => format!("`assay report {id} --all-pairs`"),
        None => "--all-pairs".to_owned(),
    };
    format!("{head}; each was compared with {baseline} only, {how} compares every pair")
}

/// `only`: the arm that all others were compared with, where no other pair was.
fn order(ranking: &Ranking, only: Option<&str>) -> String {
    let mut places: Vec<String> =
        ranking.places.chunk_by(|a, b| a.place == b.place).map(|tied| place(tied, ranking, only)).collect();
    if !ranking.unjudged.is_empty() {
        places.push(format!("not judged: {}", list(&ranking.unjudged)));
    }
    places.join("; ")
}

/// The arms of one place. From whom of an earlier place one is not told apart is said behind it.
fn place(tied: &[Place], ranking: &Ranking, only: Option<&str>) -> String {
    let shared = tied.len() > 1;
    let were_compared = |one: &str, other: &str| only.is_none_or(|arm| arm == one || arm == other);
    let mut arms: Vec<String> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for one in tied {
        arms.push(one.arm.clone());
        let before = ranking.places.iter().filter(|other| other.place < one.place);
        let earlier: Vec<String> = before
            .map(|other| other.arm.clone())
            .filter(|arm| one.not_told_apart_from.contains(arm) && were_compared(&one.arm, arm))
            .collect();
        if !earlier.is_empty() {
            let who = if shared {
                format!("{} also not from", one_line(&one.arm))
            } else {
                "not told apart from".to_owned()
            };
            open.push(format!("{who} {}", list(&earlier)));
        }
    }
    if shared {
        let compared = only.is_none_or(|arm| tied.iter().any(|one| one.arm == arm));
        open.insert(
            0,
            if compared { "not told apart" } else { "by estimate, not compared with each other" }.to_owned(),
        );
    }
    let open = if open.is_empty() { String::new() } else { format!(" ({})", open.join("; ")) };
    format!("{} {}{open}", ordinal(tied.first().map_or(0, |one| one.place)), list(&arms))
}

fn list(arms: &[String]) -> String {
    arms.iter().map(|arm| one_line(arm)).collect::<Vec<_>>().join(", ")
}

/// `1st`, `2nd`, `11th`.
fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::RowKey;

    fn sentence(places: &[(u32, &str, &[&str])]) -> String {
        sentence_of(places, None)
    }

    fn sentence_of(places: &[(u32, &str, &[&str])], only: Option<&str>) -> String {
        let place = |(place, arm, open): &(u32, &str, &[&str])| Place {
            place: *place,
            arm: (*arm).to_owned(),
            not_told_apart_from: open.iter().map(|arm| (*arm).to_owned()).collect(),
        };
        let ranking = Ranking {
            row: RowKey { levels: Vec::new(), job: String::new() },
            metric: "write.bw".to_owned(),
            all_pairs: only.is_none(),
            places: places.iter().map(place).collect(),
            unjudged: Vec::new(),
        };
        order(&ranking, only)
    }

    #[test]
    fn arms_with_one_place_stand_together() {
        let tied = [(1, "none", &["mq-deadline"][..]), (1, "mq-deadline", &["none"]), (3, "bfq", &[])];
        assert_eq!(sentence(&tied), "1st none, mq-deadline (not told apart); 3rd bfq");
    }

    #[test]
    fn who_is_not_told_apart_from_a_better_place_is_named() {
        let one = [(1, "b", &["a", "c"][..]), (1, "c", &["b"]), (2, "a", &["b"])];
        assert_eq!(sentence(&one), "1st b, c (not told apart); 2nd a (not told apart from b)");
        let two = [(1, "a", &["c"][..]), (2, "b", &["c"]), (2, "c", &["a", "b"])];
        assert_eq!(sentence(&two), "1st a; 2nd b, c (not told apart; c also not from a)");
    }

    #[test]
    fn arms_that_nobody_compared_are_not_called_alike() {
        let places =
            [(1, "a", &["b"][..]), (1, "b", &["a", "c", "d"]), (2, "c", &["b", "d"]), (2, "d", &["b", "c"])];
        assert_eq!(
            sentence_of(&places, Some("a")),
            "1st a, b (not told apart); 2nd c, d (by estimate, not compared with each other)"
        );
    }

    #[test]
    fn an_order_that_rows_share_is_told_once() {
        let told = |orders: &[&str], all: usize| -> Vec<String> {
            let row = |(at, order): (usize, &&str)| Ranked {
                row: format!("bs={}k", 4 << at),
                order: (*order).to_owned(),
            };
            let lines = lines(orders.iter().enumerate().map(row).collect(), all);
            lines.iter().map(|line| line.written(str::to_owned, str::to_owned).replace(NBSP, " ")).collect()
        };
        assert_eq!(told(&["1st a; 2nd b", "1st a; 2nd b"], 2), ["in both rows: 1st a; 2nd b"]);
        assert_eq!(told(&["1st a", "1st a", "1st a"], 3), ["in all 3 rows: 1st a"]);
        assert_eq!(told(&["1st a", "1st a"], 3), ["bs=4k; bs=8k: 1st a"], "a third row has no order");
        assert_eq!(
            told(&["1st a; 2nd b", "1st b; 2nd a", "1st a; 2nd b"], 3),
            ["bs=4k; bs=16k: 1st a; 2nd b", "bs=8k: 1st b; 2nd a"]
        );
        assert_eq!(told(&["1st a"], 1), ["bs=4k: 1st a"]);
    }

    #[test]
    fn places_are_counted_as_people_do() {
        let counted: Vec<String> = [1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(ordinal).to_vec();
        assert_eq!(counted, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]);
    }
}
