//! The analysis on made-up traces.

use super::analysis::Analysis;
use super::class::Class;
use super::error::TraceError;
use super::event::{Action, Device, Event};
use super::flags::Flags;
use super::source::{Item, Lost, Names};
use super::summary::{Settings, Summary};
use super::times::Stage;

fn event(time_ns: u64, action: Action, letters: &str, sector: u64, sectors: u32) -> Event {
    let flags = Flags::from_letters(letters.as_bytes());
    Event { device: Device(8 << 20), flags, sector, sectors, ..Event::at(time_ns, 0, 5, action) }
}

fn run(settings: Settings, events: &[Event]) -> Result<Summary, TraceError> {
    let mut analysis = Analysis::new(settings);
    events.iter().for_each(|event| analysis.feed(&Item::Event(*event)));
    analysis.finish(&Names::default())
}

#[test]
fn stages_add_up_for_each_bio() {
    let events = [
        event(100, Action::Queue, "WS", 0, 8),
        event(110, Action::Queue, "WS", 8, 8),
        event(112, Action::BackMerge, "WS", 8, 8),
        event(120, Action::Insert, "WS", 0, 16),
        event(150, Action::Issue, "WS", 0, 16),
        event(1150, Action::Complete, "WS", 0, 16),
    ];
    let settings = Settings { asked_bytes: Some(4096), ..Settings::default() };
    let found = run(settings, &events).unwrap().device;
    let stages = &found.latencies[&Class::WriteSync];
    let sum = |stage: Stage| (stages[&stage].count, stages[&stage].sum_ns);
    assert_eq!((sum(Stage::Q2i), sum(Stage::Q2d), sum(Stage::Q2c)), ((2, 30), (2, 90), (2, 2090)));
    assert_eq!((sum(Stage::I2d), sum(Stage::D2c)), ((1, 30), (1, 1000)));
    assert_eq!((found.merge_ratio, found.write_amplification), (Some(2.0), Some(2.0)));
    assert_eq!((found.unfinished, found.without_issue), (0, 0));
}

#[test]
fn a_request_that_comes_back_without_an_issue_takes_nothing_from_others() {
    let mut events = vec![
        event(1, Action::Queue, "R", 0, 8),
        event(2, Action::Issue, "R", 0, 8),
        event(3, Action::Issue, "FF", 0, 0),
        event(4, Action::Complete, "FF", 0, 0),
        event(9, Action::Complete, "R", 0, 8),
    ];
    let counts = |events: &[Event]| {
        let counts = run(Settings::default(), events).unwrap().device.counts;
        (counts.reads_issued, counts.read_sectors_issued, counts.flush_commands, counts.requeues)
    };
    assert_eq!(counts(&events), (1, 8, 1, 0));
    events.insert(4, event(5, Action::Requeue, "R", 64, 8));
    events.insert(5, event(6, Action::Requeue, "FF", 0, 0));
    assert_eq!(counts(&events), (1, 8, 1, 2));
    events.insert(6, event(7, Action::Requeue, "R", 0, 8));
    events.insert(7, event(8, Action::Issue, "R", 0, 8));
    assert_eq!(counts(&events), (1, 8, 1, 3));
}

#[test]
fn no_latency_spans_a_hole() {
    let mut analysis = Analysis::new(Settings::default());
    let feed = |analysis: &mut Analysis, event: Event| analysis.feed(&Item::Event(event));
    feed(&mut analysis, event(100, Action::Queue, "R", 0, 8));
    feed(&mut analysis, event(101, Action::Issue, "R", 0, 8));
    analysis.feed(&Item::Lost(Lost { count: None, from_ns: 101, until_ns: 900 }));
    feed(&mut analysis, event(1000, Action::Complete, "R", 0, 8));
    let found = analysis.finish(&Names::default()).unwrap();
    assert!(found.device.latencies.is_empty());
    assert_eq!((found.totals.lost_unknown, found.device.without_issue), (true, 1));
}

#[test]
fn what_other_processors_tell_of_within_a_hole_ends_with_it() {
    let mut analysis = Analysis::new(Settings::default());
    let feed = |analysis: &mut Analysis, event: Event| analysis.feed(&Item::Event(event));
    feed(&mut analysis, event(5, Action::Queue, "R", 64, 8));
    analysis.feed(&Item::Lost(Lost { count: Some(3), from_ns: 10, until_ns: 20 }));
    feed(&mut analysis, event(12, Action::Queue, "W", 0, 8));
    feed(&mut analysis, event(12, Action::Issue, "W", 0, 8));
    // Its completion was lost; the same sectors are written again.
    feed(&mut analysis, event(1000, Action::Queue, "W", 0, 8));
    feed(&mut analysis, event(1000, Action::Issue, "W", 0, 8));
    feed(&mut analysis, event(1100, Action::Complete, "W", 0, 8));
    let stages = &analysis.finish(&Names::default()).unwrap().device.latencies[&Class::Write];
    let of = |stage: Stage| (stages[&stage].count, stages[&stage].sum_ns);
    assert_eq!((of(Stage::D2c), of(Stage::Q2c)), ((1, 100), (1, 100)));
}

#[test]
fn a_partition_and_its_disk_are_one() {
    let part = Device(8 << 20 | 1);
    let mut events = vec![
        event(100, Action::Queue, "R", 0, 8),
        event(101, Action::Issue, "R", 0, 8),
        event(200, Action::Complete, "R", 0, 8),
    ];
    events[0].device = part;
    let settings = Settings { partitions: vec![(part, Device(8 << 20))], ..Settings::default() };
    let found = run(settings, &events).unwrap().device;
    assert_eq!(found.latencies[&Class::Read][&Stage::Q2c].sum_ns, 100);
}

#[test]
fn what_cannot_be_answered_is_refused() {
    assert!(matches!(run(Settings::default(), &[]), Err(TraceError::Empty)));
    let call = [Event::at(5, 0, 1, Action::Marker)];
    assert!(matches!(run(Settings::default(), &call), Err(TraceError::NoBlockEvents { events: 1 })));
    let one = [event(100, Action::Queue, "R", 0, 8)];
    let settings = Settings { device: Some(Device(9 << 20)), ..Settings::default() };
    let said = run(settings, &one).unwrap_err().to_string();
    assert_eq!(said, "the trace has no events of device 9:0; it has 8:0 (1 events)");
    // Completions of which the issues were on a CPU that is missing.
    let mut many = vec![event(1, Action::Issue, "R", 0, 8)];
    many.extend((1..40).map(|i| event(i * 10, Action::Complete, "R", i * 8, 8)));
    assert!(matches!(
        run(Settings::default(), &many),
        Err(TraceError::Incomplete { orphans: 39, completions: 39, .. })
    ));
    // A trace of completions alone has no latencies, and its counts are right.
    assert!(run(Settings::default(), &many[1..]).is_ok());
}
