//! The cells: every combination of levels with its job, command and settings filled in.
//!
//! Enters: an experiment. Leaves: one [`CellSpec`] a cell, the last factor varying fastest.

use std::collections::BTreeMap;
use std::path::Path;

use super::bind::{Bound, Keys};
use super::cell_spec::{CellSpec, SimulatedSpec};
use super::cell_target::{Place, shared_devices};
use super::chosen::{Chosen, tool_hint};
use super::error::PlanError;
use super::outlook::{laid_out_bytes, longest_trial_s};
use crate::catalog::{EngineKind, Runs};
use crate::experiment::{Experiment, Level, ToolSettings, of_one_filesystem};
use crate::workload::{Hint, JobFile, Workload, WorkloadErrors, variables};

/// More cells than this are taken for a mistake.
const MOST_CELLS: usize = 1000;

/// All cells of `experiment`.
pub(super) fn resolve(experiment: &Experiment, base: &Path, own: &str) -> Result<Vec<CellSpec>, PlanError> {
    let base = experiment.directory.as_deref().unwrap_or(base);
    let job = match &experiment.job {
        Some(job) => Some(
            JobFile::parse(&job.text, &job.origin, &job.base_dir).map_err(|errors| from_workload(&errors))?,
        ),
        None => None,
    };
    let bound = bind_all(experiment, &Keys::of(experiment, job.as_ref()))?;
    let combinations = combinations(experiment)?;
    let mut problems = Problems { cells: combinations.len(), found: Vec::new(), hint: None };
    let mut cells = Vec::new();
    for (index, chosen) in combinations.iter().enumerate() {
        let maker = Maker { experiment, job: job.as_ref(), bound: &bound, base, own, chosen };
        match maker.make(index as u32) {
            Ok(cell) => cells.push(cell),
            Err(errors) => problems.add(&maker.label(index as u32), errors),
        }
    }
    problems.into_result()?;
    // A level that cannot be is skipped beside others; where nothing else is left it is a mistake.
    let impossible: Vec<String> = cells.iter().filter_map(|cell| cell.target.impossible()).collect();
    if let Some(reason) = impossible.first().filter(|_| impossible.len() == cells.len()) {
        return Err(PlanError {
            problems: vec![reason.clone()],
            hint: Hint::page("`assay help targets` says what fits together"),
        });
    }
    match shared_devices(&cells).or_else(|| unheeded(experiment, &bound, &cells)) {
        Some(problem) => Err(PlanError {
            problems: vec![problem],
            hint: Hint::page("`assay help targets` says what fits together"),
        }),
        None => Ok(cells),
    }
}

/// Says which key for one filesystem no cell heeds, as none has that one. Under `--aa` the levels that are left out count, too.
fn unheeded(
    experiment: &Experiment,
    bound: &BTreeMap<(usize, usize, usize), Bound>,
    cells: &[CellSpec],
) -> Option<String> {
    let of_levels = bound.values().filter_map(|bound| match bound {
        Bound::Target(key) => Some(key),
        _ => None,
    });
    let left_out = if experiment.aa { experiment.targets_asked_for() } else { Vec::new() };
    let mut asked = experiment.target.per_fs.keys().chain(of_levels);
    asked.find_map(|key| {
        let (_, fs) = of_one_filesystem(key)?;
        let mut made = cells.iter().map(|cell| &cell.target).chain(&left_out);
        (!made.any(|target| target.fs == Some(fs)))
            .then(|| format!("{key} is given, but no cell has fs={}", fs.name()))
    })
}

fn from_workload(errors: &WorkloadErrors) -> PlanError {
    PlanError { problems: vec![errors.to_string()], hint: errors.hint() }
}

/// Every key of every level bound once.
fn bind_all(
    experiment: &Experiment,
    keys: &Keys,
) -> Result<BTreeMap<(usize, usize, usize), Bound>, PlanError> {
    let (mut bound, mut problems, mut hint) = (BTreeMap::new(), Vec::new(), None);
    let mut owner: BTreeMap<Bound, &str> = BTreeMap::new();
    for (f, factor) in experiment.factors.iter().enumerate() {
        for (l, level) in factor.levels.iter().enumerate() {
            for (a, set) in level.set.iter().enumerate() {
                match keys.bind(set.namespace, &set.key) {
                    Err(message) => {
                        problems.push(message);
                        hint = hint.or_else(|| keys.hint(&set.key));
                    }
                    Ok(found) => {
                        let governed = found.governs();
                        let is_other = |(known, name): &(&Bound, &&str)| {
                            known.overlaps(&governed) && **name != factor.name
                        };
                        if let Some((_, other)) = owner.iter().find(is_other) {
                            problems.push(format!(
                                "{} is set by two factors: {other} and {}",
                                set.key, factor.name
                            ));
                        }
                        owner.entry(governed).or_insert(&factor.name);
                        bound.insert((f, l, a), found);
                    }
                }
            }
        }
    }
    problems.dedup();
    if problems.is_empty() {
        return Ok(bound);
    }
    let hint = hint.map_or_else(|| Hint::page("`assay help jobs` lists what can be varied"), Hint::from);
    Err(PlanError { problems, hint })
}

