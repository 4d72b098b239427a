//! A table with a header. Long form: a column names the arm (or each file is one), columns make rows, columns hold
//! results. Wide form: each arm has a column.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::record::Metric;
use crate::units::{Better, Unit};

use super::clusters;
use super::columns::{Columns, ValueColumn};
use super::error::{ImportError, Problem, nearest};
use super::marks::Marks;
use super::observation::{Batch, MOST_TRIALS, Observation};
use super::recognise::delimiter;

/// More levels than this are hardly arms.
const MOST_ARMS: usize = 64;

pub(super) struct Table<'a> {
    pub(super) origin: &'a str,
    pub(super) headers: Vec<String>,
    /// (line, fields).
    pub(super) rows: Vec<(usize, csv::StringRecord)>,
}

pub(super) fn read(
    text: &str,
    origin: &str,
    (side, sides): (usize, usize),
    columns: &Columns,
    batch: &mut Batch,
) -> Result<(), ImportError> {
    let table = Table::read(text, origin)?;
    if table.rows.is_empty() {
        return Err(ImportError::new(
            origin,
            Problem::NoResults("the table has a header and no rows".to_owned()),
        ));
    }
    if !columns.arm_columns.is_empty() {
        return wide(&table, side, columns, batch);
    }
    if columns.values.is_empty() {
        return Err(table.not_said("say which columns hold results with --value"));
    }
    if columns.arm.is_none() && sides < 2 {
        return Err(table.not_said("say which column tells the arms apart with --arm (or --arm-columns)"));
    }
    long(&table, (side, sides), columns, batch)
}

impl<'a> Table<'a> {
    fn read(text: &str, origin: &'a str) -> Result<Table<'a>, ImportError> {
        let header =
            text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter(header).unwrap_or(b','))
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let bad = |error: &csv::Error| csv_error(origin, error);
        let headers: Vec<String> = reader.headers().map_err(|e| bad(&e))?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| bad(&e))?;
            if rows.len() == MOST_TRIALS {
                return Err(ImportError::new(origin, Problem::TooMany { limit: MOST_TRIALS }));
            }
            rows.push((record.position().map_or(0, |at| at.line() as usize), record));
        }
        Ok(Table { origin, headers, rows })
    }

    fn not_said(&self, missing: &'static str) -> ImportError {
        ImportError::new(self.origin, Problem::ColumnsNotSaid { missing, columns: self.headers.clone() })
    }

    pub(super) fn column(&self, name: &str) -> Result<usize, ImportError> {
        self.headers.iter().position(|header| header == name).ok_or_else(|| {
            let nearest = nearest(name, self.headers.iter().map(String::as_str));
            let problem =
                Problem::NoColumn { column: name.to_owned(), nearest, columns: self.headers.clone() };
            ImportError::new(self.origin, problem)
        })
    }

    fn columns(&self, names: &[String]) -> Result<Vec<usize>, ImportError> {
        names.iter().map(|name| self.column(name)).collect()
    }
}

fn csv_error(origin: &str, error: &csv::Error) -> ImportError {
    let line = error.position().map_or(0, |at| at.line() as usize);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            ImportError::at(origin, line, Problem::Fields { found: *len, expected: *expected_len })
        }
        _ => ImportError::at(origin, line, Problem::BadColumns(format!("the table cannot be read: {error}"))),
    }
}

fn levels(names: &[String], at: &[usize], record: &csv::StringRecord) -> Vec<(String, String)> {
    names
        .iter()
        .zip(at)
        .map(|(name, index)| (name.clone(), record.get(*index).unwrap_or("").to_owned()))
        .collect()
}

