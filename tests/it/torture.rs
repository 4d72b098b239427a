//! SIGKILL to any process of a run, at any moment: whoever survives ends the rest, and the machine is as it was before.
//!
//! 20 runs, or `ASSAY_TORTURE`; `make torture` makes 200. Four tests share them. `ASSAY_TORTURE_SEED` repeats what was drawn; the moment a
//! process meets its end is up to the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::process_tree::{Seen, group_of, kill, parts, seen, token};
use crate::sandbox::{Sandbox, errors, failure};
use crate::target_bench::{Loop, assay, can_make, left_behind, run, zram};
use crate::tools::available;

/// Longest time for a run of four short trials that goes on after a loss.
const PATIENCE: Duration = Duration::from_secs(120);
/// The kill comes within this time after the start.
const LATEST_MS: u64 = 2000;
/// Tests that share the runs.
const SHARES: u64 = 4;
/// Between two looks for a process.
const STEP: Duration = Duration::from_millis(5);
/// How much later than drawn, when there is none of that part yet.
const LONGER: Duration = Duration::from_millis(1000);
/// Nobody else makes zram devices of this size.
const ZRAM_BYTES: u64 = 311 << 20;

const TARGETS: [&str; 5] = ["directory", "loop", "zram", "file", "device"];
const ENGINES: [&str; 3] = ["native", "fio", "command"];
const ROLES: [&str; 8] = ["assay", "agent", "guard", "engine", "worker", "hook", "tool", "all"];

/// Sebastiano Vigna's SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % most
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Past the harness, which keeps what a test prints until it ends.
fn say(words: &str) {
    let _ = writeln!(std::io::stderr(), "torture: {words}");
}

/// Kills a process of that part, or of another one when there is none, and says which; nothing of a run that has just ended.
fn kill_one(run: i32, role: &str, dice: &mut Dice) -> Option<(&'static str, String)> {
    let mut found = parts(run);
    found.retain(|_, processes| !processes.is_empty());
    if found.is_empty() {
        return None;
    }
    if role == "all" {
        let all: Vec<Seen> = found.into_values().flatten().collect();
        all.iter().for_each(|process| kill(process.pid));
        return Some(("all", format!("{} processes", all.len())));
    }
    let present: Vec<&'static str> = found.keys().copied().collect();
    let role = match present.iter().find(|present| **present == role) {
        Some(role) => role,
        None => dice.one(&present),
    };
    let of_role = &found[role];
    let process = &of_role[dice.below(of_role.len() as u64) as usize];
    kill(process.pid);
    Some((
        present.into_iter().find(|present| *present == role).unwrap_or("assay"),
        process.line.chars().take(40).collect(),
    ))
}

/// What must be the same afterwards: what the run could leave, unused zram devices, a device's setting and content, the user's
/// files with their contents.
#[derive(Debug, PartialEq, Eq)]
struct Machine {
    left: BTreeSet<String>,
    unused_zram: Option<usize>,
    setting: Option<String>,
    /// Whether there is a filesystem on a device that stays.
    filesystem: bool,
    files: BTreeMap<String, Option<Vec<u8>>>,
}

fn machine(sandbox: &Sandbox, zram: bool, device: Option<&Loop>) -> Machine {
    let unused = || {
        let entries = std::fs::read_dir("/sys/block").unwrap().flatten();
        let size = |path: PathBuf| std::fs::read_to_string(path.join("disksize")).unwrap_or_default();
        entries.filter(|entry| size(entry.path()).trim() == "0").count()
    };
    let setting = |device: &Loop| std::fs::read_to_string(device.sys().join("queue/read_ahead_kb")).unwrap();
    let content = |name: &String| {
        let path = sandbox.path().join(name);
        let small = std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() < 1 << 20);
        small.then(|| std::fs::read(&path).unwrap())
    };
    let names = sandbox.names().into_iter().filter(|name| !name.starts_with("assay.db"));
    Machine {
        left: left_behind(sandbox, if zram { ZRAM_BYTES } else { 0 }),
        unused_zram: zram.then(unused),
        setting: device.map(setting),
        filesystem: device.is_some_and(|device| has_ext4(&device.path)),
        files: names.map(|name| (name.clone(), content(&name))).collect(),
    }
}

