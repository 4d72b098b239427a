//! `assay trace`: what a block trace says of latencies, counts and flushes, without any run.
//!
//! Enters: the files of one trace, and what is known beside it. Leaves: one screen, or JSON with everything.

mod screen;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use super::Failure;
use crate::sys::terminal::{self, Form};
use crate::trace::{
    BlktraceFiles, Device, Filesystem, Item, JournalRange, Settings, TraceError, WriteCache, analyse,
    analyse_and, open,
};
use crate::units::{counted, parse_bytes};

/// Options of `assay trace`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  assay trace sda.blktrace.*                           all CPUs of blktrace
  assay trace sda                                      the same
  assay trace sda --histograms                         and how many requests took how long
  assay trace blkparse.txt --fs ext4 --journal 2883584-3014656
  assay trace kept/0/*.raw --blktrace sda               the same for blkparse -i sda
  perf script | assay trace /dev/stdin --fs xfs --write-cache back
  assay trace cpu0.raw cpu1.raw --formats formats/     raw pages of tracefs with their layouts

`assay help traces` says what is recorded how, and what the audit of flushes means.")]
pub struct Args {
    /// Files of one trace: .blktrace.N, raw ring-buffer pages, text of blkparse, perf script or tracefs
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The device to report; default is the one with most events
    #[arg(long, value_name = "MAJOR:MINOR")]
    device: Option<Device>,
    /// The filesystem on it: xfs, ext4, btrfs or f2fs; its own events in the trace say it, too
    #[arg(long, value_name = "NAME", value_parser = filesystem)]
    fs: Option<Filesystem>,
    /// Sectors of the journal from A up to B, which is not part of it
    #[arg(long, value_name = "A-B", value_parser = journal)]
    journal: Option<JournalRange>,
    /// What queue/write_cache said while the trace was taken: back or through
    #[arg(long, value_name = "MODE", value_parser = write_cache)]
    write_cache: Option<WriteCache>,
    /// How much programs asked to be written, for the write amplification
    #[arg(long, value_name = "SIZE")]
    asked: Option<String>,
    /// Take a partition, which begins at a sector, and its disk for one device: its bios name the one, its requests the other
    #[arg(long, value_name = "PART=DISK[+SECTOR]", value_parser = partition)]
    partition: Vec<Part>,
    /// Directory with the event layouts of raw pages; default is `formats` beside the file
    #[arg(long, value_name = "DIR")]
    formats: Option<PathBuf>,
    /// Write what the block layer did as NAME.blktrace.N, too, which blkparse -i NAME and btt read
    #[arg(long, value_name = "NAME")]
    blktrace: Option<PathBuf>,
    /// After the screen, how many I/Os of each class took how long, by stage
    #[arg(long, conflicts_with = "json")]
    histograms: bool,
    /// Everything as one JSON object
    #[arg(long)]
    json: bool,
}

/// Reads the trace once and prints what it says.
///
/// # Errors
/// A [`Failure`] with exit code 2 for files that are no whole trace.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let asked_bytes = args.asked.as_deref().map(|text| parse_bytes(text, 1024)).transpose();
    let asked_bytes =
        asked_bytes.map_err(|error| Failure::request(format!("--asked: {error}")).hint("--asked 512m"))?;
    let starts_at = args.partition.iter().find_map(|part| part.starts_at);
    if args.fs == Some(Filesystem::Btrfs) && starts_at.is_none() && !args.partition.is_empty() {
        return Err(Failure::request(
            "where btrfs has its superblock is not known without the partition's first sector",
        )
        .hint("--partition 8:1=8:0+2048; /sys/block/DISK/PART/start has the sector")
        .into());
    }
    let settings = Settings {
        device: args.device,
        filesystem: args.fs,
        journal: args.journal,
        starts_at: starts_at.unwrap_or(0),
        write_cache: args.write_cache,
        queues: None,
        asked_bytes,
        partitions: args.partition.iter().map(|part| (part.device, part.disk)).collect(),
    };
    let trace = open(&args.files, args.formats.as_deref()).map_err(|error| refused(&error))?;
    let (form, files) = (trace.form, trace.files);
    let on_disk = settings.clone();
    let mut copy = args.blktrace.as_deref().map(BlktraceFiles::new);
    let summary = match &mut copy {
        Some(copy) => analyse_and(trace, settings, |item| match item {
            Item::Event(event) => copy.put(&on_disk.on_disk(event)),
            Item::Lost(_) => copy.lost(),
            Item::Unwritten(_) => {}
        }),
        None => analyse(trace, settings),
    };
    let summary = summary.map_err(|error| refused(&error))?;
    if let (Some(copy), Some(base)) = (copy, &args.blktrace) {
        let (files, records) = copy.finish().map_err(|error| {
            Failure::request(format!("cannot write the blktrace files: {error}"))
                .hint("give a name in a directory of yours, of files that are not there yet")
        })?;
        let (records, files, base) =
            (counted(records, "record"), counted(files as u64, "file"), base.display());
        terminal::tell(&format!("{records} in {files} {base}.blktrace.N: blkparse -i {base}"));
    }
    if args.json {
        let mut out = terminal::out_as(Form::Json);
        writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
    } else {
        write!(terminal::out(), "{}", screen::text(&summary, form, files))?;
        if args.histograms {
            write!(terminal::out(), "{}", screen::histograms(&summary))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(error: &TraceError) -> Failure {
    Failure::request(error).hint(error.hint())
}

fn filesystem(text: &str) -> Result<Filesystem, String> {
    let known = Filesystem::ALL.into_iter().find(|filesystem| filesystem.name() == text);
    known.ok_or_else(|| "known are xfs, ext4, btrfs and f2fs".to_owned())
}

fn journal(text: &str) -> Result<JournalRange, String> {
    let sectors = text
        .split_once('-')
        .and_then(|(first, end)| JournalRange::new(first.trim().parse().ok()?, end.trim().parse().ok()?));
    sectors.ok_or_else(|| "it is two sector numbers, such as 2883584-3014656".to_owned())
}

fn write_cache(text: &str) -> Result<WriteCache, String> {
    match text.trim().trim_start_matches("write ") {
        "back" => Ok(WriteCache::Back),
        "through" => Ok(WriteCache::Through),
        _ => Err("it is back or through".to_owned()),
    }
}

/// A partition and the disk it is on.
#[derive(Clone, Debug)]
struct Part {
    device: Device,
    disk: Device,
    /// Its first sector, where it is said.
    starts_at: Option<u64>,
}

fn partition(text: &str) -> Result<Part, String> {
    let (device, rest) = text.split_once('=').ok_or("it is PART=DISK, such as 8:1=8:0")?;
    let (disk, starts_at) = match rest.split_once('+') {
        Some((disk, sector)) => {
            (disk, Some(sector.parse().map_err(|_| format!("'{sector}' is no sector; write 8:1=8:0+2048"))?))
        }
        None => (rest, None),
    };
    Ok(Part { device: device.parse()?, disk: disk.parse()?, starts_at })
}
