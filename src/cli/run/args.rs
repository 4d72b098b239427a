//! Options of `assay run`.

use std::path::{Path, PathBuf};

use super::busy::patience;
use super::session::Conduct;
use super::source::Source;
use crate::catalog::{EngineKind, Runs};
use crate::cli::Failure;
use crate::cli::compare::Failures;
use crate::cli::database::Database;
use crate::cli::fail_if::FailIf;
use crate::experiment::{CommandLine, Experiment, ExperimentErrors, target_key};
use crate::report::Format;

const EXAMPLES: &str = "Examples:
  assay run randwrite.fio --vary direct=0,1                     one thing varied: a verdict
  assay run job.fio -t loop:1g --vary fs=xfs,ext4               two filesystems, made anew for each trial
  assay run job.fio --vary kernel=a.deb,b.deb -t virtio_blk:1g  two kernels, booted in a virtual machine
  assay run --vary n=1,8 --metric 'tps=tps = ([0-9.]+):/s' -- pgbench -c '${n}' -T 10

Keys of --vary, looked up in this order (job.KEY and target.KEY force one or the other):
  a ${KEY} in the job, the command or a hook
  an option of fio, set in every section: bs, iodepth, rw, ioengine, numjobs …
  a setting of dbench, fs_mark or xfs_io: clients, threads … (assay help tools)
  a setting: directory, engine, observe (none, locks+waits …), device, fs, mkfs, mount, extsize, state, fresh, scheduler,
  nr_requests, read_ahead, sysfs:queue/NAME; of a guest kernel, cpus, memory, kernel_args, modules (assay help targets, assay help kernels)

Metrics for --primary: `assay metrics JOB.fio` lists what a job reports, `assay metrics RUN` what a run has.";

