//! Every option of fio 3.33 to 3.42: what it is called, and what it does to the outside of its own I/O.
//!
//! Enters: a name as written in a job. Leaves: its canonical name, whether it may stand without a value, and its
//! [`Effect`]. Taken from `fio --cmdhelp=all` and `fio --enghelp=ENGINE` of fio 3.33, its option tables, and what later
//! releases added; tests/it/attacks/job_options.rs compares it with the fio that is installed.

mod table;

use Effect::Nothing;
use Takes::Value;

/// Whether an option may stand without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Empty or 0 or 1.
    Flag,
    /// A value is needed.
    Value,
}

/// What an option makes fio do besides I/O on the job's own files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that lasts or reaches further.
    Nothing,
    /// Reads or writes, which decides what is done to the job's files (`rw`).
    Direction,
    /// Names the job's files, several with `:` between them; fio adds those of each line to the ones before.
    Files,
    /// Names one file that is written.
    File,
    /// Names the directories that the job's files are in.
    Directory,
    /// Names a directory all of whose files are the job's, those of subdirectories too.
    Tree,
    /// A pattern for the names of the job's files.
    FileNames,
    /// The job's name, which begins the names of its logs.
    JobName,
    /// Begins the names of logs, which stay.
    Logs,
    /// Leaves a file in the directory fio runs in, which is the trial's own.
    Leaves,
    /// Memory of the buffers; what follows `mmap:` names a file that is written.
    Buffers,
    /// Deletes the job's files.
    Deletes,
    /// Reads a file or a directory.
    Reads,
    /// Is, or belongs to, a command that is executed.
    Runs,
    /// Chooses the I/O engine, which may load code, execute programs, or work on storage of other machines.
    Engine,
    /// Names storage that is no path of this machine.
    Remote,
    /// Sets something of the machine that fio does not put back.
    Machine,
    /// Makes the job do what its text does not say.
    Unknowable,
}

/// (name, alias or empty, takes, effect)
type Row = (&'static str, &'static str, Takes, Effect);

/// One option of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FioOption {
    /// The name fio's help lists.
    pub name: &'static str,
    /// The other name, empty when there is none.
    pub alias: &'static str,
    /// Whether it may stand without a value.
    pub takes: Takes,
    /// What it does to the outside.
    pub effect: Effect,
}

fn rows() -> impl Iterator<Item = Row> {
    let plain = table::PLAIN.iter().map(|name| (*name, "", Value, Nothing));
    plain.chain(table::OPTIONS.iter().copied())
}

/// The option of this name or alias. Names are case-sensitive, as in fio.
#[must_use]
pub fn fio_option(name: &str) -> Option<FioOption> {
    let named = |row: &Row| row.0 == name || (!row.1.is_empty() && row.1 == name);
    // A name goes before an alias: of log_max_value there are both, in different releases.
    let row = rows().find(|row| row.0 == name).or_else(|| rows().find(named));
    row.map(|(name, alias, takes, effect)| FioOption { name, alias, takes, effect })
}

/// All names and aliases.
pub fn fio_option_names() -> impl Iterator<Item = &'static str> {
    rows().flat_map(|(name, alias, ..)| [name, alias]).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::Takes::Flag;
    use super::*;

    #[test]
    fn aliases_lead_to_the_option() {
        assert_eq!(fio_option("blocksize").map(|option| option.name), Some("bs"));
        assert_eq!(fio_option("wait_for_previous").map(|option| option.name), Some("stonewall"));
        assert_eq!(fio_option("stonewall").map(|option| option.takes), Some(Flag));
        assert_eq!(fio_option("direct").map(|option| option.takes), Some(Value));
        assert_eq!(fio_option("iomem").map(|option| option.effect), Some(Effect::Buffers));
        assert_eq!(fio_option("BS"), None);
        assert_eq!(fio_option(""), None);
    }

    #[test]
    fn no_name_stands_for_two_options() {
        let mut names: Vec<&str> = fio_option_names().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        // `proto` is the alias of an option of two network engines, as in fio.
        assert!(count - names.len() <= 1, "{names:?}");
        assert!(count > 380);
        assert!(
            table::OPTIONS.iter().all(|row| *row != (row.0, "", Value, Nothing)),
            "those are in the list"
        );
    }
}
