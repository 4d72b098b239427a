//! The table of launchers: where trials run, and what that means for everyone who looks at this machine beforehand.
//!
//! Enters: nothing. Leaves: a [`LauncherKind`] with its [`LauncherDescriptor`]. Which settings a target has is `experiment`'s; how
//! a trial is run there is `launch`'s, whose `everywhere.rs` has a match without a wildcard.

use super::program::Program;
use super::table::table;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LauncherDescriptor {
    /// The setting of a target that asks for it, one of `GUEST_KEYS`; `None`: it is used where no setting asks for another.
    pub asked_by: Option<&'static str>,
    /// Whether the machine is another one: it has its own devices, files, filesystems and rights, and none of this machine's.
    pub elsewhere: bool,
    /// Whether the machine is made for the run: everything on it may be overwritten, and nothing of it lasts longer than a round.
    pub made_for_the_run: bool,
    /// Programs of this machine that it takes.
    pub programs: &'static [Program],
}

table! {
    /// Where a trial runs. Of two that the same settings ask for the first is used.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    LauncherKind of LauncherDescriptor {
        /// On this machine.
        Local = LauncherDescriptor { asked_by: None, elsewhere: false, made_for_the_run: false, programs: &[] },
        /// In a virtual machine.
        Guests = LauncherDescriptor {
            asked_by: Some("kernel"),
            elsewhere: true,
            made_for_the_run: true,
            programs: &[
                Program { name: "qemu-system-x86_64", package: "qemu-system-x86" },
                // Debian's modules are packed with it.
                Program { name: "xz", package: "xz-utils" },
            ],
        },
    }
}

impl LauncherKind {
    /// The launcher of a target, given which settings it has.
    #[must_use]
    pub fn of(has: &dyn Fn(&str) -> bool) -> LauncherKind {
        let asked = |kind: &&LauncherKind| kind.descriptor().asked_by.is_some_and(has);
        LauncherKind::ALL.iter().find(asked).copied().unwrap_or(LauncherKind::Local)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_for_the_run_lets_nothing_here_be_overwritten() {
        for row in LauncherKind::ALL.iter().map(|kind| kind.descriptor()) {
            assert!(row.elsewhere || !row.made_for_the_run, "{row:?}");
        }
        assert!(!LauncherKind::Local.descriptor().elsewhere);
    }

    #[test]
    fn a_trial_runs_here_unless_a_setting_asks_for_another_place() {
        assert_eq!(LauncherKind::of(&|_| false), LauncherKind::Local);
        assert_eq!(LauncherKind::of(&|key| key == "memory"), LauncherKind::Local);
        assert_eq!(LauncherKind::of(&|key| key == "kernel"), LauncherKind::Guests);
        let unasked = LauncherKind::ALL.iter().filter(|kind| kind.descriptor().asked_by.is_none());
        assert_eq!(unasked.collect::<Vec<_>>(), [&LauncherKind::Local]);
    }
}
