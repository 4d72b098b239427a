//! Tables in both forms, and what is refused.

use super::*;
use crate::import::Clusters;

fn columns(arm: Option<&str>, rows: &[&str], values: &[&str]) -> Columns {
    Columns {
        arm: arm.map(str::to_owned),
        rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        values: values.iter().map(|value| ValueColumn::parse_spec(value).unwrap()).collect(),
        ..Columns::default()
    }
}

fn spec(list: &[&str]) -> Vec<ValueColumn> {
    list.iter().map(|column| ValueColumn::parse_spec(column).unwrap()).collect()
}

const LONG: &str =
    "size,arm,threads,run,kb_s\n4k,a,1,1,10\n4k,b,1,1,20\n4k,a,2,2,11\n4k,b,2,2,21\n4k,b,2,3,\n";

#[test]
fn long_form_and_what_varies_undeclared() {
    let mut batch = Batch::default();
    read(LONG, "t", (0, 1), &columns(Some("arm"), &["size"], &["kb_s"]), &mut batch).unwrap();
    assert_eq!(batch.observations.len(), 5);
    assert_eq!(batch.observations[1].arm.as_deref(), Some("b"));
    assert_eq!(batch.observations[1].values, [(0, 20.0)]);
    assert!(batch.observations[4].values.is_empty());
    assert_eq!(
        batch.notes,
        ["column 'threads' varies inside a row (1, 2): --row threads would keep its values apart, \
            --cluster threads would judge by them"]
    );
}

#[test]
fn a_line_without_arm_and_values_is_no_trial() {
    let mut batch = Batch::default();
    let text = "arm,run,kb_s\na,1,1\n,2,\nb,3,2\n";
    read(text, "t", (0, 1), &columns(Some("arm"), &[], &["kb_s"]), &mut batch).unwrap();
    assert_eq!(batch.observations.len(), 2);
    // Nobody named the column of which there are two.
    let text = "arm,x,x,kb_s\na,1,1,1\nb,1,1,2\n";
    assert!(read(text, "t", (0, 1), &columns(Some("arm"), &[], &["kb_s"]), &mut batch).is_ok());
}

#[test]
fn wide_form_has_an_arm_a_column() {
    let text = "state;old_mib_s;new_mib_s;old_s;new_s\nx;1;2;3;4\n";
    let wanted = Columns {
        rows: vec!["state".to_owned()],
        arm_columns: vec![spec(&["old_mib_s", "new_mib_s"]), spec(&["old_s", "new_s"])],
        ..Columns::default()
    };
    let mut batch = Batch::default();
    read(text, "t", (0, 1), &wanted, &mut batch).unwrap();
    let [old, new] = batch.observations.as_slice() else { panic!("two arms") };
    assert_eq!((old.arm.as_deref(), new.arm.as_deref()), (Some("old"), Some("new")));
    assert_eq!(
        (old.values.as_slice(), new.values.as_slice()),
        (&[(0, 1.0), (1, 3.0)][..], &[(0, 2.0), (1, 4.0)][..])
    );
    assert_eq!(batch.metrics[0].name, "mib_s");
    assert_eq!(batch.metrics[1].better, Better::Lower);
}

#[test]
fn marks_and_times_are_read_in_both_forms() {
    let text = "boot,time,date,old_s,new_s\n1,1700000000,2023-11-14 22:13:20,1,2\n2,1700000060,2023-11-14 22:14:20,1,2\n";
    let wide = Columns { arm_columns: vec![spec(&["old_s", "new_s"])], ..Columns::default() };
    let long = columns(Some("boot"), &[], &["new_s"]);
    let marks = |columns: &Columns| {
        let mut batch = Batch::default();
        read(text, "t", (0, 1), columns, &mut batch).unwrap();
        let last = batch.observations.pop().unwrap();
        (last.marks.iter().map(|(name, label)| format!("{name} {label}")).collect(), last.started_unix_ns)
    };
    let second: (Vec<String>, u64) = (vec!["boot 2".to_owned()], 1_700_000_060_000_000_000);
    assert_eq!(marks(&wide), second);
    // A column of arms is no mark; `date` has a clock here and is no day.
    assert_eq!(marks(&long), (Vec::new(), second.1));
    let date = Columns { clusters: Clusters::By("date".to_owned()), ..wide };
    assert_eq!(marks(&date), (vec!["date 2023-11-14 22:14:20".to_owned()], 0));
    let taken = Columns { clusters: Clusters::By("new_s".to_owned()), ..date };
    let error = read(text, "t", (0, 1), &taken, &mut Batch::default()).unwrap_err();
    assert!(error.to_string().contains("cannot be the cluster as well"), "{error}");
}

