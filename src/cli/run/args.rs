//! Options of `assay run`.

use std::path::{Path, PathBuf};

use super::among::Among;
use super::conduct::{Conduct, patience};
use super::source::{Source, wrong_experiment};
use crate::analyse::Beyond;
use crate::catalog::{EngineKind, MetricPattern, Runs};
use crate::cli::Failure;
use crate::cli::database::Database;
use crate::cli::fail_if::FailIf;
use crate::cli::failures::Failures;
use crate::cli::output::Output;
use crate::cli::report::format_of;
use crate::experiment::{CommandLine, Experiment, HOW_LONG, MEASURED, VARY_IS_V, WHAT, target_key};
use crate::report::Format;
use crate::units::parse_duration_s;

/// Headings of the options in the help, besides those of the experiment.
const MACHINE: &str = "The machine";
const REPORT: &str = "The report";

/// clap takes `{n}` for the end of a line: no variable is called n here.
const EXAMPLES: &str = "Examples:
  assay run randwrite.fio --vary direct=0,1                     one thing varied: a verdict
  assay run job.fio -t loop:1g --vary fs=xfs,ext4               two filesystems, made anew for each trial
  assay run job.fio --vary kernel=a.deb,b.deb -t virtio_blk:1g  two kernels, booted in a virtual machine
  assay run job.fio --source linux --vary patch=none,my.patch   a kernel with and without a patch (assay help patches)
  assay run --vary c=1,8 -- pgbench -c '${c}' -T 10
  assay run --vary k=1,8 --metric 'rate=rate: ([0-9.]+):/s' -- ./bench '${k}'";

/// What `-h` has: what fits a line of 80 columns.
const FEW_EXAMPLES: &str = "Examples:
  assay run randwrite.fio --vary direct=0,1
  assay run job.fio -t loop:1g --vary fs=xfs,ext4
  assay run job.fio --vary kernel=a.deb,b.deb -t virtio_blk:1g
  assay run --vary c=1,8 -- pgbench -c '${c}' -T 10

`assay run --help` has all options and the keys of --vary; `assay help` lists topics.";

/// What `--help` has below the examples.
const KEYS: &str = "Keys of --vary, looked up in this order (job.KEY and target.KEY force one or the other):
  a ${KEY} in the job, the command or a hook
  an option of fio, set in every section: bs, iodepth, rw, ioengine, numjobs …
  a setting of dbench, fs_mark or xfs_io: clients, threads … (assay help tools)
  a setting: directory, engine, observe (none, locks+waits …), device, dm (crypt …), fs, mkfs, mount (of one: mkfs.xfs, mount.ext4 …), log,
  extsize, state, fresh, scheduler, nr_requests, read_ahead, sysfs:queue/NAME, vm.dirty_ratio and other sysctls (now: as it is); of a guest
  kernel, source, rev, patch, config, cpus, memory, kernel_args, modules (assay help targets, assay help kernels)

Metrics for --primary: `assay metrics JOB.fio` lists what a job reports, `assay metrics RUN` what a run has.";

