//! Files → one [`Batch`], read in parallel and put together in the order of the files.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use super::columns::Columns;
use super::error::{ImportError, Problem};
use super::observation::Batch;
use super::recognise::{Format, may_be_export, recognise, text};
use super::source::Side;
use super::{
    assay_csv, assay_export, copies, csv_table, fio, go_benchmark, hyperfine, numbers, printed, tool_output,
};
use crate::catalog::{KnownProgram, MetricPattern};
use crate::record::Run;
use crate::sys::regular_file::{self, Kind, Unfit};

/// Most bytes of one file.
const MOST_BYTES: u64 = 256 << 20;
/// Of an export: the files that a run may keep, 256 MiB, are a third larger in it, and the rest of the run is beside them.
const MOST_BYTES_OF_EXPORT: u64 = 640 << 20;
/// Of larger files only one is held in memory at a time.
const LARGE_BYTES: u64 = 8 << 20;
/// Files a thread takes at a time.
const CHUNK: usize = 32;

/// What all files need to know of the request.
pub(super) struct Context<'a> {
    pub(super) columns: &'a Columns,
    /// Those of `--metric`: each file is read by them, whatever it is.
    pub(super) patterns: &'a [MetricPattern],
    /// Number of inputs compared; one alone must hold its arms itself.
    pub(super) sides: usize,
}

/// All that was read, and the files that could not be.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) batch: Batch,
    pub(super) formats: Vec<Format>,
    read: Vec<copies::Read>,
    pub(super) failures: Vec<(usize, ImportError)>,
}

/// Reads a whole regular file or unnamed pipe, up to a bound.
pub(super) fn read_bytes(path: &Path) -> Result<Vec<u8>, ImportError> {
    let problem = |unfit| match unfit {
        Unfit::Io(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Problem::NotFound { nearest: None }
        }
        Unfit::Io(error) => Problem::Io(error),
        Unfit::Kind(Kind::Directory) => Problem::IsDirectory,
        Unfit::Kind(kind) => Problem::NotAFile(kind),
        Unfit::TooLarge { limit_bytes } => Problem::TooLarge { limit_bytes },
        Unfit::NotText => Problem::NotText { offset: 0 },
    };
    let failed = |unfit| ImportError::new(path.display().to_string(), problem(unfit));
    let most = if may_be_export(path) { MOST_BYTES_OF_EXPORT } else { MOST_BYTES };
    regular_file::read(path, most).map_err(failed)
}

/// Most bytes of a file of that format: what is read of it takes up to several times as much memory, so much that all of it
/// stays below half a GB; of an export with many files below two, as much as the same run takes out of a store.
fn most_bytes(format: Format) -> u64 {
    match format {
        Format::AssayJson => MOST_BYTES_OF_EXPORT,
        Format::AssayCsv => MOST_BYTES,
        Format::FioJson | Format::Hyperfine => 64 << 20,
        Format::GoBenchmark | Format::Numbers | Format::Csv | Format::Printed(_) => 24 << 20,
        Format::Tool(_) => 4 << 20,
    }
}

/// Reads one file's bytes into the batch. Never panics, whatever the bytes.
pub(super) fn read_into(
    bytes: &[u8],
    origin: &str,
    side: usize,
    context: &Context<'_>,
    batch: &mut Batch,
) -> Result<Format, ImportError> {
    let format = match context.patterns {
        [] => recognise(bytes, origin)?,
        _ => Format::Printed(""),
    };
    let limit_bytes = most_bytes(format);
    if bytes.len() as u64 > limit_bytes {
        return Err(ImportError::new(origin, Problem::TooLarge { limit_bytes }));
    }
    let text = text(bytes, origin)?;
    match format {
        Format::FioJson => fio::read(text, origin, side, batch)?,
        Format::AssayJson => as_arm(assay_export::read(text, origin)?, origin, side, batch)?,
        Format::AssayCsv => {
            as_arm(assay_csv::read(text, origin)?, origin, side, batch)?;
            // A table does not say by what its run was judged.
            batch.judged.clear();
        }
        Format::Hyperfine => hyperfine::read(text, origin, side, context.sides == 1, batch)?,
        Format::GoBenchmark => go_benchmark::read(text, origin, side, &context.columns.values, batch)?,
        Format::Numbers => numbers::read(text, origin, side, context.columns.values.first(), batch)?,
        Format::Tool(engine) => tool_output::read(engine, text, origin, side, batch)?,
        Format::Printed(name) => match KnownProgram::named(name) {
            Some(known) => printed::read(text, origin, side, Some(known), &known.patterns(), batch)?,
            None => printed::read(text, origin, side, None, context.patterns, batch)?,
        },
        Format::Csv => csv_table::read(text, origin, (side, context.sides), context.columns, batch)?,
    }
    Ok(format)
}

