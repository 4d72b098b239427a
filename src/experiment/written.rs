//! A request as written, before it is known to make sense: every value with the place it came from.
//!
//! Enters: values of an experiment file or the command line. Leaves: one [`Written`], the command line's values over
//! the file's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::described::{Factor, Level, Simulated};
use super::errors::Mistake;
use super::placed::Placed;
use super::recipe_table::RecipeTable;
use super::target_names::{target_key, unknown_target_key};
use super::vary::{parse_vary, plain_level};
use crate::catalog::EngineKind;
use crate::workload::Place;

/// What the command line says; absent values leave the experiment file's or the defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandLine {
    /// `--vary`, each as written.
    pub vary: Vec<String>,
    /// `--compare`.
    pub compare: Option<String>,
    /// `--engine`.
    pub engine: Option<String>,
    /// `--directory`.
    pub directory: Option<PathBuf>,
    /// `--rounds`.
    pub rounds: Option<u32>,
    /// `--max-rounds`.
    pub max_rounds: Option<u32>,
    /// `--delta`, e.g. `2%`.
    pub delta: Option<String>,
    /// `--alpha`.
    pub alpha: Option<String>,
    /// `--exact`.
    pub exact: bool,
    /// `--anytime`.
    pub anytime: bool,
    /// `--no-lead-in`.
    pub no_lead_in: bool,
    /// `--time-budget`, e.g. `10m`.
    pub time_budget: Option<String>,
    /// `--timeout` of one trial.
    pub timeout: Option<String>,
    /// `--settle`: the wait for an idle device.
    pub settle: Option<String>,
    /// `--primary`.
    pub primary: Option<String>,
    /// `--before`.
    pub before: Option<String>,
    /// `--after`.
    pub after: Option<String>,
    /// `--metric`, each as written.
    pub metrics: Vec<String>,
    /// `--target`, each as written: a device, or KEY=VALUE.
    pub target: Vec<String>,
    /// `--observe`, each as written.
    pub observe: Vec<String>,
    /// `--keep-traces`.
    pub keep_traces: bool,
    /// `--aa`.
    pub aa: bool,
    /// `--quick`: the size that the file's `[quick]` makes.
    pub quick: bool,
}

/// Where the job comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WrittenJob {
    /// A file to read.
    File(PathBuf),
    /// The text itself.
    Text(String),
}

/// Everything that may be written, nothing of it checked against the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Written {
    pub(super) name: Option<Placed<String>>,
    pub(super) job: Option<Placed<WrittenJob>>,
    pub(super) command: Option<Placed<Vec<String>>>,
    pub(super) engine: Option<Placed<String>>,
    pub(super) compare: Option<Placed<String>>,
    pub(super) primary: Option<Placed<String>>,
    pub(super) show: Option<Placed<Vec<String>>>,
    pub(super) before: Option<Placed<String>>,
    pub(super) after: Option<Placed<String>>,
    pub(super) directory: Option<Placed<PathBuf>>,
    /// Settings of the target in the order they are applied.
    pub(super) target: Vec<Placed<(String, String)>>,
    pub(super) timeout: Option<Placed<String>>,
    pub(super) settle: Option<Placed<String>>,
    pub(super) max_rounds: Option<Placed<u64>>,
    pub(super) rounds: Option<Placed<u64>>,
    pub(super) delta: Option<Placed<String>>,
    pub(super) alpha: Option<Placed<String>>,
    pub(super) exact: bool,
    /// Where it is asked for.
    pub(super) anytime: Option<Place>,
    /// `lead_in = false`.
    pub(super) no_lead_in: bool,
    pub(super) time_budget: Option<Placed<String>>,
    pub(super) factors: Vec<Placed<Factor>>,
    pub(super) variables: Vec<Placed<(String, String)>>,
    pub(super) metrics: Vec<Placed<String>>,
    /// Observers; those of the command line come besides.
    pub(super) observe: Vec<Placed<String>>,
    /// Where `keep_traces` is asked for.
    pub(super) keep_traces: Option<Place>,
    pub(super) simulated: Option<Placed<Simulated>>,
    /// Settings of the tools: engine, key, value.
    pub(super) tools: Vec<Placed<(EngineKind, String, String)>>,
    pub(super) aa: bool,
    /// What takes the place of all this with `--quick`.
    pub(super) quick: Option<Box<Written>>,
    pub(super) recipe: Option<RecipeTable>,
}

