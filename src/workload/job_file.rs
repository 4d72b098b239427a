//! A fio job file as written: sections and settings in order, each with its place.
//!
//! Enters: the text. Leaves: a [`JobFile`] that can be searched, overridden and written out again for fio to run. What the
//! settings mean is not known here (see `resolve`).

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::errors::{Place, Problem, ProblemKind, WorkloadErrors, shortened};
use super::fio_options::{Effect, Takes, fio_option, fio_option_names};
use super::nearest::nearest;
use super::values::paths;
use super::variables;
use crate::sys::regular_file;

/// One `option` or `option=value` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The option's name as written, possibly an alias.
    pub name: String,
    /// Its value; `None` for an option that stands alone.
    pub value: Option<String>,
    /// Where it stands.
    pub place: Place,
}

impl Setting {
    /// fio's own name of the option: aliases replaced.
    #[must_use]
    pub fn canonical(&self) -> &str {
        fio_option(&self.name).map_or(self.name.as_str(), |option| option.name)
    }
}

/// One `[section]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The name between the brackets.
    pub name: String,
    /// Where its header stands.
    pub place: Place,
    /// Its settings in order, those of included files in their place.
    pub settings: Vec<Setting>,
}

impl Section {
    /// Whether it sets defaults for the sections below: fio takes every name that begins with `global` so.
    #[must_use]
    pub fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// A fio job file as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// What the user calls the file.
    pub origin: Arc<str>,
    /// All sections in order, globals among them.
    pub sections: Vec<Section>,
}

/// fio's engines that have no files.
const WITHOUT_FILES: [&str; 2] = ["cpuio", "exec"];
/// Includes nested deeper are a mistake.
const MAX_INCLUDE_DEPTH: usize = 16;
/// Most files that a job includes, each as often as it is.
const MAX_INCLUDES: usize = 256;
/// A file with more mistakes is no job: the others are not looked for.
const MAX_PROBLEMS: usize = 10_000;
/// An included file larger than this is no job file.
const MAX_INCLUDE_BYTES: u64 = 1 << 20;

impl JobFile {
    /// Reads a job file's text. `origin` names it in messages; `include FILE` is looked up from `base_dir`.
    ///
    /// # Errors
    /// Every line that is no part of a job file; a file without a job.
    pub fn parse(text: &str, origin: &str, base_dir: &Path) -> Result<JobFile, WorkloadErrors> {
        let origin: Arc<str> = Arc::from(origin);
        let mut reader =
            LineReader { sections: Vec::new(), problems: Vec::new(), open: Vec::new(), included: 0 };
        reader.read(text, &origin, base_dir);
        if reader.problems.is_empty() && !reader.sections.iter().any(|section| !section.is_global()) {
            let message = if reader.sections.is_empty() {
                "no job in it; a job file needs a section such as [job] with its options below"
            } else {
                "only [global] sections in it; add a section for a job, e.g. [job]"
            };
            let place = Place { origin: Arc::clone(&origin), line: 0 };
            reader.problems.push(Problem { place, kind: ProblemKind::Syntax, message: message.to_owned() });
        }
        WorkloadErrors::or(reader.problems)?;
        Ok(JobFile { origin, sections: reader.sections })
    }

    /// Names of the `${NAME}`s in it.
    #[must_use]
    pub fn variables(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for setting in self.settings() {
            variables::collect(&setting.name, &mut names);
            variables::collect(setting.value.as_deref().unwrap_or(""), &mut names);
        }
        names
    }

    /// Every `${NAME}` replaced: by the last of `values` of that name, else from the process's environment.
    ///
    /// # Errors
    /// Names without a value (fio would put nothing there), values that would not survive in a job file.
    pub fn substitute(&self, values: &[(String, String)]) -> Result<JobFile, WorkloadErrors> {
        let mut replaced = self.clone();
        let mut problems = Vec::new();
        for setting in replaced.sections.iter_mut().flat_map(|section| &mut section.settings) {
            for text in [Some(&mut setting.name), setting.value.as_mut()].into_iter().flatten() {
                match variables::substitute(text, values) {
                    Ok(done) => *text = done,
                    Err(message) => {
                        let kind = ProblemKind::UnsetVariable;
                        problems.push(Problem { place: setting.place.clone(), kind, message });
                    }
                }
            }
            if !is_a_name(&setting.name) {
                let (place, kind) = (setting.place.clone(), ProblemKind::Syntax);
                let message = format!("'{}' is not an option; write option=value", shortened(&setting.name));
                problems.push(Problem { place, kind, message });
            }
        }
        WorkloadErrors::or(problems)?;
        Ok(replaced)
    }

