//! The workers of a program of another's making, followed from outside: how long they lived, and how long they waited.
//!
//! Enters: the number of the guard above the program, or the processes of a server that runs already, and looks at `/proc` now and then.
//! Leaves: [`Lives`]. It must not know which program it is.
//!
//! A worker is a thread of the program or of a process that it started. While one that starts others has them beside it, it counts only
//! with the time that it ran, wanted to run or waited for storage: the rest it waits for them. So does one that hardly ever ran, beside
//! others that did and was never seen to wait for storage: it has nothing to do. A look takes some 20 µs a thread, and comes after a twentieth of the time that has
//! passed, so that what is missed between the last look and a worker's end is about a fortieth of its life; by how much the counts
//! grew until then is taken to be as before. Processes that come and go between two looks are not seen: [`Lives::ran_s`] says how much
//! of the processor time was.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::task::{
    Scheduled, TaskStat, can_be_waited, children_of, delays_are_counted, number_of, seconds_of_ticks,
    tasks_of,
};

/// The first look, and the least time between two.
const SHORTEST: Duration = Duration::from_millis(10);
/// The most time between two looks.
const LONGEST: Duration = Duration::from_millis(250);
/// Looks come after this share of the time that has passed.
const SHARE: u32 = 20;
/// A look takes at most this share of the time until the next one.
const MOST_COST: u32 = 50;

/// A thread that ran less than this share of what the busiest did, and that seldom, has nothing to do.
const IDLE: f64 = 0.05;

/// What is known of all workers when it is over; seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lives {
    /// How long they lived, added up.
    pub wall_s: f64,
    /// How long they ran.
    pub ran_s: f64,
    /// How much of that was outside the kernel.
    pub user_s: f64,
    /// How long they were ready to run and had no processor.
    pub run_wait_s: f64,
    /// How long they waited for block I/O; `None`: the kernel does not count it.
    pub storage_s: Option<f64>,
}

/// What the kernel has counted for a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    scheduled: Scheduled,
    user_ticks: u64,
    kernel_ticks: u64,
    storage_ticks: u64,
}

impl Counts {
    fn of(stat: &TaskStat, scheduled: Scheduled) -> Counts {
        let TaskStat { user_ticks, kernel_ticks, storage_ticks, .. } = *stat;
        Counts { scheduled, user_ticks, kernel_ticks, storage_ticks }
    }

    /// What was counted since then.
    fn since(&self, before: &Counts) -> Counts {
        Counts {
            scheduled: Scheduled {
                ran_ns: self.scheduled.ran_ns.saturating_sub(before.scheduled.ran_ns),
                waited_ns: self.scheduled.waited_ns.saturating_sub(before.scheduled.waited_ns),
                times: self.scheduled.times.saturating_sub(before.scheduled.times),
            },
            user_ticks: self.user_ticks.saturating_sub(before.user_ticks),
            kernel_ticks: self.kernel_ticks.saturating_sub(before.kernel_ticks),
            storage_ticks: self.storage_ticks.saturating_sub(before.storage_ticks),
        }
    }

    /// The share of the ticks outside the kernel.
    fn user_share(&self) -> f64 {
        self.user_ticks as f64 / (self.user_ticks + self.kernel_ticks).max(1) as f64
    }
}

/// One thread.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Worker {
    process: i32,
    /// Seconds since boot.
    began_s: f64,
    seen_s: f64,
    /// Between the last look that saw it and the next one; `None`: it lives.
    ended_s: Option<f64>,
    counts: Counts,
    /// It was seen where no signal wakes it.
    waited: bool,
}

/// Whose workers are followed.
enum Whose {
    /// Those of the program below this process.
    Below(i32),
    /// Those of these processes, which run already.
    These {
        processes: Vec<i32>,
        /// Seconds since boot when it began to count.
        since_s: f64,
        /// What was counted before, by thread and the tick at which it began.
        before: BTreeMap<(i32, u64), Counts>,
    },
}

/// The workers that were seen so far.
pub struct Followed {
    whose: Whose,
    begun: Instant,
    next: Instant,
    delays: bool,
    /// The program itself: how long it lives is known exactly.
    program: Option<i32>,
    workers: BTreeMap<i32, Worker>,
    /// Processes that have started others, with these.
    parents: BTreeMap<i32, BTreeSet<i32>>,
}