/// Level indices of every factor for every cell; under `--aa` the baseline twice.
fn combinations(experiment: &Experiment) -> Result<Vec<Vec<u32>>, PlanError> {
    if experiment.aa {
        return Ok(vec![vec![0; experiment.factors.len()]; 2]);
    }
    let sizes = experiment.factors.iter().map(|factor| factor.levels.len());
    let count = sizes.clone().try_fold(1_usize, usize::checked_mul);
    if count.is_none_or(|count| count > MOST_CELLS) {
        let problem = format!("the levels cross to more than {MOST_CELLS} cells");
        return Err(PlanError { problems: vec![problem], hint: "vary fewer things in one run".into() });
    }
    let mut all = vec![Vec::new()];
    for size in sizes {
        let longer = |start: &Vec<u32>| -> Vec<Vec<u32>> {
            (0..size as u32).map(|level| start.iter().copied().chain([level]).collect()).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    Ok(all)
}

/// Makes one cell.
struct Maker<'e> {
    experiment: &'e Experiment,
    job: Option<&'e JobFile>,
    bound: &'e BTreeMap<(usize, usize, usize), Bound>,
    base: &'e Path,
    own: &'e str,
    chosen: &'e [u32],
}

impl Maker<'_> {
    fn make(&self, index: u32) -> Result<CellSpec, Vec<(String, Option<Hint>)>> {
        let experiment = self.experiment;
        let mut set = Chosen::by_default(experiment, self.job, self.base);
        for (bound, value) in self.assignments() {
            set.apply(experiment, bound, value);
        }
        set.check();
        let Chosen { job, engine, directory, target, tools, observe, values, mut problems } = set;
        let place = Place::of(&target, &directory, self.own);
        let directory = place.directory.clone();
        let job = match job.map(|job| job.substitute(&values)) {
            Some(Ok(mut job)) => {
                job.make_directories_absolute(if target.fs.is_some() { &directory } else { self.base });
                problems.extend(place.direct(&target, &mut job));
                // A hook may bring there what is made: by a mount, or a device on a file of it.
                problems.extend(place.outside(&target, &job).filter(|_| experiment.before.is_none()));
                Some(job)
            }
            Some(Err(errors)) => {
                problems.push(described(&errors));
                None
            }
            None => None,
        };
        let settings = self.settings(engine, &tools, &place, &values, &mut problems);
        if let Some(job) = &job {
            check_job(job, engine, &mut problems);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let job_text = job.map(|job| job.to_fio_text());
        let job_origin = experiment.job.as_ref().map(|job| job.origin.clone()).unwrap_or_default();
        // From the very text that is given to the engine.
        let job = job_text.as_deref().and_then(|text| JobFile::parse(text, &job_origin, Path::new("")).ok());
        let workload = job.as_ref().and_then(|job| Workload::resolve(job).ok());
        let simulated = self.simulated(engine);
        let runtime_s = match engine.descriptor().settings {
            _ if simulated.is_some() => simulated.map(|cell| cell.sleep_ms as f64 / 1e3),
            Some(own) => (own.lasts_s)(&settings),
            None => workload.as_ref().and_then(|workload| longest_trial_s(workload, &directory)),
        };
        let laid_out_bytes = match &workload {
            Some(workload) if place.file.is_none() || !target.makes() => laid_out_bytes(workload, &directory),
            _ => target.filled_bytes(),
        };
        let timeout_s = experiment.trial_timeout_s;
        Ok(CellSpec {
            levels: if experiment.aa { vec![index] } else { self.chosen.to_vec() },
            label: self.label(index),
            engine,
            directory,
            work: place.work,
            target,
            stack: place.stack,
            job_text,
            job,
            workload,
            job_origin,
            command: experiment.command.iter().map(|word| replaced(word, &values)).collect(),
            variables: self.environment(values),
            settings,
            simulated,
            observe,
            timeout_s,
            laid_out_bytes,
            longest_s: timeout_s
                .map_or(runtime_s, |limit| Some(runtime_s.map_or(limit, |runtime| runtime.min(limit)))),
        })
    }

    fn levels(&self) -> impl Iterator<Item = (usize, usize, &Level)> {
        let factors = self.experiment.factors.iter().enumerate();
        factors
            .zip(self.chosen)
            .map(|((f, factor), level)| (f, *level as usize, &factor.levels[*level as usize]))
    }

    fn assignments(&self) -> Vec<(&Bound, &str)> {
        let mut all = Vec::new();
        for (f, l, level) in self.levels() {
            for (a, set) in level.set.iter().enumerate() {
                all.extend(self.bound.get(&(f, l, a)).map(|bound| (bound, set.value.as_str())));
            }
        }
        all
    }

    /// What a tool is asked to do; one that does not work on a single file makes directories, which takes a filesystem.
    fn settings(
        &self,
        engine: EngineKind,
        tools: &ToolSettings,
        place: &Place,
        values: &[(String, String)],
        problems: &mut Vec<(String, Option<Hint>)>,
    ) -> Vec<(String, String)> {
        let Some(own) = engine.descriptor().settings else { return Vec::new() };
        let hint = Some(tool_hint());
        match (&place.file, tools.for_engine(engine, |text| replaced(text, values))) {
            (_, Err(wrong)) => {
                problems.extend(wrong.into_iter().map(|message| (message, hint.clone())));
                Vec::new()
            }
            (Some(device), Ok(mut settings)) => {
                if let Some(file) = own.file {
                    settings.retain(|(key, _)| key != file);
                    settings.push((file.to_owned(), device.to_string_lossy().into_owned()));
                    return settings;
                }
                let message =
                    format!("{} makes directories, and the target has no filesystem", engine.name());
                problems.push((message, Some("give the device a filesystem: fs=xfs".into())));
                Vec::new()
            }
            (None, Ok(settings)) => settings,
        }
    }

    fn simulated(&self, engine: EngineKind) -> Option<SimulatedSpec> {
        let spec = self.experiment.simulated.clone().unwrap_or_default();
        let effect_of = |(f, _, level): (usize, usize, &Level)| {
            let key = format!("{}={}", self.experiment.factors[f].name, level.label);
            spec.effects.iter().find(|(name, _)| *name == key).map_or(0.0, |(_, effect)| *effect)
        };
        let effect = self.levels().map(effect_of).fold(1.0, |product, effect| product * (1.0 + effect)) - 1.0;
        (engine == EngineKind::Simulated).then_some(SimulatedSpec {
            bw: spec.bw,
            effect,
            cv: spec.cv,
            sleep_ms: spec.sleep_ms,
            fail: spec.fail,
        })
    }

    fn environment(&self, mut values: Vec<(String, String)>) -> Vec<(String, String)> {
        for (f, _, level) in self.levels() {
            let name = &self.experiment.factors[f].name;
            let fits = |(at, c): (usize, char)| {
                c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit())
            };
            if name.chars().enumerate().all(fits) && !values.iter().any(|(known, _)| known == name) {
                values.push((name.clone(), level.label.clone()));
            }
        }
        values
    }

    fn label(&self, index: u32) -> String {
        if self.experiment.aa {
            return ["A", "A'"][index as usize % 2].to_owned();
        }
        let named = |(f, _, level): (usize, usize, &Level)| {
            format!("{}={}", self.experiment.factors[f].name, level.label)
        };
        self.levels().map(named).collect::<Vec<_>>().join(" ")
    }
}

