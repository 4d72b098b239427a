//! The names of what can be watched besides what always is: observers, and tracepoints that are only counted.
//!
//! Enters: names as written. Leaves: which of them are known, and all in one order.

/// Observers; what each watches is in `observe`.
pub const OBSERVERS: &[&str] = &["extents", "cpu", "locks", "waits", "blocks", "fs"];
/// What an unknown name is told.
pub const OR_A_TRACEPOINT: &str = "a tracepoint to count, such as block:block_plug";

/// Whether this is a tracepoint as perf(1) writes it, `block:block_plug`. Nothing in it leads to another directory.
#[must_use]
pub fn is_tracepoint(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_word = |word: &str| !word.is_empty() && word.chars().all(fits);
    name.split_once(':').is_some_and(|(group, event)| is_word(group) && is_word(event))
}

/// Whether something of this name can be watched.
#[must_use]
pub fn is_observer(name: &str) -> bool {
    OBSERVERS.contains(&name) || is_tracepoint(name)
}

/// Those that are known, each once: observers in the order of [`OBSERVERS`], then tracepoints as they were written.
#[must_use]
pub fn in_order<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let wanted = |known: &&str| names.clone().any(|name| name == *known);
    let mut ordered: Vec<String> = OBSERVERS.iter().copied().filter(wanted).map(str::to_owned).collect();
    for name in names.filter(|name| is_tracepoint(name)) {
        if !ordered.iter().any(|known| known == name) {
            ordered.push(name.to_owned());
        }
    }
    ordered
}

/// The count of a tracepoint as a metric, and the same for each operation.
#[must_use]
pub fn metrics_of_tracepoint(name: &str) -> Option<[String; 2]> {
    let place = is_tracepoint(name).then(|| name.replace(':', "."))?;
    Some(["events", "events_per_op"].map(|what| format!("{what}.{place}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracepoint_is_a_group_and_an_event_and_never_a_path() {
        assert!(is_tracepoint("block:block_plug") && is_tracepoint("i915:a-b"));
        for name in ["locks", "block:", ":block_plug", "block:../../etc", "a:b:c", "a/b:c", "a:b c", ""] {
            assert!(!is_tracepoint(name) && metrics_of_tracepoint(name).is_none(), "{name}");
        }
        assert!(is_observer("locks") && is_observer("a:b") && !is_observer("lock"));
    }

    #[test]
    fn each_is_there_once_and_what_is_counted_comes_last() {
        let written =
            ["lock:contention_begin", "waits", "a:b", "cpu", "waits", "lock:contention_begin", "no"];
        assert_eq!(in_order(written.into_iter()), ["cpu", "waits", "lock:contention_begin", "a:b"]);
    }

    #[test]
    fn a_count_has_a_form_for_each_operation() {
        let metrics = metrics_of_tracepoint("block:block_plug").unwrap();
        assert_eq!(metrics, ["events.block.block_plug", "events_per_op.block.block_plug"]);
    }
}
