//! `assay metrics`: the metrics of a run, or those that a job will report.
//!
//! Enters: a run, or a job or experiment file. Leaves: a line a metric with its section, unit and good direction, as
//! `--primary` and `--metrics` take them.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::Failure;
use super::database::Database;
use crate::analyse::metrics_of;
use crate::experiment::{CommandLine, Experiment};
use crate::import::may_be_export;
use crate::plan::{MetricNames, Plan};
use crate::record::{Metric, Sample};
use crate::sys::terminal::visible_line;
use crate::units::{Better, Unit};

/// Options of `assay metrics`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  assay metrics latest                    what the newest run has measured
  assay metrics job.fio                   what a job will report
  assay metrics job.fio --engine fio      the same through real fio
  assay metrics job.fio --vary bs=4k      of a job with ${bs}
  assay run job.fio --vary bs=4k,8k --primary wal:sync.lat_ns.p99

A * in the name stands for a word that only a run tells, e.g. an operation of dbench.")]
pub struct Args {
    /// Number or name of a stored run, `latest`, an exported file; or a job or experiment file
    #[arg(value_name = "RUN|JOB")]
    run: String,
    /// The engine that would run the job
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// As for `assay run`: gives a ${KEY} in the job its levels, or sets options
    #[arg(long, short = 'v', value_name = "KEY=LEVEL,LEVEL…")]
    vary: Vec<String>,
    /// As for `assay run`: what the job would work on
    #[arg(long, short = 't', value_name = "DEVICE|KEY=VALUE")]
    target: Vec<String>,
    #[command(flatten)]
    database: Database,
}

/// Prints the list.
///
/// # Errors
/// No such run or file, or a job whose metrics only a run shows.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let path = Path::new(&args.run);
    let is_job = path.is_file() && !may_be_export(path);
    let of_jobs = args.engine.is_some() || !args.vary.is_empty() || !args.target.is_empty();
    let mut metrics = if is_job || of_jobs {
        of_job(path, args)?
    } else {
        metrics_of(&args.database.load_for_report(&args.run)?)
    };
    // A name out of a store of somebody else's is no second line of the table.
    for metric in &mut metrics {
        metric.job = visible_line(&metric.job).into_owned();
        metric.name = visible_line(&metric.name).into_owned();
    }
    let mut out = crate::sys::terminal::out();
    let wide = |text: fn(&Metric) -> &str, least: usize| {
        metrics.iter().map(|metric| text(metric).chars().count()).max().unwrap_or(0).max(least)
    };
    let (section, name) = (wide(section_of, 7), wide(|metric| &metric.name, 6));
    let unit = wide(|metric| metric.unit.symbol(), 4);
    writeln!(out, "{:<section$}  {:<name$}  {:<unit$}  better", "section", "metric", "unit")?;
    for metric in &metrics {
        let better = metric.better.word();
        let line = format!(
            "{:<section$}  {:<name$}  {:<unit$}  {better}",
            section_of(metric),
            metric.name,
            metric.unit.symbol()
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A dash for what is counted of the whole trial.
fn section_of(metric: &Metric) -> &str {
    if metric.job.is_empty() { "-" } else { &metric.job }
}

/// What the job's trials will report, whatever is varied.
fn of_job(file: &Path, args: &Args) -> Result<Vec<Metric>, Failure> {
    let line = CommandLine {
        // One level is enough: nothing is compared.
        aa: args.vary.iter().all(|vary| !vary.contains(',')),
        vary: args.vary.clone(),
        target: args.target.clone(),
        engine: args.engine.clone(),
        ..CommandLine::default()
    };
    let experiment =
        Experiment::load(file, &line).map_err(|errors| Failure::request(&errors).hint(&errors.hint))?;
    let plan = Plan::new(&experiment, 0, Path::new("/"), "metrics")
        .map_err(|error| Failure::request(&error).hint(&error.hint))?;
    let names = MetricNames::of(&experiment, &plan.cells).ok_or_else(|| {
        Failure::request(format!(
            "the metrics of engine {} are known only from a run",
            experiment.engine.name()
        ))
        .hint("run it with --rounds 1, then `assay metrics latest`")
    })?;
    let metric = |(section, name): (&str, &str)| {
        let metric = Sample::new(section, name, unit_of(name), 0.0).metric;
        match name {
            // More merging and longer rows of neighbours are what a device likes.
            "blocks.merge_ratio" | "blocks.sequential_share" => Metric { better: Better::Higher, ..metric },
            _ => metric,
        }
    };
    Ok(names.iter().map(metric).collect())
}

/// The unit that a metric of assay's own has.
fn unit_of(name: &str) -> Unit {
    if let Some(counted) = name.strip_suffix("_per_op").or_else(|| name.strip_suffix("_per_byte")) {
        let unit = unit_of(counted);
        // Bytes for a byte are a plain number.
        return if unit == Unit::Bytes && name.ends_with("_per_byte") { Unit::Count } else { unit };
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    match last {
        _ if name.contains("_ns.") => Unit::Nanoseconds,
        _ if [".q2i.", ".i2d.", ".d2c.", ".q2c."].iter().any(|stage| name.contains(stage)) => Unit::Seconds,
        "read_request_size" | "write_request_size" => Unit::Bytes,
        "bw" => Unit::BytesPerSecond,
        "iops" => Unit::PerSecond,
        "runtime" | "job_runtime" | "usr_cpu" | "sys_cpu" | "busy" | "read_time" | "write_time"
        | "queue_time" | "flush_time" | "user_time" | "kernel_time" | "wait_time" | "longest" | "wall"
        | "run_wait" | "storage_wait" | "wakeup_time" | "steal" => Unit::Seconds,
        "sleep_time" | "storage_time" | "idle_time" | "preempted_time" | "audit_first_violation" => {
            Unit::Seconds
        }
        "owner_changes_per_mib" => Unit::Other("/MiB".to_owned()),
        "max_rss" => Unit::Bytes,
        other if other.ends_with("_bytes") => Unit::Bytes,
        _ => Unit::Count,
    }
}
