//! The table of launchers: where trials run, and what that means for everyone who looks at this machine beforehand.
//!
//! Enters: nothing. Leaves: a [`LauncherKind`] with its [`LauncherDescriptor`]. Which one a trial needs is said by the settings of its
//! target (`TargetSettings::launcher` of `experiment`); how it is done is `launch`'s, whose `everywhere.rs` has a match without a wildcard.

use super::program::Program;

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LauncherDescriptor {
    /// Whether the machine is another one: it has its own devices, files, filesystems and rights, and none of this machine's.
    pub elsewhere: bool,
    /// Whether the machine is made for the run: everything on it may be overwritten, and nothing of it lasts longer than a round.
    pub made_for_the_run: bool,
    /// Programs of this machine that it takes.
    pub programs: &'static [Program],
}

/// Where a trial runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LauncherKind {
    /// On this machine.
    Local,
    /// In a virtual machine.
    Guests,
}

impl LauncherKind {
    /// All of them.
    pub const ALL: [LauncherKind; 2] = [LauncherKind::Local, LauncherKind::Guests];

    /// What there is to say about it.
    #[must_use]
    pub const fn descriptor(self) -> LauncherDescriptor {
        match self {
            LauncherKind::Local => {
                LauncherDescriptor { elsewhere: false, made_for_the_run: false, programs: &[] }
            }
            LauncherKind::Guests => LauncherDescriptor {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_here_may_be_overwritten_because_it_was_made_for_the_run() {
        for row in LauncherKind::ALL.map(LauncherKind::descriptor) {
            assert!(row.elsewhere || !row.made_for_the_run, "{row:?}");
        }
        assert!(!LauncherKind::Local.descriptor().elsewhere);
    }
}
