//! The experiment file: which keys it has.
//!
//! Enters: TOML text. Leaves: a [`Written`], and every mistake in it with its line.

use std::ops::Range;
use std::path::Path;

use toml::de::DeTable;

use super::described::{Assignment, Factor, Level, Simulated};
use super::errors::{ExperimentErrors, Mistake};
use super::placed::Placed;
use super::recipe_table::{self, RecipeTable};
use super::target_names::{TARGET_KEYS, target_key};
use super::toml_reader::{Item, Reader};
use super::vary::{name_kernels, plain_level, split_namespace};
use super::written::{Written, WrittenJob};
use crate::catalog::EngineKind;
use crate::units::{Better, Unit};

const KEYS: &[&str] = &[
    "name", "job", "job_text", "command", "engine", "compare", "primary", "show", "before", "after",
    "observe", "keep_traces", "timeout", "settle", "aa", "lead_in", "keep_disturbed", "target", "stop",
    "factor", "metric", "simulated", "variables",
];
/// What `[quick]` and `[design]` may not hold: each other, as each is a file of its own within the file; and what is said to people.
const TOP_ONLY: [&str; 3] = ["quick", "design", "recipe"];
const STOP: &[&str] = &["max_rounds", "rounds", "delta", "alpha", "exact", "anytime", "time_budget"];
const FACTOR: &[&str] = &["name", "levels", "level"];
const LEVEL: &[&str] = &["label", "set"];
const METRIC: &[&str] = &["name", "regex", "unit", "better"];
const SIMULATED: &[&str] = &["bw", "cv", "sleep_ms", "fail", "effects"];

/// Reads an experiment file; paths in it are relative to `base_dir`.
///
/// # Errors
/// All mistakes.
pub(super) fn read(text: &str, origin: &str, base_dir: &Path) -> Result<Written, Vec<Mistake>> {
    let reader = Reader::new(text, origin);
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let at = error.span().unwrap_or(0..0);
            reader.mistake(&at, format!("not TOML: {}", error.message().replace('\n', ", ")));
            return Err(reader.into_mistakes());
        }
    };
    let mut file = File { reader: &reader, base_dir, written: Written::default() };
    for (key, at, item) in reader.entries(document.get_ref()) {
        match key {
            "quick" => file.written.quick = file.within(key, item),
            "design" => file.written.design = file.within(key, item),
            "recipe" => file.written.recipe = recipe_table::read(&reader, item),
            _ => file.entry(key, &at, item, ""),
        }
    }
    let written = file.written;
    let mistakes = reader.into_mistakes();
    if mistakes.is_empty() { Ok(written) } else { Err(mistakes) }
}

impl RecipeTable {
    /// The table of an experiment file; `None`: it has none.
    ///
    /// # Errors
    /// All mistakes of the file.
    pub fn of(text: &str, origin: &str) -> Result<Option<RecipeTable>, ExperimentErrors> {
        read(text, origin, Path::new(""))
            .map(|written| written.recipe)
            .or_else(|mistakes| ExperimentErrors::or(mistakes).map(|()| None))
    }
}

/// The keys of the file, or of `[quick]` or `[design]` within it.
fn known_keys(within: &str) -> Vec<&'static str> {
    let tools = EngineKind::with_settings().map(EngineKind::name);
    let top_only = TOP_ONLY.into_iter().filter(|_| within.is_empty());
    KEYS.iter().copied().chain(tools).chain(top_only).collect()
}

struct File<'r> {
    reader: &'r Reader<'r>,
    base_dir: &'r Path,
    written: Written,
}