/// What `assay run` understands.
#[derive(clap::Args, Clone, Debug)]
#[command(
    after_help = FEW_EXAMPLES,
    after_long_help = format!("{EXAMPLES}\n\n{KEYS}")
)]
pub struct Args {
    /// A fio job file, an experiment file (.toml), a recipe (`assay recipes`), or a directory of such files
    ///
    /// A fio job file, an experiment file (.toml), a recipe (`assay recipes` lists them), or a directory of such files; several are run
    /// one after the other, share alpha and the time there is, and have one report
    #[arg(value_name = "JOB|EXPERIMENT|RECIPE|DIR")]
    pub(in crate::cli) files: Vec<PathBuf>,
    /// A command instead of a job, behind `--`; `${KEY}` in it is replaced by the level of KEY
    #[arg(last = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<String>,
    #[command(flatten)]
    pub(in crate::cli) asked: CommandLine,
    /// What failed trials mean: compare (their numbers must not differ) or worst (each is worse than any value)
    #[arg(long, value_name = "RULE", default_value = "compare", help_heading = HOW_LONG, hide_short_help = true)]
    pub(in crate::cli) failures: Failures,
    /// Wait up to this long for a quiet machine before the first trial, e.g. 10m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = MACHINE, hide_short_help = true)]
    pub(in crate::cli) wait_idle: Option<String>,
    /// After the verdict: 5 more rounds, unwatched and watched, that say why
    ///
    /// After the verdict: 5 more rounds of the same cells, unwatched and watched, that say why (`assay explain`)
    #[arg(long, help_heading = MEASURED)]
    pub(in crate::cli) explain: bool,
    /// Only say what would be run, written, erased, and how long it can take
    #[arg(long, help_heading = WHAT)]
    pub(in crate::cli) plan: bool,
    /// Go on with a run that was stopped or killed: number, name or latest
    #[arg(long, value_name = "RUN", conflicts_with_all = ["files", "command", "name", "vary", "engine", "compare", "directory", "target", "source", "config", "rounds", "max_rounds",
        "delta", "alpha", "failures", "exact", "anytime", "no_lead_in", "time_budget", "timeout", "settle", "primary", "before", "after", "metric", "observe", "keep_traces", "aa", "plan",
        "seed", "quick", "drop_caches", "keep_disturbed"], help_heading = WHAT)]
    pub(in crate::cli) resume: Option<String>,
    /// N more rounds of a finished run that was made with --anytime
    #[arg(long, num_args = 2, value_names = ["N", "RUN"], conflicts_with_all = ["files", "command", "name", "vary", "engine", "compare", "directory",
        "target", "source", "config", "rounds", "max_rounds", "delta", "alpha", "failures", "exact", "anytime", "no_lead_in", "time_budget", "timeout", "settle", "primary", "before", "after",
        "metric", "observe", "keep_traces", "aa", "plan", "seed", "quick", "resume", "drop_caches", "keep_disturbed"], help_heading = WHAT, hide_short_help = true)]
    pub(in crate::cli) more: Vec<String>,
    /// Seed of the order and of jobs with randrepeat=0 (default: from the clock; recorded)
    #[arg(long, value_name = "N", help_heading = WHAT, hide_short_help = true)]
    pub(in crate::cli) seed: Option<u64>,
    /// A device or existing file that may be overwritten; nothing else is
    ///
    /// A device or existing file that the job may overwrite; nothing else that exists is written to
    #[arg(long, value_name = "PATH", help_heading = MACHINE)]
    pub(in crate::cli) destroy: Vec<PathBuf>,
    /// Continue a run that somebody else may have written (prints first what it would do), and work in a directory that others
    /// can change
    #[arg(long, help_heading = MACHINE, hide_short_help = true)]
    pub(in crate::cli) trust: bool,
    /// Drop the whole machine's page cache before each trial (needs root; files are made anew for each in any case)
    #[arg(long, help_heading = MACHINE, hide_short_help = true)]
    pub(in crate::cli) drop_caches: bool,
    /// Count every round, also those in which others disturbed the machine
    #[arg(long, help_heading = MACHINE, hide_short_help = true)]
    pub(in crate::cli) keep_disturbed: bool,
    /// Also write the report to FILE (.html, .md, .json …)
    #[arg(short = 'o', long, value_name = "FILE", group = "file", help_heading = REPORT)]
    pub(in crate::cli) output: Option<PathBuf>,
    /// Also write the report as HTML, whatever the file is called
    #[arg(long, value_name = "FILE", group = "file", help_heading = REPORT, hide_short_help = true)]
    pub(in crate::cli) html: Option<PathBuf>,
    /// Replace that file whoever wrote it
    #[arg(long, requires = "file", help_heading = REPORT, hide_short_help = true)]
    pub(in crate::cli) force: bool,
    /// Report as text, lkml, mmtests, markdown, html, json, csv or junit
    #[arg(long, value_name = "FORMAT", default_value = "text", help_heading = REPORT)]
    pub(in crate::cli) format: Format,
    /// Exit code 3 if a deciding row is VERDICT
    #[arg(long, value_name = "VERDICT", conflicts_with = "all_pairs", help_heading = REPORT)]
    pub(in crate::cli) fail_if: Option<FailIf>,
    /// Compare every pair of levels in the report, not each with the first only; the run ends by the comparisons with the first
    #[arg(long, help_heading = REPORT, hide_short_help = true)]
    pub(in crate::cli) all_pairs: bool,
    /// List every metric in the report, also those without a clear difference
    #[arg(long, help_heading = REPORT, hide_short_help = true)]
    pub(in crate::cli) all_metrics: bool,
    /// Everything: other metrics, all notes, facts of the host, the job
    ///
    /// A report with everything: other metrics, all notes, the host's facts, the job, and the interval of each row alone where
    /// several decide
    #[arg(long, help_heading = REPORT)]
    pub(in crate::cli) verbose: bool,
    /// No progress, only failures and the report
    #[arg(long, short, help_heading = REPORT)]
    pub(in crate::cli) quiet: bool,
    #[command(flatten)]
    pub(in crate::cli) database: Database,
    /// What this run is among several of the command.
    #[arg(skip)]
    pub(in crate::cli) among: Option<Among>,
}

