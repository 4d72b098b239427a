//! A target in words, for whoever decides whether the run may begin.
//!
//! Enters: settings. Leaves: lines.

use super::device_spec::Device;
use super::target_settings::{Fresh, TargetSettings};

impl TargetSettings {
    /// In words, a line each: what is made, with what, how often; empty where nothing is.
    #[must_use]
    pub fn described(&self) -> Vec<String> {
        let mut lines = self.guest.described();
        let device = self.device.as_ref().filter(|_| !self.is_in_memory());
        let above = self.dm.as_ref().map(|dm| format!("{dm} on ")).unwrap_or_default();
        let fresh = match self.fresh.unwrap_or_default() {
            Fresh::Trial => "for each trial",
            Fresh::Round => "for each round",
            Fresh::Run if self.launcher().descriptor().made_for_the_run => {
                "for each round, which run means in a guest"
            }
            Fresh::Run => "once",
        };
        match (self.fs, device) {
            (Some(fs), None) => lines.push(format!("{} in memory, made {fresh}", fs.name())),
            (Some(fs), Some(device)) => {
                let log = self.log.as_ref().map(|log| format!(", its log on {log}")).unwrap_or_default();
                lines.push(format!("{} on {above}{device}{log}, made {fresh}", fs.name()));
            }
            (None, Some(device)) if self.makes() => lines.push(format!("{above}{device}, made {fresh}")),
            (None, _) if !self.knobs.is_empty() => lines.push("settings, for each trial".to_owned()),
            (None, _) => {}
        }
        for device in device.into_iter().chain(&self.log) {
            if let Device::Block(path) = device {
                lines.push(format!("everything on {} is erased (named with --destroy)", path.display()));
            }
        }
        for (name, values, glue) in [("mkfs", &self.mkfs, " "), ("mount", &self.mount, ",")] {
            lines.extend((!values.is_empty()).then(|| format!("{name}: {}", values.join(glue))));
        }
        lines.extend(self.extsize.map(|bytes| format!("extsize: {bytes} bytes for every file")));
        lines.extend(self.impossible().map(|reason| format!("skipped: {reason}")));
        lines.extend(self.knobs.iter().map(|knob| format!("{} = {}", knob.path, knob.value)));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::target_settings::of_pairs as of;
    #[test]
    fn a_target_is_told_in_words() {
        let said = |pairs: &[(&str, &str)]| of(pairs).unwrap().described().join("; ");
        assert_eq!(said(&[("device", "/")]), "");
        assert_eq!(said(&[("fs", "tmpfs"), ("device", "loop:1g")]), "tmpfs in memory, made for each trial");
        assert_eq!(
            said(&[("fs", "xfs"), ("device", "/dev/no"), ("mount", "a,b"), ("scheduler", "none")]),
            "xfs on /dev/no, made for each trial; everything on /dev/no is erased (named with --destroy); \
             mount: a,b; queue/scheduler = none"
        );
        let log = said(&[("fs", "xfs"), ("device", "loop:1g"), ("log", "/dev/no")]);
        assert_eq!(
            log,
            "xfs on loop:1g, its log on /dev/no, made for each trial; everything on /dev/no is erased (named with --destroy)"
        );
        let mapped = [("fs", "xfs"), ("device", "loop:1g"), ("dm", "crypt:same_cpu_crypt")];
        assert_eq!(said(&mapped), "xfs on crypt:same_cpu_crypt on loop:1g, made for each trial");
        let once = [("fs", "xfs"), ("device", "ram:1g"), ("fresh", "run")];
        assert_eq!(said(&once), "xfs on ram:1g, made once");
        let mut booted = of(&once).unwrap();
        booted.guest.kernel = Some("/boot/vmlinuz".into());
        assert_eq!(booted.described()[1], "xfs on ram:1g, made for each round, which run means in a guest");
    }
}
