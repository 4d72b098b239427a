//! What fio does besides I/O on files that the native engine knows of, told from a job's text: more rather than less.
//!
//! Enters: a [`JobFile`] without variables. Leaves: [`FioEffects`]. What exists on a disk is not looked up here.

use std::path::{Path, PathBuf};

use super::fio_engines::FioEngine;
use super::fio_options::{Effect, fio_option};
use super::job_file::{JobFile, Section, Setting};
use super::values::paths;

/// fio 3.33 cuts lines of 8192 bytes in two, and others may do so earlier.
const LONGEST_LINE: usize = 4000;
/// fio puts numbers in place of these.
const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// What jobs may write to, delete and execute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FioEffects {
    /// These files and devices are written, overwritten or deleted.
    pub files: Vec<PathBuf>,
    /// Directories of the job's files: fio makes and leaves those that are missing.
    pub parents: Vec<PathBuf>,
    /// Used where one is there that is not a regular file: fio takes a job's name for that of a device.
    pub devices: Vec<PathBuf>,
    /// Everything in a directory whose name begins so: directory and beginning, which may be empty.
    pub beginnings: Vec<(PathBuf, String)>,
    /// Directories whose files are all opened, those of subdirectories too (`opendir`).
    pub trees: Vec<PathBuf>,
    /// What is executed or loaded, and which option of which job asks for it.
    pub commands: Vec<String>,
    /// What is written to on other machines.
    pub elsewhere: Vec<Elsewhere>,
    /// What is not done at all.
    pub refused: Vec<FioRefusal>,
}

/// Storage that is no path of this machine, and is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// The `ioengine`.
    pub engine: String,
    /// What the job calls the storage; each of them may name it.
    pub names: Vec<String>,
}

/// An option that no job may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FioRefusal {
    /// The option and what it does.
    pub what: String,
    /// What to do instead.
    pub hint: &'static str,
}

impl FioEffects {
    /// Of all jobs of `file`, run in `directory`.
    #[must_use]
    pub fn of(file: &JobFile, directory: &Path) -> FioEffects {
        let mut found = FioEffects::default();
        let mut inherited: Vec<&Setting> = Vec::new();
        for section in &file.sections {
            if section.is_global() {
                inherited.extend(&section.settings);
            } else {
                let settings: Vec<&Setting> = inherited.iter().copied().chain(&section.settings).collect();
                found.refused.extend(settings.iter().filter_map(|setting| refusal(setting)));
                let job = FioJob { section, settings, directory };
                job.add_files(&mut found);
                job.add_logs(&mut found);
                job.add_engines(&mut found);
                job.add_commands(&mut found);
            }
        }
        found
    }

    /// Adds those of another cell, each once.
    pub fn merge(&mut self, other: FioEffects) {
        fn add<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
            for one in more {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        add(&mut self.files, other.files);
        add(&mut self.parents, other.parents);
        add(&mut self.devices, other.devices);
        add(&mut self.beginnings, other.beginnings);
        add(&mut self.trees, other.trees);
        add(&mut self.commands, other.commands);
        add(&mut self.elsewhere, other.elsewhere);
        add(&mut self.refused, other.refused);
    }

    /// Leaves out what is said in full by the files that the native engine knows of.
    #[must_use]
    pub fn beyond(mut self, known: impl Fn(&Path) -> bool) -> FioEffects {
        self.files.retain(|file| !known(file));
        self.devices.clear();
        self.beginnings.clear();
        self
    }
}

/// A job with the settings of the globals above it.
struct FioJob<'j> {
    section: &'j Section,
    settings: Vec<&'j Setting>,
    directory: &'j Path,
}

