//! Block traces: files that other tools wrote, or pages that the kernel's ring buffer gives, as one stream of events, and what
//! that stream says about latencies, counts and flushes.
//!
//! Enters: raw ring-buffer pages, `.blktrace.N` files, the text of blkparse, of perf and of tracefs. Leaves: a [`Summary`] for each
//! device, as values. Everything is read once, in the order of time, in memory that does not grow with the trace. It must not know
//! runs, trials, metrics or reports.

mod analyse;
mod analysis;
mod audit;
mod blkparse_text;
mod blktrace;
mod blktrace_writer;
mod call;
mod class;
mod commit;
mod counts;
mod error;
mod event;
mod event_text;
mod flags;
mod in_flight;
mod merge;
mod open;
mod page_event;
mod page_format;
mod pages;
mod perf_text;
mod sector_table;
mod seen;
mod source;
mod stable;
mod summary;
mod tally;
mod text_lines;
mod times;
mod tracefs_text;
mod unwritten;
mod verdict;
mod window;

#[cfg(test)]
mod analysis_tests;
#[cfg(test)]
mod audit_hole_tests;
#[cfg(test)]
mod audit_tests;

pub use analyse::{analyse, analyse_and};
pub use analysis::Analysis;
pub use blkparse_text::BlkparseText;
pub use blktrace::BlktraceFile;
pub use blktrace_writer::BlktraceFiles;
pub use class::Class;
pub use commit::CommitCounts;
pub use counts::Counts;
pub use error::TraceError;
pub use event::{Action, Call, Comm, Device, Event, Filesystem};
pub use flags::{Flags, Operation};
pub use merge::Merged;
pub use open::{Form, Trace, open};
pub use page_event::Decoder;
pub use page_format::Formats;
pub use pages::Pages;
pub use perf_text::PerfText;
pub use source::{Item, Lost, Names, Source};
pub use summary::{DeviceSummary, Settings, Summary, Totals};
pub use times::{Octaves, Quantiles, Stage};
pub use tracefs_text::TracefsText;
pub use unwritten::{UNWRITTEN_FILE, Unwritten};
pub use verdict::{AuditSummary, JournalRange, Reason, Verdict, Violation, WriteCache};
