//! What a job was asked to do, as far as the options say that fio echoes: which directions it has, and whether it does I/O at all.

use super::super::Direction;
use super::wire::Job;

/// Engines whose work is no I/O.
const OTHER_WORK: [&str; 2] = ["cpuio", "exec"];
/// Options with which all jobs end as soon as one has.
const ENDED_BY_OTHERS: [&str; 2] = ["exitall", "exit_what"];

/// The options of a job, over those of all jobs.
pub(super) struct Asked<'a> {
    job: &'a Job,
    all: &'a [(String, String, String)],
}

impl<'a> Asked<'a> {
    /// `all` are (job, option, value) of the document; the job is empty for those of all jobs.
    pub(super) fn of(job: &'a Job, all: &'a [(String, String, String)]) -> Asked<'a> {
        Asked { job, all }
    }

    fn told(&self, key: &str) -> Option<&'a str> {
        let of_all = || self.all.iter().find(|(of, known, _)| of.is_empty() && known == key);
        self.job.told(key).or_else(|| of_all().map(|(_, _, value)| value.as_str()))
    }

    /// `randrw` of `rw=randrw:8`.
    fn pattern(&self) -> Option<&'a str> {
        self.told("rw").or_else(|| self.told("readwrite"))?.split(':').next()
    }

    /// Whether it writes, and then reads what it wrote: its reads are the check, and no load beside the writes.
    pub(super) fn reads_apart(&self) -> bool {
        let verifies = self.told("verify").is_some_and(|how| how != "0");
        let at_the_end = self.told("verify_backlog").is_none_or(|blocks| blocks == "0");
        matches!(self.pattern(), Some("write" | "randwrite")) && verifies && at_the_end
    }

    /// Whether it has this direction beside another one: what it did not do of it was starved.
    pub(super) fn mixes(&self, direction: Direction) -> bool {
        match (self.pattern(), direction) {
            // All of one direction is no mixture.
            (Some("rw" | "readwrite" | "randrw"), Direction::Read | Direction::Write) => {
                !["rwmixread", "rwmixwrite"].iter().any(|key| matches!(self.told(key), Some("0" | "100")))
            }
            (Some("trimwrite" | "randtrimwrite"), Direction::Trim | Direction::Write) => true,
            _ => false,
        }
    }

    /// Whether this is its only direction.
    pub(super) fn is_only(&self, direction: Direction) -> bool {
        self.pattern()
            .is_some_and(|pattern| pattern.strip_prefix("rand").unwrap_or(pattern) == direction.name())
    }

    /// Whether it does other work than I/O: its own, or laying files out.
    pub(super) fn does_no_io(&self) -> bool {
        self.is_set("create_only") || self.told("ioengine").is_some_and(|engine| OTHER_WORK.contains(&engine))
    }

    /// Whether the end of another job may have been its end, before it had done anything: the option of one job is of all.
    pub(super) fn ends_with_others(&self) -> bool {
        let ends = |key: &str, value: &str| ENDED_BY_OTHERS.contains(&key) && value != "0";
        self.all.iter().any(|(_, key, value)| ends(key, value))
            || ENDED_BY_OTHERS.iter().any(|key| self.is_set(key))
    }

    fn is_set(&self, key: &str) -> bool {
        self.told(key).is_some_and(|value| value != "0")
    }
}
