//! The audit on made-up traces: each rule fires, and keeps silent where it should.

use super::analysis::Analysis;
use super::event::{Action, Call, Device, Event, Filesystem};
use super::flags::Flags;
use super::source::{Item, Names};
use super::summary::{Settings, Summary};
use super::verdict::{JournalRange, Reason, Verdict, WriteCache};

const DISK: Device = Device(7 << 20 | 1);

/// A line of a made-up trace: time, task, action in blktrace's letters, flags, sector, sectors.
pub(super) type Line<'a> = (u64, u32, &'a str, &'a str, u64, u32);

pub(super) fn event((time_ns, pid, action, letters, sector, sectors): Line<'_>) -> Event {
    let (action, error) = match action {
        "Q" => (Action::Queue, 0),
        "D" => (Action::Issue, 0),
        "C" => (Action::Complete, 0),
        "B" => (Action::BioComplete, 0),
        "CE" => (Action::Complete, -5),
        "enter" => (Action::Enter(Call::Fsync), 0),
        "exit" => (Action::Exit(Call::Fsync), 0),
        "fail" => (Action::Exit(Call::Fsync), -5),
        "ext4" => (Action::FileSync(Filesystem::Ext4), 0),
        "end" => (Action::FileSyncEnd, 0),
        other => panic!("{other}"),
    };
    let flags = Flags::from_letters(letters.as_bytes());
    let device = if letters == "elsewhere" { Device(8 << 20) } else { DISK };
    Event { device, flags, sector, sectors, error, ..Event::at(time_ns, 0, pid, action) }
}

pub(super) fn settings(filesystem: Filesystem) -> Settings {
    Settings {
        filesystem: Some(filesystem),
        journal: JournalRange::new(1000, 2000),
        write_cache: Some(WriteCache::Back),
        ..Settings::default()
    }
}

fn summary(settings: Settings, lines: &[Line<'_>]) -> Summary {
    let mut analysis = Analysis::new(settings);
    for line in lines {
        analysis.feed(&Item::Event(event(*line)));
    }
    analysis.finish(&Names::default()).unwrap()
}

pub(super) fn verdict(settings: Settings, lines: &[Line<'_>]) -> (Verdict, Option<Reason>) {
    let audit = summary(settings, lines).device.audit;
    (audit.verdict, audit.reason)
}

#[test]
fn what_was_named_and_the_trace_contradicts_is_not_believed() {
    let synced = [(11, 5, "ext4", "", 77, 0)];
    let whole = lines(&[&BEFORE, &DATA[..1], &synced, &DATA[1..], &COMMIT, &[(71, 5, "exit", "", 0, 0)]]);
    assert_eq!(verdict(settings(Filesystem::Ext4), &whole), (Verdict::Pass, None));
    let xfs = verdict(settings(Filesystem::Xfs), &whole);
    assert_eq!(xfs, (Verdict::Undecidable, Some(Reason::FilesystemContradicted)));
    // No commit record is where it should be, so that none was judged.
    let elsewhere = Settings { journal: JournalRange::new(5000, 6000), ..settings(Filesystem::Ext4) };
    assert_eq!(verdict(elsewhere, &whole), (Verdict::Undecidable, Some(Reason::JournalContradicted)));
}

/// Something before the call, so that the device is known and nothing is in flight.
pub(super) const BEFORE: [Line<'_>; 3] =
    [(1, 9, "Q", "R", 0, 8), (2, 9, "D", "R", 0, 8), (3, 9, "C", "R", 0, 8)];

/// An fsync that writes 8 sectors of data from 11 to 15.
pub(super) const DATA: [Line<'_>; 4] = [
    (10, 5, "enter", "", 3, 0),
    (11, 5, "Q", "WS", 64, 8),
    (12, 5, "D", "WS", 64, 8),
    (15, 0, "C", "WS", 64, 8),
];

/// A commit record after it, with both flags, from 20 to 70.
pub(super) const COMMIT: [Line<'_>; 7] = [
    (20, 6, "Q", "FWFSM", 1008, 2),
    (21, 7, "D", "FF", 0, 0),
    (40, 0, "C", "FF", u64::MAX, 0),
    (41, 7, "D", "WSM", 1008, 2),
    (50, 0, "C", "WSM", 1008, 2),
    (51, 7, "D", "FF", 0, 0),
    (70, 0, "C", "FF", u64::MAX, 0),
];

pub(super) fn lines<'a>(parts: &[&[Line<'a>]]) -> Vec<Line<'a>> {
    parts.concat()
}

