//! `assay`: an A/B laboratory for the Linux storage path.
//!
//! Data goes one way: experiment → plan → run (launch → engine + observers on a target) → record →
//! store → analyse → report. `run` prints nothing and knows no statistics; `analyse` reads
//! records only. The layers and the only edges allowed between them (checked by `tests/it/layers.rs`):
//!
//! ```text
//! units, stats, sys → nothing         workload → units, sys          record → units, workload
//! catalog → record, units, workload   experiment → catalog, units, workload, sys
//! plan → experiment, catalog, workload                               host → record, units, sys
//! target → host, experiment, catalog, sys                            engine → catalog, workload, record, units, sys
//! observe → catalog, record, host, trace, sys, units
//! launch → engine, catalog, observe, target, record, host, sys
//! run → plan, launch, catalog, host, record
//! store → record                      import → catalog, record, units, sys
//! analyse → record, stats, units      history → analyse, record, stats
//! report → analyse, history, record, units, sys
//! trace → sys                         probe → units               kernel_build → sys
//! cli → all
//! ```

#[macro_use]
mod named;

pub mod analyse;
pub mod catalog;
pub mod cli;
pub mod engine;
pub mod experiment;
pub mod history;
pub mod host;
pub mod import;
pub mod kernel_build;
pub mod launch;
pub mod observe;
pub mod plan;
pub mod probe;
pub mod record;
pub mod report;
pub mod run;
pub mod stats;
pub mod store;
pub mod sys;
pub mod target;
pub mod trace;
pub mod units;
pub mod workload;
