//! What a job that only fio understands may write to, told from its text: more rather than less.
//!
//! Enters: a [`JobFile`] without variables. Leaves: [`FioPaths`]. What exists on a disk is not looked up here.

use std::path::{Path, PathBuf};

use super::job_file::{JobFile, Section, Setting};
use super::values::paths;

/// Options that name files to be written, several with `:` between them.
const NAMES: [&str; 3] = ["filename", "donorname", "replay_redirect"];
/// Options that name the beginning of a log file's name.
const LOGS: [&str; 5] = ["write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "write_iolog"];

/// What a job may write to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FioPaths {
    /// These files and devices.
    pub files: Vec<PathBuf>,
    /// Everything in a directory whose name begins so: directory and beginning, which may be empty.
    pub beginnings: Vec<(PathBuf, String)>,
    /// Directories whose files are all opened, those of subdirectories too (`opendir`).
    pub trees: Vec<PathBuf>,
    /// Options after which nobody can tell.
    pub unknowable: Vec<Setting>,
}

impl FioPaths {
    /// Of all jobs of `file`, run in `directory`.
    #[must_use]
    pub fn of(file: &JobFile, directory: &Path) -> FioPaths {
        let mut found = FioPaths::default();
        let mut inherited: Vec<&Setting> = Vec::new();
        for section in &file.sections {
            if section.is_global() {
                inherited.extend(&section.settings);
            } else {
                let settings: Vec<&Setting> = inherited.iter().copied().chain(&section.settings).collect();
                found.add(section, &settings, directory);
            }
        }
        found
    }

    fn add(&mut self, section: &Section, settings: &[&Setting], directory: &Path) {
        let last = |option: &str| {
            settings.iter().rev().find(|s| s.canonical() == option).and_then(|s| s.value.as_deref())
        };
        let listed = |option: &str| last(option).and_then(|text| paths(text).ok()).unwrap_or_default();
        let mut directories: Vec<PathBuf> =
            listed("directory").iter().map(|own| directory.join(own)).collect();
        let below = !directories.is_empty();
        if !below {
            directories.push(directory.to_owned());
        }
        for name in NAMES.iter().flat_map(|option| listed(option)) {
            // fio writes the directory in front even of an absolute name; a device it may take as it is.
            self.files.push(directory.join(&name));
            if below {
                let inside = name.strip_prefix("/").unwrap_or(&name).to_owned();
                self.files.extend(directories.iter().map(|at| at.join(&inside)));
            }
        }
        self.trees.extend(last("opendir").map(|tree| directory.join(tree)));
        if last("filename").is_none() && last("opendir").is_none() {
            let format = last("filename_format").unwrap_or("$jobname.");
            let fixed = format.replace("$jobname", &section.name);
            let fixed = fixed.split('$').next().unwrap_or_default();
            directories.iter().for_each(|at| self.begins(at, fixed));
        }
        // A log option without a value is named after the job, and lies where fio runs.
        LOGS.iter().filter_map(|option| last(option)).for_each(|prefix| self.begins(directory, prefix));
        let replay = settings.iter().rev().find(|setting| setting.canonical() == "read_iolog");
        self.unknowable.extend(replay.map(|setting| (*setting).clone()));
    }

    fn begins(&mut self, directory: &Path, prefix: &str) {
        let (inner, start) = prefix.rsplit_once('/').map_or(("", prefix), |(inner, start)| (inner, start));
        let absolute = if prefix.starts_with('/') { format!("/{inner}") } else { inner.to_owned() };
        self.beginnings.push((directory.join(absolute), start.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> FioPaths {
        let file = JobFile::parse(text, "job", Path::new("/")).unwrap();
        FioPaths::of(&file, Path::new("/own"))
    }

    fn strings(paths: &[PathBuf]) -> Vec<&str> {
        paths.iter().filter_map(|path| path.to_str()).collect()
    }

    #[test]
    fn names_are_read_as_fio_reads_them() {
        let found = of("[global]\nfilename=/dev/disk/by-path/pci-0\\:0:rel\n[a]\n");
        assert_eq!(strings(&found.files), ["/dev/disk/by-path/pci-0:0", "/own/rel"]);
        assert!(found.beginnings.is_empty());
        let found = of("[a]\ndirectory=/data\nfilename=/x\n");
        assert_eq!(strings(&found.files), ["/x", "/data/x"]);
    }

    #[test]
    fn generated_names_logs_and_directories_are_seen() {
        let at = |directory: &str, start: &str| (PathBuf::from(directory), start.to_owned());
        let found = of("[a]\ndirectory=/d1:/d2\nwrite_bw_log=/logs/run\n[b]\nopendir=/tree\n");
        assert_eq!(found.beginnings, [at("/d1", "a."), at("/d2", "a."), at("/logs", "run")]);
        assert_eq!(strings(&found.trees), ["/tree"]);
        assert_eq!(of("[a]\nfilename_format=sub/f_$jobnum\n").beginnings, [at("/own/sub", "f_")]);
        assert_eq!(of("[a]\nfilename_format=$filenum.$jobname\n").beginnings, [at("/own", "")]);
    }

    #[test]
    fn a_replayed_log_can_name_anything() {
        let found = of("[a]\nread_iolog=trace\n");
        assert_eq!(found.unknowable[0].name, "read_iolog");
    }
}
