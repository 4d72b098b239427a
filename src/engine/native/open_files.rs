//! How many files the processes of a workload have open at once, and the limit of that.
//!
//! Enters: jobs and their instances. Leaves: a limit that is high enough, or one clear error.

use std::collections::BTreeMap;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::failure::Failure;
use crate::workload::{Instance, Workload};

/// Besides the files of its jobs: standard streams, the pipes of the agent, a ring or a timer each for a few jobs.
const BESIDES: u64 = 32;

/// The most files that one process of the workload has open at once, and the job that needs them. The instances of a
/// wave are open at the same time: those that are threads in one process, the others in a process each, which inherits
/// a pipe of each that was started before it.
fn needed<'w>(workload: &'w Workload, instances: &[Instance]) -> Option<(u64, &'w str)> {
    let mut waves: BTreeMap<u32, Vec<&Instance>> = BTreeMap::new();
    for instance in instances {
        waves.entry(instance.wave).or_default().push(instance);
    }
    let of = |instance: &Instance| {
        let job = &workload.jobs[instance.job];
        // A ring or a timer of its own.
        let own = 2 * u64::from(job.method.is_asynchronous());
        let files = instance.files.len() as u64;
        (job, files + own)
    };
    let most_of_a_wave = |wave: &Vec<&Instance>| {
        let pipes = wave.len() as u64;
        let threads: u64 = wave.iter().map(|one| of(one)).filter(|(job, _)| job.thread).map(|(_, n)| n).sum();
        let largest = wave.iter().map(|one| of(one)).max_by_key(|(_, files)| *files)?;
        let (job, files) = largest;
        Some((files.max(threads) + pipes + BESIDES, job.name.as_str()))
    };
    waves.values().filter_map(most_of_a_wave).max_by_key(|(files, _)| *files)
}

/// Looks whether the limit can be raised to what is needed.
///
/// # Errors
/// [`Failure::Setting`] with the number needed, when the hard limit is below it.
pub(super) fn check(workload: &Workload, instances: &[Instance]) -> Result<(), Failure> {
    within(getrlimit(Resource::Nofile).maximum, workload, instances)
}

fn within(limit: Option<u64>, workload: &Workload, instances: &[Instance]) -> Result<(), Failure> {
    let Some((needed, job)) = needed(workload, instances) else { return Ok(()) };
    match limit {
        Some(limit) if limit < needed => {
            let what = format!(
                "{needed} files have to be open at once in a process (EMFILE), and the hard limit RLIMIT_NOFILE is \
                 {limit}; raise it with ulimit -n {needed}, or lower nrfiles"
            );
            Err(Failure::Setting { job: job.to_owned(), what })
        }
        _ => Ok(()),
    }
}

/// Raises the soft limit of this process and those it starts to what is needed, as far as the hard limit lets it.
pub(super) fn raise_limit(workload: &Workload, instances: &[Instance]) {
    let Some((needed, _)) = needed(workload, instances) else { return };
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < needed) {
        let wanted = maximum.map_or(needed, |most| most.min(needed));
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
        let (files, job) = needed(&workload, &workload.instances(Path::new("."))).unwrap();
        (files - BESIDES, job.to_owned())
    }

    #[test]
    fn processes_count_alone_and_threads_together() {
        let jobs = "[a]\nsize=1m\nnrfiles=10\nnumjobs=3\n[b]\nsize=1m\nnrfiles=4\n";
        assert_eq!(needed_by(jobs), (10 + 4, "a".to_owned()));
        let threads = jobs.replace("[a]", "[global]\nthread\n[a]");
        assert_eq!(needed_by(&threads), (34 + 4, "a".to_owned()));
        let waves = jobs.replace("[b]", "[b]\nstonewall");
        assert_eq!(needed_by(&waves), (10 + 3, "a".to_owned()));
        assert_eq!(needed_by("[a]\nsize=1m\nioengine=libaio\niodepth=4\n").0, 1 + 2 + 1);
    }

    #[test]
    fn what_no_limit_allows_is_refused() {
        let file = JobFile::parse("[a]\nsize=1m\nnrfiles=100\n", "t", Path::new(".")).unwrap();
        let workload = Workload::resolve(&file).unwrap();
        let instances = workload.instances(Path::new("/none"));
        let error = within(Some(128), &workload, &instances).unwrap_err().to_string();
        assert!(error.contains("ulimit -n 133") && error.contains("is 128;"), "{error}");
        assert!(
            within(Some(133), &workload, &instances).is_ok() && within(None, &workload, &instances).is_ok()
        );
    }
}
