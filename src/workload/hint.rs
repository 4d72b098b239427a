//! What helps somebody whose request was wrong.
//!
//! Enters: words from whoever found the mistake. Leaves: the line behind `hint:`, and whether it is about this mistake at all.

use std::fmt;

/// What helps, without the word `hint:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    text: String,
    page: bool,
}

impl Hint {
    /// Where such things are described: says nothing of this mistake, and gives way to a hint that does.
    #[must_use]
    pub fn page(text: impl Into<String>) -> Hint {
        Hint { text: text.into(), page: true }
    }

    /// Whether it only says where such things are described.
    #[must_use]
    pub fn is_page(&self) -> bool {
        self.page
    }
}

impl<T: Into<String>> From<T> for Hint {
    fn from(text: T) -> Hint {
        Hint { text: text.into(), page: false }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
