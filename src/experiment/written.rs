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
use crate::catalog::{EngineKind, MetricPattern};
use crate::workload::Place;

/// A hint: `-v` is `--verbose` elsewhere.
pub const VARY_IS_V: &str = "-v is --vary in `run`, and takes KEY=LEVEL,LEVEL; write --verbose in full";

/// Headings of the options in the help of `assay run`, in their order.
pub const WHAT: &str = "What is run";
/// The rounds and the claim.
pub const HOW_LONG: &str = "How long, and how sure";
/// Metrics and observers.
pub const MEASURED: &str = "What is measured and watched";

/// What the command line says; absent values leave the experiment file's or the defaults. `assay run` reads its options straight into
/// this, so that an option is described in one place.
#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
pub struct CommandLine {
    /// The small size of a recipe or experiment file: a minute or two
    #[arg(long, help_heading = WHAT)]
    pub quick: bool,
    /// Vary KEY over levels, the first being the baseline; several make the full cross
    ///
    /// Vary KEY over levels, the first being the baseline; several make the full cross. A level with a comma stands in double
    /// quotes, and the whole in single ones: --vary 'mount=default,"noatime,nodiratime"'. SECTION:KEY is an option of one section
    #[arg(long, short = 'v', value_name = "KEY=LEVEL,LEVEL…", help_heading = WHAT)]
    pub vary: Vec<String>,
    /// What the run is called; RUN of other commands may be that name
    #[arg(long, value_name = "NAME", help_heading = WHAT)]
    pub name: Option<String>,
    /// The factor whose levels are compared (default: the first)
    #[arg(long, value_name = "FACTOR", help_heading = WHAT, hide_short_help = true)]
    pub compare: Option<String>,
    /// What does the I/O.
    #[arg(long, value_name = "ENGINE", help = engines(), help_heading = WHAT)]
    pub engine: Option<String>,
    /// Where files go that the job does not place itself (default: here)
    #[arg(long, short = 'd', value_name = "DIR", help_heading = WHAT)]
    pub directory: Option<PathBuf>,
    /// What to work on: DIR, FILE, /dev/X, loop:1g …; or a setting: fs=xfs …
    ///
    /// What to work on: DIR, FILE, /dev/X, or loop:1g, zram:1g …; or a setting of it: fs=xfs, mount=noatime …
    #[arg(long, short = 't', value_name = "DEVICE|KEY=VALUE", help_heading = WHAT)]
    pub target: Vec<String>,
    /// What kernels are built from, for --vary patch=none,FILE: a kernel tree, a git repository (or REPOSITORY@REV), a tarball, or
    /// Debian's linux-source .deb (`assay help patches`)
    #[arg(long, value_name = "PATH[@REV]", help_heading = WHAT, hide_short_help = true)]
    pub source: Option<String>,
    /// Configuration of a kernel that is built: a fragment over assay's small one, or a whole .config
    #[arg(long, value_name = "FILE", help_heading = WHAT, hide_short_help = true)]
    pub config: Option<String>,
    /// Exactly N rounds, not until the verdict is clear
    ///
    /// Exactly N rounds and one look, instead of stopping as soon as the verdict is clear
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = HOW_LONG)]
    pub rounds: Option<u32>,
    /// Most rounds until the verdict is clear (default 30)
    ///
    /// Most rounds before the verdict is `undecided`, 4 to 120 (default 30)
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = HOW_LONG)]
    pub max_rounds: Option<u32>,
    /// The smallest difference that matters (default 2%)
    ///
    /// The smallest difference that matters (default 2%), also by metric: 2%,p99=10% or wal:p99=10%; of several that fit the last holds
    #[arg(long, value_name = "2%|0.02", allow_hyphen_values = true, help_heading = HOW_LONG)]
    pub delta: Option<String>,
    /// Chance of any false claim in the whole run (default 0.05)
    #[arg(long, value_name = "P", allow_hyphen_values = true, help_heading = HOW_LONG, hide_short_help = true)]
    pub alpha: Option<String>,
    /// Rank tests only, no t interval in rounds 4 to 7
    #[arg(long, help_heading = HOW_LONG, hide_short_help = true)]
    pub exact: bool,
    /// An interval that holds at any number of looks, so that `--more` may extend the run; needs a few rounds more
    #[arg(long, conflicts_with_all = ["rounds", "exact", "aa"], help_heading = HOW_LONG, hide_short_help = true)]
    pub anytime: bool,
    /// Skip the lead-in of each round: a trial that is not judged, run first so that all arms follow another trial
    #[arg(long, help_heading = HOW_LONG, hide_short_help = true)]
    pub no_lead_in: bool,
    /// End with the trial that passes this time, e.g. 10m
    ///
    /// End with the trial that passes this time, e.g. 10m; the runs of one command share it in equal parts, and --explain is part of
    /// it. Kernels are built before it begins
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = HOW_LONG)]
    pub time_budget: Option<String>,
    /// Stop a trial that takes longer, e.g. 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = HOW_LONG, hide_short_help = true)]
    pub timeout: Option<String>,
    /// Longest wait for an idle device before each trial (default 2s; of commands 4 times the longest one so far, up to 2s); 0: none
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = HOW_LONG, hide_short_help = true)]
    pub settle: Option<String>,
    /// The metric that decides, e.g. write.bw, read.clat_ns.p99, wal:write.bw
    ///
    /// The metric that decides, e.g. write.bw or read.clat_ns.p99; several with commas decide each; of SECTION:METRIC that section decides
    /// alone
    #[arg(long, value_name = "[SECTION:]METRIC", help_heading = MEASURED)]
    pub primary: Option<String>,
    /// Shell command before each trial (ASSAY_DIRECTORY and the variables are set; ASSAY_METRICS and ASSAY_FILES take what it gives
    /// back: `assay help jobs`)
    #[arg(long, value_name = "SHELL", help_heading = WHAT, hide_short_help = true)]
    pub before: Option<String>,
    /// Shell command after each trial
    #[arg(long, value_name = "SHELL", help_heading = WHAT, hide_short_help = true)]
    pub after: Option<String>,
    /// Read a metric from what a command prints: name=REGEX[:unit][:higher|lower]
    ///
    /// Read a metric from the output of the command, or of the hooks of a job: name=REGEX[:unit][:higher|lower]
    #[arg(id = "metric", long = "metric", value_name = "SPEC", help_heading = MEASURED)]
    pub metrics: Vec<String>,
    /// Watch besides, as root: cpu, locks, waits, calls, blocks, fs or GROUP:EVENT
    ///
    /// Watch besides, as root: cpu (where processor time goes; with kernel.perf_event_paranoid at 1 without root, too), locks (waits for the
    /// kernel's locks), waits (where workers sleep), calls (what the slowest reads, writes and syncs wait for), blocks (the device's requests,
    /// flushes and their times), fs (what the filesystem does), GROUP:EVENT (how often the kernel hits a tracepoint, e.g. block:block_plug) or
    /// NAME=GROUP:EVENT/FILTER/ (some of its hits); with any: extents (how the files of a trial lie on the device), and of a command
    /// server=NAME (the server that works for it is watched: a program, a process, a file with its number, a unit)
    #[arg(long, value_name = "OBSERVER", help_heading = MEASURED)]
    pub observe: Vec<String>,
    /// Keep the events that --observe blocks sees as files of each trial, up to 16 MiB: assay show RUN --files DIR writes them, and assay trace
    /// reads them
    #[arg(long, help_heading = MEASURED, hide_short_help = true)]
    pub keep_traces: bool,
    /// Compare the baseline with itself: this host's noise floor for the job
    #[arg(long, help_heading = HOW_LONG)]
    pub aa: bool,
}

