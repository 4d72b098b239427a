//! Opens the files of one trace: says what they are, finds the layouts of raw pages, and looks whether a processor's file is missing.
//!
//! Enters: paths. Leaves: a [`Trace`], one stream of events. It must not know what is asked of the events.

use std::fs::File;
use std::io::{Chain, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::sys::regular_file;

use super::blkparse_text::{self, BlkparseText};
use super::blktrace::{self, BlktraceFile};
use super::error::TraceError;
use super::merge::Merged;
use super::page_format::{Formats, no_formats};
use super::pages::{self, Pages};
use super::perf_text::{self, PerfText};
use super::source::{Item, Names, Source};
use super::tracefs_text::{self, TracefsText};
use super::unwritten::{UNWRITTEN_FILE, Unwritten};

/// How much of a file is looked at for saying what it is.
const LOOK: usize = 16 << 10;

named! {
    /// What a file is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Form {
        /// Raw ring-buffer pages of tracefs.
        Pages = "ring-buffer pages",
        /// blktrace's records.
        Blktrace = "blktrace records",
        /// blkparse's text.
        BlkparseText = "blkparse text",
        /// perf's text.
        PerfText = "perf script text",
        /// tracefs' text.
        TracefsText = "tracefs text",
    }
}

impl Form {
    /// Whether each processor has a file.
    fn is_by_cpu(self) -> bool {
        matches!(self, Form::Pages | Form::Blktrace)
    }
}

/// The files of one trace.
pub struct Trace {
    /// What the files are.
    pub form: Form,
    /// How many there are.
    pub files: usize,
    names: Names,
    merged: Merged,
}

impl Trace {
    /// The next item.
    ///
    /// # Errors
    /// A file that is not what it seemed to be.
    pub fn next_item(&mut self) -> Result<Option<Item>, TraceError> {
        self.merged.next(&mut self.names)
    }

    /// Adds items to a batch until it holds so many. Returns whether there may be more.
    ///
    /// # Errors
    /// As [`Trace::next_item`].
    pub(super) fn read(&mut self, batch: &mut Vec<Item>, most: usize) -> Result<bool, TraceError> {
        self.merged.read(&mut self.names, batch, most)
    }

    /// The names of events that have only a name.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }
}

type Opened = Chain<Cursor<Vec<u8>>, File>;

/// Opens the files of one trace. Layouts of raw pages are those of `formats`, lie in a directory `formats` beside the file, or
/// beside it themselves. A name without a file stands for all `NAME.blktrace.N`.
///
/// # Errors
/// A file that cannot be read, is foreign, or lacks its layouts; a processor that is missing or there twice.
pub fn open(paths: &[PathBuf], formats: Option<&Path>) -> Result<Trace, TraceError> {
    let paths = spelled_out(paths);
    let mut opened: Vec<(PathBuf, Form, Opened)> = Vec::new();
    let mut empty = Vec::new();
    for path in &paths {
        let name = path.display().to_string();
        let unreadable = |reason: String| TraceError::Unreadable { name: name.clone(), reason };
        let mut file = regular_file::open(path).map_err(|error| unreadable(error.to_string()))?;
        let mut head = Vec::with_capacity(LOOK);
        file.by_ref()
            .take(LOOK as u64)
            .read_to_end(&mut head)
            .map_err(|error| unreadable(error.to_string()))?;
        if head.is_empty() {
            // A processor on which nothing happened.
            empty.push(path.clone());
            continue;
        }
        let form = form_of(&head).map_err(|reason| TraceError::Foreign { name: name.clone(), reason })?;
        if let Some((first, first_form, _)) = opened.first().filter(|(_, first, _)| *first != form) {
            return Err(TraceError::MixedForms {
                first: first.display().to_string(),
                first_form: first_form.name(),
                second: name,
                second_form: form.name(),
            });
        }
        opened.push((path.clone(), form, Cursor::new(head).chain(file)));
    }
    let Some(form) = opened.first().map(|(_, form, _)| *form) else { return Err(TraceError::Empty) };
    if form.is_by_cpu() {
        all_processors(&paths)?;
    }
    let formats = match form {
        Form::Pages => Some(Arc::new(layouts(&opened[0].0, formats)?)),
        _ => None,
    };
    let missing = match form {
        Form::Pages => missing_beside(&opened[0].0)?,
        _ => None,
    };
    let files = opened.len() + empty.len();
    let sources = opened.into_iter().enumerate().map(|(place, (path, _, file))| {
        let name = path.display().to_string();
        source(form, file, name, processor(&path).map_or(place, |(_, cpu, _)| cpu as usize), formats.as_ref())
    });
    let missing = missing.map(|missing| -> Box<dyn Source + Send> { Box::new(Some(missing)) });
    let merged = Merged::new(sources.chain(missing).collect());
    Ok(Trace { form, files, names: Names::default(), merged })
}

fn source(
    form: Form,
    file: Opened,
    name: String,
    cpu: usize,
    formats: Option<&Arc<Formats>>,
) -> Box<dyn Source + Send> {
    match (form, formats) {
        (Form::Pages, Some(formats)) => {
            Box::new(Pages::new(file, name, u32::try_from(cpu).unwrap_or(0), Arc::clone(formats)))
        }
        (Form::Pages | Form::Blktrace, _) => Box::new(BlktraceFile::new(file, name)),
        (Form::BlkparseText, _) => Box::new(BlkparseText::new(file, name)),
        (Form::PerfText, _) => Box::new(PerfText::new(file, name)),
        (Form::TracefsText, _) => Box::new(TracefsText::new(file, name)),
    }
}

