//! The audit where events are missing.

use super::analysis::Analysis;
use super::audit_tests::{BEFORE, COMMIT, DATA, Line, event, lines, settings, verdict};
use super::event::Filesystem;
use super::source::{Item, Lost, Names};
use super::unwritten::Unwritten;
use super::verdict::{Reason, Verdict};

#[test]
fn a_hole_before_the_first_event_of_a_device_is_one_of_its_own() {
    let whole = lines(&[&BEFORE, &DATA, &COMMIT, &[(71, 0, "C", "WSM", 1008, 0), (80, 5, "exit", "", 0, 0)]]);
    for until_ns in [19, 0] {
        let mut analysis = Analysis::new(settings(Filesystem::Ext4));
        analysis.feed(&Item::Lost(Lost { count: None, from_ns: 0, until_ns }));
        whole.iter().for_each(|line| analysis.feed(&Item::Event(event(*line))));
        let audit = analysis.finish(&Names::default()).unwrap().device.audit;
        assert_eq!((audit.verdict, audit.reason), (Verdict::Undecidable, Some(Reason::LostEvents)));
    }
}

#[test]
fn nothing_is_said_of_calls_with_a_hole() {
    let whole = lines(&[&BEFORE, &DATA, &COMMIT, &[(71, 0, "C", "WSM", 1008, 0), (80, 5, "exit", "", 0, 0)]]);
    let mut analysis = Analysis::new(settings(Filesystem::Ext4));
    for line in &whole {
        analysis.feed(&Item::Event(event(*line)));
        if line.0 == 15 {
            analysis.feed(&Item::Lost(Lost { count: Some(1), from_ns: 15, until_ns: 19 }));
        }
    }
    let found = analysis.finish(&Names::default()).unwrap();
    assert_eq!(found.device.audit.reason, Some(Reason::LostEvents));
    assert_eq!((found.totals.holes, found.totals.lost_events), (1, 1));
    let before = lines(&[&BEFORE, &[(80, 5, "exit", "", 0, 0)]]);
    assert_eq!(
        verdict(settings(Filesystem::Ext4), &before),
        (Verdict::Undecidable, Some(Reason::BeganBefore))
    );
}

#[test]
fn an_end_that_has_no_record_is_a_doubt_and_no_violation() {
    let unfinished = lines(&[&BEFORE, &DATA[..3], &[(80, 5, "exit", "", 0, 0)]]);
    let judged = |missing: Option<Unwritten>, whole: &[Line]| {
        let mut analysis = Analysis::new(settings(Filesystem::Ext4));
        whole.iter().for_each(|line| analysis.feed(&Item::Event(event(*line))));
        missing.into_iter().for_each(|missing| analysis.feed(&Item::Unwritten(missing)));
        let found = analysis.finish(&Names::default()).unwrap();
        let audit = found.device.audit;
        (audit.verdict, audit.reason, audit.passed, found.totals.unwritten_events)
    };
    let end = Some(Unwritten { ends: 1, others: 0 });
    assert_eq!(judged(None, &unfinished), (Verdict::Violation, Some(Reason::ReturnedBeforeWrite), 0, 0));
    assert_eq!(judged(end, &unfinished), (Verdict::Undecidable, Some(Reason::LostEvents), 0, 1));
    // What was seen to be behind its flush is so whatever else is missing, unless it may be a write.
    let whole = lines(&[&BEFORE, &DATA, &COMMIT, &[(71, 0, "C", "WSM", 1008, 0), (80, 5, "exit", "", 0, 0)]]);
    assert_eq!(judged(end, &whole), (Verdict::Pass, None, 1, 1));
    // That nobody asked for a flush needs no end to be seen.
    let unflushed = lines(&[&BEFORE, &DATA, &[(20, 5, "exit", "", 0, 0)]]);
    assert_eq!(judged(end, &unflushed), (Verdict::Violation, Some(Reason::DataNotFlushed), 0, 1));
    // Of two writes of the same sectors nobody knows which one ended.
    let twice = [(13, 9, "Q", "WS", 64, 8), (14, 9, "D", "WS", 64, 8)];
    let twice = lines(&[&BEFORE, &DATA[..3], &twice, &DATA[3..], &COMMIT, &[(80, 5, "exit", "", 0, 0)]]);
    assert_eq!(judged(end, &twice), (Verdict::Undecidable, Some(Reason::LostEvents), 0, 1));
    let other = Some(Unwritten { ends: 0, others: 2 });
    assert_eq!(judged(other, &whole), (Verdict::Undecidable, Some(Reason::LostEvents), 0, 2));
}