/// The magic number of ext2, 3 and 4 in its superblock.
fn has_ext4(device: &Path) -> bool {
    use std::os::unix::fs::FileExt;
    let mut magic = [0; 2];
    std::fs::File::open(device).unwrap().read_exact_at(&mut magic, 0x438).unwrap();
    magic == [0x53, 0xef]
}

/// The command line of a run and, where it is a device that stays, that device.
fn arguments(sandbox: &Sandbox, target: &str, engine: &str, hook: bool) -> (Vec<String>, Option<Loop>) {
    let job = "[w]\nrw=randwrite\nbs=4k\nsize=1m\nnumjobs=2\ntime_based\nruntime=500ms\nthinktime=200us\n";
    let place =
        if target == "file" { format!("filename={}\n", at(sandbox, "data.bin")) } else { String::new() };
    sandbox.write("job.fio", &format!("{job}{place}"));
    sandbox.write("precious", "not the run's");
    let mut words: Vec<String> = vec!["run".to_owned()];
    let mut add = |more: &[&str]| words.extend(more.iter().map(|word| (*word).to_owned()));
    if engine != "command" {
        add(&["job.fio", "--engine", engine]);
    }
    add(&["-q", "--rounds", "2"]);
    let mut device = None;
    match target {
        "loop" => add(&["-t", "loop:32m", "-t", "fs=ext4", "-t", "read_ahead=64"]),
        "zram" => add(&["-t", "zram:311m", "-t", "fs=xfs"]),
        "device" => {
            let own = Loop::new(sandbox, 48);
            let path = own.path.to_string_lossy().into_owned();
            add(&["-t", &path, "--destroy", &path, "-t", "fs=ext4", "-t", "read_ahead=8"]);
            device = Some(own);
        }
        _ => {}
    }
    if hook {
        add(&["--before", "sleep 0.2; sleep 0.2"]);
    }
    if engine == "command" {
        let script = "setsid sleep 0.4 & dd if=/dev/zero of=$ASSAY_DIRECTORY/x bs=64k count=16 conv=fsync; sleep 0.2; wait; : ${n}";
        add(&["--vary", "n=1,2", "--", "sh", "-c", script]);
    } else {
        add(&["--vary", "bs=4k,8k"]);
    }
    (words, device)
}

fn at(sandbox: &Sandbox, name: &str) -> String {
    sandbox.path().join(name).to_string_lossy().into_owned()
}

/// Waits for the end of a run that was not killed itself.
fn ended(child: &mut Child, what: &str) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: it does not end: {:?}", {
            let pid = child.id() as i32;
            assay::host::descendants(pid)
                .into_iter()
                .filter_map(seen)
                .map(|seen| seen.line)
                .collect::<Vec<_>>()
        });
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What a kill met.
#[derive(Default)]
struct Met {
    /// A process beside assay itself.
    trial: bool,
    /// A device or a filesystem that was made for the run.
    target: bool,
}

