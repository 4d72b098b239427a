//! Limits that control groups put on this process: processor share, memory, I/O (versions 1 and 2). The tightest along
//! the path to the root counts; the group's own name is no fact, it differs between sessions.

use std::path::{Path, PathBuf};

use super::roots::{Roots, text};
use crate::record::HostFacts;

pub(super) fn add(roots: &Roots, facts: &mut HostFacts) {
    let membership = roots.proc("self/cgroup").unwrap_or_default();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let base = roots.sys.join("fs/cgroup");
        if controllers.is_empty() {
            let base = if base.join("unified").is_dir() { base.join("unified") } else { base };
            version_2(&base, path, facts);
        } else {
            version_1(&base, controllers, path, facts);
        }
    }
}

/// The group's directory and those above it, the root included.
fn upwards(base: &Path, path: &str) -> Vec<PathBuf> {
    Path::new(path.trim_start_matches('/')).ancestors().map(|part| base.join(part)).collect()
}

fn version_2(base: &Path, path: &str, facts: &mut HostFacts) {
    let groups = upwards(base, path);
    let read =
        |file: &str| -> Vec<String> { groups.iter().filter_map(|group| text(&group.join(file))).collect() };
    let cpus = read("cpu.max").into_iter().filter_map(|limit| {
        let (quota, period) = limit.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    set_least(facts, "cgroup.cpus", cpus);
    for file in ["memory.max", "memory.high"] {
        set_least(facts, &format!("cgroup.{file}"), read(file).iter().filter_map(|limit| limit.parse().ok()));
    }
    let io = read("io.max");
    if !io.is_empty() {
        facts.set("cgroup.io.max", io.join("; ").replace('\n', "; "));
    }
}

fn version_1(base: &Path, controllers: &str, path: &str, facts: &mut HostFacts) {
    let has = |name: &str| controllers.split(',').any(|controller| controller == name);
    // Usually mounted under the names of the controllers together, with a link for each.
    let groups = upwards(&base.join(controllers), path);
    let read =
        |file: &str| -> Vec<String> { groups.iter().filter_map(|group| text(&group.join(file))).collect() };
    if has("cpu") {
        let cpus = groups.iter().filter_map(|group| {
            let quota: f64 = text(&group.join("cpu.cfs_quota_us"))?.parse().ok()?;
            let period: f64 = text(&group.join("cpu.cfs_period_us"))?.parse().ok()?;
            (quota > 0.0).then_some(quota / period)
        });
        set_least(facts, "cgroup.cpus", cpus);
    }
    if has("memory") {
        // No limit is written as the largest number of pages.
        let limits = read("memory.limit_in_bytes").into_iter().filter_map(|limit| limit.parse::<f64>().ok());
        set_least(facts, "cgroup.memory.max", limits.filter(|bytes| *bytes < 9e18));
    }
    if has("blkio") {
        let files = ["read_bps_device", "write_bps_device", "read_iops_device", "write_iops_device"];
        let limits: Vec<String> = files
            .iter()
            .flat_map(|file| {
                read(&format!("blkio.throttle.{file}")).into_iter().map(move |t| format!("{file} {t}"))
            })
            .collect();
        if !limits.is_empty() {
            facts.set("cgroup.io.max", limits.join("; ").replace('\n', ", "));
        }
    }
}

fn set_least(facts: &mut HostFacts, name: &str, values: impl Iterator<Item = f64>) {
    let known = facts.get(name).and_then(|text| text.parse().ok());
    facts.set_known(name, values.chain(known).reduce(f64::min).map(|least| least.to_string()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(files: &[(&str, &str)]) -> Vec<(String, String)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut facts = HostFacts::default();
        add(&Roots::under(root.path()), &mut facts);
        facts.into_iter().collect()
    }

    fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_tightest_limit_of_version_2_counts() {
        let found = facts(&[
            ("proc/self/cgroup", "0::/user/job\n"),
            ("sys/fs/cgroup/user/job/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/user/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/user/job/memory.max", "max\n"),
            ("sys/fs/cgroup/user/memory.max", "1048576\n"),
            ("sys/fs/cgroup/user/job/io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=max\n"),
        ]);
        let io = "8:0 rbps=1048576 wbps=max riops=max wiops=max";
        assert_eq!(
            found,
            expected(&[("cgroup.cpus", "1.5"), ("cgroup.io.max", io), ("cgroup.memory.max", "1048576")])
        );
    }

    #[test]
    fn version_1_is_read_too_and_no_limit_is_no_fact() {
        let found = facts(&[
            ("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/\n3:blkio:/a\n"),
            ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/blkio/a/blkio.throttle.write_bps_device", "8:0 1048576\n"),
        ]);
        assert_eq!(
            found,
            expected(&[("cgroup.cpus", "0.5"), ("cgroup.io.max", "write_bps_device 8:0 1048576")])
        );
    }
}
