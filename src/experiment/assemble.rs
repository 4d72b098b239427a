//! From a request as written to an experiment that makes sense.
//!
//! Enters: a file's text or a command with the command line. Leaves: an [`Experiment`], or all mistakes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::command_name::command_name;
use super::described::{Experiment, Factor, Simulated, headlines};
use super::errors::{ExperimentErrors, Mistake};
use super::job_text::{read_job, read_text};
use super::placed::Placed;
use super::target_settings::TargetSettings;
use super::toml_file;
use super::tool_settings::ToolSettings;
use super::watched::{OBSERVE_KEY, observers};
use super::written::{CommandLine, Written, WrittenJob, flag};
use crate::catalog::{
    EngineKind, KnownProgram, MetricPattern, OR_A_TRACEPOINT, Runs, in_order, is_observer,
    metrics_of_tracepoint, named_twice, observers_listed, server_of,
};
use crate::workload::{Place, nearest};

impl Experiment {
    /// Reads the file a user named: an experiment file if it ends in `.toml`, else a fio job file.
    ///
    /// # Errors
    /// A file that cannot be read, and all mistakes in it and on the command line.
    pub fn load(path: &Path, line: &CommandLine) -> Result<Experiment, ExperimentErrors> {
        let origin = path.display().to_string();
        let text = read_text(path).map_err(|message| {
            ExperimentErrors::one(&origin, message, "give a fio job file or an experiment file (.toml)")
        })?;
        let base_dir = path.parent().unwrap_or(Path::new(""));
        if path.extension().is_some_and(|extension| extension == "toml") {
            Experiment::from_toml(&text, &origin, base_dir, line)
        } else {
            Experiment::from_job(&text, &origin, base_dir, line)
        }
    }

    /// An experiment file's text; paths in it are relative to `base_dir`.
    ///
    /// # Errors
    /// All mistakes in it and on the command line.
    pub fn from_toml(
        text: &str,
        origin: &str,
        base_dir: &Path,
        line: &CommandLine,
    ) -> Result<Experiment, ExperimentErrors> {
        let written = toml_file::read(text, origin, base_dir);
        let written =
            written.or_else(|mistakes| ExperimentErrors::or(mistakes).map(|()| Written::default()))?;
        assemble(written, origin, base_dir, line)
    }

    /// A fio job file's text.
    ///
    /// # Errors
    /// All mistakes in it and on the command line.
    pub fn from_job(
        text: &str,
        origin: &str,
        base_dir: &Path,
        line: &CommandLine,
    ) -> Result<Experiment, ExperimentErrors> {
        let place = Place { origin: Arc::from(origin), line: 0 };
        let job = Some(Placed { value: WrittenJob::Text(text.to_owned()), place });
        assemble(Written { job, ..Written::default() }, origin, base_dir, line)
    }

    /// Nothing but the command line: an engine that needs no job, e.g. `--engine dbench --vary clients=1,8`.
    ///
    /// # Errors
    /// All mistakes on the command line.
    pub fn from_command_line(line: &CommandLine) -> Result<Experiment, ExperimentErrors> {
        let origin = line.engine.as_deref().unwrap_or("command line");
        assemble(Written::default(), origin, Path::new(""), line)
    }

    /// A command, as written behind `--`.
    ///
    /// # Errors
    /// All mistakes on the command line.
    pub fn from_command(argv: &[String], line: &CommandLine) -> Result<Experiment, ExperimentErrors> {
        let command = Some(Placed { value: argv.to_vec(), place: flag("--") });
        let origin = command_name(argv);
        assemble(Written { command, ..Written::default() }, origin, Path::new(""), line)
    }
}