/// What `assay run` understands.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A fio job file, an experiment file (.toml), or a recipe: `assay recipes` lists them
    #[arg(value_name = "JOB|EXPERIMENT|RECIPE")]
    pub(super) file: Option<PathBuf>,
    /// The small size of a recipe or experiment file: a look at it, in a minute or two
    #[arg(long)]
    pub(super) quick: bool,
    /// A command instead of a job, behind `--`; `${KEY}` in it is replaced by the level of KEY
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// Vary KEY over levels, the first being the baseline; several make the full cross. A level with a comma stands in double
    /// quotes, and the whole in single ones: --vary 'mount=default,"noatime,nodiratime"'
    #[arg(long, short = 'v', value_name = "KEY=LEVEL,LEVEL…")]
    vary: Vec<String>,
    /// The factor whose levels are compared (default: the first)
    #[arg(long, value_name = "FACTOR")]
    compare: Option<String>,
    #[arg(long, value_name = "ENGINE", help = engines())]
    engine: Option<String>,
    /// Where files go that the job does not place itself (default: here)
    #[arg(long, short = 'd', value_name = "DIR")]
    directory: Option<PathBuf>,
    /// What to work on: DIR, FILE, /dev/X, or loop:1g, zram:1g …; or a setting of it: fs=xfs, mount=noatime …
    #[arg(long, short = 't', value_name = "DEVICE|KEY=VALUE")]
    target: Vec<String>,
    /// Exactly N rounds and one look, instead of stopping as soon as the verdict is clear
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    rounds: Option<u32>,
    /// Most rounds before the verdict is `undecided` (default 30)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    max_rounds: Option<u32>,
    /// The smallest difference that matters (default 2%)
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    delta: Option<String>,
    /// Chance of any false claim in the whole run (default 0.05)
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    alpha: Option<String>,
    /// What failed trials mean: compare (their numbers must not differ) or worst (each is worse than any value)
    #[arg(long, value_name = "RULE", default_value = "compare")]
    pub(super) failures: Failures,
    /// Rank tests only, no t interval in rounds 4 to 7
    #[arg(long)]
    exact: bool,
    /// An interval that holds at any number of looks, so that `--more` may extend the run; needs a few rounds more
    #[arg(long, conflicts_with_all = ["rounds", "exact", "aa"])]
    anytime: bool,
    /// Leave out the trial, not judged, that leads into each round so that what a trial leaves behind falls on all arms alike
    #[arg(long)]
    no_lead_in: bool,
    /// End with the trial that passes this time, e.g. 10m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    time_budget: Option<String>,
    /// Stop a trial that takes longer, e.g. 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    timeout: Option<String>,
    /// Longest wait for an idle device before each trial (default 2s; of commands 4 times the longest one so far, up to 2s); 0: none
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    settle: Option<String>,
    /// Wait up to this long for a quiet machine before the first trial, e.g. 10m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) wait_idle: Option<String>,
    /// The metric that decides, e.g. write.bw or read.clat_ns.p99; several with commas decide each; SECTION:METRIC decides for that
    /// section of the job only
    #[arg(long, value_name = "[SECTION:]METRIC")]
    primary: Option<String>,
    /// Shell command before each trial (ASSAY_DIRECTORY and the variables are set; ASSAY_METRICS and ASSAY_FILES take what it gives
    /// back: `assay help jobs`)
    #[arg(long, value_name = "SHELL")]
    before: Option<String>,
    /// Shell command after each trial
    #[arg(long, value_name = "SHELL")]
    after: Option<String>,
    /// Read a metric from the output of the command, or of the hooks of a job: name=REGEX[:unit][:higher|lower]
    #[arg(long, value_name = "SPEC")]
    metric: Vec<String>,
    /// Watch besides, each with root's rights: cpu (where processor time goes in the kernel), locks (waits for the kernel's locks), waits
    /// (where workers sleep), blocks (the device's requests, flushes and their times), fs (what the filesystem does); with any: extents
    /// (how the files of a trial lie on the device)
    #[arg(long, value_name = "OBSERVER")]
    observe: Vec<String>,
    /// Keep the events that --observe blocks sees as files of each trial, up to 16 MiB: assay show RUN --files DIR writes them, and assay trace
    /// reads them
    #[arg(long)]
    keep_traces: bool,
    /// Compare the baseline with itself: the noise floor of this host and job
    #[arg(long)]
    aa: bool,
    /// After the verdict: 4 more rounds of the same cells, unwatched and watched, that say why (`assay explain`)
    #[arg(long)]
    pub(super) explain: bool,
    /// Only say what would be run, written, erased, and how long it can take
    #[arg(long)]
    pub(super) plan: bool,
    /// Go on with a run that was stopped or killed: its number, its name, or latest
    #[arg(long, value_name = "RUN", conflicts_with_all = ["file", "command", "vary", "engine", "compare", "directory", "target", "rounds", "max_rounds",
        "delta", "alpha", "failures", "exact", "anytime", "no_lead_in", "time_budget", "timeout", "settle", "primary", "before", "after", "metric", "observe", "keep_traces", "aa", "plan",
        "seed", "quick"])]
    pub(super) resume: Option<String>,
    /// N more rounds of a finished run that was made with --anytime
    #[arg(long, num_args = 2, value_names = ["N", "RUN"], conflicts_with_all = ["file", "command", "vary", "engine", "compare", "directory",
        "target", "rounds", "max_rounds", "delta", "alpha", "failures", "exact", "anytime", "no_lead_in", "time_budget", "timeout", "settle", "primary", "before", "after",
        "metric", "observe", "keep_traces", "aa", "plan", "seed", "quick", "resume"])]
    pub(super) more: Vec<String>,
    /// Seed of the order and of jobs with randrepeat=0 (default: from the clock; recorded)
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// A device or existing file that the job may overwrite; nothing else that exists is written to
    #[arg(long, value_name = "PATH")]
    pub(super) destroy: Vec<PathBuf>,
    /// Go on with a run that somebody else may have written (what it would do is printed first), and work in a directory that others
    /// can change
    #[arg(long)]
    pub(super) trust: bool,
    /// Drop the whole machine's page cache before each trial (needs root; files are made anew for each in any case)
    #[arg(long)]
    pub(super) drop_caches: bool,
    /// Count every round, also those in which others disturbed the machine
    #[arg(long)]
    pub(super) keep_disturbed: bool,
    /// Also write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// Replace the file of --html whoever wrote it
    #[arg(long, requires = "html")]
    pub(super) force: bool,
    /// Format of the report on standard output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(super) format: Format,
    /// Exit with 3 when a row that decides is slower or changed (slower or faster) by more than delta, slower:any or changed:any
    /// (by however little), or undecided
    #[arg(long, value_name = "VERDICT")]
    pub(super) fail_if: Option<FailIf>,
    /// List every metric in the report, also those without a clear difference
    #[arg(long)]
    pub(super) all_metrics: bool,
    /// A report with everything: other metrics, all notes, the host's facts, the job, and the interval of each row alone where
    /// several decide
    #[arg(long)]
    pub(super) verbose: bool,
    /// No progress, only failures and the report
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) database: Database,
}

