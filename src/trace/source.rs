//! What gives the events of a trace, and what it gives beside events: holes and names.
//!
//! Enters: files, by the front ends. Leaves: [`Item`]s in the order of time.

use std::collections::HashMap;

use super::error::TraceError;
use super::event::{Action, Event};
use super::unwritten::Unwritten;

/// Events that the kernel or the tool could not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// How many, where it is known.
    pub count: Option<u64>,
    /// The last time that is known to be whole; 0 where the file does not say.
    pub from_ns: u64,
    /// The first time from which the stream is whole again.
    pub until_ns: u64,
}

/// What a source gives next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// An event.
    Event(Event),
    /// A hole. It comes before all events later than its begin, where the file allows that.
    Lost(Lost),
    /// What is missing without a place; it comes last.
    Unwritten(Unwritten),
}

impl Item {
    /// Where it belongs in the order of time.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        match self {
            Item::Event(event) => event.time_ns,
            Item::Lost(lost) => lost.from_ns,
            Item::Unwritten(_) => u64::MAX,
        }
    }
}

/// Anything that gives the events of a trace in the order of time.
pub trait Source {
    /// The next item; nothing at the end.
    ///
    /// # Errors
    /// The file cannot be read, or is not what it seemed to be. Nothing more is to be asked of it.
    fn next(&mut self, names: &mut Names) -> Result<Option<Item>, TraceError>;

    /// Puts the next item in the place of this one. Returns whether there was one.
    ///
    /// # Errors
    /// As [`Source::next`].
    fn replace(&mut self, names: &mut Names, item: &mut Item) -> Result<bool, TraceError> {
        match self.next(names)? {
            Some(next) => {
                *item = next;
                Ok(true)
            }
            None => Ok(false),
        }
    }
}

/// How many different names are kept apart.
const NAMES: usize = 4096;

/// Names of events that have no [`Action`] of their own, in the order they were met.
#[derive(Debug, Default)]
pub struct Names {
    list: Vec<String>,
    places: HashMap<String, u16>,
}

impl Names {
    /// The action that stands for this name. Beyond 4096 names all share the last place.
    pub fn action(&mut self, name: &str) -> Action {
        if let Some(place) = self.places.get(name) {
            return Action::Other(*place);
        }
        let name = if self.list.len() < NAMES { name } else { "(more names)" };
        let place = u16::try_from(self.list.len().min(NAMES)).unwrap_or(u16::MAX);
        if self.list.len() <= NAMES {
            self.list.push(name.to_owned());
            self.places.insert(name.to_owned(), place);
        }
        Action::Other(place)
    }

    /// The names so far.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.list
    }
}

/// All that a source gives.
#[cfg(test)]
pub(super) fn all_items(mut source: impl Source) -> Result<Vec<Item>, String> {
    let mut names = Names::default();
    std::iter::from_fn(|| source.next(&mut names).map_err(|error| error.to_string()).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_grow_without_end() {
        let mut names = Names::default();
        for i in 0..5000 {
            names.action(&format!("event_{i}"));
        }
        assert_eq!(names.all().len(), NAMES + 1);
        assert_eq!(names.action("event_4999"), Action::Other(4096));
        assert_eq!(names.action("event_7"), Action::Other(7));
    }
}