fn assemble(
    mut written: Written,
    origin: &str,
    base_dir: &Path,
    line: &CommandLine,
) -> Result<Experiment, ExperimentErrors> {
    let mut mistakes = Vec::new();
    written.overlay(line, &mut mistakes);
    let mut check = Check { mistakes, origin };
    let job = written.job.take().map(|job| read_job(job, origin, base_dir)).transpose()?;
    let tools = check.tools(&written, base_dir);
    let engine = check.engine(&written, job.is_some(), &tools);
    check.factors(&written);
    check.unused_tools(&written, engine);
    let compare = check.compare(&written);
    check.metrics(&mut written, engine);
    check.simulated(&written);
    check.name(&written);
    let (stop, deltas) = check.stop(&written);
    let timeout = written.timeout.as_ref().and_then(|text| check.seconds(text));
    let settle = written.settle.as_ref().and_then(|text| check.settle(text));
    let target = check.target(&written, base_dir);
    let observe = check.observe(&written, engine);
    check.keeps_traces(&written, &observe);
    let directory = written.directory.as_ref().map(|directory| check.absolute(directory));
    ExperimentErrors::or(check.mistakes)?;
    let values = |text: Option<Placed<String>>| text.map(|text| text.value);
    let mut show = written.show.map(|show| show.value).unwrap_or_default();
    show.extend(written.metrics.iter().map(|metric| MetricPattern::name_in(&metric.value).to_owned()));
    let simulated = written.simulated.map(|simulated| simulated.value);
    Ok(Experiment {
        name: values(written.name).unwrap_or_else(|| short_name(origin)),
        job,
        command: written.command.map(|command| command.value).unwrap_or_default(),
        engine,
        directory,
        begun_in: None,
        target,
        factors: written.factors.into_iter().map(|factor| factor.value).collect(),
        compare,
        variables: written.variables.into_iter().map(|pair| pair.value).collect(),
        primary: values(written.primary),
        show: shown(show, &observe, engine),
        before: values(written.before),
        after: values(written.after),
        observe,
        keep_traces: written.keep_traces.is_some(),
        metrics: written.metrics.into_iter().map(|text| text.value).collect(),
        simulated: if engine == EngineKind::Simulated {
            simulated.or_else(|| Some(Simulated::default()))
        } else {
            simulated
        },
        tools,
        trial_timeout_s: timeout,
        settle_s: settle,
        stop,
        deltas,
        aa: written.aa,
        no_lead_in: written.no_lead_in.unwrap_or(false),
        keep_disturbed: written.keep_disturbed.unwrap_or(false),
    })
}

