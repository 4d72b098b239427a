//! Options whose values are names: `rw`, `ioengine` and the like.
//!
//! Enters: the name as written. Leaves: what it stands for, or the names that would be right.

use super::fio_engines::FioEngine;
use super::issue::IoMethod;
use super::job::{Access, Mix, Pattern};
use super::nearest::nearest;
use super::values::{Fault, Value, bad};

/// The value of this name.
pub(super) fn choose<T: Copy>(text: &str, values: &[(&str, T)]) -> Value<T> {
    match values.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
            bad(format!("'{text}' is none of {}", names.join(", ")))
        }
    }
}

/// `rw`.
pub(super) fn pattern(text: &str) -> Value<Pattern> {
    let (name, modifier) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    let mixed = Mix::ReadWrite { read_percent: 50 };
    let both = |access: Access, mix: Mix| Some(Pattern { access, mix });
    let found = choose(
        name,
        &[
            ("read", both(Access::Sequential, Mix::Read)),
            ("write", both(Access::Sequential, Mix::Write)),
            ("trim", both(Access::Sequential, Mix::Trim)),
            ("randread", both(Access::Random, Mix::Read)),
            ("randwrite", both(Access::Random, Mix::Write)),
            ("randtrim", both(Access::Random, Mix::Trim)),
            ("rw", both(Access::Sequential, mixed)),
            ("readwrite", both(Access::Sequential, mixed)),
            ("randrw", both(Access::Random, mixed)),
            ("trimwrite", None),
            ("randtrimwrite", None),
        ],
    )?;
    match (found, modifier) {
        (Some(pattern), None) => Ok(pattern),
        (Some(_), Some(_)) => Err(Fault::NotNative(format!("'{text}': offset modifiers"))),
        (None, _) => Err(Fault::NotNative(format!("'{text}'"))),
    }
}

/// `ioengine`.
pub(super) fn io_method(text: &str) -> Value<IoMethod> {
    if let Some(method) = IoMethod::named(text) {
        return Ok(method);
    }
    if FioEngine::of(text) != FioEngine::Unknown {
        let names = IoMethod::ALL.map(IoMethod::name);
        return Err(Fault::NotNative(format!("'{text}' (it has {})", names.join(", "))));
    }
    let near = nearest(text, FioEngine::names(), 1);
    bad(match near.first() {
        Some(near) => format!("fio has no I/O engine '{text}'; did you mean {near}?"),
        None => format!("fio has no I/O engine '{text}'; write e.g. psync or io_uring"),
    })
}
