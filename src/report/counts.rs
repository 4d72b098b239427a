//! Texts that differ only in counts, made one: `sda: 12 I/Os in 2 s` and `sda: 40 I/Os in 2 s` are `sda: 12 to 40 I/Os in 2 s`.
//!
//! Enters: sentences. Leaves: sentences. A count is a word of digits; a name that has digits in it (`loop0`, `bs=4k`) is none.

/// A sentence with the range of each of its counts.
pub(super) struct Counted {
    words: Vec<Word>,
}

/// One word: what stands around its count, and the least and the largest count; without a count the word is in `before`.
struct Word {
    before: String,
    range: Option<[String; 2]>,
    after: String,
}

impl Word {
    fn new(word: &str) -> Word {
        let number = word.trim_start_matches('(').trim_end_matches([',', ';', ':', ')', '.']);
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Word { before: word.to_owned(), range: None, after: String::new() };
        }
        let at = word.len() - word.trim_start_matches('(').len();
        let (before, after) = (word[..at].to_owned(), word[at + number.len()..].to_owned());
        Word { before, range: Some([number.to_owned(), number.to_owned()]), after }
    }

    fn is_like(&self, other: &Word) -> bool {
        let shape = |word: &Word| (word.before.clone(), word.range.is_some(), word.after.clone());
        shape(self) == shape(other)
    }
}

impl Counted {
    /// One sentence.
    pub(super) fn new(text: &str) -> Counted {
        Counted { words: text.split(' ').map(Word::new).collect() }
    }

    /// Takes another sentence in where it differs in counts only.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let other = Counted::new(text);
        let alike = self.words.len() == other.words.len()
            && self.words.iter().zip(&other.words).all(|(one, other)| one.is_like(other));
        if !alike {
            return false;
        }
        // Digits without leading zeros: the longer number is the larger one.
        let size = |digits: &String| (digits.len(), digits.clone());
        for (word, other) in self.words.iter_mut().zip(other.words) {
            let (Some([least, most]), Some([new, _])) = (&mut word.range, other.range) else { continue };
            if size(&new) < size(least) {
                *least = new;
            } else if size(&new) > size(most) {
                *most = new;
            }
        }
        true
    }

    /// The sentence.
    pub(super) fn text(&self) -> String {
        let word = |word: &Word| match &word.range {
            None => word.before.clone(),
            Some([least, most]) if least == most => format!("{}{least}{}", word.before, word.after),
            Some([least, most]) => format!("{}{least} to {most}{}", word.before, word.after),
        };
        self.words.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Sentences in the order of their first use, those that differ in counts only as one.
pub(super) fn merged<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut known: Vec<Counted> = Vec::new();
    for text in texts {
        if !known.iter_mut().any(|one| one.takes(text)) {
            known.push(Counted::new(text));
        }
    }
    known.iter().map(Counted::text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_that_differ_in_counts_are_one() {
        let texts =
            ["vda: 670 I/Os in 2 s", "vdb: 3 I/Os in 2 s", "vda: 9 I/Os in 2 s", "vda: 1000 I/Os in 2 s"];
        assert_eq!(merged(texts), ["vda: 9 to 1000 I/Os in 2 s", "vdb: 3 I/Os in 2 s"]);
        assert_eq!(
            merged(["after 3 (of 6) rounds", "after 4 (of 6) rounds"]),
            ["after 3 to 4 (of 6) rounds"]
        );
    }

    #[test]
    fn digits_in_names_are_no_counts() {
        let names = ["mkfs of loop0 warned", "mkfs of loop1 warned", "bs=4 is 0.5 late", "bs=8 is 0.6 late"];
        assert_eq!(merged(names), names);
    }
}
