//! The corpus of job files (tests/data/jobs) under the native engine and under fio: the same amounts, offsets, files.
//!
//! Both engines note every I/O with `write_iolog`; what must agree follows from what the job leaves to chance.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay::engine::EngineKind;
use assay::record::Outcome;
use assay::workload::{Access, Distribution, FileOrder, IoMethod, Job, JobFile, Mix, Workload};

use crate::iolog::{Note, Part, counts, coverage, parts, transfers, with_logs};
use crate::native_engine::{done, work};
use crate::tools;

/// What one engine did with one job file.
struct Ran {
    outcome: Outcome,
    /// By number of the section in the file.
    logs: Vec<Vec<Part>>,
    files: BTreeMap<PathBuf, u64>,
}

fn ran(engine: EngineKind, text: &str, jobs: &[Job]) -> Ran {
    let (_base, work) = work();
    let outcome = done(engine, &with_logs(text), work.path());
    let logs = (0..jobs.len()).map(|number| {
        let text = std::fs::read_to_string(work.path().join(format!("{number}.iolog"))).unwrap_or_default();
        // fio's buffer: what is longer is written in several calls, which mix with other clones'.
        assert!(
            jobs[number].numjobs == 1 || text.len() as u32 / jobs[number].numjobs < 8192,
            "too many I/Os a clone"
        );
        parts(&text)
    });
    let logs = logs.collect();
    let mut files = sizes(work.path());
    // fio besides keeps a file of what it had verified when it ended.
    let own = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "iolog" || ending == "state");
    files.retain(|path, _| !own(path));
    Ran { outcome, logs, files }
}

fn sizes(directory: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let entries = entries.filter(|entry| entry.file_name() != assay::target::MARK);
    entries.map(|entry| (PathBuf::from(entry.file_name()), entry.metadata().unwrap().len())).collect()
}

/// By (job, direction): I/Os and bytes, as the engine reports them.
pub(crate) type Amounts = BTreeMap<(String, String), (u64, u64)>;

pub(crate) fn amounts(outcome: &Outcome) -> Amounts {
    let mut amounts = Amounts::new();
    for sample in &outcome.samples {
        let Some((direction, kind)) = sample.metric.name.split_once('.') else { continue };
        let key = (sample.metric.job.clone(), direction.to_owned());
        match (direction, kind) {
            ("sync", _) => {}
            (_, "total_ios") => amounts.entry(key).or_default().0 = sample.value as u64,
            (_, "io_bytes") => amounts.entry(key).or_default().1 = sample.value as u64,
            _ => {}
        }
    }
    amounts.retain(|_, (ios, _)| *ios > 0);
    let jobs: BTreeSet<&String> = amounts.keys().map(|(job, _)| job).collect();
    // A single job needs no name; the engines differ in whether they give it one.
    if jobs.len() == 1 {
        amounts = amounts
            .into_iter()
            .map(|((_, direction), amount)| ((String::new(), direction), amount))
            .collect();
    }
    amounts
}

/// Added up over what `key` leaves out.
fn sums(all: impl Iterator<Item = (String, (u64, u64))>) -> BTreeMap<String, (u64, u64)> {
    let mut sums = BTreeMap::<_, (u64, u64)>::new();
    for (key, (ios, bytes)) in all {
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + ios, sum.1 + bytes);
    }
    sums
}

/// What two engines with dice of their own must agree in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    /// Nothing is left to chance: the same offsets in the same order.
    Sequence,
    /// The direction of each I/O is: each direction's offsets in the same order, as far as it came.
    EachDirection,
    /// The order is: the same offsets the same number of times.
    Cover,
    /// The order and the cuts are: the same bytes the same number of times.
    Bytes,
    /// All of it is, by one distribution: the same bounds, granularity and shares.
    Distribution,
}

fn sense(job: &Job) -> Sense {
    let used = [job.pattern.mix.reads(), job.pattern.mix.writes(), job.pattern.mix.trims()];
    let sizes = [job.block_sizes.read, job.block_sizes.write, job.block_sizes.trim];
    let fixed = (0..3).all(|at| !used[at] || (sizes[at].is_fixed() && job.block_split[at].is_empty()));
    let all_random = (0..3).all(|at| !used[at] || job.percentage_random[at] == 100);
    let mixed = matches!(job.pattern.mix, Mix::ReadWrite { .. });
    let map = job.random_map && job.distribution == Distribution::Uniform;
    match job.pattern.access {
        Access::Sequential if !fixed => Sense::Bytes,
        Access::Sequential if mixed => Sense::EachDirection,
        Access::Sequential => Sense::Sequence,
        Access::Random if map && all_random && fixed => Sense::Cover,
        Access::Random if map && all_random && job.runtime.is_none() => Sense::Bytes,
        Access::Random => Sense::Distribution,
    }
}