impl Followed {
    /// Follows the program below a guard that was just started.
    #[must_use]
    pub fn below(guard: i32) -> Followed {
        Followed::whose(Whose::Below(guard))
    }

    /// Follows processes that run already, with all that they have started and will start, from now on.
    #[must_use]
    pub fn these(processes: Vec<i32>) -> Followed {
        let since_s = since_boot_s();
        let mut followed = Followed::whose(Whose::These { processes, since_s, before: BTreeMap::new() });
        let mut found = BTreeMap::new();
        followed.each_task(|_, task| {
            let (stat, scheduled) = (TaskStat::of(task)?, Scheduled::of(task)?);
            let thread = number_of(task)?;
            found.insert((thread, stat.started_ticks), Counts::of(&stat, scheduled));
            Some(thread)
        });
        if let Whose::These { before, .. } = &mut followed.whose {
            *before = found;
        }
        followed
    }

    fn whose(whose: Whose) -> Followed {
        let now = Instant::now();
        Followed {
            whose,
            begun: now,
            next: now + SHORTEST,
            delays: delays_are_counted(),
            program: None,
            workers: BTreeMap::new(),
            parents: BTreeMap::new(),
        }
    }

    /// How long until the next look.
    #[must_use]
    pub fn due_in(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Looks, when it is time to.
    pub fn look_when_due(&mut self) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.look();
        let wait = ((now - self.begun) / SHARE).clamp(SHORTEST, LONGEST);
        self.next = Instant::now() + wait.max(now.elapsed() * MOST_COST);
    }

    /// Looks now.
    pub fn look(&mut self) {
        let mut workers = Vec::new();
        let seen = self.each_task(|process, task| {
            let (thread, worker) = noted(process, task)?;
            workers.push((thread, worker));
            Some(thread)
        });
        for (thread, (started_ticks, mut worker)) in workers {
            worker = self.since_the_beginning(thread, started_ticks, worker);
            worker.waited |= self.workers.get(&thread).is_some_and(|known| known.waited);
            self.workers.insert(thread, worker);
        }
        let now_s = since_boot_s();
        for (_, worker) in self.workers.iter_mut().filter(|(thread, _)| !seen.contains(*thread)) {
            worker.ended_s = worker.ended_s.or(Some(f64::midpoint(worker.seen_s, now_s)));
        }
    }

    /// Goes through all threads there are now; the numbers of those that `of` has seen.
    fn each_task(&mut self, mut of: impl FnMut(i32, &Path) -> Option<i32>) -> BTreeSet<i32> {
        let mut processes = match &self.whose {
            Whose::Below(guard) => {
                let found: Vec<i32> = tasks_of(*guard).iter().flat_map(|task| children_of(task)).collect();
                self.program = self.program.or(found.first().copied());
                found
            }
            Whose::These { processes, .. } => processes.clone(),
        };
        let mut seen = BTreeSet::new();
        let mut at = 0;
        while at < processes.len() {
            let process = processes[at];
            at += 1;
            for task in tasks_of(process) {
                let children = children_of(&task);
                if !children.is_empty() {
                    self.parents.entry(process).or_default().extend(&children);
                    // One of these may have been started by another of them.
                    processes.extend(
                        children.into_iter().filter(|child| !processes.contains(child)).collect::<Vec<_>>(),
                    );
                }
                seen.extend(of(process, &task));
            }
        }
        seen
    }

    /// A thread as if it had begun when the first look came, if it is older.
    fn since_the_beginning(&mut self, thread: i32, started_ticks: u64, worker: Worker) -> Worker {
        let Whose::These { since_s, before, .. } = &mut self.whose else { return worker };
        if worker.began_s < *since_s {
            // One that was adopted since has done what it did before for somebody else.
            before.entry((thread, started_ticks)).or_insert(worker.counts);
        }
        let counts = match before.get(&(thread, started_ticks)) {
            Some(before) => worker.counts.since(before),
            None => worker.counts,
        };
        Worker { began_s: worker.began_s.max(*since_s), counts, ..worker }
    }