#[test]
fn data_and_commit_behind_flushes_pass() {
    let whole = lines(&[&BEFORE, &DATA, &COMMIT, &[(71, 0, "C", "WSM", 1008, 0), (80, 5, "exit", "", 0, 0)]]);
    for filesystem in Filesystem::ALL {
        let audit = summary(settings(filesystem), &whole).device.audit;
        assert_eq!((audit.verdict, audit.calls, audit.passed), (Verdict::Pass, 1, 1), "{filesystem:?}");
    }
    let commits = summary(settings(Filesystem::Ext4), &whole).device.audit.commits;
    assert_eq!((commits.queued, commits.in_order, commits.durable, commits.not_durable), (1, 1, 1, 0));
    // A flush alone, without a commit, is what an overwrite needs.
    let flush = [
        (20, 5, "Q", "FWS", 0, 0),
        (21, 7, "D", "FF", 0, 0),
        (40, 0, "C", "FF", 0, 0),
        (41, 0, "C", "WS", 0, 0),
    ];
    let overwrite = lines(&[&BEFORE, &DATA, &flush, &[(80, 5, "exit", "", 0, 0)]]);
    assert_eq!(verdict(settings(Filesystem::F2fs), &overwrite), (Verdict::Pass, None));
}

#[test]
fn who_wrote_nothing_waits_for_a_write_of_another() {
    let call = [(10, 5, "enter", "", 3, 0), (11, 5, "exit", "", 0, 0)];
    assert_eq!(verdict(settings(Filesystem::Xfs), &lines(&[&BEFORE, &call])), (Verdict::Pass, None));
    let write = [(4, 8, "Q", "W", 64, 8), (5, 8, "D", "W", 64, 8)];
    let in_flight = lines(&[&BEFORE, &write, &call, &[(12, 0, "C", "W", 64, 8)]]);
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &in_flight),
        (Verdict::Undecidable, Some(Reason::WhoseWrites))
    );
}

#[test]
fn a_flush_of_somebody_else_before_the_commit_is_no_pass() {
    let foreign = [(16, 7, "D", "FF", 0, 0), (18, 0, "C", "FF", 0, 0)];
    let plain = [(20, 6, "Q", "WSM", 1008, 2), (21, 6, "D", "WSM", 1008, 2), (30, 0, "C", "WSM", 1008, 2)];
    let whole = lines(&[&BEFORE, &DATA, &foreign, &plain, &[(31, 5, "exit", "", 0, 0)]]);
    let with_journal = settings(Filesystem::Ext4);
    assert!(with_journal.journal.is_some_and(|journal| journal.holds(1008)));
    assert_eq!(verdict(with_journal, &whole), (Verdict::Undecidable, Some(Reason::WhoseWrites)));
    let anywhere = Settings { journal: None, ..settings(Filesystem::Ext4) };
    assert_eq!(verdict(anywhere, &whole), (Verdict::Undecidable, Some(Reason::WhoseWrites)));
}