/// Collects what differs, so that one run shows all.
struct Differences {
    place: String,
    found: Vec<String>,
}

impl Differences {
    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, native: &T, fio: &T) {
        if native != fio {
            let short = |value: &T| format!("{value:?}").chars().take(400).collect::<String>();
            self.found.push(format!("{}: {what}: native {}, fio {}", self.place, short(native), short(fio)));
        }
    }

    fn holds(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.found.push(format!("{}: {}", self.place, what()));
        }
    }
}

/// The notes by file (and by direction, where asked), each in its order.
fn split<'n>(notes: &[&'n Note], directions: bool) -> BTreeMap<(&'n str, &'n str), Vec<(u64, u64)>> {
    let mut split = BTreeMap::<_, Vec<_>>::new();
    for note in notes {
        let direction = if directions { note.action.as_str() } else { "" };
        split.entry((note.file.as_str(), direction)).or_default().push((note.offset, note.length));
    }
    split
}

fn compare_parts(differences: &mut Differences, job: &Job, native: &Part, fio: &Part) {
    let (ours, theirs) = (transfers(native), transfers(fio));
    let sense = sense(job);
    let sized = sense == Sense::Bytes || !job.block_split.iter().all(Vec::is_empty);
    if job.runtime.is_none() && !sized {
        differences.equal("number of transfers", &ours.len(), &theirs.len());
    }
    match sense {
        Sense::Sequence => {
            // A job that ends by the clock gets as far as it gets.
            let common = if job.runtime.is_some() { ours.len().min(theirs.len()) } else { usize::MAX };
            let first =
                |notes: &[&Note]| notes.iter().take(common).map(|note| (*note).clone()).collect::<Part>();
            if matches!(job.file_service.order, FileOrder::RoundRobin | FileOrder::Sequential) {
                differences.sequences("offsets in their order", &first(&ours), &first(&theirs));
            } else {
                differences.equal("offsets by file", &split(&ours, true), &split(&theirs, true));
            }
        }
        Sense::EachDirection => each_direction(differences, job, &ours, &theirs),
        Sense::Cover => cover(differences, job, &ours, &theirs),
        Sense::Bytes => bytes(differences, job, &ours, &theirs),
        Sense::Distribution => distribution(differences, job, &ours, &theirs),
    }
    syncs(differences, job, native, fio);
}

impl Differences {
    /// What each engine reports is what it noted; and both report the same, as far as the dice allow.
    fn amounts(&mut self, jobs: &[Job], native: &Ran, fio: &Ran) {
        for (engine, ran) in [("native", native), ("fio", fio)] {
            let notes: Vec<&Note> = ran.logs.iter().flatten().flat_map(transfers).collect();
            let noted = sums(notes.iter().map(|note| (note.action.clone(), (1, note.length))));
            let reported =
                sums(amounts(&ran.outcome).into_iter().map(|((_, direction), sum)| (direction, sum)));
            // Once the depth for a target is found, what came before it counts no longer: a part of the same directions.
            let targeted = jobs.iter().any(|job| job.latency_target.is_some());
            let part = reported.keys().eq(noted.keys())
                && reported.values().zip(noted.values()).all(|((ios, bytes), (all, whole))| {
                    (1..=*all).contains(ios) && (1..=*whole).contains(bytes)
                });
            if reported != noted && !(targeted && part) {
                self.found.push(format!("{}: {engine} reports {reported:?} and noted {noted:?}", self.place));
            }
        }
        if jobs.iter().any(|job| job.runtime.is_some()) {
            return;
        }
        let (ours, theirs) = (amounts(&native.outcome), amounts(&fio.outcome));
        let mixed = jobs.iter().any(|job| matches!(job.pattern.mix, Mix::ReadWrite { .. }));
        let sized =
            |job: &Job| matches!(sense(job), Sense::Bytes) || !job.block_split.iter().all(Vec::is_empty);
        let by_job = |amounts: &Amounts| {
            let mut sums = sums(amounts.iter().map(|((job, direction), sum)| {
                (if mixed { job.clone() } else { format!("{job} {direction}") }, *sum)
            }));
            if jobs.iter().any(sized) {
                sums.values_mut().for_each(|sum| sum.0 = 0);
            }
            sums
        };
        if let [job] = jobs
            && sense(job) == Sense::Distribution
            && sized(job)
        {
            // The last block goes beyond the amount, by as much as its size is a matter of chance.
            let least = job.io_size.or(job.size).unwrap_or(0);
            for (engine, amounts) in [("native", &ours), ("fio", &theirs)] {
                let bytes: u64 = amounts.values().map(|(_, bytes)| bytes).sum();
                self.holds((least..least + job.max_block()).contains(&bytes), || {
                    format!("{engine}: {bytes} bytes, {least} asked")
                });
            }
            return;
        }
        self.equal("amounts (I/Os, bytes)", &by_job(&ours), &by_job(&theirs));
    }

