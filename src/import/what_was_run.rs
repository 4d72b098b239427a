//! What a stored run ran, as facts: two runs that are arms differ in it unless a factor says so.
//!
//! Enters: the experiment as it was stored, and its factors. Leaves: facts. What a factor varied is in no fact.

use serde_json::Value;

use crate::record::{Factor, HostFacts};

/// Options of a job that become facts; a job has fewer.
const MOST_OPTIONS: usize = 256;

/// Command, engine, target and options of the job, and what each factor of one level was.
pub(super) fn facts(experiment: &Value, factors: &[Factor]) -> HostFacts {
    let mut facts = HostFacts::default();
    if let Some(command) = experiment.get("command").and_then(command_line) {
        facts.set("command", command);
    }
    if let Some(engine) = experiment.get("engine").and_then(Value::as_str) {
        facts.set("engine", engine);
    }
    if let Some(Value::Object(target)) = experiment.get("target") {
        for (key, value) in target.iter().filter(|(key, _)| *key != "guest") {
            facts.extend(plain(value).map(|value| (format!("target.{key}"), value)));
        }
    }
    if let Some(text) = experiment.pointer("/job/text").and_then(Value::as_str) {
        job_options(text, &mut facts);
    }
    for factor in factors {
        if let [only] = factor.levels.as_slice() {
            facts.set(factor.name.clone(), only.clone());
        }
    }
    facts
}

/// A command as a shell would be given it.
fn command_line(words: &Value) -> Option<String> {
    let words: Vec<&str> = words.as_array()?.iter().filter_map(Value::as_str).collect();
    (!words.is_empty()).then(|| shlex::try_join(words).ok()).flatten()
}

/// A value as people write it; nothing where nothing was set.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(values) if values.is_empty() => None,
        Value::Array(values) => Some(values.iter().filter_map(plain).collect::<Vec<_>>().join(" ")),
        other => Some(other.to_string()),
    }
}

/// `job.bs` of a job with one section, `job.bs[wal]` of one with several.
fn job_options(text: &str, facts: &mut HostFacts) {
    let line = |line: &'_ str| -> Option<(String, String)> {
        let line = line.trim();
        let is_none = line.is_empty() || line.starts_with(['#', ';', '[']);
        let (key, value) = line.split_once('=').unwrap_or((line, "1"));
        (!is_none).then(|| (key.trim().to_owned(), value.trim().to_owned()))
    };
    let heading =
        |line: &str| line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()).map(str::to_owned);
    let sections = text.lines().filter_map(heading).filter(|name| name != "global").count();
    let mut section = String::new();
    for written in text.lines() {
        if let Some(name) = heading(written) {
            section = name;
        } else if let Some((key, value)) = line(written).filter(|_| facts.count() < MOST_OPTIONS) {
            let of_one = sections > 1 && section != "global";
            facts.set(if of_one { format!("job.{key}[{section}]") } else { format!("job.{key}") }, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_run_is_told_by_what_was_set() {
        let experiment = serde_json::json!({
            "command": ["sh", "-c", "a b"],
            "engine": "native",
            "target": { "device": "loop:1g", "fs": null, "mkfs": [], "mount": ["noatime"], "guest": { "cpus": 2 } },
            "job": { "text": "[global]\nbs=4k ; no\n[a]\nrw=write\ndirect\n[b]\n# rw=read\nrw = read\n" },
        });
        let one = Factor::new("scheduler", vec!["none".to_owned()]);
        let two = Factor::new("fs", vec!["xfs".to_owned(), "ext4".to_owned()]);
        let facts = facts(&experiment, &[one, two]);
        let all: Vec<(&str, &str)> = facts.iter().collect();
        assert_eq!(
            all,
            [
                ("command", "sh -c 'a b'"),
                ("engine", "native"),
                ("job.bs", "4k ; no"),
                ("job.direct[a]", "1"),
                ("job.rw[a]", "write"),
                ("job.rw[b]", "read"),
                ("scheduler", "none"),
                ("target.device", "loop:1g"),
                ("target.mount", "noatime"),
            ]
        );
    }
}
