//! What a cause is, in words.
//!
//! Enters: what analyse found. Leaves: a few words without a time, and figures of what shows it. It must not know how causes are listed.

use super::budget::called;
use crate::analyse::{Evidence, What};
use crate::record::Direction;
use crate::report::layout::one_line;
use crate::report::words::{NBSP, Names};
use crate::units::{Unit, format_number};

/// A cause in words, in one line: functions, locks and facts are called what somebody's store calls them.
pub(super) fn what(what: &What, names: &Names<'_>) -> String {
    one_line(&named(what, names))
}

fn named(what: &What, names: &Names<'_>) -> String {
    let other = |rest: &bool| if *rest { "other " } else { "" };
    match what {
        What::Copying => "kernel CPU in copying".to_owned(),
        What::Subsystem(part) => format!("kernel CPU in {part}"),
        What::Lock { kind, caller, spins: false } => format!("waits for {} at {caller}", kind_words(kind)),
        What::Lock { kind, caller, spins: true } => format!("spins for {} at {caller}", kind_words(kind)),
        What::Flush { at } => format!("waits for a flush at {at}"),
        What::Commit { at } => format!("waits for a journal commit at {at}"),
        What::Sleep { at } => format!("sleeps at {at}"),
        What::UserTime => "user CPU".to_owned(),
        What::KernelTime { rest } => format!("{}kernel CPU", other(rest)),
        What::WaitingToRun => "waiting to run (processors were busy)".to_owned(),
        What::Storage { rest } => format!("{}waiting for storage", other(rest)),
        What::Asleep { rest: false, with } => called(*with).to_owned(),
        What::Asleep { rest: true, .. } => "asleep elsewhere".to_owned(),
        What::MoreFlushes => "more flushes".to_owned(),
        What::DeviceBytes { direction } => format!("the device {} more than is asked for", verb(*direction)),
        What::SmallerRequests { direction } => format!("smaller {} requests at the device", direction.name()),
        What::OwnerChanges => "files lie between each other on the device".to_owned(),
        What::QueueDepth => "fewer requests under way at the device".to_owned(),
        What::WorkerThreads { arm } => {
            format!("io_uring hands I/Os to worker threads with {}", names.arm(arm))
        }
        What::PageCache { arm, direction } => {
            format!("the page cache serves the {}s of {}", direction.name(), names.arm(arm))
        }
        What::SlowerDevice { direction } => {
            format!("the same {} requests take longer: it is the device, not the software", direction.name())
        }
        What::MachineSetting { fact, values } => {
            let of_arm = |(arm, value): &(String, String)| format!("{value} with {}", names.arm(arm));
            let values: Vec<String> = values.iter().map(of_arm).collect();
            format!("{fact} is {}, which no factor declares", values.join(", "))
        }
        What::SlowerProcessor => {
            "a slower processor, by its clock or stolen time: user and kernel CPU grew alike".to_owned()
        }
    }
}

/// `rwsem:W` of `rwsem_W`, as perf-lock(1) writes it.
pub(super) fn kind_words(kind: &str) -> String {
    match kind.rsplit_once('_') {
        Some((lock, side @ ("R" | "W"))) => format!("{lock}:{side}"),
        _ => kind.to_owned(),
    }
}

fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "reads",
        Direction::Write => "writes",
        Direction::Trim => "discards",
    }
}

/// Both values of a metric have a scale of their own: one may be a thousand times the other.
pub(super) fn figure(shown: &Evidence, value: f64) -> String {
    let text = match (&shown.unit, value) {
        (_, 0.0) => "0".to_owned(),
        (Unit::Count, value) if value.abs() < 0.01 => "<0.01".to_owned(),
        (unit, value) => format_number(unit, value),
    };
    text.replace(' ', &NBSP.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_store_stays_in_one_line() {
        let names = Names::of_factor("direct");
        let caller = "f\u{1b}[31m\ng".to_owned();
        let lock = What::Lock { kind: "rwsem_W".to_owned(), caller, spins: false };
        assert_eq!(what(&lock, &names), "waits for rwsem:W at f [31m g");
        let setting = What::MachineSetting {
            fact: "cpu.governor".to_owned(),
            values: vec![("0".to_owned(), "a\nb".to_owned()), ("1".to_owned(), "c".to_owned())],
        };
        let said = "cpu.governor is a b with direct=0, c with direct=1, which no factor declares";
        assert_eq!(what(&setting, &names), said);
    }
}