    /// Sets `option` in every job, whatever it or a global says. An empty `value` of an option that may stand alone
    /// switches it on.
    ///
    /// # Errors
    /// No option of fio; a value that does not fit on a line; a block size where `bssplit` would win over it.
    pub fn set_everywhere(&mut self, option: &str, value: &str) -> Result<(), WorkloadErrors> {
        self.set(None, option, value)
    }

    /// The same in the jobs of one name.
    ///
    /// # Errors
    /// As [`Self::set_everywhere`]; an option that names files, as fio adds those of a [global] to them.
    pub fn set_in(&mut self, section: &str, option: &str, value: &str) -> Result<(), WorkloadErrors> {
        self.set(Some(section), option, value)
    }

    fn set(&mut self, only: Option<&str>, option: &str, value: &str) -> Result<(), WorkloadErrors> {
        let is_meant = |section: &Section| only.is_none_or(|only| section.name == only);
        let whole = Place { origin: Arc::clone(&self.origin), line: 0 };
        let fail = |kind, message: String| Err(WorkloadErrors::one(whole.clone(), kind, message));
        let Some(known) = fio_option(option) else {
            return fail(ProblemKind::UnknownOption, unknown_option(option));
        };
        if value.contains(['\n', '\r', ';', '#']) {
            let message =
                format!("{option}={value:?}: a value cannot hold a line break, ';' or '#' in a job file");
            return fail(ProblemKind::BadValue, message);
        }
        let names_sizes = matches!(known.name, "bs" | "bsrange");
        let heeded = self.sections.iter().filter(|section| section.is_global() || is_meant(section));
        let mut heeded = heeded.flat_map(|section| &section.settings);
        if names_sizes && heeded.any(|setting| setting.name == "bssplit") {
            let message =
                format!("{option} cannot be set over the job's bssplit, which fio prefers; remove bssplit");
            return fail(ProblemKind::Inconsistent, message);
        }
        // fio lets any bsrange, even of a [global], win over any bs: then the override must be a bsrange too.
        let ranged = known.name == "bs" && self.sets("bsrange");
        let given = value;
        let (name, value) =
            if ranged { ("bsrange", as_ranges(value)) } else { (known.name, value.to_owned()) };
        let alone = value.is_empty() && known.takes == Takes::Flag;
        // fio uses the files of all lines, those of a [global] too.
        if matches!(known.effect, Effect::Files | Effect::Tree) {
            if let Some(only) = only {
                let message = format!(
                    "{option} cannot be set in [{only}] alone: fio adds the files of a [global]; write {option}=${{FILE}} there and vary FILE"
                );
                return fail(ProblemKind::Inconsistent, message);
            }
            let globals = self.sections.iter_mut().filter(|section| section.is_global());
            globals.for_each(|global| global.settings.retain(|setting| setting.canonical() != known.name));
        }
        // fio keeps a share and a number of bytes side by side, and bytes in a job do not clear the share of a [global].
        if matches!(known.name, "size" | "offset" | "offset_increment") && self.has_global_share(known.name) {
            if let Some(only) = only {
                let message = format!(
                    "{option} cannot be set in [{only}] alone: fio keeps the percentage of the [global]; write {option}=${{SIZE}} there and vary SIZE"
                );
                return fail(ProblemKind::Inconsistent, message);
            }
            let globals = self.sections.iter_mut().filter(|section| section.is_global());
            globals.for_each(|global| global.settings.retain(|setting| setting.canonical() != known.name));
        }
        let meant = self.sections.iter_mut().filter(|section| !section.is_global() && is_meant(section));
        for section in meant {
            section.settings.retain(|setting| {
                let name = setting.canonical();
                name != known.name && !(names_sizes && matches!(name, "bs" | "bsrange"))
            });
            // A mistake in the value is the override's, not a line's of the file.
            let origin = Arc::from(format!("{}={given}", known.name));
            let place = Place { origin, line: 0 };
            let value = (!alone).then(|| value.clone());
            section.settings.push(Setting { name: name.to_owned(), value, place });
        }
        Ok(())
    }

    fn has_global_share(&self, option: &str) -> bool {
        let globals = self.sections.iter().filter(|section| section.is_global());
        let is_share =
            |setting: &Setting| setting.value.as_deref().is_some_and(|value| value.trim_end().ends_with('%'));
        globals
            .flat_map(|global| &global.settings)
            .any(|setting| setting.canonical() == option && is_share(setting))
    }

