//! What the levels of one cell have set.
//!
//! Enters: an experiment, then bound keys with their values. Leaves: the job with its overrides, engine, directory, target
//! and variables, and everything wrong with them.

use std::path::{Path, PathBuf};

use super::bind::Bound;
use crate::catalog::{EngineKind, Runs, tool_names};
use crate::experiment::{Experiment, TargetSettings, ToolSettings, observers};
use crate::workload::{Hint, JobFile};

const TARGET_HINT: &str = "`assay help targets` lists what can be made and how it is written";

/// Where the settings of engines are described.
pub(super) fn tool_hint() -> Hint {
    Hint::page(format!("`assay help tools` lists the settings of {}", tool_names()))
}

/// The experiment's own values, with those of levels over them.
pub(super) struct Chosen {
    pub(super) job: Option<JobFile>,
    pub(super) engine: EngineKind,
    pub(super) directory: PathBuf,
    pub(super) target: TargetSettings,
    pub(super) tools: ToolSettings,
    /// Observers asked for by name.
    pub(super) observe: Vec<String>,
    pub(super) values: Vec<(String, String)>,
    /// Complaints, each with what helps against it.
    pub(super) problems: Vec<(String, Option<Hint>)>,
}

impl Chosen {
    pub(super) fn by_default(experiment: &Experiment, job: Option<&JobFile>, base: &Path) -> Chosen {
        Chosen {
            job: job.cloned(),
            engine: experiment.engine,
            directory: base.to_owned(),
            target: experiment.target.clone(),
            tools: experiment.tools.clone(),
            observe: experiment.observe.clone(),
            values: experiment.variables.clone(),
            problems: Vec::new(),
        }
    }

    pub(super) fn apply(&mut self, experiment: &Experiment, bound: &Bound, value: &str) {
        match bound {
            Bound::Variable(name) => {
                self.values.retain(|(known, _)| known != name);
                self.values.push((name.clone(), value.to_owned()));
            }
            Bound::Option(name) => {
                let done = self.job.as_mut().map_or(Ok(()), |job| job.set_everywhere(name, value));
                self.problems.extend(done.err().map(|errors| (errors.to_string(), Some(errors.hint()))));
            }
            Bound::OfSection(section, name) => {
                let done = self.job.as_mut().map_or(Ok(()), |job| job.set_in(section, name, value));
                self.problems.extend(done.err().map(|errors| (errors.to_string(), Some(errors.hint()))));
            }
            Bound::Directory => {
                self.directory = std::path::absolute(value).unwrap_or_else(|_| PathBuf::from(value));
            }
            Bound::Observe => match observers(value) {
                Ok(named) => self.observe = named,
                Err(message) => {
                    let hint = Hint::page("`assay help observers` says what each watches");
                    self.problems.push((message, Some(hint)));
                }
            },
            Bound::Target(key) => {
                let here = std::path::absolute(".").unwrap_or_default();
                let set = self.target.set(key, value, &here);
                self.problems.extend(set.err().map(|message| (message, Some(Hint::page(TARGET_HINT)))));
            }
            Bound::Tool(engine, key) => {
                let here = std::path::absolute(".").unwrap_or_default();
                let set = self.tools.set(*engine, key, value, &here);
                self.problems.extend(set.err().map(|message| (message, Some(tool_hint()))));
            }
            Bound::Engine => match EngineKind::named(value) {
                Some(named) if has_what_it_runs(experiment, named) => self.engine = named,
                Some(named) => {
                    let problem = format!("engine={value}: the experiment has {}", lacks(named));
                    self.problems.push((problem, None));
                }
                None => {
                    let names = EngineKind::names().join(", ");
                    self.problems
                        .push((format!("engine={value}: no such engine; write one of {names}"), None));
                }
            },
        }
    }

    /// What does not fit together, once all is set.
    pub(super) fn check(&mut self) {
        self.target.settle();
        let contradictions = self.target.contradictions().into_iter();
        self.problems.extend(contradictions.map(|message| (message, Some(Hint::page(TARGET_HINT)))));
        if self.target.state.is_some() && self.job.is_none() {
            self.problems.push(("state needs a job: it is the state of a job's files".to_owned(), None));
        }
    }
}

/// What an engine cannot do without.
fn lacks(engine: EngineKind) -> &'static str {
    match engine.descriptor().runs {
        Runs::Command => "no command to run: write it behind --",
        Runs::Settings => "a job, which this engine does not read",
        Runs::Job | Runs::Anything => "no job to run",
    }
}

fn has_what_it_runs(experiment: &Experiment, engine: EngineKind) -> bool {
    match engine.descriptor().runs {
        Runs::Job => experiment.job.is_some(),
        Runs::Command => !experiment.command.is_empty(),
        Runs::Settings => experiment.job.is_none(),
        Runs::Anything => true,
    }
}
