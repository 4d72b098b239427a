//! What does the I/O: one file an engine behind one contract. `dyn Engine` is called once a trial.
//!
//! Enters: a [`Task`]. Leaves: an [`Outcome`](crate::record::Outcome). What an engine cannot do is [`EngineError::Unsupported`]:
//! another engine is never used in its place. It must not know targets, rounds or the store.

mod child;
pub mod command;
pub mod dbench;
mod file_changes;
pub mod fio;
pub mod fs_mark;
mod guard;
mod native;
mod phase;
pub mod simulated;
mod task;
mod tool;
pub mod xfs_io;

pub use crate::catalog::EngineKind;
pub use task::{Engine, EngineError, Probe, SimulatedCell, Task};

/// The engine of that kind. There is no wildcard, so that the compiler asks for each engine in the table of kinds.
#[must_use]
pub fn of(kind: EngineKind) -> Box<dyn Engine> {
    match kind {
        EngineKind::Simulated => Box::new(simulated::Simulated),
        EngineKind::Null => Box::new(native::Native::new(true)),
        EngineKind::Bare => Box::new(native::Bare),
        EngineKind::Native => Box::new(native::Native::new(false)),
        EngineKind::Fio => Box::new(fio::Fio),
        EngineKind::Command => Box::new(command::Command),
        EngineKind::Dbench => Box::new(dbench::Dbench),
        EngineKind::FsMark => Box::new(fs_mark::FsMark),
        EngineKind::XfsIo => Box::new(xfs_io::XfsIo),
    }
}

/// Whether the task's job reads before anything was written, as far as it has a meaning to the native engine.
#[must_use]
pub fn reads_first(task: &Task) -> bool {
    native::reads_first(task)
}

/// Whether all that the task's job writes is random bytes, which no compression makes smaller, as far as it has a meaning to the native
/// engine.
#[must_use]
pub fn writes_random_bytes(task: &Task) -> bool {
    native::writes_random_bytes(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_says_its_version_or_how_to_get_it() {
        for kind in EngineKind::ALL {
            let package =
                kind.descriptor().program.map(|program| format!("apt-get install {}", program.package));
            match (of(*kind).probe(), package) {
                (Ok(probe), package) => {
                    assert!(!probe.version.is_empty());
                    assert_eq!(probe.path.is_some(), package.is_some(), "{}", kind.name());
                }
                (Err(error), Some(package)) => assert!(error.to_string().contains(&package), "{error}"),
                (Err(error), None) => panic!("{}: {error}", kind.name()),
            }
        }
    }

    #[test]
    fn each_setting_is_known_to_its_engine() {
        for kind in EngineKind::with_settings() {
            let file = format!("{}/src/engine/{}.rs", env!("CARGO_MANIFEST_DIR"), kind.name());
            let source = std::fs::read_to_string(&file).unwrap();
            let program = source.split("#[cfg(test)]").next().unwrap();
            for key in kind.setting_names() {
                assert!(program.contains(&format!("\"{key}\"")), "{file}: {key}");
            }
        }
    }
}
