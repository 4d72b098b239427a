//! Reading TOML values one by one, each with its line, so that every mistake is found and placed.
//!
//! Enters: a parsed document with spans. Leaves: typed values, or mistakes that say what would be right. It must not know
//! which keys an experiment has.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::errors::Mistake;
use super::placed::Placed;
use crate::workload::{Place, nearest, shortened};

pub(super) type Item<'d> = Spanned<DeValue<'d>>;

/// The document's text and the mistakes found in it.
pub(super) struct Reader<'t> {
    text: &'t str,
    origin: Arc<str>,
    mistakes: RefCell<Vec<Mistake>>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str, origin: &str) -> Reader<'t> {
        Reader { text, origin: Arc::from(origin), mistakes: RefCell::new(Vec::new()) }
    }

    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        self.mistakes.into_inner()
    }

    /// The place of a byte of the text.
    pub(super) fn place(&self, byte: usize) -> Place {
        let before = self.text.get(..byte).unwrap_or(self.text);
        Place { origin: Arc::clone(&self.origin), line: before.matches('\n').count() as u32 + 1 }
    }

    pub(super) fn mistake(&self, at: &Range<usize>, message: impl Into<String>) {
        let place = self.place(at.start);
        self.mistakes.borrow_mut().push(Mistake { place, message: message.into() });
    }

    fn placed<T>(&self, item: &Item<'_>, value: T) -> Placed<T> {
        Placed { value, place: self.place(item.span().start) }
    }

    fn wrong_type(&self, key: &str, item: &Item<'_>, wanted: &str) {
        self.mistake(&item.span(), format!("{key} is {}; write {wanted}", described(item.get_ref())));
    }

    /// The entries in the order they are written.
    pub(super) fn entries<'a, 'd>(
        &self,
        table: &'a DeTable<'d>,
    ) -> Vec<(&'a str, Range<usize>, &'a Item<'d>)> {
        let mut entries: Vec<_> =
            table.iter().map(|(key, item)| (key.get_ref().as_ref(), key.span(), item)).collect();
        entries.sort_by_key(|(_, span, _)| span.start);
        entries
    }

    /// Reports a key that is none of `known`.
    pub(super) fn unknown_key(&self, key: &str, at: &Range<usize>, table: &str, known: &[&str]) {
        let within = if table.is_empty() { String::new() } else { format!(" in {table}") };
        let advice = match nearest(key, known.iter().copied(), 1).first() {
            Some(near) => format!("did you mean {near}?"),
            None => format!("known are {}", known.join(", ")),
        };
        let key = shortened(key);
        self.mistake(at, format!("unknown key '{key}'{within}; {advice}"));
    }

    pub(super) fn table<'a, 'd>(&self, key: &str, item: &'a Item<'d>) -> Option<&'a DeTable<'d>> {
        let table = item.get_ref().as_table();
        if table.is_none() {
            self.wrong_type(key, item, &format!("a table, e.g. [{key}]"));
        }
        table
    }

    pub(super) fn list<'a, 'd>(&self, key: &str, item: &'a Item<'d>) -> Option<Vec<&'a Item<'d>>> {
        let list = item.get_ref().as_array().map(|array| array.iter().collect());
        if list.is_none() {
            self.wrong_type(key, item, "a list in [ ]");
        }
        list
    }

    pub(super) fn text(&self, key: &str, item: &Item<'_>) -> Option<Placed<String>> {
        let text = item.get_ref().as_str().map(|text| self.placed(item, text.to_owned()));
        if text.is_none() {
            self.wrong_type(key, item, "a text in quotes");
        }
        text
    }

    /// A text, or a number or truth value as it is written (0 and 1 for false and true, as fio wants them).
    pub(super) fn scalar(&self, key: &str, item: &Item<'_>) -> Option<Placed<String>> {
        let text = match item.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Boolean(value) => u8::from(*value).to_string(),
            DeValue::Integer(_) | DeValue::Float(_) => {
                self.text.get(item.span()).unwrap_or("").replace('_', "")
            }
            _ => {
                self.wrong_type(key, item, "a text or a number");
                return None;
            }
        };
        Some(self.placed(item, text))
    }

    pub(super) fn whole(&self, key: &str, item: &Item<'_>) -> Option<Placed<u64>> {
        let number = item.get_ref().as_integer().and_then(|digits| digits.as_str().parse().ok());
        if number.is_none() {
            self.wrong_type(key, item, "a whole number");
        }
        number.map(|number| self.placed(item, number))
    }

    pub(super) fn float(&self, key: &str, item: &Item<'_>) -> Option<f64> {
        let digits = match item.get_ref() {
            DeValue::Float(float) => float.as_str(),
            DeValue::Integer(integer) => integer.as_str(),
            _ => "",
        };
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        if number.is_none() {
            self.wrong_type(key, item, "a number");
        }
        number
    }

    pub(super) fn truth(&self, key: &str, item: &Item<'_>) -> Option<bool> {
        let truth = item.get_ref().as_bool();
        if truth.is_none() {
            self.wrong_type(key, item, "true or false");
        }
        truth
    }

    pub(super) fn texts(&self, key: &str, item: &Item<'_>) -> Option<Vec<String>> {
        let items = self.list(key, item)?;
        let texts: Vec<String> =
            items.iter().filter_map(|item| self.scalar(key, item)).map(|text| text.value).collect();
        (texts.len() == items.len()).then_some(texts)
    }
}

fn described(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