impl Args {
    /// A command with these wishes, and nothing else that a user could ask for.
    pub(in crate::cli) fn of(asked: CommandLine, command: Vec<String>, database: Database) -> Args {
        Args {
            files: Vec::new(),
            among: None,
            command,
            asked,
            failures: Failures::Compare,
            wait_idle: None,
            explain: false,
            plan: false,
            resume: None,
            more: Vec::new(),
            seed: None,
            destroy: Vec::new(),
            trust: false,
            drop_caches: false,
            keep_disturbed: false,
            output: None,
            html: None,
            force: false,
            format: Format::Text,
            fail_if: None,
            all_pairs: false,
            all_metrics: false,
            verbose: false,
            quiet: false,
            database,
        }
    }

    /// The experiment that was asked for.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2 that lists all mistakes.
    /// `otherwise` are settings of the target below those of the command line.
    pub(super) fn experiment(&self, source: &Source, otherwise: &[String]) -> Result<Experiment, Failure> {
        let mut line = self.asked.clone();
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
                let took_the_job = line.vary.iter().any(|vary| !vary.contains('='));
                return Err(Failure::request("nothing to run is given").hint(match took_the_job {
                    true => VARY_IS_V,
                    false => {
                        "assay run JOB.fio --vary KEY=LEVEL,LEVEL; or: assay run --vary n=1,8 -- prog ${n}"
                    }
                }));
            }
        };
        let mut experiment = experiment.map_err(|errors| wrong_experiment(&errors))?;
        experiment.stop.alpha /=
            self.among.as_ref().map_or(1.0, |among| f64::from(among.together.sharing_alpha));
        // Whoever names a metric wants it judged; the wall time of the command only accompanies it.
        if experiment.primary.is_none() {
            experiment.primary = experiment
                .metrics
                .first()
                .filter(|spec| spec.contains('='))
                .map(|spec| MetricPattern::name_in(spec).to_owned());
        }
        Ok(experiment)
    }

    /// What its gate must know before the run may end.
    pub(super) fn beyond_delta(&self) -> Beyond {
        self.fail_if.map_or(Beyond::Nothing, FailIf::beyond_delta)
    }

    /// How the session behaves.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no such time.
    pub(super) fn conduct(&self) -> Result<Conduct<'_>, Failure> {
        Ok(Conduct {
            quiet: self.quiet,
            busy_told: false,
            patience: patience(self.wait_idle.as_deref())?,
            beyond_delta: self.beyond_delta(),
            db: &self.database.db,
        })
    }

    /// The file that the report is written to besides, and its format.
    ///
    /// # Errors
    /// An ending that stands for no format.
    pub(super) fn file(&self) -> Result<Option<(Output, Format)>, Failure> {
        let of = |file: &Path| Output { file: Some(file.to_owned()), force: self.force };
        match (&self.html, &self.output) {
            (Some(file), _) => Ok(Some((of(file), Format::Html))),
            (None, Some(file)) => format_of(None, &of(file)).map(|format| Some((of(file), format))),
            (None, None) => Ok(None),
        }
    }

    /// Whether the engine is one that runs by settings alone, or one that is unknown, which is told later.
    fn needs_no_file(&self) -> bool {
        let engine = self.asked.engine.as_deref().map(EngineKind::named);
        engine.is_some_and(|known| known.is_none_or(|engine| engine.descriptor().runs == Runs::Settings))
    }

    /// The options for each of so many parts, which share the time there is.
    pub(super) fn with_share_of_time(&self, parts: usize) -> Args {
        let mut args = self.clone();
        // What is no time is refused where all options are read.
        let budget_s = self.asked.time_budget.as_ref().and_then(|text| parse_duration_s(text, 1.0).ok());
        if let Some(budget_s) = budget_s.filter(|_| parts > 1) {
            args.asked.time_budget = Some(format!("{:.3}s", budget_s / parts as f64));
        }
        args
    }

    /// Whether the command line says itself on which device to run. A filesystem can be made on any.
    pub(super) fn names_a_device(&self) -> bool {
        self.sets(&["device"]) || self.asked.target.iter().any(|text| key_of(text).is_none())
    }

    /// Whether it says itself which kernel is booted in guests.
    pub(super) fn names_a_kernel(&self) -> bool {
        self.asked.source.is_some() || self.sets(&["kernel", "source"])
    }

    /// Whether nothing may take the place of what the recipe names: this machine is asked for, or a design, which has a target of its own, from
    /// a source.
    pub(super) fn names_the_place(&self) -> bool {
        let texts = || self.asked.target.iter().chain(&self.asked.vary);
        let is_design = texts().any(|text| text.split('=').next().is_some_and(|key| key.trim() == "design"));
        let is_host = |text: &String| {
            let levels = text.strip_prefix("target.").unwrap_or(text).strip_prefix("kernel=");
            levels.is_some_and(|levels| levels.split(',').any(|level| level.trim() == "host"))
        };
        (is_design && self.names_a_kernel()) || texts().any(is_host)
    }

    /// Whether `--target` or `--vary` sets one of these.
    fn sets(&self, keys: &[&str]) -> bool {
        let of_target = |text: &String| key_of(text).is_some_and(|key| keys.contains(&key.as_str()));
        let varies = |text: &String| {
            let text = text.strip_prefix("target.").unwrap_or(text);
            keys.iter().any(|key| text.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')))
        };
        self.asked.target.iter().any(of_target) || self.asked.vary.iter().any(varies)
    }
}

