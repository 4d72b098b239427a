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
        let times = self.headers.iter().filter(|header| *header == name).count();
        if times > 1 {
            let column = name.to_owned();
            return Err(ImportError::new(self.origin, Problem::SameColumns { column, times }));
        }
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
            if arm.is_empty() {
                if values.iter().all(|(at, ..)| record.get(*at).unwrap_or("").is_empty()) {
                    continue;
                }
                let (what, reason) = (table.headers[at].clone(), "which names no arm");
                let problem = Problem::Value { what, text: String::new(), reason };
                return Err(ImportError::at(table.origin, *line, problem));
            }
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
    let written: Vec<(&str, Better)> =
        group.iter().filter_map(|column| Some((column.column.as_str(), column.written_better()?))).collect();
    if let [(one, better), others @ ..] = written.as_slice()
        && let Some((other, _)) = others.iter().find(|(_, of_other)| of_other != better)
    {
        return Err(Problem::BadColumns(format!(
            "--arm-columns: '{one}' and '{other}' have different directions; one behind any of the columns holds for all of them"
        )));
    }
    // What is said behind the last column holds for the group.
    if let Some(one) = group.iter().find(|column| column.has_unit() && !last.has_unit()) {
        return Err(Problem::BadColumns(format!(
            "--arm-columns: '{}' has a unit and '{}' has none; one behind the last column holds for all of them",
            one.column, last.column
        )));
    }
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
    // The metric's own name tells more than that of a column, which begins with the arm's.
    let named = ValueColumn::guessed(name);
    let by_name =
        !shared.is_empty() && !last.has_unit() && (named.better_is_said() || !last.better_is_said());
    let like = if by_name { &named } else { last };
    let better = written.first().map(|(_, better)| *better);
    let group: Vec<ValueColumn> = group.iter().map(|column| column.like(like, better)).collect();
    let decides = &group[group.len() - 1];
    let metric = Metric::new("", name, decides.unit.clone(), decides.better);
    Ok((labels, group, metric))
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
#[path = "csv_table_tests.rs"]
mod tests;