#[test]
fn without_barriers_the_first_call_is_named() {
    // What ext4 does with barrier=0: the journal is written without flags.
    let plain = [(20, 6, "Q", "WSM", 1008, 2), (21, 6, "D", "WSM", 1008, 2), (30, 0, "C", "WSM", 1008, 2)];
    let whole = lines(&[&BEFORE, &DATA, &plain, &[(31, 5, "exit", "", 0, 0)]]);
    let audit = summary(settings(Filesystem::Ext4), &whole).device.audit;
    assert_eq!((audit.verdict, audit.reason), (Verdict::Violation, Some(Reason::DataNotFlushed)));
    let first = audit.first_violation.unwrap();
    assert_eq!((first.pid, first.descriptor, first.entered_ns, first.returned_ns), (5, Some(3), 9, 30));
    // Metadata only: the filesystem says which device it is, and journal writes end in the call.
    let metadata = lines(&[
        &BEFORE,
        &[(10, 5, "enter", "", 3, 0), (11, 5, "ext4", "", 12, 0)],
        &plain,
        &[(30, 5, "end", "", 12, 0), (31, 5, "exit", "", 0, 0)],
    ]);
    let audit = summary(settings(Filesystem::Ext4), &metadata).device.audit;
    assert_eq!(audit.reason, Some(Reason::CommitNotFlushed));
    assert_eq!(audit.first_violation.and_then(|violation| violation.inode), Some(12));
    // The same in front of a device whose completed writes are durable.
    let through = Settings { write_cache: Some(WriteCache::Through), ..settings(Filesystem::Ext4) };
    assert_eq!(verdict(through, &whole), (Verdict::Pass, None));
    let unknown = Settings { write_cache: None, ..settings(Filesystem::Ext4) };
    assert_eq!(verdict(unknown, &whole), (Verdict::Undecidable, Some(Reason::UnknownWriteCache)));
    let unknown = Settings { filesystem: None, ..settings(Filesystem::Ext4) };
    assert_eq!(verdict(unknown, &whole), (Verdict::Undecidable, Some(Reason::UnknownFilesystem)));
}

#[test]
fn a_flush_must_begin_after_the_data_are_complete() {
    let early = [
        (10, 5, "enter", "", 3, 0),
        (11, 5, "Q", "WS", 64, 8),
        (12, 5, "D", "WS", 64, 8),
        (13, 7, "D", "FF", 0, 0),
        (15, 0, "C", "WS", 64, 8),
        (20, 0, "C", "FF", 0, 0),
        (21, 5, "exit", "", 0, 0),
    ];
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &lines(&[&BEFORE, &early])),
        (Verdict::Violation, Some(Reason::DataNotFlushed))
    );
    // With a second flush in flight it may have been the other one that completed.
    let mut two = lines(&[&BEFORE, &early]);
    two.insert(8, (16, 7, "D", "FF", 0, 0));
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &two),
        (Verdict::Undecidable, Some(Reason::SeveralFlushes))
    );
    // A flush that fails makes nothing durable.
    let failed = [(20, 7, "D", "FF", 0, 0), (30, 0, "CE", "FF", 0, 0), (31, 5, "exit", "", 0, 0)];
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &lines(&[&BEFORE, &DATA, &failed])),
        (Verdict::Violation, Some(Reason::DataNotFlushed))
    );
}

#[test]
fn the_commit_must_come_after_the_data_and_be_durable() {
    // A commit record with FUA and without the flush before it, on XFS.
    let early = [
        (20, 5, "Q", "WFSM", 1008, 2),
        (21, 7, "D", "WSM", 1008, 2),
        (30, 0, "C", "WSM", 1008, 2),
        (31, 7, "D", "FF", 0, 0),
        (40, 0, "C", "FF", 0, 0),
        (41, 0, "C", "WSM", 1008, 0),
        (42, 5, "exit", "", 0, 0),
    ];
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &lines(&[&BEFORE, &DATA, &early])),
        (Verdict::Violation, Some(Reason::CommitBeforeData))
    );
    // The flush behind the commit record is missing although its end was said.
    let weak =
        lines(&[&BEFORE, &DATA, &COMMIT[..5], &[(51, 0, "C", "WSM", 1008, 0), (52, 5, "exit", "", 0, 0)]]);
    assert_eq!(
        verdict(settings(Filesystem::Ext4), &weak),
        (Verdict::Violation, Some(Reason::CommitNotDurable))
    );
    // A device that knows FUA needs no flush behind it.
    let mut fua =
        lines(&[&BEFORE, &DATA, &COMMIT[..5], &[(51, 0, "C", "WSM", 1008, 0), (52, 5, "exit", "", 0, 0)]]);
    for line in &mut fua {
        if line.4 == 1008 && line.2 != "Q" {
            line.3 = "WFSM";
        }
    }
    assert_eq!(verdict(settings(Filesystem::Ext4), &fua), (Verdict::Pass, None));
    // The superblock of btrfs without FUA.
    let superblock = [
        (20, 5, "Q", "WSM", 128, 8),
        (21, 5, "D", "WSM", 128, 8),
        (30, 0, "C", "WSM", 128, 8),
        (31, 5, "exit", "", 0, 0),
    ];
    let audit = summary(settings(Filesystem::Btrfs), &lines(&[&BEFORE, &DATA, &superblock])).device.audit;
    assert_eq!((audit.reason, audit.commits.not_durable), (Some(Reason::CommitBeforeData), 1));
}