impl FioJob<'_> {
    /// All values of options with this effect: fio adds up some, and of others the last one holds.
    fn values(&self, effect: Effect) -> impl Iterator<Item = &str> {
        let with =
            move |setting: &&&Setting| fio_option(&setting.name).is_some_and(|known| known.effect == effect);
        self.settings.iter().filter(with).filter_map(|setting| setting.value.as_deref())
    }

    fn last(&self, option: &str) -> Option<&str> {
        let found = self.settings.iter().rev().find(|setting| setting.canonical() == option);
        found.and_then(|setting| setting.value.as_deref())
    }

    fn listed(&self, effect: Effect) -> Vec<PathBuf> {
        self.values(effect).flat_map(|text| paths(text).unwrap_or_default()).collect()
    }

    /// The job's own name, which its logs have.
    fn name(&self) -> &str {
        self.values(Effect::JobName).last().unwrap_or(&self.section.name)
    }

    fn add_files(&self, found: &mut FioEffects) {
        let below: Vec<PathBuf> =
            self.listed(Effect::Directory).iter().map(|own| self.directory.join(own)).collect();
        let inside = |name: &Path| name.strip_prefix("/").unwrap_or(name).to_owned();
        // fio writes the directory in front even of an absolute name; a device it may take as it is.
        let places = |name: &Path| -> Vec<PathBuf> {
            let moved = below.iter().map(|at| at.join(inside(name)));
            std::iter::once(self.directory.join(name)).chain(moved).collect()
        };
        let mut names = self.listed(Effect::Files);
        if self.values(Effect::Engine).any(|engine| engine == "pmemblk") {
            // FILE,BLOCK,SIZE
            let cut = |name: &PathBuf| name.to_str()?.split_once(',').map(|(file, _)| PathBuf::from(file));
            names.extend(names.iter().filter_map(cut).collect::<Vec<_>>());
        }
        found.files.extend(names.iter().flat_map(|name| places(name)));
        let likely = names.iter().flat_map(|name| places(name).split_off(usize::from(!below.is_empty())));
        found.parents.extend(likely.filter_map(|path| path.parent().map(Path::to_owned)));
        found.files.extend(self.values(Effect::File).map(|file| self.directory.join(file)));
        let mapped = |kind: &str| kind.trim().starts_with("mmap");
        let buffers = self.values(Effect::Buffers).filter_map(|text| text.split_once(':'));
        found.files.extend(
            buffers.filter(|(kind, _)| mapped(kind)).map(|(_, file)| self.directory.join(file.trim())),
        );
        found.trees.extend(self.values(Effect::Tree).map(|tree| self.directory.join(tree)));
        if self.values(Effect::Files).next().is_some() || self.values(Effect::Tree).next().is_some() {
            return;
        }
        if self.section.name.contains('/') {
            found.devices.extend(places(Path::new(&self.section.name)));
        }
        let format = self.last("filename_format").unwrap_or("$jobname.");
        let fixed = format.replace("$jobname", &self.section.name);
        let fixed = fixed.split('$').next().unwrap_or_default();
        if below.is_empty() || fixed.starts_with('/') {
            begins(found, self.directory, fixed);
        }
        below.iter().for_each(|at| begins(found, at, fixed.trim_start_matches('/')));
    }

    fn add_logs(&self, found: &mut FioEffects) {
        let logs =
            |setting: &&&Setting| fio_option(&setting.name).is_some_and(|known| known.effect == Effect::Logs);
        for setting in self.settings.iter().filter(logs) {
            // Without a value it is named after the job.
            let prefix = setting.value.as_deref().filter(|value| !value.is_empty());
            begins(found, self.directory, prefix.unwrap_or(self.name()));
        }
    }

    fn add_engines(&self, found: &mut FioEffects) {
        let reads = |text: &str| {
            matches!(text.split([':', ',']).next().unwrap_or_default().trim(), "read" | "randread")
        };
        let writes = !self.values(Effect::Direction).all(reads)
            || self.values(Effect::Deletes).any(|value| value != "0");
        for value in self.values(Effect::Engine) {
            let asked = format!("(ioengine={value} of [{}])", self.section.name);
            match FioEngine::of(value) {
                FioEngine::Loads(path) => found.commands.push(format!("code of {path}  {asked}")),
                FioEngine::Unknown => {
                    found.commands.push(format!("code of an engine that assay does not know  {asked}"));
                }
                FioEngine::Elsewhere if writes => {
                    let named = self.listed(Effect::Files);
                    let named = named.iter().map(|path| path.to_string_lossy().into_owned());
                    let remote = self.values(Effect::Remote).map(str::to_owned);
                    let names = remote.chain(named).collect();
                    found.elsewhere.push(Elsewhere { engine: value.to_owned(), names });
                }
                FioEngine::Elsewhere | FioEngine::Paths | FioEngine::Executes => {}
            }
        }
    }

    fn add_commands(&self, found: &mut FioEffects) {
        let (job, name) = (&self.section.name, self.name());
        for (option, kind) in [("exec_prerun", "prerun"), ("exec_postrun", "postrun")] {
            if let Some(command) = self.last(option) {
                found.commands.push(format!("{command} > {name}.{kind}.txt 2>&1  ({option} of [{job}])"));
                begins(found, self.directory, &format!("{name}.{kind}.txt"));
            }
        }
        if self.values(Effect::Engine).any(|engine| FioEngine::of(engine) == FioEngine::Executes) {
            let program = self.last("program").unwrap_or_default();
            let arguments = self.last("arguments").map(|text| format!(" {text}")).unwrap_or_default();
            found.commands.push(format!("{program}{arguments}  (ioengine=exec of [{job}])"));
            begins(found, self.directory, &format!("{name}.std"));
        }
    }
}