#[test]
fn arms_without_a_shared_name_are_the_whole_columns() {
    let (labels, _, metric) = arms_of(&spec(&["vanilla", "patched:lower"])).unwrap();
    assert_eq!((labels, metric.name), (vec!["vanilla".to_owned(), "patched".to_owned()], "value".to_owned()));
    assert!(arms_of(&spec(&["alone"])).is_err());
    // A unit behind the last column is that of each; one behind another is a mistake.
    let (_, group, metric) = arms_of(&spec(&["old", "new:ms"])).unwrap();
    assert_eq!((group[0].factor, group[1].factor, metric.unit), (1e6, 1e6, Unit::Nanoseconds));
    assert!(arms_of(&spec(&["old:ms", "new"])).is_err());
    let (_, group, metric) = arms_of(&spec(&["old:ms", "new:ms"])).unwrap();
    assert_eq!((group[0].factor, metric.unit), (1e6, Unit::Nanoseconds));
}

#[test]
fn a_direction_behind_any_column_holds_for_all() {
    let better = |list: &[&str]| {
        arms_of(&spec(list)).map(|(_, group, metric)| (metric.better, group[1].better_is_said()))
    };
    assert_eq!(better(&["old:higher", "new"]).unwrap(), (Better::Higher, true));
    assert_eq!(better(&["old", "new:higher"]).unwrap(), (Better::Higher, true));
    assert_eq!(better(&["old", "new"]).unwrap(), (Better::Lower, false));
    assert_eq!(better(&["old_s:higher", "new_s"]).unwrap(), (Better::Higher, true));
    assert_eq!(better(&["old_s", "new_s"]).unwrap(), (Better::Lower, true), "the metric is called s");
    assert_eq!(better(&["latency_old", "latency_new"]).unwrap(), (Better::Lower, true));
    let error = better(&["old:higher", "new:lower"]).unwrap_err().to_string();
    assert!(error.contains("'old' and 'new' have different directions"), "{error}");
    assert!(better(&["old:higher", "new:higher"]).is_ok());
}

#[test]
fn errors_say_what_would_be_right() {
    for (columns, text, words) in [
        (
            columns(Some("arms"), &[], &["kb_s"]),
            LONG,
            "t: there is no column 'arms'; the nearest is 'arm'; its columns are size",
        ),
        (
            columns(Some("arm"), &[], &[]),
            LONG,
            "t is a table (CSV): say which columns hold results with --value",
        ),
        (columns(None, &[], &["kb_s"]), LONG, "t is a table (CSV): say which column tells the arms apart"),
        (columns(Some("arm"), &[], &["kb_s"]), "arm,kb_s\na,1\nb,2,3\n", "t, line 3: this row has 3 fields"),
        (columns(Some("arm"), &[], &["kb_s"]), "arm,kb_s\na,1\nb,NaN\n", "t, line 3: kb_s is 'NaN'"),
        (
            columns(Some("arm"), &[], &["kb_s"]),
            "arm,kb_s\na,-1\n",
            "t, line 2: kb_s is '-1', which cannot be negative",
        ),
        (columns(Some("arm"), &[], &["kb_s"]), "arm,kb_s\n", "t holds no results"),
        (
            columns(Some("arm"), &[], &["kb_s"]),
            "arm,kb_s\na,1\n,2\n",
            "t, line 3: arm is '', which names no arm",
        ),
        (columns(Some("arm"), &[], &["kb_s"]), "arm,kb_s,kb_s\na,1,2\n", "t: 2 columns are called 'kb_s'"),
    ] {
        let error = read(text, "t", (0, 1), &columns, &mut Batch::default()).unwrap_err();
        assert!(error.to_string().starts_with(words), "{error}");
        assert!(error.hint().is_some());
    }
}
