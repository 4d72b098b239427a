//! A value with the place where it was written, so that a mistake in it can be shown there.

use crate::workload::Place;

/// A value and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) place: Place,
}