/// Seen on btrfs of 6.12: the copy of the superblock at 64 MiB is written without FUA, and may complete behind the last flush.
#[test]
fn the_copy_of_a_superblock_is_no_data() {
    let flush = [(16, 7, "D", "FF", 0, 0), (17, 0, "C", "FF", 0, 0)];
    let both = [
        (20, 5, "Q", "WFSM", 128, 8),
        (21, 5, "Q", "WSM", 131_072, 8),
        (22, 5, "D", "WSM", 128, 8),
        (23, 5, "D", "WSM", 131_072, 8),
        (24, 0, "C", "WSM", 128, 8),
        (25, 7, "D", "FF", 0, 0),
        (26, 0, "C", "WSM", 131_072, 8),
        (27, 0, "C", "FF", 0, 0),
        (28, 0, "C", "WSM", 128, 0),
        (31, 5, "exit", "", 0, 0),
    ];
    let whole = lines(&[&BEFORE, &DATA, &flush, &both]);
    assert_eq!(verdict(settings(Filesystem::Btrfs), &whole), (Verdict::Pass, None));
    // On a partition the sectors are those of the disk.
    let moved: Vec<Line<'_>> = whole
        .iter()
        .map(
            |line| {
                if line.4 >= 128 { (line.0, line.1, line.2, line.3, line.4 + 2048, line.5) } else { *line }
            },
        )
        .collect();
    let partition = Settings { starts_at: 2048, ..settings(Filesystem::Btrfs) };
    assert_eq!(verdict(partition, &moved), (Verdict::Pass, None));
}

#[test]
fn a_commit_of_another_task_beside_the_data_is_no_violation() {
    // btrfs: task 6 flushes, the data of task 5 complete, task 6 writes its superblock; then task 5 does the same.
    let superblock = |time_ns: u64, pid: u32| {
        [
            (time_ns, pid, "Q", "WFSM", 128, 8),
            (time_ns + 1, pid, "D", "WSM", 128, 8),
            (time_ns + 2, 0, "C", "WSM", 128, 8),
            (time_ns + 3, 7, "D", "FF", 0, 0),
            (time_ns + 4, 0, "C", "FF", 0, 0),
            (time_ns + 5, 0, "C", "WSM", 128, 0),
        ]
    };
    let flush = |time_ns: u64| [(time_ns, 7, "D", "FF", 0, 0), (time_ns + 1, 0, "C", "FF", 0, 0)];
    let whole = lines(&[
        &BEFORE,
        &flush(8),
        &DATA,
        &superblock(20, 6),
        &flush(30),
        &superblock(40, 5),
        &[(50, 5, "exit", "", 0, 0)],
    ]);
    let audit = summary(settings(Filesystem::Btrfs), &whole).device.audit;
    assert_eq!((audit.verdict, audit.commits.durable, audit.commits.out_of_order), (Verdict::Pass, 2, 0));
    let other =
        lines(&[&BEFORE, &flush(8), &DATA, &superblock(20, 6), &flush(30), &[(50, 5, "exit", "", 0, 0)]]);
    assert_eq!(verdict(settings(Filesystem::Btrfs), &other), (Verdict::Pass, None));
}