fn as_arm(run: Run, origin: &str, side: usize, batch: &mut Batch) -> Result<(), ImportError> {
    assay_export::as_arm(run, origin, side, batch).map_err(|problem| ImportError::new(origin, problem))
}

/// Reads all files of all sides.
pub(super) fn read_all(sides: &[Side], context: &Context<'_>) -> Contents {
    let tasks: Vec<(usize, &Path)> = sides
        .iter()
        .enumerate()
        .flat_map(|(index, side)| side.files.iter().map(move |file| (index, file.as_path())))
        .collect();
    let chunks: Vec<&[(usize, &Path)]> = tasks.chunks(CHUNK).collect();
    let next = AtomicUsize::new(0);
    let shared = Shared::default();
    let done: Mutex<Vec<(usize, Contents)>> = Mutex::new(Vec::with_capacity(chunks.len()));
    let threads = thread::available_parallelism().map_or(1, usize::from).min(chunks.len()).max(1);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = chunks.get(index) else { break };
            let contents = read_chunk(chunk, index * CHUNK, context, &shared);
            if let Ok(mut done) = done.lock() {
                done.push((index, contents));
            }
        }
    };
    if threads == 1 {
        work();
    } else {
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    let mut whole = Contents::default();
    for (_, contents) in done {
        whole.batch.append(contents.batch);
        whole.failures.extend(contents.failures);
        whole.read.extend(contents.read);
        for format in contents.formats {
            if !whole.formats.contains(&format) {
                whole.formats.push(format);
            }
        }
    }
    let (left_out, notes) = copies::find(&whole.read, sides);
    whole.batch.observations.retain(|observation| !left_out.contains(&observation.file));
    notes.into_iter().for_each(|note| whole.batch.note(note));
    whole
}

/// What the threads share: the room for trials, and a lock for files that are read one at a time.
#[derive(Default)]
struct Shared {
    taken: Arc<AtomicUsize>,
    large: Mutex<()>,
}

/// `first` is the number of the chunk's first file among all.
fn read_chunk(chunk: &[(usize, &Path)], first: usize, context: &Context<'_>, shared: &Shared) -> Contents {
    let mut contents = Contents::default();
    for (offset, (side, path)) in chunk.iter().enumerate() {
        // A batch a file: what a damaged file had already given must not stay behind.
        let mut batch = Batch::beside(&shared.taken);
        let origin = path.display().to_string();
        let is_large = path.metadata().is_ok_and(|found| found.len() > LARGE_BYTES);
        let _alone = is_large.then(|| shared.large.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        let file = first + offset;
        let read = |bytes: Vec<u8>| {
            let format = read_into(&bytes, &origin, *side, context, &mut batch)?;
            Ok((format, copies::hash(&bytes)))
        };
        match read_bytes(path).and_then(read) {
            Ok((format, hash)) => {
                batch.observations.iter_mut().for_each(|observation| observation.file = file);
                contents.batch.append(batch);
                contents.read.push(copies::Read { file, side: *side, hash, format });
                if !contents.formats.contains(&format) {
                    contents.formats.push(format);
                }
            }
            Err(error) => contents.failures.push((file, error)),
        }
    }
    contents
}