    fn sequences(&mut self, what: &str, native: &[Note], fio: &[Note]) {
        if let Some(at) = (0..native.len().max(fio.len())).find(|at| native.get(*at) != fio.get(*at)) {
            let found = format!("{what}: I/O {at}: native {:?}, fio {:?}", native.get(at), fio.get(at));
            self.holds(false, || found);
        }
    }
}

fn each_direction(differences: &mut Differences, job: &Job, ours: &[&Note], theirs: &[&Note]) {
    let (native, fio) = (split(ours, true), split(theirs, true));
    for (key, offsets) in &native {
        let other = fio.get(key).map_or(&[][..], Vec::as_slice);
        let common = offsets.len().min(other.len());
        differences.equal(&format!("offsets of {key:?}"), &&offsets[..common], &&other[..common]);
    }
    shares(differences, job, ours, theirs);
}

/// Reads among the I/Os: both are binomial with the same share, within 4.5 standard deviations of it each
/// (one false alarm in 150 000; the dice are the same in every run).
fn shares(differences: &mut Differences, job: &Job, ours: &[&Note], theirs: &[&Note]) {
    let Mix::ReadWrite { read_percent } = job.pattern.mix else { return };
    let p = f64::from(read_percent) / 100.0;
    for (engine, notes) in [("native", ours), ("fio", theirs)] {
        let n = notes.len() as f64;
        let reads = notes.iter().filter(|note| note.action == "read").count() as f64;
        let bound = 4.5 * (n * p * (1.0 - p)).sqrt();
        differences.holds((reads - n * p).abs() <= bound + 0.5, || {
            format!("{engine}: {reads} reads of {n} I/Os, {read_percent} % asked")
        });
    }
}

/// Each block as often as any other; exactly the same when every pass over the map is a whole one.
fn cover(differences: &mut Differences, job: &Job, ours: &[&Note], theirs: &[&Note]) {
    let hits =
        |notes: &[&Note]| counts(notes.iter().map(|note| (note.file.clone(), note.offset, note.length)));
    let (native, fio) = (hits(ours), hits(theirs));
    for (engine, hits) in [("native", &native), ("fio", &fio)] {
        let (least, most) =
            (hits.values().min().copied().unwrap_or(0), hits.values().max().copied().unwrap_or(0));
        differences.holds(most - least <= 1, || format!("{engine}: blocks hit {least} and {most} times"));
    }
    let whole = job.io_size.is_none_or(|amount| job.size.is_some_and(|size| amount % size == 0));
    if whole && job.runtime.is_none() {
        differences.equal("offsets and how often", &native, &fio);
    }
    shares(differences, job, ours, theirs);
}

fn bytes(differences: &mut Differences, job: &Job, ours: &[&Note], theirs: &[&Note]) {
    if job.runtime.is_none() {
        differences.equal("bytes and how often", &coverage(ours), &coverage(theirs));
    }
}

/// How far two shares of so many draws each may lie apart: 4.5 standard deviations of their difference, passed once
/// in 150 000 comparisons by chance (the dice are the same in every run), and one draw for the rounding.
fn tolerance(share: f64, ours: f64, theirs: f64) -> f64 {
    4.5 * (share * (1.0 - share) * (1.0 / ours + 1.0 / theirs)).sqrt() + 1.0 / ours.min(theirs)
}

/// Shares of the I/Os by which two sets of draws from one distribution are compared.
fn figures(notes: &[&Note], uniform: bool, region: (u64, u64)) -> BTreeMap<String, f64> {
    let n = notes.len() as f64;
    let mut figures = BTreeMap::new();
    let mut add = |name: String, hits: usize| {
        figures.insert(name, hits as f64 / n);
    };
    if uniform {
        for tenth in 0..10 {
            let within = |note: &&&Note| (note.offset - region.0) * 10 / (region.1 - region.0) == tenth;
            add(format!("hits in tenth {tenth}"), notes.iter().filter(within).count());
        }
    }
    let hits = counts(notes.iter().map(|note| (note.file.clone(), note.offset)));
    let mut hottest: Vec<usize> = hits.into_values().map(|hits| hits as usize).collect();
    hottest.sort_unstable_by_key(|hits| std::cmp::Reverse(*hits));
    let blocks = ((region.1 - region.0) / notes.iter().map(|note| note.length).min().unwrap_or(1)) as usize;
    for percent in [1, 2, 5, 10, 20, 50] {
        add(format!("hits of the hottest {percent} %"), hottest.iter().take(blocks * percent / 100).sum());
    }
    for (length, number) in counts(notes.iter().map(|note| note.length)) {
        add(format!("blocks of {length}"), number as usize);
    }
    let follows = notes.windows(2).filter(|pair| pair[0].offset + pair[0].length == pair[1].offset).count();
    add("I/Os that go on where the last ended".to_owned(), follows);
    figures
}