/// The file's name without directory and extension.
fn short_name(origin: &str) -> String {
    Path::new(origin)
        .file_stem()
        .map_or_else(|| origin.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// Who watches something wants to see it: what stands for an observer is shown, unless the file says what of it is.
pub(super) fn shown(mut show: Vec<String>, observe: &[String], engine: EngineKind) -> Vec<String> {
    for observer in observe {
        let headlines = headlines(observer, engine);
        let counts = metrics_of_tracepoint(observer).unwrap_or_default();
        let of_it = |metric: &String| metric.split('.').next() == Some(observer) || counts.contains(metric);
        if !show.iter().any(of_it) {
            show.extend(headlines);
        }
    }
    show
}

/// What is looked at piece by piece, and the mistakes found meanwhile.
pub(super) struct Check<'o> {
    mistakes: Vec<Mistake>,
    origin: &'o str,
}

impl Check<'_> {
    pub(super) fn mistake(&mut self, place: &Place, message: impl Into<String>) {
        self.mistakes.push(Mistake { place: place.clone(), message: message.into() });
    }

    fn whole(&self) -> Place {
        Place { origin: Arc::from(self.origin), line: 0 }
    }

    fn engine(&mut self, written: &Written, has_job: bool, tools: &ToolSettings) -> EngineKind {
        let has_command = written.command.as_ref().is_some_and(|command| !command.value.is_empty());
        let usual = match EngineKind::with_settings().find(|tool| tools.has(*tool)) {
            _ if has_job => EngineKind::Native,
            _ if has_command => EngineKind::Command,
            Some(tool) => tool,
            None => EngineKind::Native,
        };
        let engine = match &written.engine {
            None => usual,
            Some(name) => EngineKind::named(&name.value).unwrap_or_else(|| {
                let names = EngineKind::names();
                let near = nearest(&name.value, names.iter().copied(), 1)
                    .first()
                    .map(|near| format!("; did you mean {near}?"));
                let advice = near.unwrap_or_else(|| format!("; write one of {}", names.join(", ")));
                self.mistake(&name.place, format!("no engine '{}'{advice}", name.value));
                usual
            }),
        };
        let place = written.engine.as_ref().map_or_else(|| self.whole(), |name| name.place.clone());
        match engine.descriptor().runs {
            Runs::Command if !has_command => {
                self.mistake(&place, "engine command needs a command: command = [\"prog\", ...] or -- prog");
            }
            Runs::Job if !has_job => {
                self.mistake(
                    &place,
                    format!("engine {} needs a job; write job = \"FILE.fio\"", engine.name()),
                );
            }
            Runs::Settings if has_job => {
                self.mistake(&place, format!("engine {} runs no job; take the job out", engine.name()));
            }
            Runs::Command if has_job => {
                self.mistake(&place, "both a job and the command engine are given; keep one");
            }
            runs if has_command && runs != Runs::Command => {
                self.mistake(&place, format!("a command is given, but engine {} runs none", engine.name()));
            }
            _ => {}
        }
        engine
    }

    fn factors(&mut self, written: &Written) {
        for Placed { value: factor, place } in &written.factors {
            let mut labels = BTreeSet::new();
            for level in &factor.levels {
                if !labels.insert(&level.label) {
                    self.mistake(place, format!("level {} of {} is given twice", level.label, factor.name));
                }
                let keys: BTreeSet<_> = level.set.iter().map(|set| &set.key).collect();
                if keys.len() < level.set.len() {
                    self.mistake(place, format!("level {} of {} sets a key twice", level.label, factor.name));
                }
                if level.set.iter().any(|set| set.key.trim().is_empty()) {
                    self.mistake(
                        place,
                        format!("level {} of {} sets an empty key", level.label, factor.name),
                    );
                }
            }
        }
        let varies = |factor: &Placed<Factor>| factor.value.levels.len() > 1;
        if !written.aa && !written.factors.iter().any(varies) {
            let place = written.factors.first().map_or_else(|| self.whole(), |factor| factor.place.clone());
            let message = match written.factors.first() {
                Some(factor) => {
                    format!(
                        "{} has one level, so nothing is compared; give a second; or --aa, which measures this level alone: \
                         `assay compare RUN RUN` then compares two such runs, before and after a change",
                        factor.value.name
                    )
                }
                None => {
                    "nothing varies, so nothing is compared; use --vary KEY=LEVEL,LEVEL; or --aa, which measures this alone: \
                     `assay compare RUN RUN` then compares two such runs, before and after a change"
                        .to_owned()
                }
            };
            self.mistake(&place, message);
        }
    }

    /// Paths in the file are below its directory, those of the command line below the current one.
    fn target(&mut self, written: &Written, base_dir: &Path) -> TargetSettings {
        let mut target = TargetSettings::default();
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        for Placed { value: (key, value), place } in &written.target {
            let here = if place.line == 0 { Path::new(".") } else { base_dir };
            let here = if here.as_os_str().is_empty() { Path::new(".") } else { here };
            if let Err(message) = target.set(key, value, &absolute(here)) {
                self.mistake(place, message);
            }
        }
        target
    }

    /// Each once, in the order of the catalog.
    fn observe(&mut self, written: &Written, engine: EngineKind) -> Vec<String> {
        let names = || written.observe.iter().map(|asked| asked.value.as_str());
        // Also those of levels, whose counts would be compared as one metric.
        let levels = written.factors.iter().flat_map(|factor| &factor.value.levels);
        let sets = levels.flat_map(|level| &level.set).filter(|set| set.key == OBSERVE_KEY);
        let of_levels: Vec<String> = sets.flat_map(|set| observers(&set.value).unwrap_or_default()).collect();
        let last = written.observe.last().map(|asked| &asked.place);
        let place = last.or_else(|| written.factors.last().map(|factor| &factor.place));
        if let (Some(name), Some(place)) =
            (named_twice(names().chain(of_levels.iter().map(String::as_str))), place)
        {
            self.mistake(place, format!("two tracepoints are called {name}; give them different names"));
        }
        let asked = || names().chain(of_levels.iter().map(String::as_str));
        let servers: BTreeSet<&str> = asked().filter(|name| server_of(name).is_some()).collect();
        if let (Some(server), Some(place)) = (servers.first(), place) {
            if engine.descriptor().runs != Runs::Command {
                let own = "the workers of others are their own";
                self.mistake(
                    place,
                    format!("{server}: only a command (behind --) has a server that works for it; {own}"),
                );
            }
            if servers.len() > 1 {
                self.mistake(place, "one server can be watched; its descendants are".to_owned());
            }
        }
        for Placed { value, place } in &written.observe {
            if !is_observer(value) {
                let known = observers_listed();
                self.mistake(place, format!("no observer '{value}'; write {known}, or {OR_A_TRACEPOINT}"));
            }
        }
        in_order(names())
    }

    /// What is kept must be watched: in all trials, or in those of a level.
    fn keeps_traces(&mut self, written: &Written, observe: &[String]) {
        let levels = written.factors.iter().flat_map(|factor| &factor.value.levels);
        let mut sets = levels.flat_map(|level| &level.set).filter(|set| set.key == OBSERVE_KEY);
        // What a level cannot mean is a mistake of its own.
        let blocks = |names: &[String]| names.iter().any(|name| name == "blocks");
        if blocks(observe) || sets.any(|set| observers(&set.value).is_ok_and(|names| blocks(&names))) {
            return;
        }
        if let Some(place) = &written.keep_traces {
            self.mistake(place, "traces are kept of what blocks watches; add --observe blocks".to_owned());
        }
    }

    /// Values with a `${NAME}` in them are looked at in the plan.
    fn tools(&mut self, written: &Written, base_dir: &Path) -> ToolSettings {
        let mut tools = ToolSettings::default();
        let base =
            std::path::absolute(if base_dir.as_os_str().is_empty() { Path::new(".") } else { base_dir });
        let base = base.unwrap_or_else(|_| base_dir.to_owned());
        for Placed { value: (engine, key, value), place } in &written.tools {
            if let Err(message) = tools.set(*engine, key, value, &base) {
                self.mistake(place, message);
            }
        }
        tools
    }

    /// Settings of tools that no arm runs: whoever wrote them meant another engine.
    fn unused_tools(&mut self, written: &Written, engine: EngineKind) {
        let mut used = vec![Some(engine)];
        let mut settings: Vec<(EngineKind, Place)> =
            written.tools.iter().map(|tool| (tool.value.0, tool.place.clone())).collect();
        for Placed { value: factor, place } in &written.factors {
            for set in factor.levels.iter().flat_map(|level| &level.set) {
                if set.key == "engine" {
                    used.push(EngineKind::named(&set.value));
                }
                let prefix = set.key.split_once('.').map(|(tool, _)| tool);
                let tool = EngineKind::with_settings().find(|tool| prefix == Some(tool.name()));
                settings.extend(tool.map(|tool| (tool, place.clone())));
            }
        }
        // A name that is still to be replaced may be any; what is made up is made up of anything.
        if used.contains(&None) || used.contains(&Some(EngineKind::Simulated)) {
            return;
        }
        let mut said = BTreeSet::new();
        for (tool, place) in settings {
            if !used.contains(&Some(tool)) && said.insert(tool.name()) {
                let (tool, runs) = (tool.name(), engine.name());
                let message = format!(
                    "{tool} has settings here, but engine {runs} runs; write engine = \"{tool}\" (--engine {tool}), or take them out"
                );
                self.mistake(&place, message);
            }
        }
    }

    /// What a run is called must not mean another one.
    fn name(&mut self, written: &Written) {
        let Some(name) = &written.name else { return };
        if let Err(message) = check_name(&name.value) {
            self.mistake(&name.place, message);
        }
    }

    fn compare(&mut self, written: &Written) -> usize {
        let factors = &written.factors;
        let Some(wanted) = &written.compare else {
            return factors.iter().position(|factor| factor.value.levels.len() > 1).unwrap_or(0);
        };
        let at = factors.iter().position(|factor| factor.value.name == wanted.value);
        match at {
            None => {
                let names: Vec<&str> = factors.iter().map(|factor| factor.value.name.as_str()).collect();
                let message =
                    format!("compare names no factor '{}'; there are {}", wanted.value, names.join(", "));
                self.mistake(&wanted.place, message);
            }
            Some(at) if factors[at].value.levels.len() < 2 && !written.aa => {
                self.mistake(
                    &wanted.place,
                    format!("{} has one level, so it cannot be compared", wanted.value),
                );
            }
            Some(_) => {}
        }
        at.unwrap_or(0)
    }

    /// Without `--metric`, what a known program prints is read.
    fn metrics(&mut self, written: &mut Written, engine: EngineKind) {
        let command = written.command.as_ref().filter(|_| engine.descriptor().runs == Runs::Command);
        let known = command.filter(|_| written.metrics.is_empty()).and_then(|command| {
            let (_, specs) = KnownProgram::of_command(&command.value)?;
            Some(specs.into_iter().map(|value| Placed { value, place: command.place.clone() }).collect())
        });
        written.metrics.extend::<Vec<_>>(known.unwrap_or_default());
        let mut names = BTreeSet::new();
        for metric in &written.metrics {
            let hooks = written.before.is_some() || written.after.is_some();
            if engine.descriptor().runs != Runs::Command && !hooks {
                let message = "metrics are read from what a command or a hook prints; this engine measures by itself, so give a \
                               hook (--before, --after)";
                self.mistake(&metric.place, message);
            }
            let name = MetricPattern::name_in(&metric.value);
            if !names.insert(name) {
                self.mistake(&metric.place, format!("metric {name} is given twice"));
            }
        }
    }

    fn simulated(&mut self, written: &Written) {
        let Some(Placed { value: simulated, place }) = &written.simulated else { return };
        let exists = |key: &str| {
            written.factors.iter().any(|factor| {
                let named =
                    key.strip_prefix(factor.value.name.as_str()).and_then(|rest| rest.strip_prefix('='));
                named.is_some_and(|label| factor.value.levels.iter().any(|level| level.label == label))
            })
        };
        for (key, effect) in &simulated.effects {
            if !exists(key) {
                self.mistake(place, format!("effects: no level '{key}'; write \"factor=level\""));
            }
            if *effect <= -1.0 {
                self.mistake(place, format!("effects: {key} leaves nothing; write more than -1"));
            }
        }
        let ranges = [
            ("bw", simulated.bw, 4096.0, 1e15),
            ("cv", simulated.cv, 0.0, 2.0),
            ("fail", simulated.fail, 0.0, 1.0),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                self.mistake(place, format!("{name} is {value}; write {low} to {high}"));
            }
        }
    }

    fn absolute(&mut self, directory: &Placed<PathBuf>) -> PathBuf {
        std::path::absolute(&directory.value).unwrap_or_else(|error| {
            self.mistake(&directory.place, format!("directory {}: {error}", directory.value.display()));
            directory.value.clone()
        })
    }
}

/// Whether a run may be called so: other commands take numbers and `latest` for another one.
///
/// # Errors
/// Why not, a clause.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_taken = name.parse::<i64>().is_ok() || name == "latest";
    if !is_taken && !name.trim().is_empty() {
        return Ok(());
    }
    Err(format!("a run cannot be called '{name}': a name is not empty, no number, and not 'latest'"))
}