fn long(
    table: &Table<'_>,
    (side, sides): (usize, usize),
    columns: &Columns,
    batch: &mut Batch,
) -> Result<(), ImportError> {
    let arm_at = columns.arm.as_ref().map(|name| table.column(name)).transpose()?;
    let rows_at = table.columns(&columns.rows)?;
    let mut values = Vec::new();
    for value in &columns.values {
        values.push((table.column(&value.column)?, value, batch.metric(&value.metric())));
        note_unsaid(value, &value.metric_name(), batch);
    }
    let taken: Vec<usize> = values.iter().map(|(at, ..)| *at).chain(arm_at).collect();
    let marks = Marks::of(table, columns, &taken, batch)?;
    let mut arms: BTreeSet<&str> = BTreeSet::new();
    for (line, record) in &table.rows {
        let mut observation = Observation::new(side);
        observation.rows = levels(&columns.rows, &rows_at, record);
        marks.put(record, &mut observation);
        if let Some(at) = arm_at {
            let arm = record.get(at).unwrap_or("");
            arms.insert(arm);
            if arms.len() > MOST_ARMS {
                let column = table.headers[at].clone();
                return Err(ImportError::new(
                    table.origin,
                    Problem::TooManyArms { column, limit: MOST_ARMS },
                ));
            }
            observation.arm = Some(arm.to_owned());
        }
        for (at, value, metric) in &values {
            let field = record.get(*at).unwrap_or("");
            if field.is_empty() {
                continue;
            }
            let number =
                value.parse(field).map_err(|problem| ImportError::at(table.origin, *line, problem))?;
            observation.values.push((*metric, number));
        }
        batch.observe(observation).map_err(|problem| ImportError::new(table.origin, problem))?;
    }
    let mut used = rows_at;
    used.extend(taken);
    used.extend(marks.columns());
    note_undeclared(table, arm_at, &used, &columns.rows, batch);
    if let Some(arm) = columns.arm.as_ref().filter(|_| sides > 1) {
        batch.note(format!("the inputs are taken together: column '{arm}' tells the arms apart"));
    }
    batch.factor.clone_from(&columns.arm);
    Ok(())
}

fn wide(table: &Table<'_>, side: usize, columns: &Columns, batch: &mut Batch) -> Result<(), ImportError> {
    if columns.arm.is_some() || !columns.values.is_empty() {
        let both =
            "--arm-columns stands alone: --arm and --value are for tables with a column that names the arm";
        return Err(ImportError::new(table.origin, Problem::BadColumns(both.to_owned())));
    }
    let rows_at = table.columns(&columns.rows)?;
    let mut groups = Vec::new();
    for group in &columns.arm_columns {
        let (labels, group, definition) =
            arms_of(group).map_err(|problem| ImportError::new(table.origin, problem))?;
        // A field that is missing in the first row makes no other arm the first.
        batch.in_order(&labels);
        let at = group.iter().map(|column| table.column(&column.column)).collect::<Result<Vec<_>, _>>()?;
        note_unsaid(&group[group.len() - 1], &definition.name, batch);
        groups.push((labels, at, group, batch.metric(&definition)));
    }
    let taken: Vec<usize> = groups.iter().flat_map(|(_, at, ..)| at.iter().copied()).collect();
    let marks = Marks::of(table, columns, &taken, batch)?;
    for (line, record) in &table.rows {
        let mut of_row: Vec<Observation> = Vec::new();
        for (labels, at, group, metric) in &groups {
            for ((label, index), column) in labels.iter().zip(at).zip(group.iter()) {
                let field = record.get(*index).unwrap_or("");
                if field.is_empty() {
                    continue;
                }
                let number =
                    column.parse(field).map_err(|problem| ImportError::at(table.origin, *line, problem))?;
                match of_row.iter_mut().find(|known| known.arm.as_ref() == Some(label)) {
                    Some(known) => known.values.push((*metric, number)),
                    None => {
                        let mut observation = Observation::new(side);
                        observation.arm = Some(label.clone());
                        observation.rows = levels(&columns.rows, &rows_at, record);
                        marks.put(record, &mut observation);
                        observation.values.push((*metric, number));
                        of_row.push(observation);
                    }
                }
            }
        }
        for observation in of_row {
            batch.observe(observation).map_err(|problem| ImportError::new(table.origin, problem))?;
        }
    }
    let mut used = rows_at;
    used.extend(taken);
    used.extend(marks.columns());
    note_undeclared(table, None, &used, &columns.rows, batch);
    Ok(())
}

/// `pagecache_mib_s,dax_mib_s` → arms `pagecache` and `dax`, metric `mib_s`: what the names share from a `_` on.
fn arms_of(group: &[ValueColumn]) -> Result<(Vec<String>, Vec<ValueColumn>, Metric), Problem> {
    let [first, .., last] = group else {
        return Err(Problem::BadColumns(
            "--arm-columns needs a column for each of at least two arms".to_owned(),
        ));
    };
    // What is said behind the last column holds for the group.
    if let Some(one) = group.iter().find(|column| column.has_unit() && !last.has_unit()) {
        return Err(Problem::BadColumns(format!(
            "--arm-columns: '{}' has a unit and '{}' has none; one behind the last column holds for all of them",
            one.column, last.column
        )));
    }
    let in_unit: Vec<ValueColumn> = group.iter().map(|column| column.with_unit_of(last)).collect();
    let shared = first
        .column
        .char_indices()
        .filter(|(at, c)| *c == '_' && *at > 0)
        .map(|(at, _)| &first.column[at..])
        .find(|suffix| {
            group.iter().all(|other| other.column.len() > suffix.len() && other.column.ends_with(suffix))
        })
        .unwrap_or("");
    let labels =
        group.iter().map(|column| column.column[..column.column.len() - shared.len()].to_owned()).collect();
    let name = if shared.is_empty() { "value" } else { &shared[1..] };
    let metric = Metric::new("", name, last.unit.clone(), last.better);
    Ok((labels, in_unit, metric))
}

