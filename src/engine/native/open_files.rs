//! How many files the processes of a workload have open at once, and the limit of that.
//!
//! Enters: jobs and their instances. Leaves: a limit that is high enough, or one clear error.

use std::collections::BTreeMap;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::failure::Failure;
use crate::workload::{Instance, IoMethod, Job, Workload};

/// Standard input, output and error of the agent and its jobs.
const STANDARD: u64 = 3;
/// What else may be open: the pipes of the agent's signals, a timer, what the user's shell has left open.
const BESIDES: u64 = 32;

/// What one process of the workload has open at once.
struct Needed<'w> {
    /// At least so many files.
    certain: u64,
    /// The job that needs them.
    job: &'w str,
}

impl Needed<'_> {
    /// A limit that is enough.
    fn enough(&self) -> u64 {
        self.certain + BESIDES
    }
}

/// The most files that one process of the workload has open at once. The instances of a wave are open at the same time:
/// those that are threads in one process, the others in a process each, which has a pipe of its own and inherits one of
/// each that was started before it.
fn needed<'w>(workload: &'w Workload, instances: &[Instance]) -> Option<Needed<'w>> {
    let mut waves: BTreeMap<u32, Vec<&Instance>> = BTreeMap::new();
    for instance in instances {
        waves.entry(instance.wave).or_default().push(instance);
    }
    let most_of_a_wave = |wave: &Vec<&Instance>| {
        let (mut pipes, mut of_threads, mut most) = (0, 0, Vec::new());
        for instance in wave {
            let job = &workload.jobs[instance.job];
            let ring = u64::from(job.method == IoMethod::IoUring);
            let files = instance.files.len() as u64 + ring;
            if job.thread {
                of_threads += files;
                most.push((of_threads, job));
            } else {
                pipes += 1;
                most.push((files + pipes, job));
            }
        }
        // Threads are started when all processes are, whose pipes they wait at.
        let in_all = |(files, job): (u64, &'w Job)| (files + if job.thread { pipes } else { 0 }, job);
        let (files, job) = most.into_iter().map(in_all).max_by_key(|(files, _)| *files)?;
        Some(Needed { certain: files + STANDARD, job: &job.name })
    };
    waves.values().filter_map(most_of_a_wave).max_by_key(|needed| needed.certain)
}

/// Looks whether the limit can be raised to what is needed at the least; what is needed besides, the first file that
/// cannot be opened tells.
///
/// # Errors
/// [`Failure::Setting`] with the number needed, when the hard limit is below it.
pub(super) fn check(workload: &Workload, instances: &[Instance]) -> Result<(), Failure> {
    within(getrlimit(Resource::Nofile).maximum, workload, instances)
}

fn within(limit: Option<u64>, workload: &Workload, instances: &[Instance]) -> Result<(), Failure> {
    let Some(needed) = needed(workload, instances) else { return Ok(()) };
    match limit {
        Some(limit) if limit < needed.certain => {
            let what = format!(
                "at least {} files have to be open at once in a process (EMFILE), and the hard limit RLIMIT_NOFILE \
                 is {limit}; raise it with ulimit -n {}, or lower nrfiles",
                needed.certain,
                needed.enough()
            );
            Err(Failure::Setting { job: needed.job.to_owned(), what })
        }
        _ => Ok(()),
    }
}

/// Raises the soft limit of this process and those it starts to what is needed, as far as the hard limit lets it.
pub(super) fn raise_limit(workload: &Workload, instances: &[Instance]) {
    let Some(needed) = needed(workload, instances) else { return };
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < needed.enough()) {
        let wanted = maximum.map_or(needed.enough(), |most| most.min(needed.enough()));
        // What it is not allowed to open the first file too many will say.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::JobFile;
    use std::path::Path;

    fn needed_by(text: &str) -> (u64, String) {
        let file = JobFile::parse(text, "test.fio", Path::new(".")).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let needed = needed(&workload, &workload.instances(Path::new("."))).unwrap();
        (needed.certain - STANDARD, needed.job.to_owned())
    }

    #[test]
    fn processes_count_alone_and_threads_together() {
        let jobs = "[a]\nsize=1m\nnrfiles=10\nnumjobs=3\n[b]\nsize=1m\nnrfiles=4\n";
        // The third of a's has its own pipe and those of the two before it.
        assert_eq!(needed_by(jobs), (10 + 3, "a".to_owned()));
        let threads = jobs.replace("[a]", "[global]\nthread\n[a]");
        assert_eq!(needed_by(&threads).0, 34);
        let mixed = jobs.replace("[b]", "[b]\nthread").replace("nrfiles=4", "nrfiles=12");
        assert_eq!(needed_by(&mixed), (12 + 3, "b".to_owned()));
        let waves = jobs.replace("[b]", "[b]\nstonewall");
        assert_eq!(needed_by(&waves), (10 + 3, "a".to_owned()));
        assert_eq!(needed_by("[a]\nsize=1m\nioengine=io_uring\niodepth=4\n").0, 1 + 1 + 1);
    }

    #[test]
    fn what_no_limit_allows_is_refused_and_nothing_else() {
        let file = JobFile::parse("[a]\nsize=1m\nnrfiles=100\n", "t", Path::new(".")).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let instances = workload.instances(Path::new("/none"));
        let error = within(Some(103), &workload, &instances).unwrap_err().to_string();
        assert!(
            error.contains("at least 104 files")
                && error.contains("ulimit -n 136")
                && error.contains("is 103;"),
            "{error}"
        );
        // 100 files, a pipe, three streams.
        assert!(
            within(Some(104), &workload, &instances).is_ok() && within(None, &workload, &instances).is_ok()
        );
    }
}
