//! The settings of the tools that are engines of their own: dbench, fs_mark, xfs_io.
//!
//! Enters: `key = value` from `[dbench]`, `[fs_mark]`, `[xfs_io]` and levels. Leaves: one [`ToolSettings`], and for each cell
//! the values as their engine reads them. What a tool's options are called on its command line is the engine's to know.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::described::EngineChoice;
use super::xfs_io_script;
use crate::units::{parse_bytes, parse_duration_s};
use crate::workload::{nearest, variables};

/// What a setting's value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A whole number, from, to.
    Whole(u64, u64),
    /// A size in bytes, from, to.
    Size(u64, u64),
    /// Whole seconds, from, to.
    Seconds(u64, u64),
    /// A number above 0.
    Number,
    /// 0 or 1.
    Truth,
    /// A file; whether it exists is looked at when it is set.
    File,
    /// A name of a file in the trial's directory.
    Name,
    /// Commands of xfs_io, a line each; `;` divides them in a level.
    Commands,
    /// Phases of fs_mark, in their order.
    Phases,
}

type Setting = (&'static str, Kind);

const DBENCH: &[Setting] = &[
    ("clients", Kind::Whole(1, 100_000)),
    // One second counts nothing: dbench's first report comes after it.
    ("time", Kind::Seconds(2, 1_000_000)),
    ("loadfile", Kind::File),
    ("sync", Kind::Truth),
    ("sync_dir", Kind::Truth),
    ("fsync", Kind::Truth),
    ("xattr", Kind::Truth),
    ("rate", Kind::Number),
    ("clients_per_process", Kind::Whole(1, 100_000)),
];
/// What can be done to fs_mark's files, in the order in which it makes sense.
const PHASES: [&str; 3] = ["create", "chown", "unlink"];
// The limits are those of fs_mark.h (MAX_FILES, MAX_THREADS, MAX_IO_BUFFER_SIZE) and of its ints.
const FS_MARK: &[Setting] = &[
    ("files", Kind::Whole(1, 1_000_000)),
    ("size", Kind::Size(0, i32::MAX as u64)),
    ("threads", Kind::Whole(1, 64)),
    ("directory_per_thread", Kind::Truth),
    ("loops", Kind::Whole(1, 1_000_000)),
    ("sync", Kind::Whole(0, 6)),
    ("subdirectories", Kind::Whole(2, 1_000_000)),
    ("per_directory", Kind::Whole(1, 1_000_000)),
    ("write_size", Kind::Size(1, 1 << 20)),
    ("name_length", Kind::Whole(1, 255)),
    ("random_name", Kind::Whole(0, 255)),
    ("keep", Kind::Truth),
    ("phases", Kind::Phases),
    ("phase_sync", Kind::Truth),
];
const XFS_IO: &[Setting] = &[
    ("commands", Kind::Commands),
    ("prepare", Kind::Commands),
    ("file", Kind::Name),
    ("direct", Kind::Truth),
    ("sync", Kind::Truth),
];

/// The engines that have settings of their own.
pub(super) const TOOLS: [EngineChoice; 3] = [EngineChoice::Dbench, EngineChoice::FsMark, EngineChoice::XfsIo];

fn settings_of(engine: EngineChoice) -> &'static [Setting] {
    match engine {
        EngineChoice::Dbench => DBENCH,
        EngineChoice::FsMark => FS_MARK,
        EngineChoice::XfsIo => XFS_IO,
        _ => &[],
    }
}

/// The names of an engine's own settings; empty for engines that have none.
#[must_use]
pub fn tool_keys(engine: EngineChoice) -> Vec<&'static str> {
    settings_of(engine).iter().map(|(name, _)| *name).collect()
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
    pub fn set(&mut self, engine: EngineChoice, key: &str, value: &str, base: &Path) -> Result<(), String> {
        let known = settings_of(engine).iter().find(|(name, _)| *name == key);
        let Some((name, kind)) = known else {
            let names = tool_keys(engine);
            let advice = match nearest(key, names.iter().copied(), 1).first() {
                Some(near) => format!("did you mean {near}?"),
                None => format!("it has {}", names.join(", ")),
            };
            return Err(format!("{} has no setting '{key}'; {advice}", engine.name()));
        };
        // The table is there, whatever comes of this value: it says which engine is meant.
        self.0.entry(engine.name().to_owned()).or_default();
        let mut value = value.trim().to_owned();
        if *kind == Kind::File && !value.starts_with("${") {
            value = base.join(&value).to_string_lossy().into_owned();
        }
        if !has_variables(&value) {
            if *kind == Kind::File && !Path::new(&value).is_file() {
                return Err(format!("{}.{name}: there is no file {value}", engine.name()));
            }
            value = kind.read(&value).map_err(|what| format!("{}.{name}: {what}", engine.name()))?;
        }
        self.0.entry(engine.name().to_owned()).or_default().insert((*name).to_owned(), value);
        Ok(())
    }

    /// Whether anything was set for `engine`.
    #[must_use]
    pub fn has(&self, engine: EngineChoice) -> bool {
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
        engine: EngineChoice,
        replaced: impl Fn(&str) -> String,
    ) -> Result<Vec<(String, String)>, Vec<String>> {
        let (mut values, mut wrong) = (Vec::new(), Vec::new());
        for (key, text) in self.0.get(engine.name()).into_iter().flatten() {
            let kind = settings_of(engine).iter().find(|(name, _)| name == key).map(|(_, kind)| *kind);
            match kind.map_or_else(|| Err("no such setting".to_owned()), |kind| kind.read(&replaced(text))) {
                Ok(value) => values.push((key.clone(), value)),
                Err(what) => wrong.push(format!("{}.{key}: {what}", engine.name())),
            }
        }
        if wrong.is_empty() {
            wrong.extend(together(engine, |key| values.iter().any(|(known, _)| known == key)));
        }
        if wrong.is_empty() { Ok(values) } else { Err(wrong) }
    }
}

