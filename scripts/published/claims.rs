//! The claims of the studies, as data: what a study says in two of its figures, and which two of ours answer it.
//!
//! Enters: `claims/STUDY.toml`. Leaves: a [`Claim`] each, repeated for each entry of its `each` with {0}, {1} … replaced. It must not
//! know what was measured.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use crate::study::Found;

/// Levels, and the reserved names `run`, `job`, `metric` of a run, `column` of a published table.
pub(crate) type Place = BTreeMap<String, String>;

/// Two figures, or one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Quotient {
    /// The published table; empty for a run.
    #[serde(default)]
    pub(crate) file: String,
    /// What both figures have in common.
    at: Place,
    #[serde(default)]
    over: Place,
    under: Option<Place>,
}

impl Quotient {
    /// Where the first figure is.
    pub(crate) fn over(&self) -> Place {
        self.with(&self.over)
    }

    /// Where the second one is; `None`: the claim is about the first alone.
    pub(crate) fn under(&self) -> Option<Place> {
        // One figure has no side of its own.
        self.under.as_ref().map(|side| self.with(side))
    }

    fn with(&self, side: &Place) -> Place {
        self.at.iter().chain(side).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// A claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    /// The table it is read from.
    pub(crate) table: String,
    /// In one line.
    pub(crate) says: String,
    /// Its figures; `None`: it has none that were published.
    pub(crate) published: Option<Quotient>,
    /// The figures that answer it here.
    pub(crate) here: Option<Quotient>,
    /// Where the ratio lies if it is true: `below 1`, `above 1`, `0.8 to 1.25`.
    #[serde(default)]
    pub(crate) holds: String,
    /// Why nothing here answers it.
    pub(crate) not_there: Option<String>,
    /// Why an interval may be wide; written before the figures.
    #[serde(default)]
    pub(crate) unclear: String,
    /// Why the ratio may really lie elsewhere here; written before the figures.
    #[serde(default)]
    pub(crate) differs: String,
}

/// All claims of one file, in its order.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn read(text: &str) -> Found<Vec<Claim>> {
    let file: Table = text.parse()?;
    let mut claims = Vec::new();
    for written in file.get("claim").and_then(Value::as_array).ok_or("no claim")? {
        let mut written = written.as_table().ok_or("a claim is a table")?.clone();
        let each = written.remove("each").unwrap_or_else(|| Value::Array(vec![Value::Array(Vec::new())]));
        let each: Vec<Vec<String>> = each.try_into()?;
        for words in each {
            let claim: Claim = replaced(&Value::Table(written.clone()), &words).try_into()?;
            if claim.here.is_some() == claim.not_there.is_some() {
                return Err(format!("'{}' has figures here, or a reason why not", claim.says).into());
            }
            claims.push(claim);
        }
    }
    Ok(claims)
}

/// The same with {0}, {1} … replaced in every text.
fn replaced(value: &Value, words: &[String]) -> Value {
    match value {
        Value::String(text) => {
            let put = |text: String, (at, word): (usize, &String)| text.replace(&format!("{{{at}}}"), word);
            Value::String(words.iter().enumerate().fold(text.clone(), put))
        }
        Value::Table(table) => {
            Value::Table(table.iter().map(|(key, value)| (key.clone(), replaced(value, words))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STUDIES;
    use crate::judge::Holds;

    #[test]
    fn a_claim_is_repeated_for_each() {
        let text = "[[claim]]\neach = [[\"a\", \"1\"], [\"b\", \"2\"]]\ntable = \"t\"\nsays = \"{0} is {1}\"\nholds = \"above {1}\"\n\
                    here = { at = { metric = \"m{1}\", f = \"x\" }, over = { f = \"{0}\" }, under = { f = \"c\" } }\n";
        let claims = read(text).unwrap();
        let said: Vec<&str> = claims.iter().map(|claim| claim.says.as_str()).collect();
        assert_eq!(said, ["a is 1", "b is 2"]);
        let here = claims[1].here.clone().unwrap();
        assert_eq!((here.over()["f"].as_str(), here.over()["metric"].as_str()), ("b", "m2"));
        assert_eq!(here.under().unwrap()["f"], "c");
        assert!(read("[[claim]]\ntable = \"t\"\nsays = \"x\"\n").is_err(), "neither figures nor a reason");
    }

    #[test]
    fn every_claim_is_whole_and_its_published_figures_are_there() {
        let mut all = 0;
        for study in STUDIES {
            for claim in read(study.claims).unwrap() {
                all += 1;
                assert!(!claim.says.contains('{') && !claim.table.contains('{'), "{claim:?}");
                if claim.here.is_some() {
                    assert!(Holds::parse(&claim.holds).is_some(), "{claim:?}");
                }
                let figure =
                    claim.published.as_ref().map(|published| crate::judge::published(published).unwrap());
                assert!(figure.is_none_or(|figure| figure.is_finite() && figure > 0.0), "{claim:?}");
            }
        }
        assert!(all > 120, "{all}");
    }
}
