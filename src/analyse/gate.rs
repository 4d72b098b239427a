//! Which verdicts a gate does not let pass.
//!
//! Enters: a verdict. Leaves: whether it holds. It must not know what is done then.

use super::comparison::{Comparison, Verdict};

/// What does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Which way a difference must go; `None`: no difference counts.
    pub of: Option<Gated>,
    /// One below δ counts, too.
    pub however_little: bool,
    /// What could not be decided counts, too.
    pub undecided: bool,
}

/// Which way a difference must go to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gated {
    /// The candidate is worse.
    Worse,
    /// Either way.
    Either,
}

impl Default for Gate {
    /// What is slower by more than δ.
    fn default() -> Gate {
        Gate { of: Some(Gated::Worse), however_little: false, undecided: false }
    }
}

impl Gate {
    /// Whether it holds of a comparison.
    #[must_use]
    pub fn holds_for(self, comparison: &Comparison) -> bool {
        self.holds_of(&comparison.verdict, comparison.is_better())
    }

    /// Whether it holds of a verdict, and of what is better or worse by however little.
    #[must_use]
    pub fn holds_of(self, verdict: &Verdict, is_better: Option<bool>) -> bool {
        let way = match verdict {
            _ if self.however_little => is_better,
            // What is slower, by how much is not known, is not known to be no slower.
            Verdict::Faster { beyond_delta } if *beyond_delta || self.undecided => Some(true),
            Verdict::Slower { beyond_delta } if *beyond_delta || self.undecided => Some(false),
            _ => None,
        };
        let differs = match self.of {
            None => false,
            Some(Gated::Worse) => way == Some(false),
            Some(Gated::Either) => way.is_some(),
        };
        differs || (self.undecided && is_open(verdict))
    }
}

/// Whether nothing was decided.
fn is_open(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::NotComparable | Verdict::Undecided { .. } | Verdict::TooFew { .. } | Verdict::NotMeasured(_)
    )
}