/// The help of `--engine`, from the table of engines.
fn engines() -> String {
    let names = EngineKind::names();
    let (last, others) = names.split_last().map_or(("", &names[..]), |(last, others)| (*last, others));
    format!("What does the I/O: {} or {last}", others.join(", "))
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
    pub(super) no_lead_in: Option<bool>,
    pub(super) keep_disturbed: Option<bool>,
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
    /// What takes the place of all this where `--vary design=…` asks for it: kernels with patches.
    pub(super) design: Option<Box<Written>>,
    pub(super) recipe: Option<RecipeTable>,
}

/// The factor whose levels are patches of the file's own, and the table that has it.
const DESIGN: &str = "design";

impl Written {
    /// Puts what `[quick]` or `[design]` says in the place of what the file says: single values and factors by name, settings one by one.
    fn replace(&mut self, other: Written) {
        self.replace_ends(&other);
        macro_rules! instead {
            ($($field:ident)*) => { $(if other.$field.is_some() { self.$field = other.$field; })* };
        }
        instead!(name job command engine compare primary show before after directory timeout settle max_rounds rounds delta alpha
            time_budget simulated anytime keep_traces no_lead_in keep_disturbed);
        self.exact |= other.exact;
        self.aa |= other.aa;
        self.target.extend(other.target);
        self.tools.extend(other.tools);
        self.replace_metrics(other.metrics);
        self.observe.extend(other.observe);
        for variable in other.variables {
            self.variables.retain(|known| known.value.0 != variable.value.0);
            self.variables.push(variable);
        }
        self.replace_factors(other.factors);
    }

