//! What the kernel counts for each task (a thread, or the first thread of a process) in `/proc`.
//!
//! Enters: the text of `schedstat` and `stat` of a task. Leaves: how long it ran, waited for a processor and waited for storage,
//! since when it lives, and which tasks a process has. It must not know what the task does.
//! Sources: Documentation/scheduler/sched-stats.rst (`/proc/<pid>/schedstat`), proc_pid_stat(5), Documentation/accounting/delay-accounting.rst.

use std::path::{Path, PathBuf};

/// What `schedstat` says of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// Nanoseconds on a processor.
    pub ran_ns: u64,
    /// Nanoseconds ready to run, without a processor.
    pub waited_ns: u64,
    /// How often it was given one.
    pub times: u64,
}

impl Scheduled {
    /// What the file holds; `None` when it is not such a file.
    #[must_use]
    pub fn parse(text: &str) -> Option<Scheduled> {
        let mut fields = text.split_whitespace().map(str::parse);
        let mut next = || fields.next()?.ok();
        Some(Scheduled { ran_ns: next()?, waited_ns: next()?, times: next()? })
    }

    /// Of the task whose directory in `/proc` this is; `None` where the kernel does not count it, or the task is gone.
    #[must_use]
    pub fn of(task: &Path) -> Option<Scheduled> {
        Scheduled::parse(&std::fs::read_to_string(task.join("schedstat")).ok()?)
    }
}

/// What `stat` says of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskStat {
    /// It has ended, and only its parent has to notice.
    pub is_zombie: bool,
    /// How it ended, as wait(2) tells it; 0 while it runs, and for those who may not know (Linux 3.5).
    pub exit_code: i32,
    /// It waits where no signal wakes it, mostly for storage.
    pub is_waiting: bool,
    /// Clock ticks outside the kernel.
    pub user_ticks: u64,
    /// Clock ticks in the kernel.
    pub kernel_ticks: u64,
    /// When it began, in clock ticks since boot.
    pub started_ticks: u64,
    /// Clock ticks that it waited for block I/O; 0 where delays are not counted ([`delays_are_counted`]).
    pub storage_ticks: u64,
}

impl TaskStat {
    /// What the file holds; `None` when it is not such a file.
    #[must_use]
    pub fn parse(text: &str) -> Option<TaskStat> {
        // `12 (name, which may hold anything) S 1 …`: fields count from 1, and the state is the third.
        let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(TaskStat {
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            exit_code: fields.get(52 - 3).and_then(|code| code.parse().ok()).unwrap_or(0),
            is_waiting: *fields.first()? == "D",
            user_ticks: number(14)?,
            kernel_ticks: number(15)?,
            started_ticks: number(22)?,
            storage_ticks: number(42)?,
        })
    }

    /// Of the task whose directory in `/proc` this is; `None`: it is gone.
    #[must_use]
    pub fn of(task: &Path) -> Option<TaskStat> {
        TaskStat::parse(&std::fs::read_to_string(task.join("stat")).ok()?)
    }
}

/// Whether the kernel counts what tasks wait for (`kernel.task_delayacct`, Linux 5.14). Tasks that began before it was switched on have
/// no count.
#[must_use]
pub fn delays_are_counted() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/task_delayacct").is_ok_and(|text| text.trim() == "1")
}

/// Seconds of so many clock ticks.
#[must_use]
pub fn seconds_of_ticks(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// Whether a task that lived so long can have waited for so long, which is counted in ticks. Linux 6.12 was seen to count the time since
/// boot for a wait of milliseconds (delay accounting, in an emulated guest).
#[must_use]
pub fn can_be_waited(waited_s: f64, lived_s: f64) -> bool {
    waited_s <= lived_s + seconds_of_ticks(1)
}

/// The directories of a process's threads; none when it is gone.
#[must_use]
pub fn tasks_of(process: i32) -> Vec<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.map(|task| task.path()).collect()
}

/// The parent of a process; `None`: it is gone, or the first process of all.
#[must_use]
pub fn parent_of(process: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 0).then_some(parent)
}

/// This process and all above it.
#[must_use]
pub fn own_line() -> Vec<i32> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    std::iter::successors(Some(own), |process| parent_of(*process)).collect()
}

/// The number of the task whose directory in `/proc` this is.
#[must_use]
pub fn number_of(task: &Path) -> Option<i32> {
    task.file_name()?.to_str()?.parse().ok()
}

/// Children of a task, zombies too, by the directory of the task in `/proc`.
#[must_use]
pub fn children_of(task: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(task.join("children")).unwrap_or_default();
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_has_time_run_and_time_waited() {
        let read = Scheduled::parse("1813482 60409 17\n");
        assert_eq!(read, Some(Scheduled { ran_ns: 1_813_482, waited_ns: 60_409, times: 17 }));
        assert_eq!(Scheduled::parse("0 0"), None);
        assert_eq!(Scheduled::parse("a b c"), None);
    }

    #[test]
    fn stat_is_read_behind_a_name_that_looks_like_fields() {
        let rest = (4..=52).map(|field| (field * 10).to_string()).collect::<Vec<_>>().join(" ");
        let read = TaskStat::parse(&format!("7 (a) S 1) Z {rest}\n"));
        let expected = TaskStat {
            is_zombie: true,
            exit_code: 520,
            is_waiting: false,
            user_ticks: 140,
            kernel_ticks: 150,
            started_ticks: 220,
            storage_ticks: 420,
        };
        assert_eq!(read, Some(expected));
        assert_eq!(TaskStat::parse("7 (a) S 1 2 3"), None);
    }

    #[test]
    fn nobody_waits_longer_than_it_lives() {
        let tick = seconds_of_ticks(1);
        assert!(can_be_waited(0.0, 0.0) && can_be_waited(tick, 0.0) && can_be_waited(0.07, 0.07));
        assert!(!can_be_waited(5.15, 0.07));
    }

    #[test]
    fn this_thread_has_both() {
        let own = Path::new("/proc/thread-self");
        let stat = TaskStat::of(own).unwrap();
        assert!(!stat.is_zombie && seconds_of_ticks(stat.started_ticks) > 0.0, "{stat:?}");
        // In its first slice of time a thread has run for 0 ns so far.
        assert!(Scheduled::of(own).is_some());
    }
}
