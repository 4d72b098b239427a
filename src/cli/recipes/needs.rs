//! What an experiment needs of the machine: rights, programs with their packages, kernels, drivers.
//!
//! Enters: an experiment. Leaves: its needs in words, and all of them that are missing in one message.

use crate::catalog::Program;
use crate::cli::Failure;
use crate::experiment::{Device, Experiment, TargetSettings};
use crate::host::may_administer;
use crate::launch::{newest_kernel, readable_copy, unreadable_kernel};
use crate::sys::find_system_program;

/// How to get the source of one where there is none.
pub(in crate::cli) const SOURCE_HINT: &str = "fetch Debian's, which installs nothing: \
     mkdir -p ~/.cache/assay/kernels && cd ~/.cache/assay/kernels\n      \
     apt-get download linux-source-6.12\n      \
     or name yours: --source TREE";
/// How to get a kernel where there is none.
const KERNEL_HINT: &str = "fetch Debian's, which installs nothing: \
     mkdir -p ~/.cache/assay/kernels && cd ~/.cache/assay/kernels\n      \
     apt-get download $(LC_ALL=C apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: //p')\n      \
     or give one: --target kernel=FILE";

/// That there is no kernel to boot.
pub(in crate::cli) fn no_kernel() -> Failure {
    let [reason, hint] = without_kernel();
    Failure::request(reason).hint(hint)
}

/// Why there is none, and how to get one.
fn without_kernel() -> [String; 2] {
    match unreadable_kernel() {
        None => ["no kernel is found to boot".to_owned(), KERNEL_HINT.to_owned()],
        Some(path) => [
            format!("no kernel is found to boot that this user may read: {} is its owner's", path.display()),
            readable_copy(&path),
        ],
    }
}

/// One thing needed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Need {
    /// The rights to make devices and filesystems.
    Root,
    /// A kernel to boot.
    Kernel,
    /// A program.
    Program(Program),
    /// A device or filesystem of the running kernel.
    Offered(&'static str),
}

fn all(experiment: &Experiment) -> Vec<Need> {
    let mut found = Vec::new();
    for target in experiment.targets_asked_for() {
        for need in of_target(&target) {
            if !found.contains(&need) {
                found.push(need);
            }
        }
    }
    let engine = experiment.engine.descriptor().program.map(Need::Program);
    found.extend(engine.filter(|need| !found.contains(need)));
    found
}

fn of_target(target: &TargetSettings) -> Vec<Need> {
    let launcher = target.launcher().descriptor();
    let mut needs = Vec::new();
    needs.extend(launcher.programs.iter().copied().map(Need::Program));
    if target.guest.kernel.is_some() {
        needs.push(Need::Kernel);
    }
    // Elsewhere there are other rights, devices and filesystems.
    if !launcher.elsewhere && (target.makes() || !target.knobs.is_empty()) {
        needs.push(Need::Root);
    }
    if let (false, Some(Device::Made { kind, .. })) = (launcher.elsewhere, &target.device) {
        needs.push(Need::Offered(kind.name()));
    }
    if let Some(fs) = target.fs {
        if !launcher.elsewhere {
            needs.push(Need::Offered(fs.name()));
        }
        needs.extend(fs.mkfs().map(|mkfs| Need::Program(mkfs.program)));
    }
    needs
}

/// In words: `root, zram and xfs in the running kernel, package xfsprogs`.
pub(super) fn needs(experiment: &Experiment) -> String {
    let (mut words, mut offered, mut packages) = (Vec::new(), Vec::new(), Vec::new());
    for need in all(experiment) {
        match need {
            Need::Root => words.push("root".to_owned()),
            Need::Kernel => {
                words.push("a kernel to boot in a guest (`assay help kernels`; no root)".to_owned());
            }
            Need::Program(Program { package, .. }) if !packages.contains(&package) => packages.push(package),
            Need::Program(..) => {}
            Need::Offered(name) => offered.push(name),
        }
    }
    if !offered.is_empty() {
        words.push(format!("{} in the running kernel", offered.join(" and ")));
    }
    if !packages.is_empty() {
        let many = if packages.len() > 1 { "s" } else { "" };
        words.push(format!("package{many} {}", packages.join(" ")));
    }
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

/// Refuses with all that this machine lacks.
///
/// # Errors
/// A [`Failure`] with exit code 2 that names it, and how to come by it.
pub(in crate::cli) fn missing(experiment: &Experiment) -> Result<(), Failure> {
    let (mut missing, mut packages, mut hints) = (Vec::new(), Vec::new(), Vec::new());
    for need in all(experiment) {
        match need {
            Need::Root if !may_administer() => {
                missing.push("making devices and filesystems needs root".to_owned());
                hints.push("run it with sudo".to_owned());
            }
            Need::Kernel if experiment.wants_newest_kernel() && newest_kernel().is_none() => {
                let [reason, hint] = without_kernel();
                missing.push(reason);
                hints.push(hint);
            }
            Need::Program(Program { name, package }) if find_system_program(name).is_none() => {
                missing.push(format!("there is no {name} (package {package})"));
                packages.push(package);
            }
            // What the kernel offers is looked at by the target itself, with its size.
            Need::Root | Need::Kernel | Need::Program(..) | Need::Offered(_) => {}
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    if !packages.is_empty() {
        hints.insert(0, format!("sudo apt-get install {}", packages.join(" ")));
    }
    let failure = Failure::request(missing.join("; "));
    Err(if hints.is_empty() { failure } else { failure.hint(hints.join("\n      ")) })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::CommandLine;

    fn of(target: &[&str]) -> Experiment {
        let line = CommandLine {
            target: target.iter().map(|text| (*text).to_owned()).collect(),
            ..CommandLine::default()
        };
        let text = "engine = \"dbench\"\n[[factor]]\nname = \"fs\"\nlevels = [\"xfs\", \"ext4\"]\n";
        Experiment::from_toml(text, "e.toml", Path::new(""), &line).unwrap()
    }

    #[test]
    fn needs_are_those_of_all_levels_once_each() {
        assert_eq!(
            needs(&of(&["loop:1g"])),
            "root, loop and xfs and ext4 in the running kernel, packages xfsprogs e2fsprogs dbench"
        );
        let guest = needs(&of(&["ram:1g", "kernel=newest"]));
        assert_eq!(
            guest,
            "a kernel to boot in a guest (`assay help kernels`; no root), \
             packages qemu-system-x86 xz-utils xfsprogs e2fsprogs dbench"
        );
    }
}
