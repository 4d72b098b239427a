//! A setting of an engine: its name and what its value may be.
//!
//! Enters: a value as written. Leaves: the value as the engine reads it: sizes in bytes, times in seconds, truth values 0 or 1,
//! commands a line each. It must not know what the setting is called on a tool's command line (that is the engine's).

use crate::units::{parse_bytes, parse_duration_s};

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name in `[ENGINE]` and in levels.
    pub name: &'static str,
    /// What it may be.
    pub value: Value,
}

impl Setting {
    /// A setting of this name.
    #[must_use]
    pub const fn new(name: &'static str, value: Value) -> Setting {
        Setting { name, value }
    }
}

/// What a setting's value may be.
#[derive(Clone, Copy, Debug)]
pub enum Value {
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
    /// A language of the tool's own: the function gives what the engine reads, or a clause that says what is wrong.
    Own(fn(&str) -> Result<String, String>),
}

impl Value {
    /// The value as the engine reads it.
    ///
    /// # Errors
    /// A clause that says what would be right.
    pub fn read(self, text: &str) -> Result<String, String> {
        let between = |number: Option<u64>, from: u64, to: u64, what: &str| {
            let number = number.filter(|number| (from..=to).contains(number));
            number
                .map(|number| number.to_string())
                .ok_or_else(|| format!("'{text}' is not {what} from {from} to {to}"))
        };
        match self {
            Value::Whole(from, to) => between(text.parse().ok(), from, to, "a whole number"),
            Value::Size(from, to) => {
                between(parse_bytes(text, 1024).ok(), from, to, "a size, e.g. 4k, in bytes")
            }
            Value::Seconds(from, to) => {
                let seconds = parse_duration_s(text, 1.0)?;
                let whole = (seconds.fract() == 0.0 && seconds >= 0.0).then_some(seconds as u64);
                between(whole, from, to, "a whole number of seconds")
            }
            Value::Number => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && number > 0.0 => Ok(text.to_owned()),
                _ => Err(format!("'{text}' is not a number above 0")),
            },
            Value::Truth => match text {
                "0" | "false" => Ok("0".to_owned()),
                "1" | "true" => Ok("1".to_owned()),
                _ => Err(format!("'{text}' is neither 0 nor 1")),
            },
            Value::File => Ok(text.to_owned()),
            Value::Name => {
                let plain = !text.is_empty() && !text.starts_with(['.', '-']) && !text.contains('/');
                let wrong = || format!("'{text}' is not the name of a file in the trial's directory");
                if plain { Ok(text.to_owned()) } else { Err(wrong()) }
            }
            Value::Own(read) => read(text),
        }
    }

    /// Whether it is a file, whose path is below the directory of what was read.
    #[must_use]
    pub fn is_file(self) -> bool {
        matches!(self, Value::File)
    }
}

/// The value that was given to a setting; `None`: none was, and the engine's default holds.
pub(super) fn said<'s>(settings: &'s [(String, String)], name: &str) -> Option<&'s str> {
    settings.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// A number that was given, or `otherwise`; `None`: what was given is no number.
pub(super) fn number(settings: &[(String, String)], name: &str, otherwise: u64) -> Option<u64> {
    said(settings, name).map_or(Some(otherwise), |value| value.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_base_units() {
        for (value, text, read) in [
            (Value::Whole(1, 9), "8", "8"),
            (Value::Size(0, 1 << 20), "16k", "16384"),
            (Value::Seconds(2, 600), "1m", "60"),
            (Value::Number, "2.5", "2.5"),
            (Value::Truth, "true", "1"),
            (Value::Name, "file", "file"),
        ] {
            assert_eq!(value.read(text).as_deref(), Ok(read), "{value:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (value, text, words) in [
            (Value::Whole(1, 9), "0", "'0' is not a whole number from 1 to 9"),
            (Value::Size(1, 4096), "8k", "'8k' is not a size, e.g. 4k, in bytes from 1 to 4096"),
            (Value::Seconds(2, 600), "2500ms", "a whole number of seconds from 2"),
            (Value::Number, "-1", "above 0"),
            (Value::Truth, "yes", "neither 0 nor 1"),
            (Value::Name, "../x", "not the name of a file"),
        ] {
            let message = value.read(text).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }
}