/// What no job may have, whatever else it says.
pub(super) fn refusal(setting: &Setting) -> Option<FioRefusal> {
    let value = setting.value.as_deref().unwrap_or_default();
    let name = &setting.name;
    let no = |what: String, hint| Some(FioRefusal { what, hint });
    let Some(option) = fio_option(name) else {
        return no(
            format!("assay does not know fio's option {name}, nor what it would write, delete or run"),
            "leave it out, or run fio yourself and compare its output: assay compare BASELINE.json CANDIDATE.json",
        );
    };
    if name.len() + value.len() > LONGEST_LINE {
        return no(
            format!(
                "{name} is longer than {LONGEST_LINE} bytes, and fio may take the end of its line for another option"
            ),
            "shorten it",
        );
    }
    if option.effect != Effect::Nothing && KEYWORDS.iter().any(|word| value.contains(word)) {
        return no(
            format!(
                "{name}={value}: fio puts a number in place of the word behind '$', and then it is another name"
            ),
            "write the name as it shall be",
        );
    }
    match option.effect {
        Effect::Machine if option.name == "ioscheduler" => no(
            format!("ioscheduler={value} sets the scheduler of a device, and fio does not put it back"),
            "--target scheduler=NAME sets it for the run and puts it back; --vary scheduler=A,B compares two",
        ),
        Effect::Machine if option.name == "cgroup_nodelete" && value == "0" => None,
        Effect::Machine => no(
            format!("{name}={value} makes and sets a control group of this machine"),
            "start assay itself in one: systemd-run --scope -p IOWeight=100 assay run ...",
        ),
        Effect::Unknowable => no(
            format!("{name} makes fio do I/O on files that assay cannot know in advance"),
            "run fio yourself and compare its output: assay compare BASELINE.json CANDIDATE.json",
        ),
        _ => None,
    }
}

fn begins(found: &mut FioEffects, directory: &Path, prefix: &str) {
    let (inner, start) = prefix.rsplit_once('/').map_or(("", prefix), |(inner, start)| (inner, start));
    let inner = if inner.is_empty() && prefix.starts_with('/') { "/" } else { inner };
    found.beginnings.push((directory.join(inner), start.to_owned()));
}

#[cfg(test)]
#[path = "fio_effects_tests.rs"]
mod tests;