impl Written {
    /// Puts what `[quick]` says in the place of what the file says: single values and factors by name, settings one by one.
    fn hurry(&mut self, quick: Written) {
        if quick.max_rounds.is_some() || quick.anytime.is_some() {
            self.rounds = None;
        }
        macro_rules! instead {
            ($($field:ident)*) => { $(if quick.$field.is_some() { self.$field = quick.$field; })* };
        }
        instead!(name job command engine compare primary show before after directory timeout settle max_rounds rounds delta alpha
            time_budget simulated anytime keep_traces);
        self.exact |= quick.exact;
        self.no_lead_in |= quick.no_lead_in;
        self.aa |= quick.aa;
        self.target.extend(quick.target);
        self.tools.extend(quick.tools);
        self.metrics.extend(quick.metrics);
        self.observe.extend(quick.observe);
        for variable in quick.variables {
            self.variables.retain(|known| known.value.0 != variable.value.0);
            self.variables.push(variable);
        }
        for factor in quick.factors {
            match self.factors.iter_mut().find(|known| known.value.name == factor.value.name) {
                // Levels written in full set what they say, whatever those of that name in the file set.
                Some(known) if !factor.value.levels.iter().all(|level| is_plain(&factor.value, level)) => {
                    *known = factor;
                }
                Some(known) => *known = factor.with_levels_of(known),
                None => self.factors.push(factor),
            }
        }
    }

    /// Lays the command line over what the file says. A `--vary` of a factor the file has replaces it in its place;
    /// levels that are all labels of that factor keep what they set.
    pub(super) fn overlay(&mut self, line: &CommandLine, mistakes: &mut Vec<Mistake>) {
        match self.quick.take().filter(|_| line.quick) {
            Some(quick) => self.hurry(*quick),
            None if line.quick => {
                let message = "there is no [quick] table, which would say what the small size is".to_owned();
                mistakes.push(Mistake { place: flag("--quick"), message });
            }
            None => {}
        }
        over(&mut self.compare, line.compare.as_ref(), "--compare");
        over(&mut self.engine, line.engine.as_ref(), "--engine");
        over(&mut self.directory, line.directory.as_ref(), "--directory");
        over(&mut self.delta, line.delta.as_ref(), "--delta");
        over(&mut self.alpha, line.alpha.as_ref(), "--alpha");
        over(&mut self.time_budget, line.time_budget.as_ref(), "--time-budget");
        over(&mut self.timeout, line.timeout.as_ref(), "--timeout");
        over(&mut self.settle, line.settle.as_ref(), "--settle");
        over(&mut self.primary, line.primary.as_ref(), "--primary");
        over(&mut self.before, line.before.as_ref(), "--before");
        over(&mut self.after, line.after.as_ref(), "--after");
        over(&mut self.rounds, line.rounds.map(u64::from).as_ref(), "--rounds");
        over(&mut self.max_rounds, line.max_rounds.map(u64::from).as_ref(), "--max-rounds");
        if let (Some(rounds), Some(most)) = (line.rounds, line.max_rounds) {
            let message = format!(
                "--rounds {rounds} asks for exactly so many rounds, --max-rounds {most} for as many as the verdict needs up to that; \
                 leave one out"
            );
            mistakes.push(Mistake { place: flag("--rounds"), message });
        }
        if line.keep_traces {
            self.keep_traces = Some(flag("--keep-traces"));
        }
        if line.anytime {
            self.anytime = Some(flag("--anytime"));
        }
        if (line.max_rounds.is_some() || line.anytime) && line.rounds.is_none() {
            self.rounds = None;
        }
        self.exact |= line.exact;
        self.no_lead_in |= line.no_lead_in;
        self.aa |= line.aa;
        for text in &line.metrics {
            self.metrics.push(Placed { value: text.clone(), place: flag("--metric") });
        }
        for name in line.observe.iter().flat_map(|text| text.split(',')) {
            self.observe.push(Placed { value: name.trim().to_owned(), place: flag("--observe") });
        }
        for text in &line.target {
            let place = flag(&format!("--target {text}"));
            match target_pair(text) {
                Ok(value) => self.target.push(Placed { value, place }),
                Err(message) => mistakes.push(Mistake { place, message }),
            }
        }
        let from_file = self.factors.len();
        for text in &line.vary {
            let place = flag(&format!("--vary {text}"));
            match parse_vary(text) {
                Err(message) => mistakes.push(Mistake { place, message }),
                Ok(factor) => self.vary(Placed { value: factor, place }, from_file, mistakes),
            }
        }
        self.ask(from_file, line);
    }

