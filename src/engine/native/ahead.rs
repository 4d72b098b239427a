//! Transfers planned ahead, a lot at a time: what comes next is known without asking the clock or the kernel, and a
//! tight loop over the generators costs less than a visit an I/O.
//!
//! Enters: a [`Source`]. Leaves: runs of transfers that differ in their offsets only, or single transfers.

use super::method::Operation;
use super::source::{Again, Next, Source};
use crate::workload::DataDirection;

/// Transfers a lot. Small enough for the first-level cache, large enough to hide the visit.
pub(super) const LOT: usize = 64;

/// Transfers that follow each other and differ in their offsets only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) operation: Operation,
    /// Index into the instance's files.
    pub(super) file: usize,
    pub(super) length: u32,
    /// Where in the lot it ends.
    end: usize,
}

impl Run {
    /// One transfer of it.
    #[inline]
    pub(super) fn at(&self, offset: u64) -> Next {
        Next { file: self.file, operation: self.operation, offset, length: self.length }
    }

    fn goes_on_with(&self, next: &Next) -> bool {
        (self.operation, self.file, self.length) == (next.operation, next.file, next.length)
    }
}

/// A source and the transfers taken from it in advance.
pub(super) struct Ahead {
    source: Source,
    runs: Vec<Run>,
    offsets: Vec<u64>,
    /// The run of the next transfer, and its place in the lot.
    run: usize,
    at: usize,
    /// The first transfer after the files were begun again: it waits until everything before it was handed out.
    held: Option<(Next, Again)>,
    began_again: Option<Again>,
}

impl Ahead {
    /// Plans nothing yet.
    pub(super) fn new(source: Source) -> Ahead {
        let (runs, offsets) = (Vec::with_capacity(LOT), Vec::with_capacity(LOT));
        Ahead { source, runs, offsets, run: 0, at: 0, held: None, began_again: None }
    }

    /// The next planned transfer; `None` when the lot is used up: see [`Ahead::plan`].
    #[inline]
    pub(super) fn take(&mut self) -> Option<Next> {
        let run = self.runs.get(self.run)?;
        let next = run.at(self.offsets[self.at]);
        self.advance(1);
        Some(next)
    }

    /// What is left of the current run, with its offsets; `None` when the lot is used up.
    #[inline]
    pub(super) fn run(&self) -> Option<(Run, &[u64])> {
        let run = self.runs.get(self.run)?;
        Some((*run, self.offsets.get(self.at..run.end)?))
    }

    /// So many transfers of the current run were made.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        self.at += count;
        if self.runs.get(self.run).is_some_and(|run| run.end <= self.at) {
            self.run += 1;
        }
    }

    /// Plans another lot; false when the amount is done. Takes as long as a fast I/O: read the clock again.
    #[inline(never)]
    pub(super) fn plan(&mut self) -> bool {
        (self.run, self.at) = (0, 0);
        self.runs.clear();
        self.offsets.clear();
        self.began_again = None;
        if let Some((next, again)) = self.held.take() {
            self.began_again = Some(again);
            self.append(&next);
        }
        while self.offsets.len() < LOT {
            let Some(next) = self.source.next() else { break };
            if let Some(again) = self.source.began_again() {
                if !self.offsets.is_empty() {
                    self.held = Some((next, again));
                    break;
                }
                self.began_again = Some(again);
            }
            self.append(&next);
        }
        !self.offsets.is_empty()
    }

    fn append(&mut self, next: &Next) {
        self.offsets.push(next.offset);
        self.source.more_alike(next, LOT.saturating_sub(self.offsets.len()), &mut self.offsets);
        let end = self.offsets.len();
        match self.runs.last_mut() {
            Some(run) if run.goes_on_with(next) => run.end = end,
            _ => {
                let Next { operation, file, length, .. } = *next;
                self.runs.push(Run { operation, file, length, end });
            }
        }
    }

    /// Plans one transfer, in the direction that `steer` makes of the one drawn, and does not hand it out.
    pub(super) fn plan_one(&mut self, steer: impl FnOnce(DataDirection) -> DataDirection) -> Option<Next> {
        let next = self.source.next_steered(steer);
        self.began_again = self.source.began_again();
        next
    }

    /// Makes `next` the one to be taken.
    pub(super) fn hand_out(&mut self, next: Next) {
        (self.run, self.at) = (0, 0);
        self.runs.clear();
        self.offsets.clear();
        let Next { operation, file, length, offset } = next;
        self.offsets.push(offset);
        self.runs.push(Run { operation, file, length, end: 1 });
    }

    /// Begins the files again after a pass that ended: see [`Source::next_pass`].
    pub(super) fn next_pass(&mut self, read_back: u64) -> bool {
        self.source.next_pass(read_back)
    }

    /// What the lot begins again, if anything.
    pub(super) fn begins_again(&self) -> Option<Again> {
        self.began_again
    }

    /// The same, said once.
    pub(super) fn take_again(&mut self) -> Option<Again> {
        self.began_again.take()
    }

    /// Bytes not yet handed out.
    pub(super) fn bytes_left(&self) -> u64 {
        let mut from = self.at;
        let planned = self.runs.iter().skip(self.run).map(|run| {
            let count = run.end - std::mem::replace(&mut from, run.end);
            count as u64 * u64::from(run.length)
        });
        let held = self.held.map_or(0, |(next, _)| u64::from(next.length));
        self.source.bytes_left().saturating_add(planned.sum()).saturating_add(held)
    }
}
