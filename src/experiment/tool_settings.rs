//! The settings of the engines that have some of their own (the table in `catalog` says which).
//!
//! Enters: `key = value` from tables such as `[dbench]`, and levels. Leaves: one [`ToolSettings`], and for each cell the
//! values as their engine reads them. What a tool's options are called on its command line is the engine's to know.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::catalog::{EngineKind, Setting};
use crate::workload::{nearest, variables};

fn setting(engine: EngineKind, key: &str) -> Option<&'static Setting> {
    engine.settings().iter().find(|setting| setting.name == key)
}

/// What tools are asked to do: values that were set, by engine and name. Those not set have the engine's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolSettings(BTreeMap<String, BTreeMap<String, String>>);

impl ToolSettings {
    /// Sets one key of `engine`, over what it was; relative paths are below `base`. What has a `${NAME}` in it is looked at
    /// when that is known.
    ///
    /// # Errors
    /// A clause that says what would be right.
    pub fn set(&mut self, engine: EngineKind, key: &str, value: &str, base: &Path) -> Result<(), String> {
        let Some(Setting { name, value: kind }) = setting(engine, key) else {
            let names = engine.setting_names();
            let advice = match nearest(key, names.iter().copied(), 1).first() {
                Some(near) => format!("did you mean {near}?"),
                None => format!("it has {}", names.join(", ")),
            };
            return Err(format!("{} has no setting '{key}'; {advice}", engine.name()));
        };
        // The table is there, whatever comes of this value: it says which engine is meant.
        self.0.entry(engine.name().to_owned()).or_default();
        let mut value = value.trim().to_owned();
        if kind.is_file() && !value.starts_with("${") {
            value = base.join(&value).to_string_lossy().into_owned();
        }
        if !has_variables(&value) {
            if kind.is_file() && !Path::new(&value).is_file() {
                return Err(format!("{}.{name}: there is no file {value}", engine.name()));
            }
            value = kind.read(&value).map_err(|what| format!("{}.{name}: {what}", engine.name()))?;
        }
        self.0.entry(engine.name().to_owned()).or_default().insert((*name).to_owned(), value);
        Ok(())
    }

    /// Whether anything was set for `engine`.
    #[must_use]
    pub fn has(&self, engine: EngineKind) -> bool {
        self.0.contains_key(engine.name())
    }

    /// The texts in which `${NAME}` may stand.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.values().flat_map(BTreeMap::values).map(String::as_str)
    }

    /// What `engine` is given: name and value, `${NAME}` replaced by `replaced`. Sizes are bytes, times seconds, truth
    /// values 0 or 1, commands one a line.
    ///
    /// # Errors
    /// Everything that is not right, a clause each.
    pub fn for_engine(
        &self,
        engine: EngineKind,
        replaced: impl Fn(&str) -> String,
    ) -> Result<Vec<(String, String)>, Vec<String>> {
        let (mut values, mut wrong) = (Vec::new(), Vec::new());
        for (key, text) in self.0.get(engine.name()).into_iter().flatten() {
            let kind = setting(engine, key).map(|setting| setting.value);
            match kind.map_or_else(|| Err("no such setting".to_owned()), |kind| kind.read(&replaced(text))) {
                Ok(value) => values.push((key.clone(), value)),
                Err(what) => wrong.push(format!("{}.{key}: {what}", engine.name())),
            }
        }
        if wrong.is_empty() {
            let has = |key: &str| values.iter().any(|(known, _)| known == key);
            let together = engine.descriptor().settings.and_then(|settings| (settings.together)(&has));
            wrong.extend(together.map(str::to_owned));
        }
        if wrong.is_empty() { Ok(values) } else { Err(wrong) }
    }
}

fn has_variables(text: &str) -> bool {
    let mut names = std::collections::BTreeSet::new();
    variables::collect(text, &mut names);
    !names.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use EngineKind::{Dbench, XfsIo};

    fn set(engine: EngineKind, key: &str, value: &str) -> Result<Vec<(String, String)>, String> {
        let mut settings = ToolSettings::default();
        settings.set(engine, key, value, Path::new("/"))?;
        settings.for_engine(engine, str::to_owned).map_err(|wrong| wrong.join(", "))
    }

    #[test]
    fn values_are_read_in_their_units() {
        for (engine, key, text, value) in [
            (Dbench, "time", "1m", "60"),
            (Dbench, "clients", "8", "8"),
            (Dbench, "sync", "true", "1"),
            (Dbench, "loadfile", "etc/passwd", "/etc/passwd"),
            (XfsIo, "commands", "pwrite 0 1m ; fsync;", "pwrite 0 1m\nfsync"),
        ] {
            assert_eq!(set(engine, key, text).unwrap(), [(key.to_owned(), value.to_owned())]);
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (engine, key, text, words) in [
            (Dbench, "client", "1", "dbench has no setting 'client'; did you mean clients?"),
            (Dbench, "clients", "0", "dbench.clients: '0' is not a whole number from 1"),
            (Dbench, "time", "1", "a whole number of seconds from 2"),
            (Dbench, "loadfile", "/nope", "there is no file /nope"),
            (XfsIo, "commands", "pwrite 0 1m; open /etc/passwd", "open is none of the commands"),
            (XfsIo, "commands", "pwrite -C 0 1m", "hide the result"),
            (XfsIo, "commands", "w -qd 0 1m", "hide the result"),
            (XfsIo, "commands", "o -f /etc/passwd", "o is none of the commands"),
            (XfsIo, "commands", " ;", "no command"),
            (XfsIo, "direct", "1", "needs [xfs_io] commands"),
        ] {
            let message = set(engine, key, text).unwrap_err();
            assert!(message.contains(words), "{key}={text}: {message}");
        }
    }

    #[test]
    fn variables_are_looked_at_once_they_are_known() {
        let mut settings = ToolSettings::default();
        settings.set(XfsIo, "commands", "pwrite -b ${bs} 0 1m", Path::new("/")).unwrap();
        settings.set(Dbench, "clients", "${n}", Path::new("/")).unwrap();
        let with =
            |value: &'static str| move |text: &str| text.replace("${bs}", value).replace("${n}", value);
        assert_eq!(settings.for_engine(XfsIo, with("4k")).unwrap()[0].1, "pwrite -b 4k 0 1m");
        assert!(settings.for_engine(Dbench, with("4k")).unwrap_err()[0].contains("whole number"));
        assert_eq!(settings.texts().count(), 2);
    }
}
