//! `assay run --more N RUN`: rounds added to a finished run whose interval holds at any number of looks.
//!
//! Enters: how many rounds, the stored run. Leaves: a prepared run that ends N rounds later than it did, and the same in
//! the store, sealed anew where its seal was right. How it goes on is the way of `--resume`.

use super::args::Args;
use super::extended::Extended;
use super::prepare::Prepared;
use crate::analyse;
use crate::cli::Failure;
use crate::cli::database::wrong;
use crate::record::Run;
use crate::store::Store;

/// More rounds than this are taken for a mistake.
const MOST_ROUNDS: u32 = 10_000;

/// What `--more` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More {
    /// Rounds to add.
    pub(super) rounds: u32,
    /// The run.
    pub(super) run: i64,
}

impl More {
    /// From the command line; `None`: not asked for.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: no such number of rounds, no such run.
    pub(super) fn asked(args: &Args, store: &Store) -> Result<Option<More>, Failure> {
        let [rounds, run] = &args.more[..] else { return Ok(None) };
        let possible = rounds.parse::<u32>().ok().filter(|rounds| (1..=MOST_ROUNDS).contains(rounds));
        let rounds = possible.ok_or_else(|| {
            Failure::request(format!("--more is {rounds} rounds; write 1 to {MOST_ROUNDS}"))
                .hint("--more N RUN: first the number of rounds, then that of the run")
        })?;
        Ok(Some(More { rounds, run: args.database.number(store, run)? }))
    }
}

/// Moves the end of a prepared run.
pub(super) fn extend(prepared: &mut Prepared, more: More) {
    let done = analyse::progress(&prepared.run, &analyse::Options::default()).rounds;
    let end = done + more.rounds;
    prepared.plan.stop.max_rounds = end;
    prepared.run.design.stop.max_rounds = end;
    prepared.run.design.extended = true;
    if let Some(stored) = prepared.run.experiment.pointer_mut("/stop/max_rounds") {
        *stored = end.into();
    }
}

/// Keeps the new end in the store.
///
/// # Errors
/// A [`Failure`]: the store cannot be written.
pub(super) fn keep(store: &Store, run: &Run, id: i64, extended: Extended) -> Result<(), Failure> {
    let devices = store.devices(id).map_err(|error| wrong(&error))?;
    let seal = extended.sealed.then(|| super::trust::seal(run, &devices));
    store.set_design(id, &run.design, &run.experiment, seal.as_deref()).map_err(|error| wrong(&error))
}