    /// Sets `option` in the jobs for which neither they nor the globals above them set it; false: there are none.
    pub fn set_where_missing(&mut self, option: &str, value: &str) -> bool {
        let wanted = fio_option(option).map_or(option, |known| known.name);
        let has = |section: &Section| section.settings.iter().any(|setting| setting.canonical() == wanted);
        let (mut inherited, mut set_any) = (false, false);
        for section in &mut self.sections {
            if section.is_global() {
                inherited |= has(section);
            } else if !inherited && !has(section) {
                let place = section.place.clone();
                let value = Some(value.to_owned());
                section.settings.push(Setting { name: wanted.to_owned(), value, place });
                set_any = true;
            }
        }
        set_any
    }

    /// Makes relative `directory` values absolute, below `base`.
    pub fn make_directories_absolute(&mut self, base: &Path) {
        let settings = self.sections.iter_mut().flat_map(|section| &mut section.settings);
        for setting in settings.filter(|setting| setting.canonical() == "directory") {
            if let Some(value) = &mut setting.value {
                // A name that is none is refused where it is read.
                let Ok(parts) = paths(value) else { continue };
                let absolute = |part: &PathBuf| base.join(part).to_string_lossy().replace(':', "\\:");
                *value = parts.iter().map(absolute).collect::<Vec<_>>().join(":");
            }
        }
    }

    /// The text of a job file that fio runs as it would run this one: includes inlined, comments gone, overrides in place.
    #[must_use]
    pub fn to_fio_text(&self) -> String {
        let mut text = String::new();
        for (index, section) in self.sections.iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            text.push_str(&format!("[{}]\n", section.name));
            for setting in &section.settings {
                match &setting.value {
                    Some(value) => text.push_str(&format!("{}={value}\n", setting.name)),
                    None => text.push_str(&format!("{}\n", setting.name)),
                }
            }
        }
        text
    }

    /// A file or directory of the job, if every job has all of its files outside `directory`, where those without a place go; else `None`.
    #[must_use]
    pub fn elsewhere_than(&self, directory: &Path) -> Option<PathBuf> {
        let of = |section: &Section, option: &str| -> Vec<String> {
            let set = section.settings.iter().filter(|setting| setting.canonical() == option);
            set.filter_map(|setting| setting.value.clone()).collect()
        };
        let directory = &without_parents(directory);
        let (mut directory_above, mut engine_above, mut found) = (None, None, None);
        let (mut names_above, mut opened_above) = (Vec::new(), Vec::new());
        for section in &self.sections {
            let in_directory = of(section, "directory").pop().or_else(|| directory_above.clone());
            // fio adds up the names of all lines.
            let all = |above: &[String], option| -> Vec<String> {
                above.iter().cloned().chain(of(section, option)).collect()
            };
            let (named, opened) = (all(&names_above, "filename"), all(&opened_above, "opendir"));
            let engine = of(section, "ioengine").pop().or_else(|| engine_above.clone());
            if section.is_global() {
                (directory_above, engine_above) = (in_directory, engine);
                (names_above, opened_above) = (named, opened);
                continue;
            }
            if engine.is_some_and(|engine| WITHOUT_FILES.contains(&engine.as_str())) {
                continue;
            }
            // Names are below the directory, where there is one.
            let named = in_directory.map_or(named, |directory| vec![directory]);
            let named = named.iter().chain(&opened);
            let parts: Vec<PathBuf> = named.filter_map(|text| paths(text).ok()).flatten().collect();
            let is_within = |part: &PathBuf| without_parents(&directory.join(part)).starts_with(directory);
            if parts.iter().any(is_within) {
                return None;
            }
            found = Some(without_parents(&directory.join(parts.first()?)));
        }
        found
    }

    /// All settings in order.
    pub fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.sections.iter().flat_map(|section| &section.settings)
    }

    /// Whether some section sets `option`, by any of its names.
    #[must_use]
    pub fn sets(&self, option: &str) -> bool {
        let wanted = fio_option(option).map_or(option, |known| known.name);
        self.settings().any(|setting| setting.canonical() == wanted)
    }
}

/// The path without `..`, as it reads; links are not followed.
fn without_parents(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            part => whole.push(part),
        }
    }
    whole
}

/// `4k,64k` as `4k-4k,64k-64k`.
fn as_ranges(sizes: &str) -> String {
    let range = |size: &str| if size.is_empty() { String::new() } else { format!("{size}-{size}") };
    sizes.split(',').map(range).collect::<Vec<_>>().join(",")
}