/// Puts the files of `NAME.blktrace.N` in the place of `NAME`.
fn spelled_out(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for path in paths {
        let first = PathBuf::from(format!("{}.blktrace.0", path.display()));
        if path.exists() || !first.exists() {
            all.push(path.clone());
            continue;
        }
        let mut beside = siblings(&first).unwrap_or_default();
        beside.sort_by_key(|(cpu, _)| *cpu);
        all.extend(beside.into_iter().map(|(_, path)| path));
    }
    all
}

/// What the first bytes are, or what they are instead.
fn form_of(head: &[u8]) -> Result<Form, String> {
    if blktrace::begins_like(head) {
        return Ok(Form::Blktrace);
    }
    let is_text = !head.contains(&0);
    if !is_text {
        return if pages::begins_like(head) {
            Ok(Form::Pages)
        } else {
            Err("it holds other binary data".to_owned())
        };
    }
    let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    // Comments may stand in front, and so may a cut line's rest: the first line that is known decides.
    let known = lines.by_ref().take(64).find_map(|line| {
        if blkparse_text::is_line(line) {
            Some(Form::BlkparseText)
        } else if perf_text::is_line(line) {
            Some(Form::PerfText)
        } else {
            tracefs_text::is_line(line).then_some(Form::TracefsText)
        }
    });
    known.ok_or_else(|| {
        let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let first = String::from_utf8_lossy(&first[..first.len().min(40)]).into_owned();
        format!("it begins with '{first}'")
    })
}

/// The layouts of the pages of this file.
fn layouts(file: &Path, formats: Option<&Path>) -> Result<Formats, TraceError> {
    if let Some(directory) = formats {
        return Formats::read(directory);
    }
    let beside = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = beside.join("formats");
    // A kept trace has all its files in one directory.
    if !directory.is_dir() && beside.join("header_page").is_file() {
        return Formats::read(beside);
    }
    if !directory.is_dir() {
        return Err(no_formats(file, format!("there is no {}", directory.display())));
    }
    Formats::read(&directory)
}

/// What the kernel did not write of a kept trace, which has all its files in one directory.
fn missing_beside(file: &Path) -> Result<Option<Unwritten>, TraceError> {
    let path = file.with_file_name(UNWRITTEN_FILE);
    if !path.is_file() || !file.with_file_name("header_page").is_file() {
        return Ok(None);
    }
    let name = path.display().to_string();
    let text = regular_file::read(&path, Unwritten::LONGEST)
        .map_err(|error| TraceError::Unreadable { name: name.clone(), reason: error.to_string() })?;
    let damaged = || TraceError::Damaged {
        name,
        place: "its two lines".to_owned(),
        what: "it does not say how many completions and others have no record".to_owned(),
    };
    std::str::from_utf8(&text).ok().and_then(Unwritten::parse).map(Some).ok_or_else(damaged)
}

/// The processor that a file's name says, with what stands in front of the number and behind it: `NAME.blktrace.3`,
/// `NAME.cpu3.raw`.
fn processor(path: &Path) -> Option<(String, u32, String)> {
    let name = path.file_name()?.to_str()?;
    let mark =
        [".blktrace.", "cpu"].into_iter().find_map(|mark| name.rfind(mark).map(|at| at + mark.len()))?;
    let digits = name[mark..].find(|letter: char| !letter.is_ascii_digit()).unwrap_or(name.len() - mark);
    let number = name[mark..mark + digits].parse().ok()?;
    Some((name[..mark].to_owned(), number, name[mark + digits..].to_owned()))
}

/// The files beside this one that differ in the processor only, this one too.
fn siblings(path: &Path) -> Option<Vec<(u32, PathBuf)>> {
    let (front, _, back) = processor(path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(directory).ok()?;
    let found = entries.flatten().filter_map(|entry| {
        let (other_front, cpu, other_back) = processor(Path::new(&entry.file_name()))?;
        (other_front == front && other_back == back).then(|| (cpu, path.with_file_name(entry.file_name())))
    });
    Some(found.collect())
}

/// Refuses a trace of which a processor's file was not named, does not exist, or was named twice.
fn all_processors(paths: &[PathBuf]) -> Result<(), TraceError> {
    let named: Vec<(u32, &PathBuf)> =
        paths.iter().filter_map(|path| processor(path).map(|(_, cpu, _)| (cpu, path))).collect();
    for (place, (cpu, path)) in named.iter().enumerate() {
        if let Some((_, other)) = named[..place].iter().find(|(other, _)| other == cpu) {
            return Err(TraceError::CpuTwice {
                cpu: *cpu,
                first: other.display().to_string(),
                second: path.display().to_string(),
            });
        }
    }
    let Some((_, sample)) = named.first() else { return Ok(()) };
    let beside = siblings(sample).unwrap_or_default();
    if let Some((cpu, path)) = beside.iter().find(|(cpu, _)| !named.iter().any(|(named, _)| named == cpu)) {
        return Err(TraceError::CpuLeftOut { cpu: *cpu, path: path.clone(), exists: true });
    }
    let last = named.iter().map(|(cpu, _)| *cpu).max().unwrap_or(0);
    let gap = (0..last).find(|cpu| !named.iter().any(|(named, _)| named == cpu));
    match (gap, processor(sample)) {
        (Some(cpu), Some((front, _, back))) => Err(TraceError::CpuLeftOut {
            cpu,
            path: sample.with_file_name(format!("{front}{cpu}{back}")),
            exists: false,
        }),
        _ => Ok(()),
    }
}
