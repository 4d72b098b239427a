//! The store: what goes in comes out; older schemas are migrated, newer and foreign files refused unchanged.

use assay::record::{
    Cell, Design, Direction, Factor, FailureKind, HostFacts, KeptFile, LatencyHistogram, LatencyKind, LeadIn,
    Note, Order, Run, RunState, Sample, Series, Source, Status, Trial,
};
use assay::store::{Shrunk, Store, StoreError};
use assay::units::Unit;

fn trial(round: u32, cell: u32, values: Vec<(u32, f64)>) -> Trial {
    Trial {
        cell,
        round,
        position: cell,
        started_unix_ns: 1_700_000_000_000_000_000 + u64::from(round),
        elapsed_s: 0.5,
        facts: Some(0),
        values,
        ..Trial::default()
    }
}

/// A run of two arms with `rounds` rounds.
fn run(rounds: u32) -> Run {
    let mut facts = HostFacts::default();
    facts.set("kernel.release", "6.18");
    let design = Design {
        paired: true,
        primary: Some("write.bw".to_owned()),
        ..Design::new(vec![Factor::new("direct".to_owned(), vec!["0".to_owned(), "1".to_owned()])])
    };
    let mut run = Run {
        assay_version: "0.1.0".to_owned(),
        started_unix_ns: 1_700_000_000_000_000_000,
        command_line: vec!["assay".to_owned(), "run".to_owned()],
        seed: u64::MAX,
        engine: "simulated 0.1.0".to_owned(),
        job_text: Some("[j]\nrw=read\n".to_owned()),
        experiment: serde_json::json!({"name": "stored"}),
        facts: vec![facts],
        metrics: vec![Sample::new("", "write.bw", Unit::BytesPerSecond, 0.0).metric],
        cells: vec![Cell { levels: vec![0] }, Cell { levels: vec![1] }],
        notes: vec!["a note".into(), Note::ending("the time budget ended it")],
        ..Run::new("stored", Source::Measured, RunState::Finished, design)
    };
    for round in 0..rounds {
        for cell in 0..2 {
            run.trials.push(trial(round, cell, vec![(0, 100.0 + f64::from(round))]));
        }
    }
    run
}

#[test]
fn a_run_comes_back_as_it_went_in() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("assay.db")).unwrap();
    let mut original = run(2);
    let mut histogram = LatencyHistogram::empty();
    histogram.record(1234).unwrap();
    let last = original.trials.last_mut().unwrap();
    last.histograms.push(LatencyHistogram::pack("", Direction::Write, LatencyKind::Clat, &histogram));
    last.series.push(Series {
        job: String::new(),
        name: "write.bw".to_owned(),
        interval_s: 1.0,
        values: vec![1.5, -0.0],
    });
    last.notes.push("kept".into());
    last.status = Status::Failed {
        kind: FailureKind::Passing,
        reason: "r".to_owned(),
        command: "c".to_owned(),
        output: "o".to_owned(),
    };
    let id = store.insert_run(&original).unwrap();
    original.id = Some(id);
    assert_eq!(store.load_run(id).unwrap(), original);
}

#[test]
fn a_report_reads_every_value_and_some_histograms_of_a_cell() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("assay.db")).unwrap();
    let mut original = run(2500);
    let mut histogram = LatencyHistogram::empty();
    histogram.record(1234).unwrap();
    let packed = LatencyHistogram::pack("", Direction::Write, LatencyKind::Clat, &histogram);
    original.trials.iter_mut().for_each(|trial| trial.histograms.push(packed.clone()));
    let id = store.insert_run(&original).unwrap();
    let thinned = store.load_for_report(id).unwrap();
    let values = |run: &Run| run.trials.iter().map(|trial| trial.values.clone()).collect::<Vec<_>>();
    assert_eq!(values(&thinned), values(&original));
    let drawn = |cell| thinned.trials.iter().filter(|t| t.cell == cell && !t.histograms.is_empty()).count();
    assert_eq!((drawn(0), drawn(1)), (834, 834), "every third of 2500");
    assert!(store.load_run(id).unwrap().trials.iter().all(|trial| trial.histograms.len() == 1));
}

