//! Options of `assay bisect`, and what they are as options of a run.

use std::path::PathBuf;

use crate::cli::database::Database;
use crate::cli::run::args::Args as RunArgs;
use crate::cli::run::arms::FACTOR;
use crate::experiment::CommandLine;

/// Rounds after which a search gives up.
const MAX_ROUNDS: u32 = 500;
const MOST_ROUNDS: i64 = 10_000;
const EXAMPLES: &str = "Examples:
  assay bisect --steps '1.0 1.1 1.2 1.3 2.0' -- ./prog-{step} --bench
  assay bisect --steps 'a b c d' --build 'make -C {step}' --metric 'tps=tps: ([0-9.]+):/s:higher' -- {step}/prog
  assay bisect --source . --good v1.0 --bad HEAD --build make -- {tree}/prog input.dat
  assay bisect --source linux --good v6.11 --bad v6.12 job.fio -t virtio_blk:1g -t fs=xfs     kernels, in guests
  assay bisect --source linux --good v6.11 --bad v6.12 --path fs/xfs job.fio -t ram:1g -t fs=xfs     only what changes fs/xfs
  assay bisect --source . --bad v1.0 --good HEAD --build make -- {tree}/prog     which commit made it better
  assay bisect --resume 7                       go on with a search that was stopped or killed
  assay bisect --show 7 --format json           every question and every value of a stored search

Exit codes: 0 whatever the answer (\"outcome\" in JSON says which), 1 an end or a tool failed, 2 the request is wrong, 130 interrupted.
`assay help bisection` says how it searches and what its probability means.";

/// How the answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Written {
    /// For people.
    Text,
    /// For programs, with every round.
    Json,
}

