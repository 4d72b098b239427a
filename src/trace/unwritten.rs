//! Events that happened and of which a trace has no record, nobody knows where: the kernel counted more than it wrote.
//!
//! Enters: the counts, or the file beside the pages of a kept trace that has them. Leaves: the same. A trace that others took has no
//! such file, because whoever took it did not count.

use super::error::TraceError;
use super::source::{Item, Names, Source};

/// The file's name.
pub const UNWRITTEN_FILE: &str = "unwritten";

/// How many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// Completions.
    pub ends: u64,
    /// Others.
    pub others: u64,
}

impl Unwritten {
    /// No such text is longer.
    pub(super) const LONGEST: u64 = 100;

    /// `completions 3` and `others 0`, a line each.
    #[must_use]
    pub fn text(self) -> String {
        format!("completions {}\nothers {}\n", self.ends, self.others)
    }

    /// Reads that.
    pub(super) fn parse(text: &str) -> Option<Unwritten> {
        let mut lines = text.lines();
        let ends = lines.next()?.strip_prefix("completions ")?.parse().ok()?;
        let others = lines.next()?.strip_prefix("others ")?.parse().ok()?;
        lines.next().is_none().then_some(Unwritten { ends, others })
    }
}

/// Gives them once.
impl Source for Option<Unwritten> {
    fn next(&mut self, _: &mut Names) -> Result<Option<Item>, TraceError> {
        Ok(self.take().map(Item::Unwritten))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_reads_back_and_others_do_not() {
        let some = Unwritten { ends: 3, others: u64::MAX };
        assert_eq!(Unwritten::parse(&some.text()), Some(some));
        for wrong in ["", "completions 3\n", "completions x\nothers 0\n", "completions 3\nothers 0\nmore 1\n"]
        {
            assert_eq!(Unwritten::parse(wrong), None, "{wrong}");
        }
    }
}