    /// What they came to, now that it is over; `program_s`: how long the program lived, if that is known exactly.
    #[must_use]
    pub fn ended(self, program_s: f64) -> Lives {
        let now_s = since_boot_s();
        let mut lives = Lives { storage_s: self.delays.then_some(0.0), ..Lives::default() };
        let most = |of: fn(&Scheduled) -> u64| {
            self.workers.values().map(|worker| of(&worker.counts.scheduled)).max()
        };
        let (longest_ns, most_times) = (most(|counted| counted.ran_ns), most(|counted| counted.times));
        let is_little = |of: u64, most: Option<u64>| (of as f64) < IDLE * most.unwrap_or(0) as f64;
        for (thread, worker) in &self.workers {
            let seen_s = worker.seen_s - worker.began_s;
            let lived_s = match self.program {
                Some(program) if program == *thread => program_s,
                _ => worker.end_s(now_s) - worker.began_s,
            };
            let grown = if seen_s > 0.0 { (lived_s / seen_s).max(1.0) } else { 1.0 };
            let seconds = |ns: u64| ns as f64 / 1e9 * grown;
            let Counts { scheduled, storage_ticks, .. } = worker.counts;
            let (ran_s, run_wait_s) = (seconds(scheduled.ran_ns), seconds(scheduled.waited_ns));
            lives.ran_s += ran_s;
            lives.user_s += ran_s * worker.counts.user_share();
            lives.run_wait_s += run_wait_s;
            let counted_s = seconds_of_ticks(storage_ticks) * grown;
            let storage_s = Some(counted_s).filter(|counted_s| can_be_waited(*counted_s, lived_s));
            lives.storage_s = lives.storage_s.zip(storage_s).map(|(sum, storage_s)| sum + storage_s);
            let storage_s = storage_s.unwrap_or(0.0);
            // While its children live, it counts with what it does besides waiting for them.
            let is_little = is_little(scheduled.ran_ns, longest_ns) && is_little(scheduled.times, most_times);
            let is_idle = is_little && !worker.waited && storage_ticks == 0;
            let alone_s = match is_idle {
                true => 0.0,
                false => lived_s - self.beside_children_s(worker, worker.began_s + lived_s, now_s),
            };
            lives.wall_s += alone_s.max(ran_s + run_wait_s + storage_s).min(lived_s);
        }
        lives
    }

    /// How long a worker had children of its process beside it, until its own end.
    fn beside_children_s(&self, worker: &Worker, end_s: f64, now_s: f64) -> f64 {
        // A child lives as long as any of its threads.
        let children = self.parents.get(&worker.process);
        let is_child = |other: &&Worker| children.is_some_and(|children| children.contains(&other.process));
        let mut lives: Vec<(f64, f64)> = self
            .workers
            .values()
            .filter(is_child)
            .map(|child| (child.began_s.max(worker.began_s), child.end_s(now_s).min(end_s)))
            .collect();
        lives.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut sum_s, mut until_s) = (0.0, f64::NEG_INFINITY);
        for (began_s, ended_s) in lives {
            sum_s += (ended_s - began_s.max(until_s)).max(0.0);
            until_s = until_s.max(ended_s);
        }
        sum_s
    }
}

impl Worker {
    /// Its end, or what is known of it now.
    fn end_s(&self, now_s: f64) -> f64 {
        self.ended_s.unwrap_or(f64::midpoint(self.seen_s, now_s))
    }
}

/// One thread with its number and the tick at which it began, as it is now; `None`: it is gone.
fn noted(process: i32, task: &Path) -> Option<(i32, (u64, Worker))> {
    let (stat, scheduled) = (TaskStat::of(task)?, Scheduled::of(task)?);
    if stat.is_zombie {
        return None;
    }
    let seen_s = since_boot_s();
    // It began within the tick.
    let began_s = (seconds_of_ticks(stat.started_ticks) + seconds_of_ticks(1) / 2.0).min(seen_s);
    let (counts, waited) = (Counts::of(&stat, scheduled), stat.is_waiting);
    let worker = Worker { process, began_s, seen_s, ended_s: None, counts, waited };
    Some((number_of(task)?, (stat.started_ticks, worker)))
}

