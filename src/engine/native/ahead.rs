//! Transfers planned ahead, a lot at a time: what comes next is known without asking the clock or the kernel, and a
//! tight loop over the generators costs less than a visit an I/O.

use super::source::{Next, Source};
use crate::workload::DataDirection;

/// Transfers a lot. Small enough for the first-level cache, large enough to hide the visit.
const LOT: usize = 64;

/// A source and the transfers taken from it in advance.
pub(super) struct Ahead {
    source: Source,
    lot: Vec<Next>,
    /// The next of the lot to be handed out.
    at: usize,
    /// The first transfer after the files were begun again: it waits until everything before it was handed out.
    held: Option<Next>,
    began_again: bool,
}

impl Ahead {
    /// Plans nothing yet.
    pub(super) fn new(source: Source) -> Ahead {
        Ahead { source, lot: Vec::with_capacity(LOT), at: 0, held: None, began_again: false }
    }

    /// The next planned transfer; `None` when the lot is used up: see [`Ahead::plan`].
    #[inline]
    pub(super) fn take(&mut self) -> Option<Next> {
        let next = *self.lot.get(self.at)?;
        self.at += 1;
        Some(next)
    }

    /// Plans another lot; false when the amount is done. Takes as long as a fast I/O: read the clock again.
    #[inline(never)]
    pub(super) fn plan(&mut self) -> bool {
        self.lot.clear();
        self.at = 0;
        self.began_again = self.held.is_some();
        self.lot.extend(self.held.take());
        while self.lot.len() < LOT {
            let Some(next) = self.source.next() else { break };
            if self.source.began_again() {
                if !self.lot.is_empty() {
                    self.held = Some(next);
                    break;
                }
                self.began_again = true;
            }
            self.lot.push(next);
        }
        !self.lot.is_empty()
    }

    /// Plans one transfer, in the direction that `steer` makes of the one drawn, and does not hand it out.
    pub(super) fn plan_one(&mut self, steer: impl FnOnce(DataDirection) -> DataDirection) -> Option<Next> {
        let next = self.source.next_steered(steer);
        self.began_again = self.source.began_again();
        next
    }

    /// Makes `next` the one to be taken.
    pub(super) fn hand_out(&mut self, next: Next) {
        self.lot.clear();
        self.at = 0;
        self.lot.push(next);
    }

    /// Whether the lot begins the files again.
    pub(super) fn began_again(&self) -> bool {
        self.began_again
    }

    /// The seed of the instance.
    pub(super) fn seed(&self) -> u64 {
        self.source.seed()
    }

    /// Bytes not yet handed out.
    pub(super) fn bytes_left(&self) -> u64 {
        let planned = self.lot[self.at..].iter().chain(&self.held);
        self.source.bytes_left().saturating_add(planned.map(|next| u64::from(next.length)).sum())
    }
}
