//! The names of what can be watched besides what always is: observers, tracepoints that are only counted, and a server that does the
//! work of a command.
//!
//! Enters: names as written. Leaves: which of them are known, and all in one order.

/// One observer; what it watches is in `observe`.
#[derive(Clone, Copy, Debug)]
pub struct ObserverRow {
    /// What it is asked for by.
    pub name: &'static str,
    /// Seconds that it adds to a trial: tracepoints are opened before it and closed behind it, and the kernel waits for all processors
    /// when it closes one. Measured with two processors.
    pub trial_s: f64,
}

/// All observers, in the order in which they are started.
pub const OBSERVERS: &[ObserverRow] = &[
    ObserverRow { name: "extents", trial_s: 0.0 },
    ObserverRow { name: "cpu", trial_s: 0.05 },
    ObserverRow { name: "locks", trial_s: 0.15 },
    ObserverRow { name: "waits", trial_s: 0.15 },
    ObserverRow { name: "calls", trial_s: 0.25 },
    ObserverRow { name: "blocks", trial_s: 0.65 },
    ObserverRow { name: "fs", trial_s: 0.95 },
];
/// What an unknown name is told.
pub const OR_A_TRACEPOINT: &str = "a tracepoint, such as block:block_plug or NAME=GROUP:EVENT/FILTER/, or of a command the server that works for it, server=NAME";

/// What stands before the name of a server whose processes are watched: `server=postgres`.
const SERVER: &str = "server=";

/// The server that is meant, if this is how one is asked for: the name of a program, a process number, a file that holds one, or a unit of
/// systemd.
#[must_use]
pub fn server_of(name: &str) -> Option<&str> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_-./@".contains(letter);
    name.strip_prefix(SERVER).filter(|server| !server.is_empty() && server.chars().all(fits))
}

/// A tracepoint to count as it is written: `block:block_plug` as for perf(1), or `NAME=block:block_rq_issue/nr_sector > 256/`, where only
/// the hits count that the kernel's filter lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedEvent<'n> {
    /// What its metrics are called; needed with a filter, because the tracepoint's name stands for all its hits.
    pub name: Option<&'n str>,
    /// The subsystem that has it.
    pub group: &'n str,
    /// The tracepoint.
    pub event: &'n str,
    /// Which hits count, as the kernel writes it (Documentation/trace/events.rst); fields that are texts cannot be asked.
    pub filter: Option<&'n str>,
}

impl<'n> CountedEvent<'n> {
    /// `None`: it is not written like one. Nothing in it leads to another directory.
    #[must_use]
    pub fn of(written: &'n str) -> Option<CountedEvent<'n>> {
        let (name, event) = match written.split_once('=').filter(|(name, _)| is_word(name)) {
            Some((name, event)) => (Some(name), event),
            None => (None, written),
        };
        let (event, filter) = match event.split_once('/') {
            Some((event, filter)) => (event, Some(filter.strip_suffix('/').map(str::trim)?)),
            None => (event, None),
        };
        let (group, event) = event.split_once(':')?;
        let fits = is_word(group)
            && is_word(event)
            && filter.is_none_or(|filter| name.is_some() && is_filter(filter));
        fits.then_some(CountedEvent { name, group, event, filter })
    }

    /// As perf(1) writes it.
    #[must_use]
    pub fn tracepoint(&self) -> String {
        format!("{}:{}", self.group, self.event)
    }
}

fn is_word(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
}

/// Commas and plus signs stand between observers.
fn is_filter(filter: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_ &|!=<>()-".contains(letter);
    !filter.is_empty() && filter.chars().all(fits)
}

/// Whether this is a tracepoint to count.
#[must_use]
pub fn is_tracepoint(name: &str) -> bool {
    CountedEvent::of(name).is_some()
}

/// Whether something of this name can be watched.
#[must_use]
pub fn is_observer(name: &str) -> bool {
    observer_names().any(|known| known == name) || is_tracepoint(name) || server_of(name).is_some()
}

/// The names of all observers, in their order.
pub fn observer_names() -> impl Iterator<Item = &'static str> + Clone {
    OBSERVERS.iter().map(|row| row.name)
}

