//! All launchers as one: each trial runs where the settings of its target say.
//!
//! Enters: the requests of all cells, then one trial's after the other. Leaves: their replies. It must not know how any of the
//! launchers works.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{Forecast, Guests, LaunchError, Launcher, Local, Reply, Request, Unready};
use crate::catalog::LauncherKind;
use crate::record::HostFacts;

/// The launchers, in the order of [`LauncherKind::ALL`].
struct Everywhere {
    launchers: Vec<(LauncherKind, Box<dyn Launcher>)>,
}

/// Runs each trial where its target is.
///
/// # Errors
/// The system's words when the program that is running now cannot be found.
pub fn everywhere() -> std::io::Result<Box<dyn Launcher>> {
    let launchers = LauncherKind::ALL.iter().map(|kind| of(*kind).map(|launcher| (*kind, launcher)));
    Ok(Box::new(Everywhere { launchers: launchers.collect::<std::io::Result<_>>()? }))
}

/// The launcher of that kind. There is no wildcard, so that the compiler asks for each in the table of kinds.
fn of(kind: LauncherKind) -> std::io::Result<Box<dyn Launcher>> {
    match kind {
        LauncherKind::Local => Ok(Box::new(Local::new()?)),
        LauncherKind::Guests => Ok(Box::new(Guests::new())),
    }
}

impl Everywhere {
    fn wanted(&mut self, request: &Request) -> Option<&mut Box<dyn Launcher>> {
        let its = request.target.launcher();
        self.launchers.iter_mut().find(|(kind, _)| *kind == its).map(|(_, launcher)| launcher)
    }
}

impl Launcher for Everywhere {
    fn launch(&mut self, request: &Request, cancelled: &AtomicBool) -> Result<Reply, LaunchError> {
        match self.wanted(request) {
            Some(launcher) => launcher.launch(request, cancelled),
            None => Ok(Reply::failed("no launcher knows where this trial is to run", String::new())),
        }
    }

    fn expect(&mut self, request: &Request) -> Result<(), Unready> {
        self.launchers.iter_mut().try_for_each(|(_, launcher)| launcher.expect(request))
    }

    fn goes_on(&mut self, earlier: &HostFacts) -> Result<(), Unready> {
        self.launchers.iter_mut().try_for_each(|(_, launcher)| launcher.goes_on(earlier))
    }

    fn check(&mut self, place: &Path) -> Result<(), Unready> {
        self.launchers.iter_mut().try_for_each(|(_, launcher)| launcher.check(place))
    }

    fn forecast(&self) -> Option<Forecast> {
        self.launchers.iter().find_map(|(_, launcher)| launcher.forecast())
    }

    /// Of all launchers one keeps something within a round, and looks at what is left.
    fn round_goes_on(&mut self, left: &mut dyn Iterator<Item = Request>) {
        self.launchers.iter_mut().for_each(|(_, launcher)| launcher.round_goes_on(left));
    }

    fn round_ends(&mut self) {
        self.launchers.iter_mut().for_each(|(_, launcher)| launcher.round_ends());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Answer, EngineKind, PROTOCOL, Setup, TargetSpec, Task};

    /// Says where it was launched, and nothing else.
    struct Named(LauncherKind);

    impl Launcher for Named {
        fn launch(&mut self, _: &Request, _: &AtomicBool) -> Result<Reply, LaunchError> {
            Ok(Reply::failed(format!("{:?}", self.0), String::new()))
        }
    }

    #[test]
    fn a_trial_runs_where_its_target_says() {
        let named = |kind: &LauncherKind| (*kind, Box::new(Named(*kind)) as Box<dyn Launcher>);
        let mut all = Everywhere { launchers: LauncherKind::ALL.iter().map(named).collect() };
        let mut place = |setup: Option<Setup>| {
            let request = Request {
                protocol: PROTOCOL,
                engine: EngineKind::Null,
                task: Task::default(),
                target: TargetSpec { setup, ..TargetSpec::default() },
                rehearsal: false,
                observe: Vec::new(),
                before: None,
                after: None,
            };
            match all.launch(&request, &AtomicBool::new(false)).map(|reply| reply.answer) {
                Ok(Answer::Failed { reason, .. }) => reason,
                other => format!("{other:?}"),
            }
        };
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("vmlinuz"), "x").unwrap();
        let mut booted = Setup::default();
        booted.settings.set("kernel", "vmlinuz", directory.path()).unwrap();
        assert_eq!(
            [None, Some(Setup::default()), Some(booted)].map(&mut place),
            ["Local", "Local", "Guests"]
        );
    }
}