fn one_run(number: u64, dice: &mut Dice) -> Met {
    // Each share has each target in turn.
    let target = TARGETS[(number / SHARES % TARGETS.len() as u64) as usize];
    let alone = if target == "zram" { zram() } else { None };
    let target = if target == "zram" && alone.is_none() { "loop" } else { target };
    let engine = dice.one(&ENGINES);
    let (role, hook, moment) = (dice.one(&ROLES), dice.below(3) == 0, dice.below(LATEST_MS));
    let sandbox = Sandbox::new();
    let (words, device) = arguments(&sandbox, target, engine, hook);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let zram = target == "zram";
    let before = machine(&sandbox, zram, device.as_ref());
    let mut command = assay(&sandbox, &words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    let begun = Instant::now();
    let mut mark = None;
    let made = || {
        let left = left_behind(&sandbox, if zram { ZRAM_BYTES } else { 0 });
        left.iter()
            .any(|name| name.starts_with("loop") || name.starts_with("zram") || name.contains(" ext4 "))
    };
    while begun.elapsed() < Duration::from_millis(moment) && child.try_wait().unwrap().is_none() {
        mark = mark.or_else(|| token(pid));
        std::thread::sleep(STEP);
    }
    // Others come and go: with a little patience one of that part is met, too.
    let waited = Instant::now();
    let has_part = || parts(pid).contains_key(role) || matches!(role, "all");
    while waited.elapsed() < LONGER && !has_part() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(STEP);
    }
    // On one kind of target never between two trials.
    while target == "loop" && !made() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(STEP);
    }
    let moment = begun.elapsed().as_millis();
    let met = Met { trial: parts(pid).len() > 1, target: made() };
    let alive = child.try_wait().unwrap().is_none();
    let met_one = alive.then(|| kill_one(pid, role, dice)).flatten();
    let over = met_one.is_none();
    let (killed, line) = met_one.unwrap_or_else(|| ("nobody", "it had ended".to_owned()));
    let what = format!("{number}: {engine} on a {target}, {killed} killed after {moment} ms ({line})");
    say(&what);
    let now = || {
        let mut now = machine(&sandbox, zram, device.as_ref());
        // What mkfs was writing when it, or whoever was to note its end, was killed may be anybody's, and is not wiped.
        now.filesystem &= !matches!(killed, "assay" | "agent" | "tool" | "all");
        now
    };
    let status = ended(&mut child, &what);
    let said = errors(&child.wait_with_output().unwrap());
    if !matches!(killed, "assay" | "all") {
        // It ends in order, with the loss made good or told, and has left nothing.
        assert!(matches!(status.code(), Some(0 | 1)), "{what}: {status}: {said}");
        assert!(!(over && status.code() != Some(0)), "{what}: {said}");
        sandbox.no_process_left(Duration::from_secs(30));
        assert_eq!(now(), before, "{what}: {said}");
    }
    if !over || sandbox.path().join("assay.db").exists() {
        let cleaned = run(&sandbox, &["cleanup"]);
        // Killed before it had a store, there is nothing to clean up.
        let none = !sandbox.path().join("assay.db").exists();
        assert!(cleaned.status.success() || none, "{what}: {}", failure(&["cleanup"], &cleaned));
    }
    sandbox.no_process_left(Duration::from_secs(30));
    assert_eq!(now(), before, "{what}: after cleanup; it said: {said}");
    let group = mark.and_then(|token| group_of(&token));
    assert_eq!(group, None, "{what}: its control group is left");
    met
}

/// Every fourth run from this one on.
fn share(first: u64) {
    if !can_make() || !available("fio") {
        return;
    }
    static SEED: OnceLock<u64> = OnceLock::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let runs = number("ASSAY_TORTURE").unwrap_or(20);
    let seed = *SEED.get_or_init(|| number("ASSAY_TORTURE_SEED").unwrap_or_else(now));
    say(&format!("{runs} runs; ASSAY_TORTURE_SEED={seed} repeats them"));
    let mut met = Vec::new();
    for number in (0..runs).filter(|number| number % SHARES == first && *number >= number_of_first()) {
        // Each has dice of its own, so that one can be repeated without those before it.
        met.push(one_run(number, &mut Dice(seed.wrapping_add(number << 32))));
    }
    let trials = met.iter().filter(|met| met.trial).count();
    let targets = met.iter().filter(|met| met.target).count();
    say(&format!("share {first}: {} left nothing; {trials} met a trial, {targets} a target", met.len()));
    // Of the few of one share chance may spare all: the share that ends last looks at all of them.
    static ALL: Mutex<[usize; 4]> = Mutex::new([0; 4]);
    let mut all = ALL.lock().unwrap();
    for (sum, more) in all.iter_mut().zip([1, met.len(), trials, targets]) {
        *sum += more;
    }
    let [shares, runs, trials, targets] = *all;
    let least = runs / TARGETS.len();
    let is_enough = shares < SHARES as usize || trials >= least && targets >= least;
    assert!(is_enough, "of {runs} kills {trials} met a trial and {targets} a target");
}

#[test]
fn any_process_killed_at_any_moment_leaves_nothing() {
    share(0);
}

#[test]
fn any_process_killed_leaves_nothing_second_share() {
    share(1);
}

#[test]
fn any_process_killed_leaves_nothing_third_share() {
    share(2);
}

#[test]
fn any_process_killed_leaves_nothing_fourth_share() {
    share(3);
}

/// `ASSAY_TORTURE_FIRST=17` begins with that one.
fn number_of_first() -> u64 {
    number("ASSAY_TORTURE_FIRST").unwrap_or(0)
}