    /// What excludes each other.
    fn replace_ends(&mut self, other: &Written) {
        if other.max_rounds.is_some() || other.anytime.is_some() {
            self.rounds = None;
        }
        if other.rounds.is_some() {
            self.anytime = None;
        }
    }

    fn replace_metrics(&mut self, other: Vec<Placed<String>>) {
        let name = |metric: &Placed<String>| MetricPattern::name_in(&metric.value).to_owned();
        let anew: Vec<String> = other.iter().map(name).collect();
        self.metrics.retain(|known| !anew.contains(&name(known)));
        self.metrics.extend(other);
    }

    fn replace_factors(&mut self, other: Vec<Placed<Factor>>) {
        for factor in other {
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
            Some(quick) => self.replace(*quick),
            None if line.quick => {
                let message = "there is no [quick] table, which would say what the small size is".to_owned();
                mistakes.push(Mistake { place: flag("--quick"), message });
            }
            None => {}
        }
        let named = |text: &String| text.split('=').next().is_some_and(|key| key.trim() == DESIGN);
        let designs = line.vary.iter().any(named);
        if let Some(design) = self.design.take().filter(|_| designs) {
            self.replace(*design);
            // One level that sets nothing takes a factor of the file out: only its name would be left, in every row.
            self.factors
                .retain(|factor| !matches!(factor.value.levels.as_slice(), [one] if one.set.is_empty()));
        }
        over(&mut self.name, line.name.as_ref(), "--name");
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
        if line.no_lead_in {
            self.no_lead_in = Some(true);
        }
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
        for (key, value) in [("source", &line.source), ("config", &line.config)] {
            let place = flag(&format!("--{key}"));
            let value = value.as_ref().map(|value| Placed { value: (key.to_owned(), value.clone()), place });
            self.target.extend(value);
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
            Some(at) if at < from_file && is_all(&factor.value) => self.factors[at].place = factor.place,
            Some(at) if at < from_file => {
                let known = &self.factors[at];
                if factor.value.name == DESIGN && labelled(&known.value, &factor.value).is_none() {
                    let labels: Vec<&str> =
                        known.value.levels.iter().map(|level| level.label.as_str()).collect();
                    let message = format!("the designs are {}, or all", labels.join(", "));
                    mistakes.push(Mistake { place: factor.place, message });
                    return;
                }
                self.factors[at] = factor.with_levels_of(known);
            }
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

/// `--vary design=all`: all levels that the file has.
fn is_all(factor: &Factor) -> bool {
    matches!(factor.levels.as_slice(), [only] if only.label == "all")
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
