//! A file that came with a trial: what a hook left behind, what it printed, or what an observer keeps.
//!
//! Enters: a name and bytes. Leaves: the same, base64 in JSON. A name comes from elsewhere (a hook, a store that anybody may have
//! made): only names without a directory in them are names.

use serde::{Deserialize, Serialize};

use super::histogram::base64_bytes;

/// Letters of a name.
const LONGEST_NAME: usize = 100;

/// A file kept with a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptFile {
    /// Its name, as [`KeptFile::is_name`] allows it.
    pub name: String,
    /// Its contents (base64 in JSON).
    #[serde(with = "base64_bytes")]
    pub bytes: Vec<u8>,
}

impl KeptFile {
    /// Whether a file may be kept, and written out again, under this name: letters, digits, `.`, `_` and `-`, 100 at most, the
    /// first neither a point nor a dash.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        !name.is_empty()
            && name.len() <= LONGEST_NAME
            && !name.starts_with(['.', '-'])
            && name.chars().all(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_no_other_directory() {
        for good in ["a", "trace.txt", "after.out", "x-1_2.gz"] {
            assert!(KeptFile::is_name(good), "{good}");
        }
        let long = "x".repeat(101);
        for bad in
            ["", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "-rf", "a b", "a\nb", "ä", "a\0", &long]
        {
            assert!(!KeptFile::is_name(bad), "{bad:?}");
        }
    }

    #[test]
    fn bytes_survive_json() {
        let file = KeptFile { name: "x".to_owned(), bytes: vec![0, 255, b'"'] };
        let json = serde_json::to_string(&file).unwrap();
        assert_eq!(json, "{\"name\":\"x\",\"bytes\":\"AP8i\"}");
        assert_eq!(serde_json::from_str::<KeptFile>(&json).unwrap(), file);
    }
}
