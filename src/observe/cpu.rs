//! Where processor time goes: which function of the program, or which part of the kernel (cpu-clock, 331 times a second of running).
//!
//! Enters: samples of the workers with their stacks. Leaves: seconds in user mode and by function of it, in the kernel and by part of it; and
//! the time by stack, as a file. It must not know which program runs. Which part a function belongs to is data: `subsystems.txt`.
//!
//! 331 is a prime: no timer of the load keeps step with it. The clock needs no counter of the processor, so that virtual machines have it.
//! A sample stands for 1/331 s; of n samples the error is about √n of them.

use std::collections::HashMap;
use std::rc::Rc;

use rustix::io::Errno;

use super::perf::{
    Event, Function, HIDDEN, Programs, Refused, Seen, Sink, Spot, Symbols, Watch, Watched, Whose,
    io_uring_note, is_io_urings_thread, lost_note,
};
use super::{Observer, Unseen};
use crate::record::{Folded, KeptFile, Note, NoteKind, Outcome, Sample, StackKind, Unit};

/// Samples a second.
const HERTZ: u64 = 331;
/// A function of the program is named where at least this share of the samples was. What a trial does not name counts as nothing, so that a
/// larger share would make a difference of an arm's total into one of its functions.
const LEAST_SHARE_OF_FUNCTION: f64 = 0.005;
/// Letters of such a name in a metric: that of a generic function may be some lines long.
const LONGEST_NAME: usize = 80;
/// Stacks of programs that are told apart. Of further ones only the innermost function is.
const MOST_STACKS: usize = 50_000;
const SUBSYSTEMS: &str = include_str!("subsystems.txt");
/// What stands at the bottom of stacks.
const USER: &str = "[user]";
const KERNEL: &str = "[kernel]";
/// What no rule names.
const OTHER: &str = "other";
/// That a user without rights is shown user mode alone.
const USER_ONLY: &str = "cpu: the kernel shows this user no samples inside it, so that its time is missing: run as root, or with \
                         CAP_PERFMON, or set kernel.perf_event_paranoid to 1";

/// Watches all that this thread starts, or others.
pub struct CpuObserver {
    whose: Whose,
    symbols: Symbols,
    watch: Result<Watch<Samples>, Refused>,
    /// Each sample has the program's stack, and not only its innermost function. That makes it dearer, and most programs lack the frame
    /// pointers for it.
    user_stacks: bool,
    /// What was seen, until the names are looked up.
    samples: Option<Samples>,
    user_only: bool,
    stacks: Option<KeptFile>,
}

impl CpuObserver {
    /// Looks up the kernel's functions, which takes longer than a start may.
    #[must_use]
    pub(super) fn prepared(whose: Whose, user_stacks: bool) -> CpuObserver {
        let watch = Err(Refused::Kernel(Errno::INVAL));
        CpuObserver {
            whose,
            symbols: Symbols::of_the_kernel(),
            watch,
            user_stacks,
            samples: None,
            user_only: false,
            stacks: None,
        }
    }

    fn watch(&self, machine: bool, kernel: bool) -> Result<Watch<Samples>, Refused> {
        let clock = |of_machine: bool| {
            let user_stacks = self.user_stacks;
            Watched::Clock { of_machine, hertz: HERTZ, kernel, user_stacks }
        };
        let all = [clock(false), clock(true), Watched::Starts];
        let watched = match (self.whose.are_others(), machine) {
            (true, _) => &all[1..],
            (false, true) => &all[..],
            (false, false) => &all[..1],
        };
        Watch::start(&self.whose, watched, Samples::new(self.symbols.clone()))
    }
}

impl Observer for CpuObserver {
    fn start(&mut self) {
        // The rights that a user may lack: to watch others, then the kernel.
        for (machine, kernel) in [(true, true), (false, true), (false, false)] {
            self.watch = self.watch(machine, kernel);
            self.user_only = !kernel;
            if !matches!(self.watch, Err(Refused::Kernel(Errno::PERM | Errno::ACCESS))) {
                break;
            }
        }
    }

    fn end(&mut self) {
        if let Ok(watch) = &self.watch {
            watch.end();
        }
    }

    /// `cpu.samples`, `cpu.lost`, `cpu.user_time`, `cpu.kernel_time`, and `cpu.at.PART` (s) of each part of the kernel.
    fn stop(&mut self) -> Result<Outcome, Unseen> {
        let Seen { sink: samples, lost, .. } = Watch::seen(&mut self.watch, "cpu is")?;
        let mut outcome = Outcome { samples: samples.values(lost, self.user_only), ..Outcome::default() };
        outcome.notes.extend(lost_note("cpu", lost).map(Note::from));
        outcome.notes.extend(samples.of_io_uring());
        if self.user_only {
            outcome.notes.push(USER_ONLY.into());
        } else if !samples.symbols.are_known() {
            outcome.notes.push(HIDDEN.into());
        }
        self.samples = Some(samples);
        Ok(outcome)
    }

