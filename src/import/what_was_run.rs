//! What a stored run ran, as facts: two runs that are arms differ in it unless a factor says so.
//!
//! Enters: the experiment as it was stored, and its factors. Leaves: facts, as the trials had them: what a factor of one level set
//! (under `--aa`, the baseline of each factor) replaces what job and target say. What a factor varied is in no fact.

use serde_json::Value;

use crate::catalog::{EngineKind, fio_option};
use crate::record::{Factor, HostFacts};

/// Options of a job that become facts; a job has fewer.
const MOST_OPTIONS: usize = 256;
/// Settings of a target that are no settings of queue, kernel or guest.
const OF_TARGETS: [&str; 8] = ["device", "fs", "mkfs", "mount", "log", "extsize", "state", "fresh"];
/// What the names of sysctl(8) begin with.
const SYSCTLS: [&str; 4] = ["vm.", "fs.", "kernel.", "dev."];

/// In place of a namespace: a level that sets nothing.
const LABEL: &str = "label";

/// A key that had one value in all trials.
struct Constant<'e> {
    namespace: &'e str,
    key: &'e str,
    value: &'e str,
}

/// Command, hooks, engine, target and options of the job.
pub(super) fn facts(experiment: &Value, factors: &[Factor]) -> HostFacts {
    let mut facts = HostFacts::default();
    let constants = constants(experiment, factors);
    let variables = variables(experiment, &constants);
    let filled = |text: &str| {
        let with = |text: String, (name, value): &(String, &str)| text.replace(name.as_str(), value);
        variables.iter().fold(text.to_owned(), with)
    };
    if let Some(command) = experiment.get("command").and_then(command_line) {
        facts.set("command", filled(&command));
    }
    for (name, key) in [("engine", "engine"), ("hook.before", "before"), ("hook.after", "after")] {
        facts.set_known(name, experiment.get(key).and_then(Value::as_str).map(filled));
    }
    target(experiment, &mut facts);
    for (engine, key, value) in tools(experiment) {
        facts.extend(plain(value).map(|value| (format!("{engine}.{key}"), filled(&value))));
    }
    let job = experiment.pointer("/job/text").and_then(Value::as_str);
    if let Some(text) = job {
        job_options(&filled(text), &mut facts);
    }
    // Without the experiment there are the labels.
    for factor in factors.iter().filter(|_| experiment.get("factors").is_none()) {
        if let [only] = factor.levels.as_slice() {
            facts.set(factor.name.clone(), only.clone());
        }
    }
    let engine = experiment.get("engine").and_then(Value::as_str).and_then(EngineKind::named);
    let is_variable =
        |constant: &Constant<'_>| variables.iter().any(|(name, _)| *name == in_braces(constant.key));
    for constant in constants.iter().filter(|constant| !is_variable(constant)) {
        set(constant, job.map_or(0, sections), engine, &mut facts);
    }
    facts
}

/// What the factors of one level set, and those of which one was chosen; under `--aa`, what all baselines set.
fn constants<'e>(experiment: &'e Value, design: &[Factor]) -> Vec<Constant<'e>> {
    let is_aa = experiment.get("aa").and_then(Value::as_bool).unwrap_or_default();
    let mut found = Vec::new();
    for factor in list(experiment, "factors") {
        let (levels, name) = (list(factor, "levels"), text(factor, "name"));
        let chosen = design.iter().find(|known| known.name == name).map(|known| known.levels.as_slice());
        let level = match chosen {
            _ if is_aa || levels.len() == 1 => levels.first(),
            Some([only]) => levels.iter().find(|level| text(level, "label") == only),
            _ => None,
        };
        let Some(level) = level else { continue };
        let sets = list(level, "set");
        if sets.is_empty() {
            found.push(Constant { namespace: LABEL, key: name, value: text(level, "label") });
        }
        found.extend(sets.iter().map(|set| Constant {
            namespace: text(set, "namespace"),
            key: text(set, "key"),
            value: text(set, "value"),
        }));
    }
    found
}

