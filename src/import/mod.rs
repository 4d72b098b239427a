//! Other tools' output → a [`Run`]: one file a format, recognised by content.
//!
//! Enters: what a person named (files, directories, globs, stored runs) and which columns of a table are what. Leaves:
//! one unpaired [`Run`] whose compared factor is the arm, whose other factors are the rows, and in which every file,
//! document, line or table row is a trial. It must not know statistics or reports. Nothing a file can hold makes it
//! panic; files are read up to a bound. The formats are described in `docs/IMPORT.md`.

mod assay_csv;
mod assay_export;
mod assemble;
mod boot_numbers;
mod chosen;
mod clusters;
mod columns;
mod copies;
mod csv_table;
mod decided;
mod error;
mod fio;
mod go_benchmark;
mod go_keys;
mod hyperfine;
mod marks;
mod numbers;
mod observation;
mod option_rows;
mod pace;
mod printed;
mod read;
mod recognise;
mod source;
mod starved;
mod time_stamps;
mod tool_output;
mod what_was_run;

use std::collections::BTreeSet;
use std::path::Path;

pub use clusters::Clusters;
pub use columns::{Columns, ValueColumn};
pub use error::{ImportError, Problem};
pub use recognise::{Format, may_be_export, recognise};
pub use source::{Side, find_files, run_number, split_label};

pub use chosen::choose;

use crate::catalog::MetricPattern;
use crate::record::{Run, StopRule};
use assemble::{Frame, assemble, without_sections};
use read::{Contents, Context, read_all, read_bytes, read_into};

/// One input of a comparison.
#[derive(Clone, Debug)]
pub enum Input {
    /// Files.
    Files(Side),
    /// A stored run, already loaded.
    Run {
        /// The arm's label.
        label: String,
        /// The run.
        run: Box<Run>,
    },
}

impl Input {
    fn label(&self) -> &str {
        match self {
            Input::Files(side) => &side.label,
            Input::Run { label, .. } => label,
        }
    }
}

/// What a request says besides its inputs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What the columns of tables are.
    pub columns: Columns,
    /// The arm the others are compared with; the first one when not said.
    pub baseline: Option<String>,
    /// Leave out files of directories and globs that cannot be used.
    pub skip_unreadable: bool,
    /// The primary metric.
    pub primary: Option<String>,
    /// What every file is read by instead of being recognised.
    pub patterns: Vec<MetricPattern>,
    /// δ and α of results that bring none of their own.
    pub stop: StopRule,
    /// The command line, kept in the record.
    pub command_line: Vec<String>,
}

/// What was loaded.
#[derive(Debug)]
pub struct Loaded {
    /// The run.
    pub run: Run,
    /// Files that were left out (only with [`Options::skip_unreadable`]).
    pub skipped: Vec<ImportError>,
    /// Metrics of which nobody said what is better, and whose names do not tell.
    pub guessed: BTreeSet<String>,
}