    /// `cpu.user_at.FUNCTION` (s) of each function of a program.
    fn afterwards(&mut self) -> Vec<Sample> {
        let Some(samples) = self.samples.take() else { return Vec::new() };
        let names = samples.programs.names(samples.user_stacks.keys().flatten().copied());
        self.stacks = Some(StackKind::Cpu.kept(&samples.folded(&names)));
        samples.by_function(&names)
    }

    fn files(&mut self) -> Vec<KeptFile> {
        self.stacks.take().into_iter().collect()
    }
}

/// Samples stand for all processor time where they have at least this share of it, or lack less than this.
const SAMPLED: f64 = 0.8;
const LEAST_UNSAMPLED_S: f64 = 0.5;

/// What is said where the samples of a trial with these figures lack much of its processor time: each thread's clock begins with a whole
/// period, so that a process that ends sooner has none.
pub(super) fn unsampled_note(samples: &[Sample]) -> Option<Note> {
    let sum = |name: &str| {
        let named = samples.iter().filter(|sample| sample.metric.name == name);
        let whole = named.clone().find(|sample| sample.metric.job.is_empty()).map(|sample| sample.value);
        whole.or_else(|| named.map(|sample| sample.value).reduce(|sum, value| sum + value))
    };
    // Of a user who sees no samples in the kernel something else is said.
    let seen_s = sum("cpu.user_time")? + sum("cpu.kernel_time")?;
    let all_s = sum("usr_cpu")? + sum("sys_cpu")?;
    (seen_s < SAMPLED * all_s && all_s - seen_s > LEAST_UNSAMPLED_S).then(|| Note {
        text: format!(
            "cpu: its samples have {:.0} % of the processor time of this trial, as where many processes end within 3 ms, before \
             their first sample: its figures are too small",
            100.0 * seen_s / all_s
        ),
        kind: NoteKind::Beside,
    })
}

/// Counts samples by stack.
#[derive(Default)]
struct Samples {
    symbols: Symbols,
    programs: Programs,
    user: u64,
    kernel: u64,
    /// Functions of the kernel, the innermost first.
    stacks: HashMap<Vec<Function>, u64>,
    /// Places in programs, the innermost first; empty where it is not known.
    user_stacks: HashMap<Vec<Spot>, u64>,
}

impl Samples {
    fn new(symbols: Symbols) -> Samples {
        Samples { symbols, ..Samples::default() }
    }

    fn values(&self, lost: u64, user_only: bool) -> Vec<Sample> {
        let seconds =
            |name: &str, samples: u64| Sample::new("", name, Unit::Seconds, samples as f64 / HERTZ as f64);
        let count = |name: &str, count: u64| Sample::new("", name, Unit::Count, count as f64);
        let all = self.user + self.kernel;
        let mut values =
            vec![count("cpu.samples", all), count("cpu.lost", lost), seconds("cpu.user_time", self.user)];
        if user_only {
            return values;
        }
        values.push(seconds("cpu.kernel_time", self.kernel));
        // All of them: one that is left out would be 0 beside an arm that names it.
        let parts = self.by_part().into_iter().filter(|(_, samples)| *samples > 0);
        values.extend(parts.map(|(part, samples)| seconds(&format!("cpu.at.{part}"), samples)));
        values
    }

    /// That io_uring's own threads ran, if they did: the workers' processor time has none of theirs.
    fn of_io_uring(&self) -> Option<Note> {
        let is_theirs = |stack: &[Function]| {
            stack.iter().any(|function| is_io_urings_thread(self.symbols.name(*function)))
        };
        let theirs: u64 =
            self.stacks.iter().filter(|(stack, _)| is_theirs(stack)).map(|(_, count)| count).sum();
        io_uring_note("cpu", theirs as f64, (self.user + self.kernel) as f64)
    }

    /// Time by stack, in ns.
    fn folded(&self, names: &HashMap<Spot, Rc<str>>) -> Folded {
        let ns = |samples: u64| samples.saturating_mul(1_000_000_000) / HERTZ;
        let mut folded = Folded::default();
        for (stack, samples) in &self.user_stacks {
            let functions = stack.iter().rev().filter_map(|spot| names.get(spot)).map(|name| &**name);
            folded.add(std::iter::once(USER).chain(functions), ns(*samples));
        }
        for (stack, samples) in &self.stacks {
            let functions = stack.iter().rev().map(|function| self.symbols.name(*function));
            folded.add(std::iter::once(KERNEL).chain(functions), ns(*samples));
        }
        folded
    }

