//! What an attacker with a store, a directory, a name or a signal to offer can do: nothing. A module a class of attacks; docs/SAFETY.md
//! names the test of each line of its table.

mod appearing;
mod devices;
mod endings;
mod forged;
mod full_disk;
mod inputs_outputs;
mod job_options;
mod liveness;
mod page;
mod stores;
mod stores_forged;
mod stores_together;
mod terminal;
mod trust;
mod victims;

pub(crate) use victims::sql;
