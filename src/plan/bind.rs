//! What a key names: a `${KEY}`, a fio option or a setting, looked up in this order (`directory` is always the setting).
//!
//! Enters: a key with its namespace, and what the experiment has. Leaves: a [`Bound`] key, or the nearest known ones.

use std::collections::BTreeSet;

use crate::catalog::EngineKind;
use crate::experiment::{
    Experiment, Namespace, OBSERVE_KEY, TARGET_KEYS, nearest_target_key, of_no_filesystem, target_key,
};
use crate::workload::{JobFile, fio_option, fio_option_names, nearest, variables};

/// Settings of target and launch in this version.
const SETTINGS: &[&str] = &["directory", "engine", OBSERVE_KEY];

/// What a key was found to name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bound {
    /// `${KEY}` in the job, the command or a hook.
    Variable(String),
    /// A fio option, by its canonical name.
    Option(&'static str),
    /// A fio option in the sections of this name.
    OfSection(String, &'static str),
    /// Where files go.
    Directory,
    /// Which engine runs.
    Engine,
    /// Which observers watch.
    Observe,
    /// A setting of the target, by its name without aliases.
    Target(String),
    /// A setting of an engine.
    Tool(EngineKind, &'static str),
}

impl Bound {
    /// What it sets, under one name where fio has several options for it: of two of them the last would win.
    pub(super) fn governs(&self) -> Bound {
        let one_name = |option: &'static str| match option {
            "buffered" => "direct",
            "bsrange" | "bssplit" => "bs",
            "rwmixwrite" => "rwmixread",
            other => other,
        };
        match self {
            Bound::Option(option) => Bound::Option(one_name(option)),
            Bound::OfSection(section, option) => Bound::OfSection(section.clone(), one_name(option)),
            other => other.clone(),
        }
    }

    /// Whether setting both sets something twice.
    pub(super) fn overlaps(&self, other: &Bound) -> bool {
        match (self, other) {
            (Bound::Option(all), Bound::OfSection(_, one))
            | (Bound::OfSection(_, one), Bound::Option(all)) => all == one,
            _ => self == other,
        }
    }
}

/// Everything a key can name.
pub(super) struct Keys {
    variables: BTreeSet<String>,
    has_job: bool,
    /// Names of the job's sections, but [global]s.
    sections: Vec<String>,
    /// The engine unless a level says another: its settings need no prefix.
    engine: EngineKind,
    /// Neither job nor command: the simulated engine takes any key.
    takes_anything: bool,
    /// Texts of commands and hooks.
    texts: Vec<String>,
    /// Option and text of the first hook.
    hook: Option<(&'static str, String)>,
    has_command: bool,
}

impl Keys {
    pub(super) fn of(experiment: &Experiment, job: Option<&JobFile>) -> Keys {
        let mut names = job.map(JobFile::variables).unwrap_or_default();
        let hooks = [&experiment.before, &experiment.after].into_iter().flatten();
        let texts: Vec<String> = experiment.command.iter().chain(hooks).cloned().collect();
        for text in texts.iter().map(String::as_str).chain(experiment.tools.texts()) {
            variables::collect(text, &mut names);
        }
        let takes_anything =
            job.is_none() && experiment.command.is_empty() && experiment.engine == EngineKind::Simulated;
        let hooks = [("--before", &experiment.before), ("--after", &experiment.after)];
        let sections = job.into_iter().flat_map(|job| &job.sections).filter(|section| !section.is_global());
        Keys {
            variables: names,
            has_job: job.is_some(),
            sections: sections.map(|section| section.name.clone()).collect(),
            engine: experiment.engine,
            takes_anything,
            texts,
            hook: hooks.into_iter().find_map(|(option, text)| Some((option, text.clone()?))),
            has_command: !experiment.command.is_empty(),
        }
    }

    /// Where a key that names nothing would be used, if a command or a hook is to see its levels.
    pub(super) fn hint(&self, key: &str) -> Option<String> {
        let fits = |c: char| c == '_' || c.is_ascii_alphanumeric();
        if !key.chars().all(fits) || key.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        if self.has_command {
            return Some(format!("write '${{{key}}}' in the command where its level belongs"));
        }
        let (option, text) = self.hook.as_ref()?;
        let seen = format!("{key}=${{{key}}} {text}");
        let quoted = shlex::try_quote(&seen).ok()?;
        Some(format!("if the hook is to see it, name it there: {option} {quoted}"))
    }

    /// Looks a key up.
    ///
    /// # Errors
    /// A clause that names the nearest known keys, or why this one cannot be used.
    pub(super) fn bind(&self, namespace: Namespace, key: &str) -> Result<Bound, String> {
        if namespace != Namespace::Target {
            if self.variables.contains(key) {
                return Ok(Bound::Variable(key.to_owned()));
            }
            // fio has an option of this name, too; as a setting it gives each level a directory of assay's own there.
            if namespace == Namespace::Any && key == "directory" {
                return Ok(Bound::Directory);
            }
            if let Some(option) = fio_option(key).filter(|_| self.has_job) {
                return Ok(Bound::Option(option.name));
            }
            if let Some(bound) = self.of_section(key) {
                return Ok(bound);
            }
        }
        if let Some(bound) = self.tool(key).filter(|_| namespace == Namespace::Any) {
            return Ok(bound);
        }
        if namespace != Namespace::Job {
            match key {
                "directory" => return Ok(Bound::Directory),
                "engine" => return Ok(Bound::Engine),
                OBSERVE_KEY => return Ok(Bound::Observe),
                _ => {
                    // With a section [fs], fs.bs is an option of that.
                    let of_section = key
                        .split_once('.')
                        .is_some_and(|(_, option)| self.has_job && fio_option(option).is_some());
                    if let Some(known) = target_key(key).filter(|_| !of_section) {
                        return Ok(Bound::Target(known));
                    }
                }
            }
        }
        if self.takes_anything {
            return Ok(Bound::Variable(key.to_owned()));
        }
        Err(self.unknown(namespace, key))
    }

    /// `wal:fsync`.
    fn of_section(&self, key: &str) -> Option<Bound> {
        let (section, option) = key.rsplit_once(':')?;
        let is_one = self.sections.iter().any(|known| known == section);
        Some(Bound::OfSection(section.to_owned(), fio_option(option).filter(|_| is_one)?.name))
    }

    /// `dbench.clients`, or `clients` where dbench is the engine.
    fn tool(&self, key: &str) -> Option<Bound> {
        let (engine, key) = match key.split_once('.') {
            Some((engine, key)) => (EngineKind::named(engine)?, key),
            None => (self.engine, key),
        };
        let known = engine.setting_names().into_iter().find(|known| *known == key)?;
        Some(Bound::Tool(engine, known))
    }

    fn unknown(&self, namespace: Namespace, key: &str) -> String {
        if self.texts.iter().any(|text| names_without_braces(text, key)) {
            return format!("{key}: ${key} is left to the shell; write ${{{key}}} where its level belongs");
        }
        if namespace != Namespace::Target && fio_option(key).is_some() {
            return format!(
                "{key}: a fio option, but a command is run; write ${{{key}}} where the command takes it"
            );
        }
        if let Some((section, option)) =
            key.rsplit_once(['.', ':']).filter(|_| namespace != Namespace::Target && self.has_job)
            && fio_option(option).is_some()
        {
            return match self.sections.iter().any(|known| known == section) {
                true => format!("{key}: write {section}:{option} for an option of one section"),
                false => {
                    let known = self.sections.join(", ");
                    format!("{key}: SECTION:{option} sets {option} in one section, and the job has {known}")
                }
            };
        }
        if let Some(said) = of_no_filesystem(key).filter(|_| namespace != Namespace::Job) {
            return said;
        }
        let mut known: Vec<(&str, &str)> = Vec::new();
        if namespace != Namespace::Target {
            known.extend(self.variables.iter().map(|name| (name.as_str(), "a variable")));
            known.extend(
                self.engine.setting_names().into_iter().map(|name| (name, "a setting of the engine")),
            );
            known.extend(fio_option_names().filter(|_| self.has_job).map(|name| (name, "a fio option")));
        }
        if namespace != Namespace::Job {
            let settings = SETTINGS.iter().chain(&TARGET_KEYS);
            known.extend(settings.map(|name| (*name, "a setting")));
        }
        let mut near = match fio_word(key).filter(|word| known.iter().any(|(name, _)| name == word)) {
            Some(word) => vec![word],
            None => nearest(key, known.iter().map(|(name, _)| *name), 3),
        };
        if near.is_empty() && namespace != Namespace::Job {
            near.extend(nearest_target_key(key));
        }
        let described: Vec<String> = near
            .iter()
            .filter_map(|name| known.iter().find(|(known, _)| known == name))
            .map(|(name, kind)| format!("{name} ({kind})"))
            .collect();
        let kinds = match namespace {
            Namespace::Any => format!("no ${{{key}}}, no fio option and no setting of this name"),
            Namespace::Job => format!("no ${{{key}}} and no fio option of this name"),
            Namespace::Target => "no setting of this name".to_owned(),
        };
        if described.is_empty() {
            format!("{key}: {kinds}")
        } else {
            format!("{key}: {kinds}; did you mean {}?", described.join(" or "))
        }
    }
}

/// What other tools and papers call an option of fio, which is spelled nothing like it.
fn fio_word(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().replace('-', "_").as_str() {
        "block" | "block_size" | "request_size" => "bs",
        "qd" | "depth" | "queue_depth" | "queuedepth" => "iodepth",
        "jobs" | "threads" | "workers" | "clients" | "processes" | "concurrency" => "numjobs",
        "duration" | "seconds" | "time" => "runtime",
        "mode" | "pattern" | "workload" => "rw",
        _ => return None,
    })
}

/// Whether a text has `$KEY`, which is the shell's, and not `${KEY}`.
fn names_without_braces(text: &str, key: &str) -> bool {
    let dollar = format!("${key}");
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_');
    text.match_indices(&dollar).any(|(at, _)| ends(&text[at + dollar.len()..]))
}
