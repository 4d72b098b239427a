//! Whether others use this machine when a run begins: said before the first trial, waited for where that is asked, and kept.
//!
//! Enters: a prepared run and how long may be waited. Leaves: a fact of the run, from which reports say it.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::conduct::Conduct;
use super::prepare::Prepared;
use crate::catalog::Reaches;
use crate::cli::Failure;
use crate::engine::EngineKind;
use crate::experiment::Device;
use crate::host::{Limits, Moment};
use crate::launch::Forecast;
use crate::plan::{CellSpec, Expected};
use crate::record::BUSY;
use crate::report::wrapped;
use crate::sys::terminal::err;
use crate::units::pretty_duration;

/// A machine is quiet when this many looks in a row find nothing.
const QUIET_LOOKS: u32 = 3;
/// Between two looks.
const STEP: Duration = Duration::from_millis(500);
/// What it waits for is said this often.
const TOLD: Duration = Duration::from_secs(30);
/// Rounds that are run for one that counts where more is stolen or read now than the rule allows: between none that is lost and
/// all of them, of which as many as were wanted are made up for.
const ROUNDS_ON_A_BUSY_MACHINE: f64 = 1.4;
/// `0`: a run does not look at the machine, for tests, which share theirs. Only debug builds read it.
const LOOK_VARIABLE: &str = "ASSAY_TEST_LOOK";

/// What trials will probably wait for, and lose to others, as busy as the machine is now, and what makes it busy.
pub(super) fn outlook(prepared: &Prepared) -> (Expected, Option<String>) {
    if measures(prepared) { of(prepared, &moment(&places(prepared))) } else { (Expected::default(), None) }
}

fn of(prepared: &Prepared, moment: &Moment) -> (Expected, Option<String>) {
    let asked = prepared.surroundings.targets.first().and_then(|target| target.settle_ms);
    let cells = &prepared.plan.cells;
    // What a device of assay's own does is known.
    let makes = cells.iter().all(|cell| cell.target.makes());
    let patience_s = asked.map_or(2.0, |ms| ms as f64 / 1e3);
    let wait_s = if makes { 0.0 } else { moment.expected_wait_s(patience_s) };
    let reads = cells.iter().any(|cell| cell.engine.descriptor().reaches == Reaches::JobFiles) && !makes;
    let lost = !prepared.keep_disturbed && moment.disturbs(&Limits::default(), reads);
    let rounds_for_one = if lost { ROUNDS_ON_A_BUSY_MACHINE } else { 1.0 };
    (Expected { wait_s, rounds_for_one, ..Expected::default() }, moment.busy())
}

/// What the machine does now; a burst alone would be taken for all the time to come.
fn moment(places: &[PathBuf]) -> Moment {
    let first = Moment::look(places);
    let busy = first.busy().is_some() || first.expected_wait_s(2.0) > 0.1;
    if busy { Moment::look_longer(places) } else { first }
}

/// The same with what guests take.
pub(super) fn with_guests(expected: Expected, ahead: Option<&Forecast>) -> Expected {
    let Some(ahead) = ahead else { return expected };
    Expected {
        first_boots_s: match (ahead.once, ahead.again) {
            (true, _) => ahead.boot_s,
            (false, true) => f64::from(ahead.guests) * ahead.boot_s,
            (false, false) => 0.0,
        },
        boots_s: if ahead.once { 0.0 } else { f64::from(ahead.guests) * ahead.boot_s },
        in_guest_s: Some(ahead.trial_s),
        emulated: ahead.emulated,
        ..expected
    }
}

/// Whether anything is measured that others could disturb.
fn measures(prepared: &Prepared) -> bool {
    let unwanted = cfg!(debug_assertions) && std::env::var_os(LOOK_VARIABLE).is_some_and(|look| look == "0");
    let real = |(kind, _): &(EngineKind, _)| !matches!(kind, EngineKind::Simulated | EngineKind::Null);
    !unwanted && prepared.engines.iter().any(real)
}

/// A place on each device that is measured: the devices that are named, or that of the files; none where all are made of memory.
fn places(prepared: &Prepared) -> Vec<PathBuf> {
    let is_memory = |device: &Device| matches!(device, Device::Made { kind, .. } if kind.is_in_memory());
    let in_memory = |cell: &CellSpec| cell.target.device.is_some() && cell.target.devices().all(is_memory);
    if prepared.plan.cells.iter().all(in_memory) {
        return Vec::new();
    }
    let named = |device: &Device| match device {
        Device::Block(path) => Some(path.clone()),
        _ => None,
    };
    let here = prepared.plan.cells.iter().filter(|cell| !cell.target.is_elsewhere());
    let named: Vec<PathBuf> = here.flat_map(|cell| cell.target.devices().filter_map(named)).collect();
    if !named.is_empty() {
        return named;
    }
    let elsewhere = prepared.surroundings.targets.first().and_then(|target| target.elsewhere.clone());
    elsewhere.or_else(|| Some(prepared.work.first()?.parent()?.to_owned())).into_iter().collect()
}

/// Looks at the machine, waits where that is asked, and says and keeps what is left of it.
///
/// # Errors
/// A [`Failure`]: interrupted while it waited.
pub(super) fn look(
    conduct: &Conduct<'_>,
    prepared: &mut Prepared,
    cancelled: &AtomicBool,
) -> Result<(), Failure> {
    if !measures(prepared) {
        return Ok(());
    }
    let places = places(prepared);
    let (expected, mut busy) = of(prepared, &moment(&places));
    prepared.expected = expected;
    if busy.is_some() && !conduct.patience.is_zero() {
        busy = waited(conduct, &places, cancelled)?;
        if busy.is_none() {
            prepared.expected = Expected::default();
        }
    }
    if let Some(why) = busy {
        if !conduct.quiet && !conduct.busy_told {
            let said = format!(
                "busy machine: {why}; differences will need more rounds, or will not show. --wait-idle 10m waits for a quiet one"
            );
            let _ = writeln!(err(), "{}", wrapped(&said, "  "));
        }
        match prepared.run.id {
            None => prepared.facts.push((BUSY, why)),
            Some(_) => {
                prepared.run.notes.push(format!("the machine was busy when the run went on: {why}").into());
            }
        }
    }
    Ok(())
}

/// Waits for some quiet looks in a row; returns what keeps the machine busy when the time is over.
fn waited(
    conduct: &Conduct<'_>,
    places: &[PathBuf],
    cancelled: &AtomicBool,
) -> Result<Option<String>, Failure> {
    let (begun, patience) = (Instant::now(), conduct.patience);
    let (mut quiet, mut told, mut last) = (0, None::<Instant>, None);
    while quiet < QUIET_LOOKS {
        if cancelled.load(Ordering::SeqCst) {
            return Err(Failure::interrupted(
                "interrupted while it waited for a quiet machine; nothing was begun",
            ));
        }
        match Moment::look(places).busy() {
            None => quiet += 1,
            Some(why) => {
                quiet = 0;
                if !conduct.quiet && told.is_none_or(|told| told.elapsed() >= TOLD) {
                    let left = pretty_duration(patience.saturating_sub(begun.elapsed()).as_secs_f64());
                    let said = format!("waiting for a quiet machine, up to {left} more: {why}");
                    let _ = writeln!(err(), "{}", wrapped(&said, "  "));
                    told = Some(Instant::now());
                }
                last = Some(why);
            }
        }
        if quiet < QUIET_LOOKS && begun.elapsed() >= patience {
            return Ok(last);
        }
        std::thread::sleep(STEP);
    }
    Ok(None)
}
