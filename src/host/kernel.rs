//! Facts of the kernel: release, command line, mitigations, clock source, io_uring, debugging that slows it down.

use super::roots::{Roots, chosen, names};
use crate::record::HostFacts;

pub(super) fn add(roots: &Roots, facts: &mut HostFacts) {
    let plain = [
        ("kernel.release", "sys/kernel/osrelease"),
        ("kernel.version", "sys/kernel/version"),
        ("kernel.cmdline", "cmdline"),
    ];
    for (name, path) in plain {
        facts.set_known(name, roots.proc(path));
    }
    if let Some(counted) = roots.proc("sys/kernel/task_delayacct") {
        facts.set("kernel.delay_accounting", if counted == "1" { "on" } else { "off" });
    }
    facts.set_known("kernel.mitigations", mitigations(roots));
    // These exist only in kernels built with lock debugging or leak checking.
    let debugging: Vec<&str> = [("lockdep", "lockdep_stats"), ("lock statistics", "lock_stat")]
        .into_iter()
        .filter(|(_, path)| roots.proc.join(path).exists())
        .map(|(name, _)| name)
        .collect();
    if !debugging.is_empty() {
        facts.set("kernel.debugging", debugging.join(", "));
    }
    let clock = "devices/system/clocksource/clocksource0";
    facts.set_known("clocksource", roots.sys(&format!("{clock}/current_clocksource")));
    facts.set_known("clocksource.available", roots.sys(&format!("{clock}/available_clocksource")));
    let io_uring = match roots.proc("sys/kernel/io_uring_disabled").as_deref() {
        Some("0") => Some("usable"),
        Some("1") => Some("restricted (kernel.io_uring_disabled=1)"),
        Some("2") => Some("disabled (kernel.io_uring_disabled=2)"),
        _ => None,
    };
    facts.set_known("io_uring", io_uring);
    if let Some(text) = roots.sys("kernel/sched/preempt").or_else(|| roots.sys("kernel/debug/sched/preempt"))
    {
        facts.set("kernel.preempt", chosen(&text.replace('(', "[").replace(')', "]")));
    }
}

/// `meltdown=PTI, spectre_v2=Retpolines; vulnerable: mds`; what the processor is not affected by is left out.
fn mitigations(roots: &Roots) -> Option<String> {
    let directory = roots.sys.join("devices/system/cpu/vulnerabilities");
    let (mut mitigated, mut vulnerable) = (Vec::new(), Vec::new());
    let all = names(&directory);
    for name in &all {
        let text = super::roots::text(&directory.join(name)).unwrap_or_default();
        if let Some(how) = text.strip_prefix("Mitigation: ") {
            mitigated.push(format!("{name}={}", how.split([';', ',']).next().unwrap_or(how).trim()));
        } else if text.starts_with("Vulnerable") {
            vulnerable.push(name.clone());
        }
    }
    let mut parts = Vec::new();
    if !mitigated.is_empty() {
        parts.push(mitigated.join(", "));
    }
    if !vulnerable.is_empty() {
        parts.push(format!("vulnerable: {}", vulnerable.join(", ")));
    }
    if all.is_empty() {
        return None;
    }
    Some(if parts.is_empty() { "none needed".to_owned() } else { parts.join("; ") })
}

/// What really happens when a ring is asked for: a container's filter refuses it where the sysctl allows it.
pub(super) fn try_io_uring() -> String {
    match io_uring::IoUring::new(2) {
        Ok(_) => "usable".to_owned(),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => "not in this kernel (ENOSYS)".to_owned(),
        Err(error) => {
            let disabled = Roots::default().proc("sys/kernel/io_uring_disabled");
            match disabled.as_deref() {
                Some(level @ ("1" | "2")) => format!("disabled (kernel.io_uring_disabled={level})"),
                _ => format!("refused ({error})"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn mitigations_are_one_line() {
        let directory = "sys/devices/system/cpu/vulnerabilities";
        let root = tree(&[
            (&format!("{directory}/meltdown"), "Mitigation: PTI\n"),
            (&format!("{directory}/spectre_v2"), "Mitigation: Retpolines; IBPB: conditional\n"),
            (&format!("{directory}/mds"), "Vulnerable: Clear CPU buffers attempted\n"),
            (&format!("{directory}/l1tf"), "Not affected\n"),
            ("proc/sys/kernel/io_uring_disabled", "2\n"),
            ("proc/sys/kernel/task_delayacct", "0\n"),
            ("proc/lockdep_stats", " lock-classes: 1\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ]);
        let mut facts = HostFacts::default();
        add(&Roots::under(root.path()), &mut facts);
        assert_eq!(
            facts.get("kernel.mitigations"),
            Some("meltdown=PTI, spectre_v2=Retpolines; vulnerable: mds")
        );
        assert_eq!(facts.get("io_uring"), Some("disabled (kernel.io_uring_disabled=2)"));
        assert_eq!(facts.get("kernel.debugging"), Some("lockdep"));
        assert_eq!(facts.get("kernel.delay_accounting"), Some("off"));
        assert_eq!(facts.get("clocksource"), Some("hpet"));
    }
}