    /// Time by function of a program, the most first.
    fn by_function(&self, names: &HashMap<Spot, Rc<str>>) -> Vec<Sample> {
        let mut functions: HashMap<String, u64> = HashMap::new();
        for (stack, samples) in &self.user_stacks {
            if let Some(name) = stack.first().and_then(|spot| names.get(spot)) {
                *functions.entry(in_a_metric(name)).or_default() += samples;
            }
        }
        let least = LEAST_SHARE_OF_FUNCTION * (self.user + self.kernel) as f64;
        let mut functions: Vec<(String, u64)> =
            functions.into_iter().filter(|(_, samples)| *samples as f64 >= least).collect();
        functions.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
        let sample = |(name, samples): (String, u64)| {
            Sample::new("", &format!("cpu.user_at.{name}"), Unit::Seconds, samples as f64 / HERTZ as f64)
        };
        functions.into_iter().map(sample).collect()
    }

    /// Samples by part of the kernel, the most first.
    fn by_part(&self) -> Vec<(&'static str, u64)> {
        let rules = Rules::parse(SUBSYSTEMS);
        let mut parts: HashMap<&'static str, u64> = HashMap::new();
        for (stack, samples) in &self.stacks {
            let named = stack.iter().find_map(|function| rules.part(self.symbols.name(*function)));
            *parts.entry(named.unwrap_or(OTHER)).or_default() += samples;
        }
        let mut parts: Vec<_> = parts.into_iter().collect();
        parts.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        parts
    }
}

impl Sink for Samples {
    fn take(&mut self, event: &Event) {
        if event.stack.is_empty() {
            self.user += 1;
            let mut stack = self.programs.stack(event.process, &event.user_stack, event.time_ns);
            if self.user_stacks.len() >= MOST_STACKS && !self.user_stacks.contains_key(&stack) {
                stack.truncate(1);
            }
            *self.user_stacks.entry(stack).or_default() += 1;
            return;
        }
        self.kernel += 1;
        let stack = event.stack.iter().filter_map(|address| self.symbols.function(*address)).collect();
        *self.stacks.entry(stack).or_default() += 1;
    }
}

/// A function's name as a part of a metric's, which lists of metrics separate with commas.
fn in_a_metric(name: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() || c.is_ascii_graphic() && c != ',' { c } else { '_' };
    name.chars().take(LONGEST_NAME).map(letter).collect()
}

/// Which part of the kernel a function belongs to.
struct Rules {
    /// How names begin, the longest first, and the part.
    beginnings: Vec<(&'static str, &'static str)>,
}

