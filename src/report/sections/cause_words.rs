//! What a cause is, in words.
//!
//! Enters: what analyse found. Leaves: a few words without a time, and figures of what shows it. It must not know how causes are listed.

use super::budget::called;
use crate::analyse::{Cause, Evidence, What};
use crate::record::Direction;
use crate::report::layout::one_line;
use crate::report::words::{NBSP, Names};
use crate::units::{Unit, format_number};

/// Counts below this are small beside others.
const SMALL: f64 = 0.01;
/// And no figures at all below this.
const SMALLEST: f64 = 0.0001;

/// A cause in words, in one line: functions, locks and facts are called what somebody's store calls them. A rule says what the worse arm
/// has; the words say what the candidate has, as all figures beside them do.
pub(super) fn what(cause: &Cause, names: &Names<'_>) -> String {
    let fell = cause.evidence.first().is_some_and(|shown| shown.candidate < shown.baseline);
    one_line(&named(&cause.what, fell, names))
}

/// `fell`: what shows the cause is less with the candidate.
fn named(what: &What, fell: bool, names: &Names<'_>) -> String {
    let other = |rest: &bool| if *rest { "other " } else { "" };
    let side = |rises: &'static str, falls: &'static str| if fell { falls } else { rises };
    match what {
        What::Copying => "kernel CPU in copying".to_owned(),
        What::Subsystem(part) => format!("kernel CPU in {part}"),
        What::Lock { kind, caller, spins: false } => format!("waits for {} at {caller}", kind_words(kind)),
        What::Lock { kind, caller, spins: true } => format!("spins for {} at {caller}", kind_words(kind)),
        What::Flush { at } => format!("waits for a flush at {at}"),
        What::Commit { at } => format!("waits for a journal commit at {at}"),
        What::Sleep { at } => format!("sleeps at {at}"),
        What::UserFunction(function) => format!("user CPU in {function}"),
        What::UserTime { rest } => format!("{}user CPU", other(rest)),
        What::KernelTime { rest } => format!("{}kernel CPU", other(rest)),
        What::ProcessorTime { rest } => format!("{}CPU", other(rest)),
        What::WaitingToRun => "waiting to run (for a processor)".to_owned(),
        What::Storage { rest } => format!("{}waiting for storage", other(rest)),
        What::Asleep { rest: false, with } => called(*with).to_owned(),
        What::Asleep { rest: true, .. } => "asleep elsewhere".to_owned(),
        What::MoreFlushes => format!("{} flushes", side("more", "fewer")),
        What::DeviceBytes { direction } => {
            format!("the device {} {} for each byte asked", verb(*direction), side("more", "less"))
        }
        What::SmallerRequests { direction } => {
            format!("{} {} requests at the device", side("larger", "smaller"), direction.name())
        }
        What::OwnerChanges => format!("files lie {} between each other on the device", side("more", "less")),
        What::QueueDepth => format!("{} requests under way at the device", side("more", "fewer")),
        What::WorkerThreads { arm } => {
            format!("io_uring hands I/Os to worker threads with {}", names.arm(arm))
        }
        What::PageCache { arm, direction } => {
            format!("the page cache serves the {}s of {}", direction.name(), names.arm(arm))
        }
        What::SlowerDevice { direction } => {
            let long = side("longer", "less long");
            format!("the same {} requests take {long}: it is the device, not the software", direction.name())
        }
        What::MachineSetting { fact, values } => {
            let of_arm = |(arm, value): &(String, String)| format!("{value} with {}", names.arm(arm));
            let values: Vec<String> = values.iter().map(of_arm).collect();
            format!("{fact} is {}, which no factor declares", values.join(", "))
        }
        What::StolenTime => {
            format!("the hypervisor took {} processor time: it is the machine", side("more", "less"))
        }
        What::SlowerProcessor => {
            let [speed, moved] = if fell { ["faster", "fell"] } else { ["slower", "grew"] };
            format!("a {speed} processor, by its clock: user and kernel CPU {moved} alike")
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

/// Both values of a metric have a scale of their own: one may be a thousand times the other. Of two small counts both are told.
pub(super) fn figure(shown: &Evidence, value: f64) -> String {
    let larger = shown.baseline.abs().max(shown.candidate.abs());
    let text = match (&shown.unit, value) {
        (_, 0.0) => "0".to_owned(),
        (Unit::Count, value) if larger < SMALL && value.abs() >= SMALLEST => format!("{value:.5}"),
        (Unit::Count, value) if value.abs() < SMALL => {
            format!("<{}", if larger < SMALL { SMALLEST } else { SMALL })
        }
        (unit, value) => format_number(unit, value),
    };
    text.replace(' ', &NBSP.to_string())
}

/// Whether both figures read the same: such evidence shows nothing.
pub(super) fn reads_the_same(shown: &Evidence) -> bool {
    figure(shown, shown.baseline) == figure(shown, shown.candidate)
}

/// Whether there is anything to see of a cause: one without a time whose figures read the same has nothing.
pub(super) fn is_seen(cause: &Cause) -> bool {
    cause.time.is_some() || cause.evidence.is_empty() || !cause.evidence.iter().all(reads_the_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::Grade;

    fn said(what: What, shown: Option<(f64, f64)>) -> String {
        let evidence = shown.map(|(baseline, candidate)| Evidence {
            metric: "a".to_owned(),
            unit: Unit::Count,
            baseline,
            candidate,
            difference: None,
        });
        let evidence = evidence.into_iter().collect();
        let (grade, part, time, share) = (Grade::GoesWith, None, None, None);
        let cause = Cause {
            rule: "rule",
            grade,
            what,
            part,
            time,
            of_all_jobs: false,
            share,
            distorted: false,
            renamed: false,
            evidence,
        };
        super::what(&cause, &Names::of_factor("direct"))
    }

    #[test]
    fn a_name_of_a_store_stays_in_one_line() {
        let caller = "f\u{1b}[31m\ng".to_owned();
        let lock = What::Lock { kind: "rwsem_W".to_owned(), caller, spins: false };
        assert_eq!(said(lock, None), "waits for rwsem:W at f [31m g");
        let setting = What::MachineSetting {
            fact: "cpu.governor".to_owned(),
            values: vec![("0".to_owned(), "a\nb".to_owned()), ("1".to_owned(), "c".to_owned())],
        };
        let expected = "cpu.governor is a b with direct=0, c with direct=1, which no factor declares";
        assert_eq!(said(setting, None), expected);
    }

    #[test]
    fn figures_that_read_the_same_show_nothing() {
        let shown = |unit: Unit, baseline: f64, candidate: f64| {
            let difference = None;
            let shown = Evidence { metric: "a".to_owned(), unit, baseline, candidate, difference };
            (figure(&shown, baseline), figure(&shown, candidate), reads_the_same(&shown))
        };
        let said = |a: &str, b: &str, same: bool| (a.to_owned(), b.to_owned(), same);
        assert_eq!(shown(Unit::Count, 0.001, 1.0), said("<0.01", "1.00", false));
        assert_eq!(shown(Unit::Count, 0.0031, 0.0062), said("0.00310", "0.00620", false));
        assert_eq!(shown(Unit::Count, 0.00002, 0.00003), said("<0.0001", "<0.0001", true));
        assert_eq!(shown(Unit::Count, 1.0001, 1.0002), said("1.00", "1.00", true));
        assert_eq!(shown(Unit::Seconds, 0.0, 0.0), said("0", "0", true));
    }

    #[test]
    fn words_say_what_the_candidate_has_whichever_arm_is_worse() {
        let direction = Direction::Write;
        for (what, rises, falls) in [
            (What::MoreFlushes, "more flushes", "fewer flushes"),
            (
                What::DeviceBytes { direction },
                "the device writes more for each byte asked",
                "the device writes less for each byte asked",
            ),
            (
                What::SmallerRequests { direction },
                "larger write requests at the device",
                "smaller write requests at the device",
            ),
            (
                What::OwnerChanges,
                "files lie more between each other on the device",
                "files lie less between each other on the device",
            ),
            (
                What::QueueDepth,
                "more requests under way at the device",
                "fewer requests under way at the device",
            ),
            (
                What::SlowerDevice { direction },
                "the same write requests take longer: it is the device, not the software",
                "the same write requests take less long: it is the device, not the software",
            ),
            (
                What::StolenTime,
                "the hypervisor took more processor time: it is the machine",
                "the hypervisor took less processor time: it is the machine",
            ),
            (
                What::SlowerProcessor,
                "a slower processor, by its clock: user and kernel CPU grew alike",
                "a faster processor, by its clock: user and kernel CPU fell alike",
            ),
        ] {
            assert_eq!(said(what.clone(), Some((1.0, 2.0))), rises);
            assert_eq!(said(what, Some((2.0, 1.0))), falls);
        }
    }
}