impl File<'_> {
    /// A key of the file, or of the table `within` it.
    fn entry(&mut self, key: &str, at: &Range<usize>, item: &Item<'_>, within: &str) {
        match key {
            "target" => self.target(item),
            "stop" => self.stop(item),
            "factor" => self.factors(item),
            "metric" => self.metrics(item),
            "simulated" => self.simulated(item),
            "variables" => self.variables(item),
            _ => {
                let with_settings = EngineKind::with_settings().find(|engine| engine.name() == key);
                if let Some(engine) = with_settings {
                    self.tool(engine, item);
                } else if !self.plain(key, item) {
                    self.reader.unknown_key(key, at, within, &known_keys(within));
                }
            }
        }
    }

    /// `[quick]` or `[design]`: what is instead of the rest where it is asked for.
    fn within(&self, name: &str, item: &Item<'_>) -> Option<Box<Written>> {
        let table = self.reader.table(name, item)?;
        let mut file = File { reader: self.reader, base_dir: self.base_dir, written: Written::default() };
        for (key, at, item) in self.reader.entries(table) {
            file.entry(key, &at, item, &format!("[{name}]"));
        }
        Some(Box::new(file.written))
    }

    /// A key of the top level that is no table; false: there is none of this name.
    fn plain(&mut self, key: &str, item: &Item<'_>) -> bool {
        let reader = self.reader;
        let written = &mut self.written;
        let place = reader.place(item.span().start);
        let placed = |value| Placed { value, place: place.clone() };
        match key {
            "name" => written.name = reader.text(key, item),
            "engine" => written.engine = reader.text(key, item),
            "compare" => written.compare = reader.text(key, item),
            "primary" => written.primary = reader.text(key, item),
            "before" => written.before = reader.text(key, item),
            "after" => written.after = reader.text(key, item),
            "timeout" => written.timeout = reader.scalar(key, item),
            "settle" => written.settle = reader.scalar(key, item),
            "aa" => written.aa = reader.truth(key, item).unwrap_or(false),
            "show" => written.show = reader.texts(key, item).map(placed),
            "lead_in" => written.no_lead_in = reader.truth(key, item).map(|leads| !leads),
            "keep_disturbed" => written.keep_disturbed = reader.truth(key, item),
            "observe" => {
                let names = reader.texts(key, item).unwrap_or_default().into_iter();
                written.observe.extend(names.map(|value| Placed { value, place: place.clone() }));
            }
            "keep_traces" => {
                let wanted = reader.truth(key, item).unwrap_or(false);
                written.keep_traces = wanted.then(|| place.clone());
            }
            "command" => written.command = reader.texts(key, item).map(placed),
            "job" | "job_text" => {
                if written.job.is_some() {
                    reader.mistake(&item.span(), "both job and job_text are given; keep one");
                }
                let base_dir = self.base_dir;
                written.job = reader.text(key, item).map(|text| {
                    let value = if key == "job" {
                        WrittenJob::File(base_dir.join(text.value))
                    } else {
                        WrittenJob::Text(text.value)
                    };
                    Placed { value, place: text.place }
                });
            }
            _ => return false,
        }
        true
    }

    fn target(&mut self, item: &Item<'_>) {
        let Some(table) = self.reader.table("target", item) else { return };
        for (key, at, item) in self.reader.entries(table) {
            match key {
                "directory" => {
                    self.written.directory = self
                        .reader
                        .text(key, item)
                        .map(|text| Placed { value: self.base_dir.join(text.value), place: text.place });
                }
                "sysfs" => self.sysfs(item),
                known if target_key(known).is_some() => {
                    let text = self.reader.scalar(key, item);
                    self.written.target.extend(
                        text.map(|text| Placed { value: (key.to_owned(), text.value), place: text.place }),
                    );
                }
                _ => {
                    let known: Vec<&str> = ["directory", "sysfs"].into_iter().chain(TARGET_KEYS).collect();
                    self.reader.unknown_key(key, &at, "[target]", &known);
                }
            }
        }
    }

    /// `sysfs = { "queue/rq_affinity" = 2 }`.
    fn sysfs(&mut self, item: &Item<'_>) {
        let Some(table) = self.reader.table("sysfs", item) else { return };
        for (path, _, item) in self.reader.entries(table) {
            let text = self.reader.scalar(path, item);
            self.written.target.extend(
                text.map(|text| Placed { value: (format!("sysfs:{path}"), text.value), place: text.place }),
            );
        }
    }

    /// `[dbench]` and its like: texts, numbers, truth values, and lists of commands.
    fn tool(&mut self, engine: EngineKind, item: &Item<'_>) {
        let name = engine.name();
        let Some(table) = self.reader.table(name, item) else { return };
        let keys = engine.setting_names();
        for (key, at, item) in self.reader.entries(table) {
            if !keys.contains(&key) {
                self.reader.unknown_key(key, &at, &format!("[{name}]"), &keys);
                continue;
            }
            let place = self.reader.place(item.span().start);
            let value = if item.get_ref().is_array() {
                self.reader.texts(key, item).map(|texts| texts.join("\n"))
            } else {
                self.reader.scalar(key, item).map(|text| text.value)
            };
            let tool = value.map(|value| Placed { value: (engine, key.to_owned(), value), place });
            self.written.tools.extend(tool);
        }
    }

    fn stop(&mut self, item: &Item<'_>) {
        let reader = self.reader;
        let Some(table) = reader.table("stop", item) else { return };
        let mut lengths = Vec::new();
        for (key, at, item) in reader.entries(table) {
            let written = &mut self.written;
            if ["rounds", "max_rounds"].contains(&key) {
                lengths.push(at.clone());
            }
            match key {
                "max_rounds" => written.max_rounds = reader.whole(key, item),
                "rounds" => written.rounds = reader.whole(key, item),
                "delta" => written.delta = reader.scalar(key, item),
                "alpha" => written.alpha = reader.scalar(key, item),
                "exact" => written.exact = reader.truth(key, item).unwrap_or(false),
                "anytime" => {
                    let wanted = reader.truth(key, item) == Some(true);
                    written.anytime = wanted.then(|| reader.place(at.start));
                }
                "time_budget" => written.time_budget = reader.scalar(key, item),
                _ => reader.unknown_key(key, &at, "[stop]", STOP),
            }
        }
        if let [_, second] = lengths.as_slice() {
            let message = "rounds asks for exactly so many rounds, max_rounds for as many as the verdict needs up to that; leave one out";
            reader.mistake(second, message);
        }
    }

    fn variables(&mut self, item: &Item<'_>) {
        let Some(table) = self.reader.table("variables", item) else { return };
        for (key, _, item) in self.reader.entries(table) {
            if let Some(text) = self.reader.scalar(key, item) {
                self.written
                    .variables
                    .push(Placed { value: (key.to_owned(), text.value), place: text.place });
            }
        }
    }

    fn factors(&mut self, item: &Item<'_>) {
        for item in self.reader.list("factor", item).unwrap_or_default() {
            let Some(factor) = self.factor(item) else { continue };
            let place = self.reader.place(item.span().start);
            if self.written.factors.iter().any(|known| known.value.name == factor.name) {
                self.reader.mistake(&item.span(), format!("factor '{}' is given twice", factor.name));
            }
            self.written.factors.push(Placed { value: factor, place });
        }
    }

    fn factor(&self, item: &Item<'_>) -> Option<Factor> {
        let reader = self.reader;
        let table = reader.table("factor", item)?;
        let (mut name, mut levels) = (None, Vec::new());
        for (key, at, item) in reader.entries(table) {
            match key {
                "name" => name = reader.text(key, item),
                "levels" => {
                    for item in reader.list(key, item).unwrap_or_default() {
                        levels.extend(reader.scalar(key, item).map(|text| WrittenLevel::Plain(text.value)));
                    }
                }
                "level" if is_of_values(item) => {
                    reader.mistake(
                        &item.span(),
                        "level is for [[factor.level]] with label and set; write levels = [...] for plain values",
                    );
                    return None;
                }
                "level" => {
                    for item in reader.list(key, item).unwrap_or_default() {
                        levels.extend(self.level(item).map(WrittenLevel::Full));
                    }
                }
                _ => reader.unknown_key(key, &at, "[[factor]]", FACTOR),
            }
        }
        let Some(name) = name.filter(|name| !name.value.trim().is_empty()) else {
            reader.mistake(&item.span(), "a factor without a name; write name = \"...\"");
            return None;
        };
        if levels.is_empty() {
            let message = format!("factor '{}' has no levels; write e.g. levels = [0, 1]", name.value);
            reader.mistake(&item.span(), message);
            return None;
        }
        let finish = |level| match level {
            WrittenLevel::Plain(value) => plain_level(&name.value, &value),
            WrittenLevel::Full(level) => level,
        };
        let mut levels: Vec<Level> = levels.into_iter().map(finish).collect();
        name_kernels(&mut levels);
        Some(Factor { levels, name: name.value.clone() })
    }

    fn level(&self, item: &Item<'_>) -> Option<Level> {
        let reader = self.reader;
        let table = reader.table("factor.level", item)?;
        let (mut label, mut set) = (None, Vec::new());
        for (key, at, item) in reader.entries(table) {
            match key {
                "label" => label = reader.scalar(key, item),
                "set" => {
                    for (key, _, item) in
                        reader.table(key, item).map_or_else(Vec::new, |set| reader.entries(set))
                    {
                        let (namespace, bare) = split_namespace(key);
                        let value = reader.scalar(key, item).map(|text| text.value);
                        set.extend(value.map(|value| Assignment { namespace, key: bare.to_owned(), value }));
                    }
                }
                _ => reader.unknown_key(key, &at, "[[factor.level]]", LEVEL),
            }
        }
        match label.filter(|label| !label.value.trim().is_empty()) {
            Some(label) => Some(Level { label: label.value, set }),
            None => {
                reader.mistake(&item.span(), "a level without a label; write label = \"...\"");
                None
            }
        }
    }

    fn metrics(&mut self, item: &Item<'_>) {
        for item in self.reader.list("metric", item).unwrap_or_default() {
            if let Some(text) = self.metric(item) {
                let place = self.reader.place(item.span().start);
                self.written.metrics.push(Placed { value: text, place });
            }
        }
    }

    /// A metric in the syntax of `--metric`, unit and direction always written out so that a colon in the
    /// expression is never taken for theirs.
    fn metric(&self, item: &Item<'_>) -> Option<String> {
        let reader = self.reader;
        let table = reader.table("metric", item)?;
        let (mut name, mut regex, mut unit, mut better) = (None, None, "count".to_owned(), None);
        for (key, at, item) in reader.entries(table) {
            match key {
                "name" => name = reader.text(key, item).map(|text| text.value),
                "regex" => regex = reader.text(key, item).map(|text| text.value),
                "unit" => unit = reader.text(key, item)?.value,
                "better" => {
                    let text = reader.text(key, item)?.value;
                    if Better::parse(&text).is_none() {
                        reader.mistake(
                            &item.span(),
                            format!("better is '{text}'; write \"higher\" or \"lower\""),
                        );
                    }
                    better = Some(text);
                }
                _ => reader.unknown_key(key, &at, "[[metric]]", METRIC),
            }
        }
        let (known, _) = Unit::parse(&unit);
        if let Unit::Other(name) = &known {
            let message = format!("unknown unit '{name}'; write e.g. /s, MiB/s, ms, ns, s or count");
            reader.mistake(&item.span(), message);
        }
        let unit = if unit.is_empty() { "count" } else { unit.as_str() };
        match (name, regex) {
            (Some(name), Some(regex)) => {
                let better = better.map(|better| format!(":{better}")).unwrap_or_default();
                Some(format!("{name}={regex}:{unit}{better}"))
            }
            _ => {
                reader.mistake(&item.span(), "a metric needs name = \"...\" and regex = '...'");
                None
            }
        }
    }

    fn simulated(&mut self, item: &Item<'_>) {
        let reader = self.reader;
        let Some(table) = reader.table("simulated", item) else { return };
        let mut simulated = Simulated::default();
        for (key, at, item) in reader.entries(table) {
            let set = |slot: &mut f64, value: Option<f64>| *slot = value.unwrap_or(*slot);
            match key {
                "bw" => set(&mut simulated.bw, reader.float(key, item)),
                "cv" => set(&mut simulated.cv, reader.float(key, item)),
                "fail" => set(&mut simulated.fail, reader.float(key, item)),
                "sleep_ms" => simulated.sleep_ms = reader.whole(key, item).map_or(0, |number| number.value),
                "effects" => {
                    let effects =
                        reader.table(key, item).map_or_else(Vec::new, |table| reader.entries(table));
                    for (level, _, item) in effects {
                        simulated
                            .effects
                            .extend(reader.float(level, item).map(|effect| (level.to_owned(), effect)));
                    }
                }
                _ => reader.unknown_key(key, &at, "[simulated]", SIMULATED),
            }
        }
        let place = reader.place(item.span().start);
        self.written.simulated = Some(Placed { value: simulated, place });
    }
}

/// Whether it is a list of texts, numbers and the like, which `levels` takes.
fn is_of_values(item: &Item<'_>) -> bool {
    let is_value = |item: &Item<'_>| item.get_ref().as_table().is_none();
    item.get_ref().as_array().is_some_and(|list| list.iter().any(is_value))
}

enum WrittenLevel {
    Plain(String),
    Full(Level),
}