fn note_unsaid(column: &ValueColumn, metric: &str, batch: &mut Batch) {
    if !column.better_is_said() {
        batch.guessed(metric);
        let better = if column.better == Better::Higher { "more" } else { "less" };
        let name = &column.column;
        let unit = if column.unit == Unit::Count { "" } else { " (by its unit)" };
        batch.note(format!(
            "column '{name}': {better} is taken as better{unit}; {name}:higher or {name}:lower says it"
        ));
    }
}

/// Names the columns that vary inside a cell although they make no row. A column whose values all differ inside every
/// cell counts the repeats, and results are results: neither is named.
fn note_undeclared(
    table: &Table<'_>,
    arm: Option<usize>,
    used: &[usize],
    rows: &[String],
    batch: &mut Batch,
) {
    let key_at: Vec<usize> = table
        .headers
        .iter()
        .enumerate()
        .filter(|(at, name)| Some(*at) == arm || rows.contains(name))
        .map(|(at, _)| at)
        .collect();
    let mut cells: HashMap<Vec<&str>, Vec<&csv::StringRecord>> = HashMap::new();
    for (_, record) in &table.rows {
        cells
            .entry(key_at.iter().map(|at| record.get(*at).unwrap_or("")).collect())
            .or_default()
            .push(record);
    }
    for (at, header) in table.headers.iter().enumerate().filter(|(at, _)| !used.contains(at)) {
        let mut repeats = true;
        let mut most: Vec<&str> = Vec::new();
        for records in cells.values() {
            let mut seen = HashSet::new();
            let distinct: Vec<&str> =
                records.iter().filter_map(|r| r.get(at)).filter(|v| seen.insert(*v)).collect();
            repeats &= distinct.len() == records.len();
            if distinct.len() > most.len() {
                most = distinct;
            }
        }
        if most.len() > 1 && !repeats {
            let shown = most.iter().take(4).copied().collect::<Vec<_>>().join(", ");
            let more = if most.len() > 4 { ", …" } else { "" };
            // A row a boot would compare one boot with another and take what they differ in for the arms'.
            let apart = if clusters::passes(header) {
                String::new()
            } else {
                format!("--row {header} would keep its values apart, ")
            };
            batch.note(format!(
                "column '{header}' varies inside a row ({shown}{more}): {apart}--cluster {header} would judge by them"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clusters::Clusters;
    use super::*;

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
        assert_eq!(
            (labels, metric.name),
            (vec!["vanilla".to_owned(), "patched".to_owned()], "value".to_owned())
        );
        assert!(arms_of(&spec(&["alone"])).is_err());
        // A unit behind the last column is that of each; one behind another is a mistake.
        let (_, group, metric) = arms_of(&spec(&["old", "new:ms"])).unwrap();
        assert_eq!((group[0].factor, group[1].factor, metric.unit), (1e6, 1e6, Unit::Nanoseconds));
        assert!(arms_of(&spec(&["old:ms", "new"])).is_err());
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
            (
                columns(None, &[], &["kb_s"]),
                LONG,
                "t is a table (CSV): say which column tells the arms apart",
            ),
            (
                columns(Some("arm"), &[], &["kb_s"]),
                "arm,kb_s\na,1\nb,2,3\n",
                "t, line 3: this row has 3 fields",
            ),
            (columns(Some("arm"), &[], &["kb_s"]), "arm,kb_s\na,1\nb,NaN\n", "t, line 3: kb_s is 'NaN'"),
            (
                columns(Some("arm"), &[], &["kb_s"]),
                "arm,kb_s\na,-1\n",
                "t, line 2: kb_s is '-1', which cannot be negative",
            ),
            (columns(Some("arm"), &[], &["kb_s"]), "arm,kb_s\n", "t holds no results"),
        ] {
            let error = read(text, "t", (0, 1), &columns, &mut Batch::default()).unwrap_err();
            assert!(error.to_string().starts_with(words), "{error}");
            assert!(error.hint().is_some());
        }
    }
}