/// `${NAME}` with its value: constants of the experiment, and keys that a text names so.
fn variables<'e>(experiment: &'e Value, constants: &[Constant<'e>]) -> Vec<(String, &'e str)> {
    let command = list(experiment, "command").iter().filter_map(Value::as_str);
    let others = [experiment.pointer("/job/text"), experiment.get("before"), experiment.get("after")];
    let tools = tools(experiment).into_iter().filter_map(|(_, _, value)| value.as_str());
    let texts: Vec<&str> =
        command.chain(others.into_iter().flatten().filter_map(Value::as_str)).chain(tools).collect();
    let is_named = |name: &String| texts.iter().any(|text| text.contains(name.as_str()));
    let of_levels = constants.iter().filter(|constant| constant.namespace != "target");
    let of_levels = of_levels.map(|constant| (in_braces(constant.key), constant.value));
    let of_all = list(experiment, "variables")
        .iter()
        .filter_map(|pair| Some((in_braces(pair.get(0)?.as_str()?), pair.get(1)?.as_str()?)));
    // Of several values a level's counts: it is replaced first.
    of_levels.chain(of_all).filter(|(name, _)| is_named(name)).collect()
}

fn in_braces(name: &str) -> String {
    format!("${{{name}}}")
}

/// Engine, key and value of what tools are asked to do.
fn tools<'e>(experiment: &'e Value) -> Vec<(&'e str, &'e str, &'e Value)> {
    let engines = experiment.get("tools").and_then(Value::as_object).into_iter().flatten();
    let of_engine = |(engine, settings): (&'e String, &'e Value)| {
        let settings = settings.as_object().into_iter().flatten();
        settings.map(move |(key, value)| (engine.as_str(), key.as_str(), value))
    };
    engines.flat_map(of_engine).collect()
}

/// The target of all trials: `target.fs`, `target.scheduler`.
fn target(experiment: &Value, facts: &mut HostFacts) {
    let Some(Value::Object(target)) = experiment.get("target") else { return };
    for (key, value) in target.iter().filter(|(key, _)| !matches!(key.as_str(), "guest" | "knobs" | "per_fs"))
    {
        facts.extend(plain(value).map(|value| (format!("target.{key}"), value)));
    }
    for (key, words) in target.get("per_fs").and_then(Value::as_object).into_iter().flatten() {
        facts.set(format!("target.{key}"), plain(words).unwrap_or_else(|| "default".to_owned()));
    }
    for knob in target.get("knobs").and_then(Value::as_array).into_iter().flatten() {
        facts.set(format!("target.{}", knob_name(text(knob, "path"))), text(knob, "value"));
    }
}

/// One setting of queue or kernel, whichever of its names was used.
fn knob_name(path: &str) -> String {
    let path = path.strip_prefix("sysfs:").unwrap_or(path);
    match path {
        "queue/scheduler" => "scheduler".to_owned(),
        "queue/nr_requests" => "nr_requests".to_owned(),
        "queue/read_ahead_kb" | "read_ahead_kb" => "read_ahead".to_owned(),
        _ if SYSCTLS.iter().any(|start| path.starts_with(start)) => {
            format!("/proc/sys/{}", path.replace('.', "/"))
        }
        _ => path.to_owned(),
    }
}

/// What a level set, over what job and target say; keys are looked up as the plan does it.
fn set(constant: &Constant<'_>, sections: usize, engine: Option<EngineKind>, facts: &mut HostFacts) {
    let Constant { namespace, key, value } = *constant;
    if namespace == LABEL {
        return facts.set(key, value);
    }
    let of_an_engine = key.split('.').next().and_then(EngineKind::named).is_some();
    let is_alone = of_an_engine || matches!(key, "engine" | "directory" | "observe");
    let is_of_job = sections > 0 && namespace != "target";
    let of_one = key.rsplit_once(':').filter(|_| is_of_job);
    if let Some((section, option)) = of_one.and_then(|(section, option)| Some((section, fio_option(option)?)))
    {
        let name = format!("job.{}", option.name);
        return facts.set(if sections > 1 { format!("{name}[{section}]") } else { name }, value);
    }
    let option = fio_option(key).filter(|_| is_of_job);
    if let Some(option) = option.filter(|_| namespace == "job" || key != "directory") {
        let name = format!("job.{}", option.name);
        facts.retain(|fact| {
            fact != name && !fact.strip_prefix(&name).is_some_and(|rest| rest.starts_with('['))
        });
        return facts.set(name, value);
    }
    let of_engine = engine.filter(|engine| engine.setting_names().contains(&key));
    match of_engine.filter(|_| namespace == "any") {
        Some(engine) => facts.set(format!("{}.{key}", engine.name()), value),
        // The simulated engine takes any key.
        None if is_alone || engine == Some(EngineKind::Simulated) => facts.set(key, value),
        None if OF_TARGETS.contains(&key) && matches!(value, "none" | "default" | "internal" | "") => {
            facts.remove(&format!("target.{key}"));
        }
        None => facts.set(format!("target.{}", knob_name(key)), value),
    }
}