/// The message for an option that no fio has.
pub(super) fn unknown_option(name: &str) -> String {
    let whole = name;
    let name = shortened(whole);
    // What had to be cut is no misspelt option; comparing it with each of them would take seconds.
    let near = if name == whole { nearest(whole, fio_option_names(), 1) } else { Vec::new() };
    match near.first() {
        Some(near) => format!("fio has no option '{name}'; did you mean {near}?"),
        None => format!("fio has no option '{name}'"),
    }
}

/// Collects sections line by line, following includes.
struct LineReader {
    sections: Vec<Section>,
    problems: Vec<Problem>,
    /// Files being read, to notice one that includes itself.
    open: Vec<PathBuf>,
    /// Files that were included so far: ones that include others several times are many at once.
    included: usize,
}

impl LineReader {
    fn read(&mut self, text: &str, origin: &Arc<str>, base_dir: &Path) {
        for (index, raw) in text.split('\n').enumerate() {
            let place = Place { origin: Arc::clone(origin), line: index as u32 + 1 };
            let line = strip(raw);
            if line.is_empty() {
                continue;
            }
            if self.problems.len() >= MAX_PROBLEMS {
                return;
            }
            if raw.contains('\0') {
                self.fault(place, "a zero byte: this is not a text file");
                return;
            }
            if line.starts_with('[') {
                self.header(line, place);
            } else if self.sections.is_empty() {
                self.fault(place, format!("option '{}' before the first [section]", shortened(line)));
            } else if let Some(file) = include_target(line) {
                self.include(file, place, base_dir);
            } else {
                self.setting(line, place);
            }
        }
    }

    fn header(&mut self, line: &str, place: Place) {
        if !self.open.is_empty() {
            self.fault(place, "a [section] in an included file; only options may stand there");
            return;
        }
        let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
            self.fault(place, format!("'{}' is not a section; write [name]", shortened(line)));
            return;
        };
        if name.is_empty() || name.len() > 254 {
            self.fault(place, "a section's name has 1 to 254 bytes");
            return;
        }
        self.sections.push(Section { name: name.to_owned(), place, settings: Vec::new() });
    }

    fn setting(&mut self, line: &str, place: Place) {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value.trim_start().to_owned())),
            None => (line, None),
        };
        if name.is_empty() || !is_a_name(name) {
            self.fault(place, format!("'{}' is not an option; write option=value", shortened(line)));
            return;
        }
        if let Some(section) = self.sections.last_mut() {
            section.settings.push(Setting { name: name.to_owned(), value, place });
        }
    }

    fn include(&mut self, file: &str, place: Place, base_dir: &Path) {
        let path = base_dir.join(file);
        let found = std::fs::canonicalize(&path);
        // fio looks in the working directory first.
        let other =
            std::fs::canonicalize(file).ok().filter(|other| found.as_ref().is_ok_and(|found| found != other));
        let refusal = match found {
            _ if other.is_some() => Some(format!(
                "there are {} and {file} in the working directory, which fio includes; give the path of one",
                path.display()
            )),
            Err(error) => Some(format!("cannot include {}: {error}", path.display())),
            Ok(full) if self.open.contains(&full) => Some(format!("{} includes itself", path.display())),
            Ok(_) if self.open.len() >= MAX_INCLUDE_DEPTH => {
                Some("includes are nested too deeply".to_owned())
            }
            Ok(_) if self.included >= MAX_INCLUDES => Some(format!("over {MAX_INCLUDES} files are included")),
            Ok(full) => match regular_file::read_text(&full, MAX_INCLUDE_BYTES) {
                Err(unfit) => Some(format!("cannot include {}: {unfit}", path.display())),
                Ok(text) => {
                    let directory = full.parent().unwrap_or(base_dir).to_owned();
                    self.included += 1;
                    self.open.push(full);
                    self.read(&text, &Arc::from(path.to_string_lossy().as_ref()), &directory);
                    self.open.pop();
                    None
                }
            },
        };
        if let Some(message) = refusal {
            self.fault(place, message);
        }
    }

    fn fault(&mut self, place: Place, message: impl Into<String>) {
        self.problems.push(Problem { place, kind: ProblemKind::Syntax, message: message.into() });
    }
}

/// Whether a line that begins so is read as an option again, not as a section or an include.
fn is_a_name(name: &str) -> bool {
    !name.starts_with('[') && !name.contains(char::is_whitespace)
}

/// The line without comment and blanks. fio cuts at `;` and `#` wherever they stand.
fn strip(line: &str) -> &str {
    let blank = |c: char| c.is_whitespace() || (c.is_control() && c != '\0');
    line.split([';', '#']).next().unwrap_or("").trim_matches(blank)
}

fn include_target(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim())
}

#[cfg(test)]
#[path = "job_file_tests.rs"]
mod tests;