#[test]
fn a_call_that_returns_before_its_own_write_is_a_violation() {
    let returned = lines(&[&BEFORE, &DATA[..3], &[(13, 5, "exit", "", 0, 0)]]);
    for write_cache in [WriteCache::Back, WriteCache::Through] {
        let settings = Settings { write_cache: Some(write_cache), ..settings(Filesystem::Xfs) };
        assert_eq!(verdict(settings, &returned), (Verdict::Violation, Some(Reason::ReturnedBeforeWrite)));
    }
    let failed = lines(&[&BEFORE, &DATA[..3], &[(13, 0, "CE", "WS", 64, 8), (14, 5, "exit", "", 0, 0)]]);
    assert_eq!(verdict(settings(Filesystem::Xfs), &failed), (Verdict::Violation, Some(Reason::WriteFailed)));
    let said = lines(&[&BEFORE, &DATA[..3], &[(13, 0, "CE", "WS", 64, 8), (14, 5, "fail", "", 0, 0)]]);
    let audit = summary(settings(Filesystem::Xfs), &said).device.audit;
    assert_eq!((audit.calls, audit.failed_calls, audit.reason), (0, 1, Some(Reason::NoCalls)));
}

#[test]
fn flushes_of_several_callers_end_in_any_order() {
    // Two queues of a device: what task 6 asked for later is done sooner.
    let asked = [
        (10, 5, "enter", "", 3, 0),
        (11, 5, "Q", "FWS", 0, 0),
        (12, 6, "enter", "", 4, 0),
        (13, 6, "Q", "FWS", 0, 0),
        (14, 7, "D", "FF", 0, 0),
        (15, 0, "C", "FF", 0, 0),
        (16, 0, "C", "WS", 0, 0),
        (17, 6, "exit", "", 0, 0),
    ];
    let rest = [
        (18, 7, "D", "FF", 0, 0),
        (19, 0, "C", "FF", 0, 0),
        (20, 0, "C", "WS", 0, 0),
        (21, 5, "exit", "", 0, 0),
    ];
    assert_eq!(verdict(settings(Filesystem::Xfs), &lines(&[&BEFORE, &asked, &rest])), (Verdict::Pass, None));
    // Nobody's has ended.
    let early = lines(&[&BEFORE, &asked[..4], &[(14, 6, "exit", "", 0, 0)]]);
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &early),
        (Verdict::Violation, Some(Reason::ReturnedBeforeWrite))
    );
}

#[test]
fn which_of_several_flushes_ended_is_said_by_the_commit_that_waited_for_it() {
    // Two queues: a flush of others is in flight from 13 to 60. The commit record asks for one before and, without FUA, for one behind it.
    let commit = |asks: &'static str| {
        [
            (20, 7, "Q", asks, 1008, 2),
            (21, 7, "D", "FF", 0, 0),
            (25, 0, "C", "FF", 0, 0),
            (26, 7, "D", "WSM", 1008, 2),
            (30, 0, "C", "WSM", 1008, 2),
            (31, 7, "D", "FF", 0, 0),
            (40, 0, "C", "FF", 0, 0),
            (41, 0, "C", "WSM", 1008, 0),
            (42, 5, "exit", "", 0, 0),
            (60, 0, "C", "FF", 0, 0),
        ]
    };
    let other = [(13, 8, "D", "FF", 0, 0)];
    for filesystem in [Filesystem::Xfs, Filesystem::Ext4] {
        let whole = lines(&[&BEFORE, &DATA[..3], &other, &DATA[3..], &commit("FWFSM")]);
        let audit = summary(settings(filesystem), &whole).device.audit;
        assert_eq!((audit.verdict, audit.commits.in_order, audit.commits.durable), (Verdict::Pass, 1, 1));
        // No flush was issued behind it: that it ended is no proof of one.
        let mut weak = whole.clone();
        weak.retain(|line| line.0 != 31 && line.0 != 40);
        assert_eq!(
            verdict(settings(filesystem), &weak),
            (Verdict::Violation, Some(Reason::CommitNotDurable)),
            "{filesystem:?}"
        );
    }
    // One that did not ask for the flush before it says nothing of it.
    let whole = lines(&[&BEFORE, &DATA[..3], &other, &DATA[3..], &commit("WFSM")]);
    let audit = summary(settings(Filesystem::Xfs), &whole).device.audit;
    assert_eq!((audit.reason, audit.commits.in_order), (Some(Reason::SeveralFlushes), 0));
}