/// Reads all inputs into one run. The first input is the baseline unless [`Options::baseline`] says otherwise. A single
/// input must hold its arms itself: an assay export or stored run (returned as it is), a hyperfine file, or a table
/// with `--arm` or `--arm-columns`.
///
/// # Errors
/// [`ImportError`]: for a file named by itself, what is wrong with it; for files of a directory or glob
/// [`Problem::Unreadable`] with all of them.
pub fn load(inputs: Vec<Input>, options: &Options) -> Result<Loaded, ImportError> {
    if options.patterns.is_empty()
        && let [Input::Files(Side { files, several: false, .. })] = inputs.as_slice()
        && let [file] = files.as_slice()
    {
        let bytes = read_bytes(file)?;
        if matches!(recognise(&bytes, &file.display().to_string())?, Format::AssayJson | Format::AssayCsv) {
            return single_run(load_export_bytes(&bytes, file)?, options);
        }
    }
    let alone = inputs.len() == 1;
    let mut sides = Vec::new();
    let mut runs = Vec::new();
    for (index, input) in inputs.into_iter().enumerate() {
        let label = input.label().to_owned();
        match input {
            Input::Run { run, .. } if alone => return single_run(*run, options),
            Input::Run { run, .. } => {
                sides.push(Side { label, files: Vec::new(), several: false, notes: Vec::new() });
                runs.push((index, run));
            }
            Input::Files(side) => sides.push(side),
        }
    }
    source::tell_apart(&mut sides);
    let context = Context { columns: &options.columns, patterns: &options.patterns, sides: sides.len() };
    let mut contents = read_all(&sides, &context);
    let skipped = unreadable(std::mem::take(&mut contents.failures), &sides, options)?;
    columns_are_used(&options.columns, &contents.formats)?;
    values_are_there(&options.columns.values, &contents)?;
    let mut source: Vec<&str> = contents.formats.iter().map(|format| format.name()).collect();
    for (side, run) in runs {
        let label = sides[side].label.clone();
        assay_export::as_arm(*run, &label, side, &mut contents.batch)
            .map_err(|problem| ImportError::new(label, problem))?;
        source.push("stored run");
    }
    source.dedup();
    let of_assay = [Format::AssayJson, Format::AssayCsv];
    // Beside another tool's results the runs' own rule is nobody's.
    let ways = if contents.formats.iter().all(|format| of_assay.contains(format)) {
        std::mem::take(&mut contents.batch.judged)
    } else {
        Vec::new()
    };
    let decided = decided::decided(&ways);
    let of_primary = decided.note_of_primary.filter(|_| options.primary.is_none());
    of_primary.into_iter().chain(decided.note_of_error).for_each(|note| contents.batch.note(note));
    for note in sides.iter().flat_map(|side| &side.notes) {
        contents.batch.note(note.clone());
    }
    // Runs and files may be mixed: the arms keep the order in which they were named.
    contents.batch.observations.sort_by_key(|observation| observation.side);
    let own = of_assay.iter().any(|format| contents.formats.contains(format));
    let frame = Frame {
        name: if alone { sides[0].label.clone() } else { String::new() },
        labels: sides.into_iter().map(|side| side.label).collect(),
        baseline: options.baseline.clone(),
        source: source.join(", "),
        command_line: options.command_line.clone(),
        stop: decided.stop.unwrap_or(options.stop),
        deltas: decided.deltas,
        primary: options.primary.clone().or(decided.primary),
        asked: options.primary.is_some() || decided.asked,
        clusters: options.columns.clusters.clone(),
        own_runs: own || source.contains(&"stored run"),
        has_hyperfine: contents.formats.contains(&Format::Hyperfine),
    };
    let guessed = contents.batch.guessed.clone();
    Ok(Loaded { run: assemble(contents.batch, frame)?, skipped, guessed })
}

/// Refuses columns that no input has: what was asked would be left out without a word.
fn columns_are_used(columns: &Columns, formats: &[Format]) -> Result<(), ImportError> {
    let takes = |format: &Format| match format {
        Format::Csv => true,
        Format::Numbers | Format::GoBenchmark => columns.arm.is_none() && columns.rows.is_empty(),
        _ => false,
    };
    let options = [
        (columns.arm.is_some(), "--arm"),
        (!columns.rows.is_empty(), "--row"),
        (!columns.values.is_empty(), "--value"),
        (!columns.arm_columns.is_empty(), "--arm-columns"),
    ];
    let Some((_, option)) = options.into_iter().find(|(given, _)| *given) else { return Ok(()) };
    if formats.iter().any(takes) {
        return Ok(());
    }
    let what = formats.first().map_or("a stored run", |format| format.name());
    let why = format!("{option} is of tables, and {what} has no columns; --primary METRIC says what decides");
    Err(ImportError::new("columns", Problem::BadColumns(why)))
}