/// Seconds on the clock by which the kernel says when a task began.
fn since_boot_s() -> f64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(process: i32, lived_s: f64, ran_ns: u64, waited_ns: u64) -> Worker {
        let counts = Counts { scheduled: Scheduled { ran_ns, waited_ns, times: 100 }, ..Counts::default() };
        let (seen_s, ended_s) = (100.0 + lived_s / 2.0, Some(100.0 + lived_s));
        Worker { process, began_s: 100.0, seen_s, ended_s, counts, waited: false }
    }

    /// Process 7 has these children.
    fn followed(program: i32, workers: &[(i32, Worker)], children: &[i32]) -> Followed {
        Followed {
            delays: false,
            program: Some(program),
            workers: workers.iter().copied().collect(),
            parents: BTreeMap::from([(7, children.iter().copied().collect())]),
            ..Followed::below(1)
        }
    }

    #[test]
    fn a_parent_counts_what_it_ran_beside_its_children_and_all_it_lived_without() {
        // Seen for half of their lives: what they were counted for doubles until their ends.
        let workers = [
            (7, worker(7, 4.0, 100_000_000, 0)),
            (8, worker(8, 3.0, 500_000_000, 250_000_000)),
            (9, worker(9, 2.0, 500_000_000, 0)),
        ];
        let lives = followed(7, &workers, &[8, 9]).ended(4.0);
        assert!((lives.wall_s - (1.0 + 3.0 + 2.0)).abs() < 1e-9, "{lives:?}");
        assert!((lives.ran_s - 2.2).abs() < 1e-9 && (lives.run_wait_s - 0.5).abs() < 1e-9, "{lives:?}");
        assert_eq!(lives.storage_s, None);
        // One that lives as long as its parent leaves it what it ran.
        let all = followed(7, &[workers[0], (8, worker(8, 4.0, 0, 0))], &[8]).ended(4.0);
        assert!((all.wall_s - (0.2 + 4.0)).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn a_thread_that_hardly_ever_ran_has_nothing_to_do() {
        let busy = worker(7, 4.0, 1_000_000_000, 0);
        let mut idle = worker(7, 4.0, 10_000_000, 0);
        // Seldom on a processor, and long each time, or often and short: it works.
        let wall_s = |other: Worker| followed(7, &[(7, busy), (8, other)], &[]).ended(4.0).wall_s;
        assert!((wall_s(idle) - 8.0).abs() < 1e-9);
        idle.counts.scheduled.times = 4;
        assert!((wall_s(idle) - 4.02).abs() < 1e-9, "{}", wall_s(idle));
        idle.waited = true;
        assert!((wall_s(idle) - 8.0).abs() < 1e-9, "for storage, as it seems");
        idle.waited = false;
        idle.counts.scheduled.ran_ns = 60_000_000;
        assert!((wall_s(idle) - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_wait_that_is_longer_than_a_life_is_no_part_of_anything() {
        let mut parent = worker(7, 4.0, 100_000_000, 0);
        let child = worker(8, 3.0, 500_000_000, 0);
        let ended = |parent: Worker| {
            Followed { delays: true, ..followed(7, &[(7, parent), (8, child)], &[8]) }.ended(4.0)
        };
        let known = ended(parent);
        assert_eq!(known.storage_s, Some(0.0));
        parent.counts.storage_ticks = 1_000_000;
        let wrong = ended(parent);
        assert_eq!((wrong.storage_s, wrong.wall_s), (None, known.wall_s));
    }

    #[test]
    fn a_program_alone_lived_as_long_as_it_ran_to_its_end() {
        let lives = followed(7, &[(7, worker(7, 1.0, 1, 0))], &[]).ended(1.25);
        assert!((lives.wall_s - 1.25).abs() < 1e-9, "{lives:?}");
    }

    #[test]
    fn of_a_server_that_runs_already_only_what_comes_counts() {
        // A thread that has lived and run before, and lives on.
        let mut child = std::process::Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo; read x; echo; read x"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut byte = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        let process = i32::try_from(child.id()).unwrap();
        let ran_before = Scheduled::of(Path::new(&format!("/proc/{process}"))).unwrap();
        let begun = Instant::now();
        let mut followed = Followed::these(vec![process]);
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"\n").unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut byte).unwrap();
        followed.look();
        assert_eq!(followed.workers.len(), 1);
        let lives = followed.ended(0.0);
        let lived_s = begun.elapsed().as_secs_f64();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lives.ran_s * 1e9 < ran_before.ran_ns as f64, "{lives:?} {ran_before:?}");
        assert!(lives.wall_s > 0.0 && lives.wall_s <= lived_s + 0.02, "{lives:?} {lived_s}");
    }

    #[test]
    fn looks_come_rarer_the_longer_it_takes() {
        let mut followed = Followed::below(0);
        assert!(followed.due_in() <= SHORTEST);
        followed.begun -= Duration::from_secs(2);
        followed.next = Instant::now();
        followed.look_when_due();
        let due = followed.due_in();
        assert!(due > Duration::from_millis(80) && due <= LONGEST, "{due:?}");
    }
}