    /// In a recipe what the command line adds is what is asked: it is compared, and what stood in for it goes.
    fn ask(&mut self, from_file: usize, line: &CommandLine) {
        let Some(recipe) = &self.recipe else { return };
        let added = self.factors.iter().skip(from_file).find(|factor| factor.value.levels.len() > 1);
        let Some(added) = added.map(|factor| (factor.value.name.clone(), factor.place.clone())) else {
            return;
        };
        if line.compare.is_none() {
            self.compare = Some(Placed { value: added.0, place: added.1 });
        }
        let named = |factor: &Placed<Factor>| factor.place.line == 0;
        self.factors.retain(|factor| Some(&factor.value.name) != recipe.stand_in.as_ref() || named(factor));
    }

    fn vary(&mut self, factor: Placed<Factor>, from_file: usize, mistakes: &mut Vec<Mistake>) {
        match self.factors.iter().position(|known| known.value.name == factor.value.name) {
            Some(at) if at < from_file => self.factors[at] = factor.with_levels_of(&self.factors[at]),
            Some(_) => {
                let message =
                    format!("{} is varied twice; put all its levels into one --vary", factor.value.name);
                mistakes.push(Mistake { place: factor.place, message });
            }
            None => self.factors.push(factor),
        }
    }
}

impl Placed<Factor> {
    /// The same factor; where its levels are all labels of `known`, they keep what those set.
    fn with_levels_of(mut self, known: &Placed<Factor>) -> Placed<Factor> {
        if let Some(levels) = labelled(&known.value, &self.value) {
            self.value.levels = levels;
        }
        self
    }
}

/// `fs=xfs` as key and value; anything that names no setting in front is the device.
///
/// # Errors
/// `filesystem=xfs`: a misspelt setting, which would else be a new file of that name.
fn target_pair(text: &str) -> Result<(String, String), String> {
    let device = || Ok(("device".to_owned(), text.to_owned()));
    let Some((key, value)) = text.split_once('=') else { return device() };
    let key = key.trim();
    if target_key(key).is_some() {
        return Ok((key.to_owned(), value.to_owned()));
    }
    // `loop:1g:block_size=512` and `./a=b` are devices, and so is a file that is there.
    let is_word = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !is_word || Path::new(text).exists() {
        return device();
    }
    Err(format!("{} (a new file of this name is written ./{text})", unknown_target_key(key)))
}

/// The levels of the file's factor that `given` names by their labels, with what they set, in the order given; `None`
/// when one of the names is no label.
fn labelled(file: &Factor, given: &Factor) -> Option<Vec<Level>> {
    let of_label = |label: &str| file.levels.iter().find(|level| level.label == label).cloned();
    given.levels.iter().map(|level| of_label(&level.label)).collect()
}

/// Whether the level is given by its name alone.
fn is_plain(factor: &Factor, level: &Level) -> bool {
    *level == plain_level(&factor.name, &level.label)
}

/// The place of a command-line value.
pub(super) fn flag(name: &str) -> Place {
    Place { origin: Arc::from(name), line: 0 }
}

fn over<T: Clone>(slot: &mut Option<Placed<T>>, value: Option<&T>, name: &str) {
    if let Some(value) = value {
        *slot = Some(Placed { value: value.clone(), place: flag(name) });
    }
}
