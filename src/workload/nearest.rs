//! What somebody may have meant by a name that nobody knows.
//!
//! Enters: a name and the known ones. Leaves: the few that are spelled most alike. It must not know what they name.

/// The known names nearest to `name`, best first, at most `count`; names too far away are left out.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let wanted = name.to_ascii_lowercase();
    let mut scored: Vec<(usize, &str)> = known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (wanted.len().max(candidate.len()) / 2).clamp(1, 3))
        .collect();
    scored.sort();
    scored.dedup();
    // Beside a slip of the finger nobody meant what takes three.
    let best = scored.first().map_or(0, |(distance, _)| *distance);
    scored.retain(|(distance, _)| *distance <= best + 1);
    scored.truncate(count);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fio_options::fio_option_names;
    use super::*;

    #[test]
    fn nearest_names_are_offered() {
        assert_eq!(nearest("iodpeth", fio_option_names(), 1), ["iodepth"]);
        assert_eq!(nearest("norandomap", fio_option_names(), 1), ["norandommap"]);
        assert_eq!(nearest("dirct", fio_option_names(), 3), ["direct"]);
        assert!(nearest("zzzzzzzzzzzz", fio_option_names(), 3).is_empty());
    }
}