#[test]
fn a_trial_is_there_once_it_is_appended_and_never_twice() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("assay.db");
    let mut store = Store::open(&path).unwrap();
    let mut growing = run(0);
    let id = store.insert_run(&growing).unwrap();
    growing.trials.push(trial(0, 0, vec![(0, 1.0)]));
    store.append_trial(id, &growing, 0).unwrap();
    let latency = growing.metric_index(&Sample::new("", "write.clat_ns.mean", Unit::Nanoseconds, 0.0).metric);
    growing.trials.push(trial(0, 1, vec![(0, 2.0), (latency, f64::NAN)]));
    store.append_trial(id, &growing, 1).unwrap();
    // Another connection sees both at once: they are committed.
    let seen = Store::open(&path).unwrap().load_run(id).unwrap();
    assert_eq!(seen.trials.len(), 2);
    assert!(seen.trials[1].value(latency).unwrap().is_nan());
    // The same place again is refused, whatever its index.
    growing.trials.push(trial(0, 1, vec![(0, 3.0)]));
    assert!(store.append_trial(id, &growing, 2).is_err());
    assert_eq!(store.load_run(id).unwrap().trials.len(), 2);
}

#[test]
fn a_deleted_run_leaves_no_row_and_the_others_are_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("assay.db");
    let mut store = Store::open(&path).unwrap();
    let mut full = run(2);
    let histogram =
        LatencyHistogram::pack("", Direction::Write, LatencyKind::Clat, &LatencyHistogram::empty());
    let series = Series { job: String::new(), name: "s".to_owned(), interval_s: 1.0, values: vec![1.0] };
    for trial in &mut full.trials {
        (trial.histograms, trial.series) = (vec![histogram.clone()], vec![series.clone()]);
    }
    let ids = [0; 3].map(|_| store.insert_run(&full).unwrap());
    store.add_leftover(ids[1], "/somewhere").unwrap();
    store.set_owner(ids[1], "another").unwrap();
    assert!(matches!(store.delete_run(ids[1], ""), Err(StoreError::TakenOver { .. })));
    assert!(matches!(store.delete_run(99, ""), Err(StoreError::UnknownRun { .. })));
    assert_eq!(store.list().unwrap().len(), 3);
    store.delete_run(ids[1], "another").unwrap();
    for id in [ids[0], ids[2]] {
        assert_eq!(store.load_run(id).unwrap(), Run { id: Some(id), ..full.clone() });
    }
    let rows = rusqlite::Connection::open(&path).unwrap();
    let mut tables = rows.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
    let tables: Vec<String> = tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for table in tables.iter().filter(|table| !table.starts_with("sqlite_")) {
        let column = if table == "run" { "id" } else { "run" };
        let sql = format!("SELECT count(*) FROM {table} WHERE {column} = {}", ids[1]);
        assert_eq!(rows.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "{table}");
    }
    // A number is never given again.
    store.delete_run(ids[2], "").unwrap();
    assert_eq!(store.insert_run(&full).unwrap(), ids[2] + 1);
}

#[test]
fn room_of_deleted_runs_is_given_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("assay.db");
    let mut store = Store::open(&path).unwrap();
    let kept = run(2);
    let mut large = run(2);
    for (number, trial) in large.trials.iter_mut().enumerate() {
        let bytes = vec![number as u8; 8 << 20];
        trial.files.push(KeptFile { name: "trace".to_owned(), bytes });
    }
    let ids = [store.insert_run(&large).unwrap(), store.insert_run(&kept).unwrap()];
    let length = || std::fs::metadata(&path).unwrap().len();
    assert_eq!((store.shrink().unwrap(), length() > 32 << 20), (Shrunk::NotWorth, true));
    store.delete_run(ids[0], "").unwrap();
    // Another program reads: its pages stay where they are.
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM run").unwrap();
    let Shrunk::Stays { bytes, .. } = store.shrink().unwrap() else { panic!("it was in use") };
    assert!(bytes > 32 << 20 && length() > 32 << 20, "{bytes}");
    drop(reader);
    let Shrunk::Freed(bytes) = store.shrink().unwrap() else { panic!("nobody uses it") };
    assert!(bytes > 32 << 20 && length() < 1 << 20, "{bytes}");
    assert_eq!(store.load_run(ids[1]).unwrap(), Run { id: Some(ids[1]), ..kept });
    assert_eq!((store.insert_run(&run(1)).unwrap(), store.shrink().unwrap()), (ids[1] + 1, Shrunk::NotWorth));
    drop(store);
    Store::read(&path).unwrap().load_run(ids[1]).unwrap();
}