/// Whether the word behind this one is its value: `--name`, `-t`.
pub(super) fn takes_a_value(word: &str) -> bool {
    let command = <Args as clap::Args>::augment_args(clap::Command::new("run"));
    let is_it = |arg: &&clap::Arg| {
        let long = word.strip_prefix("--").is_some_and(|long| arg.get_long() == Some(long));
        let short = word.strip_prefix('-').and_then(|short| short.parse::<char>().ok());
        long || (short.is_some() && arg.get_short() == short)
    };
    command.get_arguments().find(is_it).is_some_and(|arg| arg.get_action().takes_values())
}

/// The key of a setting of the target; `None`: it names a device, `loop:1g`.
fn key_of(text: &str) -> Option<String> {
    text.split_once('=').map(|(key, _)| key.trim()).and_then(target_key)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn options_with_values_are_known() {
        for (word, takes) in
            [("--name", true), ("-t", true), ("-q", false), ("--plan", false), ("a.fio", false), ("-", false)]
        {
            assert_eq!(super::takes_a_value(word), takes, "{word}");
        }
    }

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: super::Args,
    }

    #[test]
    fn the_parts_of_a_recipe_share_its_time() {
        let args = Line::parse_from(["run", "journal-flush", "--time-budget", "10m"]).args;
        let budget = |parts: usize| args.with_share_of_time(parts).asked.time_budget.unwrap();
        assert_eq!((budget(1), budget(2)), ("10m".to_owned(), "300.000s".to_owned()));
    }

    #[test]
    fn a_kernel_is_no_device() {
        let of = |words: &[&str]| {
            let args = Line::parse_from([&["run", "journal-flush"][..], words].concat()).args;
            (args.names_a_device() || args.names_the_place(), args.names_a_kernel())
        };
        assert_eq!(of(&[]), (false, false));
        assert_eq!(of(&["--vary", "kernel=a,b"]), (false, true));
        assert_eq!(of(&["--vary", "target.kernel=a,b", "-t", "fs=xfs"]), (false, true));
        assert_eq!(of(&["-t", "loop:1g", "--source", "linux"]), (true, true));
        assert_eq!(of(&["--vary", "device=loop:1g,zram:1g"]), (true, false));
        assert_eq!(of(&["--vary", "kernel=host,a"]), (true, true));
        assert_eq!(of(&["--vary", "design=all", "--source", "linux"]), (true, true));
        assert_eq!(of(&["--vary", "design=all"]), (false, false));
    }

    #[test]
    fn the_short_help_has_80_lines_at_most() {
        let mut command = crate::cli::CommandLine::command().term_width(80);
        command.build();
        let run = command.find_subcommand_mut("run").unwrap();
        let (short, long) = (run.render_help().to_string(), run.render_long_help().to_string());
        assert!(short.lines().count() <= 80, "{} lines:\n{short}", short.lines().count());
        for option in [
            "--vary", "--target", "--rounds", "--time-budget", "--primary", "--plan", "--destroy",
            "assay run --help",
        ] {
            assert!(short.contains(option), "{option}:\n{short}");
        }
        assert!(
            long.contains("--keep-disturbed")
                && long.contains("nr_requests")
                && !short.contains("--keep-disturbed")
        );
    }

    #[test]
    fn examples_of_the_help_are_whole() {
        let mut command = crate::cli::CommandLine::command().term_width(200);
        command.build();
        let run = command.find_subcommand_mut("run").unwrap();
        let help = run.render_long_help().to_string();
        let example = "-- pgbench -c '${c}' -T 10\n";
        assert!(help.contains(example), "{help}");
        for part in command.get_subcommands_mut() {
            let help = part.render_long_help().to_string();
            let examples = help.lines().filter(|line| line.starts_with("  assay "));
            for line in examples.filter(|line| line.contains('\'')) {
                assert_eq!(line.matches('\'').count() % 2, 0, "{line}");
            }
        }
    }
}