#[test]
fn writes_of_others_leave_a_doubt_and_a_late_flush_none() {
    let other = [(4, 8, "Q", "W", 64, 8), (5, 8, "D", "W", 64, 8), (6, 0, "C", "W", 64, 8)];
    let call = [(10, 5, "enter", "", 3, 0), (11, 5, "exit", "", 0, 0)];
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &lines(&[&BEFORE, &other, &call])),
        (Verdict::Undecidable, Some(Reason::WhoseWrites))
    );
    // Nothing is unflushed.
    assert_eq!(verdict(settings(Filesystem::Xfs), &lines(&[&BEFORE, &call])), (Verdict::Pass, None));
    let flushed = [
        (10, 5, "enter", "", 3, 0),
        (11, 7, "D", "FF", 0, 0),
        (12, 0, "C", "FF", 0, 0),
        (13, 5, "exit", "", 0, 0),
    ];
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &lines(&[&BEFORE, &other, &flushed])),
        (Verdict::Pass, None)
    );
    // The calling task's own direct write, and an ext4 that says that the call was for this device.
    let own = [(4, 5, "Q", "WS", 64, 8), (5, 5, "D", "WS", 64, 8), (6, 0, "C", "WS", 64, 8)];
    let here = [(10, 5, "enter", "", 3, 0), (11, 5, "ext4", "", 12, 0), (12, 5, "exit", "", 0, 0)];
    let audit = summary(settings(Filesystem::Ext4), &lines(&[&BEFORE, &own, &here])).device.audit;
    assert_eq!(audit.reason, Some(Reason::DataNotFlushed));
    assert_eq!(
        verdict(settings(Filesystem::Ext4), &lines(&[&BEFORE, &own, &call])),
        (Verdict::Undecidable, Some(Reason::WhoseWrites))
    );
}

#[test]
fn calls_for_other_devices_are_left_out() {
    let other = [(10, 5, "enter", "", 3, 0), (11, 5, "ext4", "elsewhere", 12, 0), (12, 5, "exit", "", 0, 0)];
    let audit = summary(settings(Filesystem::Ext4), &lines(&[&BEFORE, &other])).device.audit;
    assert_eq!((audit.calls, audit.calls_elsewhere), (0, 1));
    // A call without a filesystem's event, before the first one that has it.
    let mixed = [
        (10, 5, "enter", "", 3, 0),
        (11, 5, "exit", "", 0, 0),
        (12, 6, "ext4", "", 12, 0),
        (13, 6, "end", "", 12, 0),
    ];
    let audit = summary(settings(Filesystem::Ext4), &lines(&[&BEFORE, &mixed])).device.audit;
    assert_eq!((audit.calls, audit.passed, audit.calls_elsewhere), (1, 1, 1));
}

#[test]
fn a_device_without_requests_is_judged_by_its_bios() {
    let whole = [
        (10, 5, "enter", "", 3, 0),
        (11, 5, "Q", "WS", 64, 8),
        (15, 0, "B", "WS", 64, 8),
        (16, 5, "Q", "FWFSM", 1008, 2),
        (20, 0, "B", "FWFSM", 1008, 2),
        (21, 5, "exit", "", 0, 0),
    ];
    let audit = summary(settings(Filesystem::Xfs), &whole).device.audit;
    assert_eq!((audit.verdict, audit.commits.durable), (Verdict::Pass, 1));
    let without = [&whole[..3], &[(21, 5, "exit", "", 0, 0)]].concat();
    assert_eq!(
        verdict(settings(Filesystem::Xfs), &without),
        (Verdict::Violation, Some(Reason::DataNotFlushed))
    );
}

#[test]
fn flushes_contradict_a_cache_said_to_be_write_through() {
    let whole = lines(&[&BEFORE, &DATA, &COMMIT, &[(71, 0, "C", "WSM", 1008, 0), (80, 5, "exit", "", 0, 0)]]);
    let through = Settings { write_cache: Some(WriteCache::Through), ..settings(Filesystem::Xfs) };
    assert_eq!(verdict(through, &whole), (Verdict::Undecidable, Some(Reason::WriteCacheContradicted)));
    let unsaid = Settings { write_cache: None, ..settings(Filesystem::Xfs) };
    let audit = summary(unsaid, &whole).device.audit;
    assert_eq!((audit.verdict, audit.write_cache_from_trace), (Verdict::Pass, true));
}