/// Refuses what `--value` says of a unit that no benchmark has, or of a second column of plain numbers.
fn values_are_there(values: &[ValueColumn], contents: &Contents) -> Result<(), ImportError> {
    let refused = |why: String| Err(ImportError::new("--value", Problem::BadColumns(why)));
    match (contents.formats.as_slice(), values) {
        ([Format::Numbers], [_, second, ..]) => {
            refused(format!("plain numbers are one column, and '{}' is a second one", second.column))
        }
        ([Format::GoBenchmark], values) => {
            let units: Vec<&str> = contents.batch.metrics.iter().map(|metric| metric.name.as_str()).collect();
            for value in values {
                let name = &value.column;
                if !units.contains(&name.as_str()) {
                    return refused(format!(
                        "no benchmark has the unit '{name}'; there are {}",
                        units.join(", ")
                    ));
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The error for files that could not be used, or those files when they may be left out.
fn unreadable(
    failures: Vec<(usize, ImportError)>,
    sides: &[Side],
    options: &Options,
) -> Result<Vec<ImportError>, ImportError> {
    let mut first = 0;
    let mut of_several: Vec<ImportError> = Vec::new();
    let mut failures = failures.into_iter().peekable();
    for side in sides {
        let end = first + side.files.len();
        let mut failed = 0;
        while let Some((_, error)) = failures.next_if(|(index, _)| *index < end) {
            if !side.several {
                return Err(error);
            }
            failed += 1;
            of_several.push(error);
        }
        if failed > 0 && failed == side.files.len() && options.skip_unreadable {
            return Err(unreadable_error(&side.label, side.files.len(), of_several));
        }
        first = end;
    }
    if of_several.is_empty() || options.skip_unreadable {
        return Ok(of_several);
    }
    let labels: Vec<&str> = sides.iter().map(|side| side.label.as_str()).collect();
    Err(unreadable_error(&labels.join(", "), first, of_several))
}

fn unreadable_error(origin: &str, total: usize, failures: Vec<ImportError>) -> ImportError {
    ImportError::new(origin, Problem::Unreadable { total, failures })
}

/// A wish for what decides, as the run names it: the results of an only section have none.
#[must_use]
pub fn primary_of(run: &Run, primary: &str) -> String {
    let only = what_was_run::only_section(&run.experiment).into_iter().collect();
    without_sections(primary, &only, &run.metrics)
}

/// Reads an assay export, for whoever accepts one where a run is accepted.
///
/// # Errors
/// [`ImportError`] when the file cannot be read or is no assay export of a known version.
pub fn load_export(path: &Path) -> Result<Run, ImportError> {
    load_export_bytes(&read_bytes(path)?, path)
}

/// The same of JSON alone, which keeps all of a run.
///
/// # Errors
/// As [`load_export`], and for a table.
pub fn load_json_export(path: &Path) -> Result<Run, ImportError> {
    let (bytes, origin) = (read_bytes(path)?, path.display().to_string());
    match recognise(&bytes, &origin)? {
        Format::AssayJson => assay_export::read(recognise::text(&bytes, &origin)?, &origin),
        other => {
            let message = format!("this is {}, and only JSON keeps all of a run", other.name());
            Err(ImportError::new(origin, Problem::Json { format: "assay export", message }))
        }
    }
}

fn load_export_bytes(bytes: &[u8], path: &Path) -> Result<Run, ImportError> {
    let origin = path.display().to_string();
    match recognise(bytes, &origin)? {
        Format::AssayJson => assay_export::read(recognise::text(bytes, &origin)?, &origin),
        Format::AssayCsv => assay_csv::read(recognise::text(bytes, &origin)?, &origin),
        other => {
            let message = format!("this is {}, not what `assay export` writes", other.name());
            Err(ImportError::new(origin, Problem::Json { format: "assay export", message }))
        }
    }
}

/// A run that holds its arms itself, with the requested baseline and primary metric; its own δ and α stay.
fn single_run(mut run: Run, options: &Options) -> Result<Loaded, ImportError> {
    if let Some(label) = &options.baseline {
        let compare = run.design.compare;
        let levels = &mut run.design.factors[compare].levels;
        let Some(at) = levels.iter().position(|level| level == label) else {
            let problem = Problem::NoSuchArm { label: label.clone(), arms: levels.clone() };
            return Err(ImportError::new("--baseline", problem));
        };
        levels[..=at].rotate_right(1);
        for cell in &mut run.cells {
            let level = &mut cell.levels[compare];
            *level = match (*level as usize).cmp(&at) {
                std::cmp::Ordering::Less => *level + 1,
                std::cmp::Ordering::Equal => 0,
                std::cmp::Ordering::Greater => *level,
            };
        }
    }
    match &options.columns.clusters {
        Clusters::Automatic => {}
        Clusters::Never => run.facts.iter_mut().for_each(crate::record::HostFacts::drop_cluster),
        Clusters::By(name) => {
            return Err(ImportError::new("--cluster", Problem::NoCluster { name: name.clone() }));
        }
    }
    if let Some(primary) = &options.primary {
        run.design.primary = Some(primary_of(&run, primary));
        run.design.asked = true;
    }
    Ok(Loaded { run, skipped: Vec::new(), guessed: BTreeSet::new() })
}

/// Reads one file's bytes as an input of its own and builds a run from it together with itself, so that every importer
/// is exercised to the end: the entry of the fuzzer. Bytes that are no results are an error, never a panic.
///
/// # Errors
/// [`ImportError`] as [`load`] gives it.
pub fn read_bytes_twice(bytes: &[u8], columns: &Columns) -> Result<Run, ImportError> {
    let labels = vec!["baseline".to_owned(), "candidate".to_owned()];
    let mut batch = observation::Batch::default();
    let context = Context { columns, patterns: &[], sides: 2 };
    let format = read_into(bytes, "bytes", 0, &context, &mut batch)?;
    read_into(bytes, "bytes", 1, &context, &mut batch)?;
    let frame = Frame {
        labels,
        source: format.name().to_owned(),
        clusters: columns.clusters.clone(),
        has_hyperfine: format == Format::Hyperfine,
        ..Frame::default()
    };
    assemble(batch, frame)
}

#[cfg(test)]
mod tests;