/// Options of `assay bisect`.
#[derive(clap::Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// With --source of a kernel: the fio job, or experiment file, that is run on each
    #[arg(value_name = "JOB", requires = "source", conflicts_with = "command")]
    pub(super) file: Option<PathBuf>,
    /// Where each kernel is booted and what it works on: virtio_blk:1g, fs=xfs, kernel=IMAGE (then only its modules are built) …; the steps
    /// are kernels then
    #[arg(long, short = 't', value_name = "DEVICE|KEY=VALUE", requires = "source")]
    pub(super) target: Vec<String>,
    /// What does the I/O on kernels, e.g. dbench
    #[arg(long, value_name = "ENGINE", requires = "source")]
    pub(super) engine: Option<String>,
    /// Configuration of the kernels: a fragment over assay's small one, or a whole .config
    #[arg(long, value_name = "FILE", requires = "source")]
    pub(super) config: Option<PathBuf>,
    /// The steps in their order, with blanks between: the good one first, the bad one last
    #[arg(long, value_name = "'STEP STEP …'", conflicts_with_all = ["source", "good", "bad"])]
    pub(super) steps: Option<String>,
    /// A git repository: the steps are the commits between --good and --bad on the first-parent line; it is only read
    #[arg(long, value_name = "GIT", requires_all = ["good", "bad"])]
    pub(super) source: Option<PathBuf>,
    /// The steps go the other way: the bad one first, the good one last; which of them made it better
    #[arg(long, requires = "steps")]
    pub(super) better: bool,
    /// The revision that is good; where it is the later one, what made it better is searched for
    #[arg(long, value_name = "REV", requires = "source")]
    pub(super) good: Option<String>,
    /// The revision that is bad
    #[arg(long, value_name = "REV", requires = "source")]
    pub(super) bad: Option<String>,
    /// Only the commits that change this file or directory of the repository are searched; may be given several times
    #[arg(long, value_name = "PATH", requires = "source")]
    pub(super) path: Vec<String>,
    /// Shell command that makes a step ready, once before its first trial; with --source it runs in the commit's files. A step whose
    /// build fails is skipped
    #[arg(long, value_name = "SHELL")]
    pub(super) build: Option<String>,
    /// The command of a trial, behind `--`; {step} in it is the step, {tree} the directory with the commit's files
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// Read a metric from the output of the command: name=REGEX[:unit][:higher|lower]; the first one decides (default: the wall time)
    #[arg(long = "metric", value_name = "SPEC")]
    pub(super) metrics: Vec<String>,
    /// The metric that decides, e.g. write.bw; SECTION:METRIC of one section of a job
    #[arg(long, value_name = "METRIC")]
    pub(super) primary: Option<String>,
    /// Shell command before each trial; $step is the step
    #[arg(long, value_name = "SHELL")]
    pub(super) before: Option<String>,
    /// Shell command after each trial
    #[arg(long, value_name = "SHELL")]
    pub(super) after: Option<String>,
    /// Where the directories of a session are made (default: here)
    #[arg(long, short = 'd', value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
    /// The smallest change that matters (default 2%)
    #[arg(long, value_name = "2%|0.02", allow_hyphen_values = true)]
    pub(super) delta: Option<String>,
    /// Chance of a wrong answer (default 0.05)
    #[arg(long, value_name = "P", allow_hyphen_values = true)]
    pub(super) alpha: Option<String>,
    /// Most rounds; up to half of them compare the ends alone
    #[arg(long, value_name = "N", default_value_t = MAX_ROUNDS, value_parser = clap::value_parser!(u32).range(8..=MOST_ROUNDS))]
    pub(super) max_rounds: u32,
    /// Steps asked in one round, 1 or 2: two need fewer trials, one needs fewer builds
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=2))]
    pub(super) ask: u32,
    /// End with the trial that passes this time, e.g. 2h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) time_budget: Option<String>,
    /// Stop a trial that takes longer, e.g. 5m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) timeout: Option<String>,
    /// Longest wait for an idle device before each trial; 0: none
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) settle: Option<String>,
    /// Wait up to this long for a quiet machine before the first trial, e.g. 10m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(super) wait_idle: Option<String>,
    /// Skip the lead-in of each round: a trial that is not judged, run first so that all steps follow another trial
    #[arg(long)]
    pub(super) no_lead_in: bool,
    /// Count every round, also those in which others disturbed the machine
    #[arg(long)]
    pub(super) keep_disturbed: bool,
    /// Seed of the order (default: from the clock; recorded)
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Only say what would be run, and about how many trials
    #[arg(long)]
    pub(super) plan: bool,
    /// Go on with a search that was stopped or killed: its number, its name, or latest
    #[arg(long, value_name = "RUN", conflicts_with_all = ["steps", "better", "source", "build", "command", "metrics", "primary", "before", "after",
        "path", "directory", "delta", "alpha", "max_rounds", "ask", "time_budget", "timeout", "settle", "no_lead_in", "seed", "plan", "show", "file", "target",
        "engine", "config"])]
    pub(super) resume: Option<String>,
    /// Print the answer of a stored search; nothing is run
    #[arg(long, value_name = "RUN", conflicts_with_all = ["steps", "source", "path", "build", "command", "plan", "file", "target", "engine", "config"])]
    pub(super) show: Option<String>,
    /// Go on with a search that somebody else may have written (prints first what it would do), and work in a directory that others can
    /// change
    #[arg(long)]
    pub(super) trust: bool,
    /// Format of the answer on standard output
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Written::Text)]
    pub(super) format: Written,
    /// No progress, only failures and the answer
    #[arg(long, short)]
    pub(super) quiet: bool,
    #[command(flatten)]
    pub(super) database: Database,
}

impl Args {
    /// Whether the steps are kernels that are built and booted; a command, a job or an engine is run on each.
    pub(super) fn is_of_kernels(&self) -> bool {
        let of_kernels = self.file.is_some() || self.engine.is_some() || self.config.is_some();
        self.source.is_some() && (of_kernels || !self.target.is_empty())
    }

    /// The same as options of a run.
    pub(in crate::cli) fn as_run(&self) -> RunArgs {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let asked = CommandLine {
            // The levels are put in its place.
            vary: vec![format!("{FACTOR}=good,bad")],
            directory: self.directory.clone(),
            target: self.target.clone(),
            engine: self.engine.clone(),
            source: self.source.as_ref().filter(|_| self.is_of_kernels()).map(text),
            config: self.config.as_ref().map(text),
            delta: self.delta.clone(),
            alpha: self.alpha.clone(),
            no_lead_in: self.no_lead_in,
            time_budget: self.time_budget.clone(),
            timeout: self.timeout.clone(),
            settle: self.settle.clone(),
            primary: self.primary.clone(),
            before: self.before.clone(),
            after: self.after.clone(),
            metrics: self.metrics.clone(),
            ..CommandLine::default()
        };
        RunArgs {
            seed: self.seed,
            trust: self.trust,
            wait_idle: self.wait_idle.clone(),
            keep_disturbed: self.keep_disturbed,
            quiet: self.quiet,
            files: self.file.iter().cloned().collect(),
            ..RunArgs::of(asked, self.command.clone(), self.database.clone())
        }
    }
}