/// The name of the only section of a run's job: its metrics are of the whole trial.
pub(super) fn only_section(experiment: &Value) -> Option<String> {
    let text = experiment.pointer("/job/text").and_then(Value::as_str)?;
    let mut names = text.lines().filter_map(heading).filter(|name| !name.starts_with("global"));
    names.next().filter(|_| names.next().is_none())
}

/// How many sections a job has, but [global]s.
fn sections(job: &str) -> usize {
    job.lines().filter_map(heading).filter(|name| !name.starts_with("global")).count()
}

fn heading(line: &str) -> Option<String> {
    line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()).map(str::to_owned)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
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
    let sections = sections(text);
    let mut section = String::new();
    for written in text.lines() {
        if let Some(name) = heading(written) {
            section = name;
        } else if let Some((key, value)) = line(written).filter(|_| facts.count() < MOST_OPTIONS) {
            let key = fio_option(&key).map_or(key.as_str(), |option| option.name);
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
            "target": { "device": "loop:1g", "fs": null, "mkfs": [], "mount": ["noatime"],
                "per_fs": { "mkfs.xfs": ["-m", "reflink=0"], "mount.ext4": [] }, "guest": { "cpus": 2 } },
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
                ("target.mkfs.xfs", "-m reflink=0"),
                ("target.mount", "noatime"),
                ("target.mount.ext4", "default"),
            ]
        );
    }

    fn level(namespace: &str, key: &str, value: &str) -> Value {
        serde_json::json!({ "name": key, "levels": [{
            "label": value, "set": [{ "namespace": namespace, "key": key, "value": value }],
        }] })
    }

    #[test]
    fn what_one_level_sets_replaces_what_the_job_says() {
        let job = "[global]\nblocksize=16k\nsync=0\n[a]\nbs=1k\nfdatasync=${n}\n[b]\nrw=write\n";
        let mut varied = level("any", "direct", "0");
        varied["levels"].as_array_mut().unwrap().push(level("any", "direct", "1")["levels"][0].clone());
        let mut experiment = serde_json::json!({
            "engine": "native",
            "before": "m=${m} ./reload.sh",
            "job": { "text": job },
            "target": { "fs": "xfs", "mount": ["noatime"], "knobs": [{ "path": "queue/scheduler", "value": "none" }] },
            "variables": [["m", "off"], ["n", "2"]],
            "factors": [
                level("any", "bs", "8k"), level("job", "sync", "dsync"), level("any", "n", "4"), varied,
                level("any", "b:fsync", "2"), level("target", "fs", "ext4"), level("any", "mount", "default"), level("any", "vm.dirty_ratio", "5"),
            ],
        });
        let all = |experiment: &Value| -> Vec<(String, String)> {
            let found = facts(experiment, &[]);
            found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let mut expected = [
            ("engine", "native"),
            ("hook.before", "m=off ./reload.sh"),
            ("job.bs", "8k"),
            ("job.fdatasync[a]", "4"),
            ("job.fsync[b]", "2"),
            ("job.rw[b]", "write"),
            ("job.sync", "dsync"),
            ("target./proc/sys/vm/dirty_ratio", "5"),
            ("target.fs", "ext4"),
            ("target.scheduler", "none"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        assert_eq!(all(&experiment), expected);

        let chosen = Factor::new("direct", vec!["1".to_owned()]);
        assert_eq!(facts(&experiment, &[chosen]).get("job.direct"), Some("1"), "the trials of one level");

        experiment["aa"] = Value::Bool(true);
        expected.insert(3, ("job.direct".to_owned(), "0".to_owned()));
        assert_eq!(all(&experiment), expected, "the baseline against itself");
        assert_eq!(only_section(&experiment), None, "there are two");
        experiment["job"]["text"] = Value::from("[global]\nbs=4k\n[wal]\nrw=write\n");
        assert_eq!(only_section(&experiment).as_deref(), Some("wal"));
    }

    #[test]
    fn settings_of_an_engine_are_under_its_name() {
        let experiment = serde_json::json!({
            "engine": "dbench",
            "tools": { "dbench": { "clients": "1", "time": "${t}" } },
            "factors": [level("any", "clients", "8"), level("any", "t", "5")],
        });
        let facts = facts(&experiment, &[]);
        let all: Vec<(&str, &str)> = facts.iter().collect();
        assert_eq!(all, [("dbench.clients", "8"), ("dbench.time", "5"), ("engine", "dbench")]);
    }
}