/// Load and free memory differ in every trial, all else does not.
#[test]
fn twenty_thousand_trials_with_facts_of_their_own_fit_into_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&directory.path().join("assay.db")).unwrap();
    let mut many = run(10_000);
    let mut usual = assay::host::facts();
    usual.extend(assay::host::path_facts(directory.path()));
    assert!(usual.count() > 40, "{usual:?}");
    for (number, trial) in many.trials.iter_mut().enumerate() {
        let mut facts = usual.clone();
        facts.set("now.load1", format!("{}.5", number));
        many.facts.push(facts);
        trial.facts = Some(many.facts.len() as u32 - 1);
    }
    let id = store.insert_run(&many).unwrap();
    let read = store.load_for_report(id).unwrap();
    assert_eq!((read.facts, read.trials), (many.facts, many.trials));
}

#[test]
fn an_older_schema_is_migrated_with_everything_in_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("assay.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../data/store/schema-1.sql")).unwrap();
    old.execute_batch("PRAGMA application_id = 0x61737361; PRAGMA user_version = 1;").unwrap();
    let original = run(1);
    old.execute(
        "INSERT INTO run VALUES (1, 'stored', ?1, ?2, '0.0.9', 5, '[]', 7, 'e', NULL, 'null', ?3, 0, '[]')",
        (text(&original.source), text(&original.state), text(&original.design)),
    )
    .unwrap();
    drop(old);
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.load_run(1).unwrap().assay_version, "0.0.9");
    assert_eq!(store.owner(1).unwrap(), "");
    assert_eq!(store.insert_run(&original).unwrap(), 2);
    store.add_leftover(2, "/tmp/x").unwrap();
    assert_eq!(store.leftovers().unwrap(), [(2, "/tmp/x".to_owned())]);
}

#[test]
fn a_store_from_before_lead_ins_keeps_its_trials() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("assay.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../data/store/schema-3.sql")).unwrap();
    old.execute_batch("PRAGMA application_id = 0x61737361; PRAGMA user_version = 3;").unwrap();
    let original = run(1);
    // As written before orders were drawn for each round on their own.
    let mut design = serde_json::to_value(&original.design).unwrap();
    design.as_object_mut().unwrap().retain(|name, _| name != "order" && name != "lead_in");
    old.execute(
        "INSERT INTO run VALUES (1, 'stored', ?1, ?2, '0.1.0', 5, '[]', 7, 'e', NULL, 'null', ?3, 0, '[]', '', '')",
        (text(&original.source), text(&original.state), design.to_string()),
    )
    .unwrap();
    old.execute_batch(
        "INSERT INTO cell VALUES (1, 0, '[0]'); INSERT INTO cell VALUES (1, 1, '[1]');
         INSERT INTO trial VALUES (1, 0, 1, 0, 0, 0, 6, 1.5, NULL, '\"done\"', NULL, '[]');",
    )
    .unwrap();
    drop(old);
    let mut store = Store::open(&path).unwrap();
    let stored = store.load_run(1).unwrap();
    assert_eq!((stored.trials.len(), stored.trials[0].cell, stored.lead_ins.len()), (1, 1, 0));
    assert_eq!((stored.design.order, stored.design.lead_in), (Order::Blocks, false));
    let mut new = run(1);
    new.lead_ins = vec![lead_in(0)];
    assert_eq!(store.insert_run(&new).unwrap(), 2);
    assert_eq!(store.load_run(2).unwrap().lead_ins, new.lead_ins);
}