impl Args {
    /// The experiment that was asked for.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2 that lists all mistakes.
    /// `otherwise` are settings of the target below those of the command line.
    pub(super) fn experiment(&self, source: &Source, otherwise: &[String]) -> Result<Experiment, Failure> {
        let mut line = self.command_line();
        line.target.splice(0..0, otherwise.iter().cloned());
        let experiment = match (source, self.command.as_slice()) {
            (Source::CommandLine, command @ [_, ..]) => Experiment::from_command(command, &line),
            (Source::File(_) | Source::Recipe(_), [_, ..]) => {
                return Err(Failure::request("both a file and a command are given")
                    .hint("give a job or experiment file, or a command behind `--`, not both"));
            }
            (Source::File(file), []) => Experiment::load(file, &line),
            (Source::Recipe(part), []) => {
                Experiment::from_toml(part.text, &format!("recipe {}", part.name), Path::new(""), &line)
            }
            (Source::CommandLine, []) if self.needs_no_file() => Experiment::from_command_line(&line),
            (Source::CommandLine, []) => {
                return Err(Failure::request("nothing to run is given").hint(
                    "assay run JOB.fio --vary KEY=LEVEL,LEVEL; or: assay run --vary n=1,8 -- prog ${n}",
                ));
            }
        };
        let mut experiment = experiment.map_err(|errors| wrong_experiment(&errors))?;
        // Whoever names a metric wants it judged; the wall time of the command only accompanies it.
        if experiment.primary.is_none() {
            experiment.primary = experiment
                .metrics
                .first()
                .and_then(|spec| spec.split_once('='))
                .map(|(name, _)| name.to_owned());
        }
        Ok(experiment)
    }

    /// How the session behaves.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no such time.
    pub(super) fn conduct(&self) -> Result<Conduct<'_>, Failure> {
        Ok(Conduct { quiet: self.quiet, patience: patience(self)?, db: &self.database.db })
    }

    /// Whether the engine is one that runs by settings alone.
    fn needs_no_file(&self) -> bool {
        let engine = self.engine.as_deref().and_then(EngineKind::named);
        engine.is_some_and(|engine| engine.descriptor().runs == Runs::Settings)
    }

    fn command_line(&self) -> CommandLine {
        CommandLine {
            vary: self.vary.clone(),
            compare: self.compare.clone(),
            engine: self.engine.clone(),
            directory: self.directory.clone(),
            rounds: self.rounds,
            max_rounds: self.max_rounds,
            delta: self.delta.clone(),
            alpha: self.alpha.clone(),
            exact: self.exact,
            anytime: self.anytime,
            no_lead_in: self.no_lead_in,
            time_budget: self.time_budget.clone(),
            timeout: self.timeout.clone(),
            settle: self.settle.clone(),
            primary: self.primary.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            metrics: self.metric.clone(),
            target: self.target.clone(),
            observe: self.observe.clone(),
            keep_traces: self.keep_traces,
            aa: self.aa,
            quick: self.quick,
        }
    }

    /// The options for one part of a recipe: its own file for the report.
    pub(super) fn of_part(&self, part: &str) -> Args {
        let mut args = self.clone();
        let part = part.rsplit('/').next().unwrap_or(part);
        args.html = self.html.as_ref().map(|file| {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let extension =
                file.extension().map(|end| format!(".{}", end.to_string_lossy())).unwrap_or_default();
            file.with_file_name(format!("{stem}-{part}{extension}"))
        });
        args
    }

    /// Whether the command line says itself on what or where to run. A filesystem can be made on any device.
    pub(super) fn names_a_target(&self) -> bool {
        let setting =
            |text: &str, key: &str| text.strip_prefix(key).is_some_and(|rest| rest.starts_with('='));
        let places = |text: &String| {
            let key = text.split_once('=').map(|(key, _)| key.trim()).and_then(target_key);
            key.is_none_or(|key| matches!(key.as_str(), "device" | "kernel"))
        };
        let varies = |text: &String| {
            let text = text.strip_prefix("target.").unwrap_or(text);
            ["device", "kernel"].iter().any(|key| setting(text, key))
        };
        self.target.iter().any(places) || self.vary.iter().any(varies)
    }
}

/// The help of `--engine`, from the table of engines.
fn engines() -> String {
    let names = EngineKind::names();
    let (last, others) = names.split_last().map_or(("", &names[..]), |(last, others)| (*last, others));
    format!("What does the I/O: {} or {last}", others.join(", "))
}

pub(super) fn wrong_experiment(errors: &ExperimentErrors) -> Failure {
    Failure::request(errors).helped(errors.hint.clone())
}
