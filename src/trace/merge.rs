//! Several files of one trace as one stream in the order of time.
//!
//! Enters: sources, each in order. Leaves: their items in order; of equal times, that of the first source comes first.

use super::error::TraceError;
use super::source::{Item, Names, Source};

/// Several sources as one.
#[derive(Default)]
pub struct Merged {
    sources: Vec<Box<dyn Source + Send>>,
    /// What each source gives next.
    next: Vec<Item>,
    /// The times of `next`, beside each other so that the earliest is found quickly.
    times: Vec<u64>,
    started: bool,
}

impl Merged {
    /// Merges these.
    #[must_use]
    pub fn new(sources: Vec<Box<dyn Source + Send>>) -> Merged {
        Merged { sources, ..Merged::default() }
    }

    /// Takes the first item of every source.
    fn start(&mut self, names: &mut Names) -> Result<(), TraceError> {
        self.started = true;
        let mut left = Vec::with_capacity(self.sources.len());
        for mut source in std::mem::take(&mut self.sources) {
            if let Some(item) = source.next(names)? {
                self.times.push(item.time_ns());
                self.next.push(item);
                left.push(source);
            }
        }
        self.sources = left;
        Ok(())
    }
}

impl Merged {
    /// Where the earliest item waits; nothing at the end.
    fn earliest(&mut self, names: &mut Names) -> Result<Option<usize>, TraceError> {
        if !self.started {
            self.start(names)?;
        }
        let mut earliest = None;
        for (place, time) in self.times.iter().enumerate() {
            if earliest.is_none_or(|(_, first)| *time < first) {
                earliest = Some((place, *time));
            }
        }
        Ok(earliest.map(|(place, _)| place))
    }

    /// Lets the source at this place give its next item.
    fn refill(&mut self, place: usize, names: &mut Names) -> Result<(), TraceError> {
        if self.sources[place].replace(names, &mut self.next[place])? {
            self.times[place] = self.next[place].time_ns();
        } else {
            drop(self.sources.remove(place));
            self.next.remove(place);
            self.times.remove(place);
        }
        Ok(())
    }

    /// Adds items to a batch until it holds so many. Returns whether there may be more.
    pub(super) fn read(
        &mut self,
        names: &mut Names,
        batch: &mut Vec<Item>,
        most: usize,
    ) -> Result<bool, TraceError> {
        while batch.len() < most {
            let Some(place) = self.earliest(names)? else { return Ok(false) };
            // A slice is copied from place to place, where a value would go through the stack.
            batch.extend_from_slice(&self.next[place..=place]);
            self.refill(place, names)?;
        }
        Ok(true)
    }
}

impl Source for Merged {
    fn next(&mut self, names: &mut Names) -> Result<Option<Item>, TraceError> {
        let Some(place) = self.earliest(names)? else { return Ok(None) };
        let item = self.next[place];
        self.refill(place, names)?;
        Ok(Some(item))
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Action, Event};
    use super::*;

    struct Listed(Vec<u64>, u32);

    impl Source for Listed {
        fn next(&mut self, _: &mut Names) -> Result<Option<Item>, TraceError> {
            Ok(self.0.pop().map(|time| Item::Event(Event::at(time, self.1, 0, Action::Plug))))
        }
    }

    #[test]
    fn sources_are_merged_by_time() {
        let listed = |times: &[u64], cpu| -> Box<dyn Source + Send> {
            Box::new(Listed(times.iter().rev().copied().collect(), cpu))
        };
        let mut merged = Merged::new(vec![listed(&[1, 5, 5], 0), listed(&[], 1), listed(&[0, 5, 9], 2)]);
        let mut found = Vec::new();
        while let Some(Item::Event(event)) = merged.next(&mut Names::default()).unwrap() {
            found.push((event.time_ns, event.cpu));
        }
        assert_eq!(found, [(0, 2), (1, 0), (5, 0), (5, 0), (5, 2), (9, 2)]);
    }
}