/// What is wrong with settings that are each right.
fn together(engine: EngineChoice, has: impl Fn(&str) -> bool) -> Option<String> {
    let wrong = match engine {
        EngineChoice::XfsIo if !has("commands") => {
            "engine xfs_io needs [xfs_io] commands = [\"pwrite 0 64m\", \"fsync\"]"
        }
        EngineChoice::FsMark if has("phases") && has("keep") => {
            "fs_mark.keep: phases decide what becomes of the files; take keep out"
        }
        EngineChoice::FsMark if has("phase_sync") && !has("phases") => {
            "fs_mark.phase_sync: there are no phases; add phases = \"create,chown,unlink\""
        }
        EngineChoice::FsMark if has("per_directory") && !has("subdirectories") => {
            "fs_mark.per_directory: there are no subdirectories; add e.g. subdirectories = 10"
        }
        _ => return None,
    };
    Some(wrong.to_owned())
}

fn has_variables(text: &str) -> bool {
    let mut names = std::collections::BTreeSet::new();
    variables::collect(text, &mut names);
    !names.is_empty()
}

impl Kind {
    /// The value as the engine reads it.
    fn read(self, text: &str) -> Result<String, String> {
        let between = |number: Option<u64>, from: u64, to: u64, what: &str| {
            let number = number.filter(|number| (from..=to).contains(number));
            number
                .map(|number| number.to_string())
                .ok_or_else(|| format!("'{text}' is not {what} from {from} to {to}"))
        };
        match self {
            Kind::Whole(from, to) => between(text.parse().ok(), from, to, "a whole number"),
            Kind::Size(from, to) => {
                between(parse_bytes(text, 1024).ok(), from, to, "a size, e.g. 4k, in bytes")
            }
            Kind::Seconds(from, to) => {
                let seconds = parse_duration_s(text, 1.0)?;
                let whole = (seconds.fract() == 0.0 && seconds >= 0.0).then_some(seconds as u64);
                between(whole, from, to, "a whole number of seconds")
            }
            Kind::Number => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && number > 0.0 => Ok(text.to_owned()),
                _ => Err(format!("'{text}' is not a number above 0")),
            },
            Kind::Truth => match text {
                "0" | "false" => Ok("0".to_owned()),
                "1" | "true" => Ok("1".to_owned()),
                _ => Err(format!("'{text}' is neither 0 nor 1")),
            },
            Kind::File => Ok(text.to_owned()),
            Kind::Name => {
                let plain = !text.is_empty() && !text.starts_with(['.', '-']) && !text.contains('/');
                let wrong = || format!("'{text}' is not the name of a file in the trial's directory");
                if plain { Ok(text.to_owned()) } else { Err(wrong()) }
            }
            Kind::Commands => xfs_io_script::read(text),
            Kind::Phases => phases(text),
        }
    }
}

/// Phases divided by commas, in their order; files that are not there cannot be changed.
fn phases(text: &str) -> Result<String, String> {
    let words: Vec<&str> =
        text.split([',', '+', '\n']).map(str::trim).filter(|word| !word.is_empty()).collect();
    let places: Option<Vec<usize>> =
        words.iter().map(|word| PHASES.iter().position(|phase| phase == word)).collect();
    match places {
        Some(places) if places.first() == Some(&0) && places.is_sorted_by(|a, b| a < b) => {
            Ok(words.join(","))
        }
        _ => {
            Err(format!("'{}' is not create, then chown, unlink or both, divided by commas", words.join(",")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EngineChoice::{Dbench, FsMark, XfsIo};

    fn set(engine: EngineChoice, key: &str, value: &str) -> Result<Vec<(String, String)>, String> {
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
            (FsMark, "size", "16k", "16384"),
            (FsMark, "phases", "create, chown ,unlink", "create,chown,unlink"),
            (FsMark, "phases", "create\nunlink", "create,unlink"),
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
            (Dbench, "time", "2500ms", "a whole number of seconds from 2"),
            (Dbench, "loadfile", "/nope", "there is no file /nope"),
            (Dbench, "rate", "-1", "above 0"),
            (FsMark, "sync", "7", "from 0 to 6"),
            (FsMark, "keep", "yes", "neither 0 nor 1"),
            (FsMark, "threads", "65", "from 1 to 64"),
            (FsMark, "phases", "chown,unlink", "'chown,unlink' is not create, then"),
            (FsMark, "phases", "create,unlink,chown", "is not create, then"),
            (FsMark, "phases", "create,stat", "is not create, then"),
            (FsMark, "phase_sync", "1", "there are no phases"),
            (FsMark, "per_directory", "10", "there are no subdirectories"),
            (XfsIo, "file", "../x", "not the name of a file"),
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