/// The same bounds, granularity and shares.
fn distribution(differences: &mut Differences, job: &Job, ours: &[&Note], theirs: &[&Note]) {
    let bounds = |notes: &[&Note]| {
        let ends = notes.iter().map(|note| note.offset + note.length).max().unwrap_or(0);
        (notes.iter().map(|note| note.offset).min().unwrap_or(0), ends)
    };
    let length = job.size.unwrap_or(0) / u64::from(job.nrfiles);
    for (engine, notes) in [("native", ours), ("fio", theirs)] {
        let (first, end) = bounds(notes);
        differences.holds(first >= job.offset && end <= job.offset + length, || {
            format!("{engine}: {first} to {end} is not within {length} bytes from {}", job.offset)
        });
        let aligned = notes.iter().all(|note| (note.offset - job.offset).is_multiple_of(job.min_block()));
        differences
            .holds(aligned, || format!("{engine}: an offset is not a multiple of {}", job.min_block()));
    }
    // Where the hot blocks of a skew without a centre lie is a matter of the hash.
    let placed = matches!(job.distribution, Distribution::Uniform | Distribution::Zoned(_));
    let region = (job.offset, job.offset + length);
    let (native, fio) = (figures(ours, placed, region), figures(theirs, placed, region));
    let (n, m) = (ours.len() as f64, theirs.len() as f64);
    for name in native.keys().chain(fio.keys().filter(|name| !native.contains_key(*name))) {
        let (ours, theirs) = (native.get(name).unwrap_or(&0.0), fio.get(name).unwrap_or(&0.0));
        let share = (ours * n + theirs * m) / (n + m);
        let bound = tolerance(share, n, m);
        differences.holds((ours - theirs).abs() <= bound, || {
            format!("{name}: native {ours:.4}, fio {theirs:.4}, {bound:.4} apart at most")
        });
    }
    shares(differences, job, ours, theirs);
}

/// As many syncs of each kind, and each after as many writes, on the same file.
fn syncs(differences: &mut Differences, job: &Job, native: &Part, fio: &Part) {
    // Native also flushes what it has written before it reads it back to prove it.
    if sense(job) != Sense::Sequence || job.runtime.is_some() || job.verify.is_some() {
        return;
    }
    let places = |part: &Part| {
        let mut transferred = 0;
        let mut places = Vec::new();
        for note in part {
            match note.action.as_str() {
                "read" | "write" | "trim" => transferred += 1,
                _ => places.push((transferred, note.action.clone(), note.file.clone())),
            }
        }
        places
    };
    let (ours, theirs) = (places(native), places(fio));
    if job.method == IoMethod::IoUring {
        // fio remembers a sync only when it ends: until then more of them go into the queue, and one can be left out.
        let unknown: Vec<_> = theirs.iter().filter(|place| !ours.contains(place)).collect();
        differences.holds(unknown.is_empty(), || format!("syncs of fio alone: {unknown:?}"));
    } else {
        differences.equal("syncs (after so many I/Os, kind, file)", &ours, &theirs);
    }
}

/// The corpus.
pub(crate) fn job_files() -> Vec<PathBuf> {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jobs");
    let mut paths: Vec<_> = std::fs::read_dir(jobs).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

fn compare(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).unwrap();
    let file = JobFile::parse(&text, &name, path.parent().unwrap()).unwrap();
    let jobs = Workload::resolve(&file).unwrap_or_else(|errors| panic!("{name}: {errors}")).jobs;
    let native = ran(EngineKind::Native, &text, &jobs);
    let fio = ran(EngineKind::Fio, &text, &jobs);
    let mut differences = Differences { place: name.clone(), found: Vec::new() };
    differences.equal("file sizes", &native.files, &fio.files);
    for (number, job) in jobs.iter().enumerate() {
        differences.place = format!("{name} [{}]", job.section);
        let (ours, theirs) = (&native.logs[number], &fio.logs[number]);
        differences.equal("clones", &ours.len(), &theirs.len());
        for (ours, theirs) in ours.iter().zip(theirs) {
            compare_parts(&mut differences, job, ours, theirs);
        }
    }
    differences.place = name;
    differences.amounts(&jobs, &native, &fio);
    differences.found
}

#[test]
fn native_and_fio_agree_on_every_job_file() {
    if !tools::available("fio") {
        return;
    }
    let only = std::env::var("ASSAY_TEST_JOB").unwrap_or_default();
    let mut paths = job_files();
    assert!(paths.len() >= 40, "{paths:?}");
    paths.retain(|path| path.to_string_lossy().contains(&only));
    // fio waits more than it works.
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let differences = compare(path);
                    found.lock().unwrap().extend(differences);
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} differences\n{}", found.len(), found.join("\n"));
}