impl Rules {
    /// Lines of a part and beginnings of names.
    fn parse(text: &'static str) -> Rules {
        let mut beginnings = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let Some(part) = words.next() else { continue };
            beginnings.extend(words.map(|beginning| (beginning, part)));
        }
        beginnings.sort_by_key(|(beginning, _)| std::cmp::Reverse(beginning.len()));
        Rules { beginnings }
    }

    fn part(&self, function: &str) -> Option<&'static str> {
        let found = self.beginnings.iter().find(|(beginning, _)| function.starts_with(beginning));
        found.map(|(_, part)| *part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_belong_to_the_part_that_names_them_best() {
        let rules = Rules::parse(SUBSYSTEMS);
        for (function, part) in [
            ("ext4_buffered_write_iter", Some("ext4")),
            ("jbd2_journal_commit_transaction", Some("jbd2")),
            ("xfs_file_write_iter", Some("xfs")),
            ("copy_folio_from_iter_atomic", Some("copy")),
            ("filemap_get_pages", Some("page-cache")),
            ("io_schedule", Some("scheduler")),
            ("io_read", Some("io_uring")),
            ("native_queued_spin_lock_slowpath", Some("locks")),
            ("blk_mq_submit_bio", Some("block")),
            ("zram_submit_bio", Some("driver")),
            // Their names before Linux 5.16.
            ("pagecache_get_page", Some("page-cache")),
            ("find_get_pages_range_tag", Some("page-cache")),
            ("add_to_page_cache_lru", Some("page-cache")),
            ("__lock_page_killable", Some("page-cache")),
            ("set_page_dirty", Some("page-cache")),
            ("clear_page_dirty_for_io", Some("page-cache")),
            ("__test_set_page_writeback", Some("page-cache")),
            ("clear_page_erms", Some("memory")),
            ("memset_orig", None),
            // Not between a program's memory and the kernel's.
            ("copy_items", Some("btrfs")),
            ("copy_extent_buffer_full", Some("btrfs")),
            ("lookup_extent_mapping", Some("btrfs")),
            ("copy_thread", Some("memory")),
            ("copy_huge_pmd", Some("memory")),
            ("iov_iter_copy_from_user_atomic", Some("copy")),
            ("iov_iter_extract_pages", Some("pin-pages")),
            ("__mod_timer", Some("timers")),
            // Buffered and direct I/O have these, and a return of any function.
            ("iov_iter_advance", None),
            ("iov_iter_is_aligned", None),
            ("its_return_thunk", None),
            ("srso_alias_return_thunk", None),
            ("retbleed_return_thunk", None),
            ("__x86_return_thunk", None),
        ] {
            assert_eq!(rules.part(function), part, "{function}");
        }
        let mut seen = std::collections::BTreeSet::new();
        assert!(
            rules.beginnings.iter().all(|(beginning, _)| seen.insert(*beginning)),
            "a beginning stands twice"
        );
    }

    #[test]
    fn each_function_of_a_program_is_named_that_has_a_share() {
        let mut samples = Samples::new(Symbols::default());
        // Eight functions with 8 % each, one with 0.4 %, and two that differ behind the longest name.
        let long = "f".repeat(LONGEST_NAME);
        let named: Vec<(String, u64)> = (0..8)
            .map(|number| (format!("f{number}"), 80))
            .chain([("rare".to_owned(), 4), (format!("{long}<int, int>"), 40), (format!("{long}<int>"), 40)])
            .collect();
        let names: HashMap<Spot, Rc<str>> =
            (0..).zip(&named).map(|(offset, (name, _))| (Spot::at(offset), name.as_str().into())).collect();
        samples.user_stacks.extend((0..).zip(&named).map(|(offset, (_, n))| (vec![Spot::at(offset)], *n)));
        samples.user = 1000;
        let found = samples.by_function(&names);
        let told: Vec<(&str, u64)> =
            found.iter().map(|s| (s.metric.name.as_str(), (s.value * HERTZ as f64).round() as u64)).collect();
        assert_eq!(told.len(), 9, "{told:?}");
        assert!(told.iter().all(|(_, samples)| *samples == 80), "{told:?}");
        assert_eq!(told[0].0, "cpu.user_at.f0");
        assert_eq!(in_a_metric("a<b, c>"), "a<b__c>");
    }

    #[test]
    fn many_processes_that_end_before_a_sample_are_told() {
        let of = |user_s: f64, kernel_s: Option<f64>, jobs_s: [f64; 2]| {
            let mut samples = vec![
                Sample::new("", "cpu.user_time", Unit::Seconds, user_s),
                Sample::new("", "sys_cpu", Unit::Seconds, 1.0),
                Sample::new("a", "usr_cpu", Unit::Seconds, jobs_s[0]),
                Sample::new("b", "usr_cpu", Unit::Seconds, jobs_s[1]),
            ];
            samples.extend(kernel_s.map(|time| Sample::new("", "cpu.kernel_time", Unit::Seconds, time)));
            unsampled_note(&samples)
        };
        let note = of(1.0, Some(0.5), [1.0, 1.0]).unwrap();
        assert!(note.kind == NoteKind::Beside && note.text.contains("have 50 % of"), "{note}");
        assert_eq!(of(1.9, Some(0.6), [1.0, 1.0]), None, "five sixths");
        assert_eq!(of(0.0, Some(0.8), [0.1, 0.1]), None, "too little");
        assert_eq!(of(1.0, None, [1.0, 1.0]), None);
    }

    #[test]
    fn a_function_without_a_part_belongs_to_its_caller() {
        let kallsyms = "1000 t memset_orig\n2000 t ext4_write_begin\n3000 t strange\n";
        let mut samples = Samples::new(Symbols::parse(kallsyms));
        for stack in [vec![0x1010, 0x2010], vec![0x2010], vec![0x3010], Vec::new()] {
            samples.take(&Event { stack, ..Event::default() });
        }
        assert_eq!(samples.by_part(), [("ext4", 2), ("other", 1)]);
        let values = samples.values(0, false);
        let value = |name: &str| values.iter().find(|s| s.metric.name == name).map(|s| s.value);
        assert_eq!(value("cpu.samples"), Some(4.0));
        assert_eq!(value("cpu.at.ext4"), Some(2.0 / HERTZ as f64));
        assert_eq!(value("cpu.user_time"), Some(1.0 / HERTZ as f64));
        assert_eq!(
            samples.folded(&HashMap::new()).text(),
            "[kernel];ext4_write_begin 3021148\n[kernel];ext4_write_begin;memset_orig 3021148\n\
             [kernel];strange 3021148\n[user] 3021148\n"
        );
        let without = samples.values(0, true);
        assert!(without.iter().all(|sample| sample.metric.name != "cpu.kernel_time"));
    }
}