#[test]
fn lead_ins_are_kept_beside_the_trials() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("assay.db");
    let mut store = Store::open(&path).unwrap();
    let mut growing = run(0);
    let id = store.insert_run(&growing).unwrap();
    // Metrics that a lead-in is the first to have are stored with it.
    let latency = growing.metric_index(&Sample::new("", "write.clat_ns.mean", Unit::Nanoseconds, 0.0).metric);
    growing.lead_ins.push(LeadIn { values: vec![(latency, 5e3)], ..lead_in(0) });
    store.append_lead_in(id, &growing, 0).unwrap();
    growing.trials.push(trial(0, 0, vec![(latency, 6e3)]));
    store.append_trial(id, &growing, 0).unwrap();
    growing.lead_ins.push(LeadIn {
        failed: Some("EILSEQ".to_owned()),
        wrong_data: true,
        values: Vec::new(),
        ..lead_in(1)
    });
    store.append_lead_in(id, &growing, 1).unwrap();
    let seen = Store::open(&path).unwrap().load_run(id).unwrap();
    assert_eq!((&seen.lead_ins, seen.trials.len()), (&growing.lead_ins, 1));
    // A session that read the run before these were there adds its own behind them.
    let stale = Run { lead_ins: vec![lead_in(2)], ..run(0) };
    store.append_lead_in(id, &stale, 0).unwrap();
    assert_eq!(store.load_run(id).unwrap().lead_ins[2], lead_in(2));
    // One of a cell that is not there is damage.
    rusqlite::Connection::open(&path).unwrap().execute_batch("UPDATE lead_in SET cell = 7").unwrap();
    assert!(matches!(store.load_run(id).unwrap_err(), StoreError::Damaged { .. }));
}

fn lead_in(round: u32) -> LeadIn {
    LeadIn {
        cell: 1,
        round,
        started_unix_ns: 5,
        elapsed_s: 0.5,
        failed: None,
        wrong_data: false,
        values: vec![(0, 2e8)],
    }
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn newer_and_foreign_files_are_refused_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let newer = directory.path().join("newer.db");
    drop(Store::open(&newer).unwrap());
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let foreign = directory.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    let text = directory.path().join("notes.txt");
    std::fs::write(&text, "this is no database, only a text that is long enough to be looked at").unwrap();
    let before: Vec<Vec<u8>> = [&newer, &foreign, &text].iter().map(|p| std::fs::read(p).unwrap()).collect();
    assert!(matches!(Store::open(&newer), Err(StoreError::Newer { found: 99, .. })));
    assert!(matches!(Store::open(&foreign), Err(StoreError::NotAStore { .. })));
    assert!(matches!(Store::open(&text), Err(StoreError::NotAStore { .. })));
    assert!(matches!(Store::open(directory.path()), Err(StoreError::NotAStore { .. })));
    assert!(matches!(Store::open_existing(&directory.path().join("none.db")), Err(StoreError::Missing(_))));
    let after: Vec<Vec<u8>> = [&newer, &foreign, &text].iter().map(|p| std::fs::read(p).unwrap()).collect();
    assert_eq!(before, after);
}

#[test]
fn whether_a_store_can_be_opened_is_told_without_making_one() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    assert!(Store::can_be_opened(&place("new.db")).is_ok());
    drop(Store::open(&place("made.db")).unwrap());
    assert!(Store::can_be_opened(&place("made.db")).is_ok());
    drop(Store::open(&place("newer.db")).unwrap());
    let newer = rusqlite::Connection::open(place("newer.db")).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    std::fs::write(place("notes.txt"), "this is no database, only a text that is long enough").unwrap();
    assert!(matches!(Store::can_be_opened(&place("newer.db")), Err(StoreError::Newer { found: 99, .. })));
    assert!(matches!(Store::can_be_opened(&place("notes.txt")), Err(StoreError::NotAStore { .. })));
    assert!(matches!(Store::can_be_opened(directory.path()), Err(StoreError::NotAStore { .. })));
    assert!(matches!(Store::can_be_opened(&place("absent/a.db")), Err(StoreError::Io { .. })));
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["made.db", "newer.db", "notes.txt"]);
}

#[test]
fn damage_is_named_and_never_a_panic() {
    let no_factor = "{\"factors\":[],\"compare\":3,\"paired\":true,\"primary\":null,\"stop\":{\"max_rounds\":1,\
         \"rounds\":null,\"delta\":0.02,\"alpha\":0.05,\"exact\":false,\"time_budget_s\":null}}";
    for damage in [
        "UPDATE run SET design = 'nonsense'".to_owned(),
        format!("UPDATE run SET design = '{no_factor}'"),
        "UPDATE trial SET cell = 77".to_owned(),
        "UPDATE value SET metric = 99".to_owned(),
        "INSERT INTO value VALUES (1, 4000, 0, 1.0)".to_owned(),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("assay.db");
        let mut store = Store::open(&path).unwrap();
        let id = store.insert_run(&run(1)).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch(&damage).unwrap();
        let error = store.load_run(id).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{damage}: {error}");
        assert!(matches!(store.load_run(77), Err(StoreError::UnknownRun { .. })));
    }
}
