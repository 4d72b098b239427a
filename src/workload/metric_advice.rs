//! What was probably meant by the name of a metric that is none.
//!
//! Enters: the name, and those there are. Leaves: a clause with the nearest.

use super::nearest::nearest;

/// Names told where none is near.
const MOST_NAMES: usize = 12;

/// What was probably meant: the same name below a direction, the nearest in spelling, or the first few there are.
#[must_use]
pub fn metric_advice(name: &str, here: &[&str]) -> String {
    // A form that does not exist is asked of a metric that may.
    let name = name.rsplit_once("_per_").map_or(name, |(counted, _)| counted);
    let tail = format!(".{name}");
    let mut near: Vec<&str> = here.iter().copied().filter(|known| known.ends_with(&tail)).collect();
    if near.is_empty() {
        near = here.iter().copied().filter(|known| has_parts(known, name)).collect();
        // How long the syncs take is asked for with the same words.
        let of_syncs = format!("sync.lat_ns.{}", name.rsplit('.').next().unwrap_or_default());
        if !near.is_empty() {
            near.extend(here.iter().copied().filter(|known| *known == of_syncs));
        }
    }
    near.dedup();
    near.truncate(3);
    if near.is_empty() {
        near = nearest(name, here.iter().copied(), 3);
    }
    if near.is_empty() {
        let likely = |known: &&str| ends_alike(name, known);
        near = here.iter().copied().filter(likely).take(3).collect();
    }
    if !near.is_empty() {
        return format!("; did you mean {}?", near.join(" or "));
    }
    let mut all: Vec<&str> = here.to_vec();
    all.dedup();
    let more =
        if all.len() > MOST_NAMES { format!(" and {} more", all.len() - MOST_NAMES) } else { String::new() };
    all.truncate(MOST_NAMES);
    format!("; there are {}{more}", all.join(", "))
}

/// Whether a name has all the parts that are asked for, in their order: `write.p99` in `write.clat_ns.p99`.
fn has_parts(known: &str, asked: &str) -> bool {
    let Some((_, last)) = asked.rsplit_once('.') else { return false };
    let mut parts = known.split('.');
    // `p99` is no part of `p99.9`.
    known.ends_with(&format!(".{last}")) && asked.split('.').all(|part| parts.any(|known| known == part))
}

/// Whether the last parts agree: `clat.p99` and `write.clat_ns.p99`.
fn ends_alike(asked: &str, known: &str) -> bool {
    let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let stem = asked.split('.').find(|part| part.len() > 2 && !["read", "write", "trim"].contains(part));
    last(asked) == last(known) && stem.is_none_or(|stem| known.contains(stem.trim_end_matches("_ns")))
}