/// What engines of the native family cannot take is found here, before anything runs; fio judges its own jobs.
fn check_job(job: &JobFile, engine: EngineKind, problems: &mut Vec<(String, Option<Hint>)>) {
    let ours = engine.descriptor().in_process && engine.descriptor().runs == Runs::Job;
    if let Some(errors) = Workload::resolve(job).err().filter(|_| ours) {
        let hint = Some(errors.hint());
        let said = errors.problems.iter().map(|p| (format!("{}: {}", p.place, p.message), hint.clone()));
        problems.extend(said);
    }
}

fn described(errors: &WorkloadErrors) -> (String, Option<Hint>) {
    (errors.to_string(), Some(errors.hint()))
}

/// Known variables replaced; others are left for the shell the command may run.
fn replaced(word: &str, values: &[(String, String)]) -> String {
    values.iter().fold(word.to_owned(), |text, (name, value)| {
        let mut names = std::collections::BTreeSet::new();
        variables::collect(&text, &mut names);
        if names.contains(name) { text.replace(&format!("${{{name}}}"), value) } else { text }
    })
}

/// Problems over all cells: one that every cell has is said once, without a cell.
struct Problems {
    cells: usize,
    found: Vec<(String, Vec<String>)>,
    hint: Option<Hint>,
}

impl Problems {
    fn add(&mut self, cell: &str, problems: Vec<(String, Option<Hint>)>) {
        for (message, hint) in problems {
            self.hint = self.hint.take().or(hint);
            match self.found.iter_mut().find(|(known, _)| *known == message) {
                Some((_, cells)) => cells.push(cell.to_owned()),
                None => self.found.push((message, vec![cell.to_owned()])),
            }
        }
    }

    fn into_result(self) -> Result<(), PlanError> {
        if self.found.is_empty() {
            return Ok(());
        }
        let all = self.cells;
        let said = |(message, cells): (String, Vec<String>)| match cells.len() {
            count if count == all => message,
            // The override itself is already named.
            1 if message.starts_with(&cells[0]) => message,
            1 => format!("{message} (with {})", cells[0]),
            more => format!("{message} (with {} and {} more)", cells[0], more - 1),
        };
        let hint = self.hint.unwrap_or_else(|| Hint::page("`assay help jobs` lists what can be varied"));
        Err(PlanError { problems: self.found.into_iter().map(said).collect(), hint })
    }
}