/// All of them, as a sentence names them.
#[must_use]
pub fn observers_listed() -> String {
    observer_names().collect::<Vec<_>>().join(", ")
}

/// Those that are known, each once: a server, observers in the order of [`OBSERVERS`], then tracepoints as they were written.
#[must_use]
pub fn in_order<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let wanted = |known: &&str| names.clone().any(|name| name == *known);
    let server = names.clone().find(|name| server_of(name).is_some()).map(str::to_owned);
    let mut ordered: Vec<String> = server.into_iter().collect();
    ordered.extend(observer_names().filter(wanted).map(str::to_owned));
    for name in names.filter(|name| is_tracepoint(name)) {
        if !ordered.iter().any(|known| known == name) {
            ordered.push(name.to_owned());
        }
    }
    ordered
}

/// A name that two of these tracepoints have, so that their counts could not be told apart.
#[must_use]
pub fn named_twice<'n>(names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for written in names {
        let Some(name) = CountedEvent::of(written).and_then(|counted| counted.name) else { continue };
        if seen.iter().any(|(known, other)| *known == name && *other != written) {
            return Some(name);
        }
        seen.push((name, written));
    }
    None
}

/// The count of a tracepoint as a metric, and the same for each operation.
#[must_use]
pub fn metrics_of_tracepoint(name: &str) -> Option<[String; 2]> {
    let counted = CountedEvent::of(name)?;
    let place = counted.name.map_or_else(|| format!("{}.{}", counted.group, counted.event), str::to_owned);
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
    fn a_filter_needs_a_name_for_what_it_lets_through() {
        let counted = CountedEvent::of("large=block:block_rq_issue/nr_sector > 256 && (rwbs == 1)/").unwrap();
        assert_eq!((counted.name, counted.tracepoint().as_str()), (Some("large"), "block:block_rq_issue"));
        assert_eq!(counted.filter, Some("nr_sector > 256 && (rwbs == 1)"));
        assert_eq!(
            metrics_of_tracepoint("large=a:b/c == -1/").unwrap(),
            ["events.large", "events_per_op.large"]
        );
        assert_eq!(metrics_of_tracepoint("plug=block:block_plug").unwrap()[0], "events.plug");
        for name in [
            "a:b/c > 1/", "n=a:b/c > 1", "n=a:b//", "n=a:b/c,d/", "n=a:b/c/d/", "n.m=a:b", "=a:b",
            "n=a:b/\"x\"/", "n=m=a:b",
        ] {
            assert!(!is_tracepoint(name), "{name}");
        }
    }

    #[test]
    fn two_counts_have_two_names() {
        let of = |names: &[&'static str]| named_twice(names.iter().copied());
        assert_eq!(of(&["n=a:b", "n=a:c", "a:b"]), Some("n"));
        assert_eq!(of(&["n=a:b", "n=a:b", "m=a:b", "a:b", "cpu"]), None);
    }

    #[test]
    fn a_server_is_a_name_and_no_tracepoint() {
        for (written, server) in [
            ("server=postgres", Some("postgres")),
            ("server=postgresql@17-main.service", Some("postgresql@17-main.service")),
            ("server=/run/mysqld/mysqld.pid", Some("/run/mysqld/mysqld.pid")),
            ("server=1234", Some("1234")),
            ("server=", None),
            ("server=a b", None),
            ("server=block:block_plug", None),
            ("postgres", None),
        ] {
            assert_eq!(server_of(written), server, "{written}");
        }
        assert!(is_observer("server=postgres") && is_tracepoint("server=block:block_plug"));
        assert_eq!(in_order(["cpu", "a:b", "server=x"].into_iter()), ["server=x", "cpu", "a:b"]);
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
