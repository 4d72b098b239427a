//! What a run is among several of one command.
//!
//! Enters: the words that name all of them, and what names this one. Leaves: the command line that runs this one alone.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::record::Together;

/// What a run is among several of one command.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Among {
    /// The words of the command line that name the runs.
    pub(super) words: Vec<PathBuf>,
    /// What names this one alone.
    pub(super) own: String,
    /// What all of them have in common.
    pub(super) together: Together,
    /// There are others; a directory may have one file.
    pub(super) has_others: bool,
}

impl Among {
    /// The command line that runs this one alone: `set` are options with what they are for this one, `None` where it has none.
    /// `takes_a_value`: whether the word behind this one is its value.
    pub(super) fn alone(
        &self,
        words: Vec<String>,
        set: &[(&str, Option<String>)],
        takes_a_value: fn(&str) -> bool,
    ) -> Vec<String> {
        let mut left: Vec<&OsStr> = self.words.iter().map(|word| word.as_os_str()).collect();
        let mut alone: Vec<String> = Vec::new();
        let mut is_named = false;
        for word in words {
            let is_value = alone.last().is_some_and(|before| takes_a_value(before));
            match left.iter().position(|named| !is_value && *named == OsStr::new(&word)) {
                None => alone.push(word),
                Some(at) => {
                    left.remove(at);
                    if !std::mem::replace(&mut is_named, true) {
                        alone.push(self.own.clone());
                    }
                }
            }
        }
        for (option, value) in set {
            remove(&mut alone, option, takes_a_value);
            if let Some(value) = value {
                alone.splice(2..2, [(*option).to_owned(), value.clone()]);
            }
        }
        alone
    }
}

/// Takes an option, with its value if it has one, out of a command line.
fn remove(words: &mut Vec<String>, option: &str, takes_a_value: fn(&str) -> bool) {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let is_it = |word: &String| {
        word == option
            || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))
            || in_cluster(word, option, takes_a_value).is_some()
    };
    let Some(at) = words[..end].iter().position(is_it) else { return };
    let cluster = in_cluster(&words[at], option, takes_a_value);
    let is_last = words[at] == option || cluster.is_some_and(|place| place + 1 == words[at].len());
    let flags = cluster.filter(|place| *place > 1).map(|place| words[at][..place].to_owned());
    let behind = if is_last && takes_a_value(option) { 2 } else { 1 };
    words.splice(at..(at + behind).min(words.len()), flags);
}

/// Where an option of one letter is in a word of several, as in `-qo` and `-opage.html`.
fn in_cluster(word: &str, option: &str, takes_a_value: fn(&str) -> bool) -> Option<usize> {
    let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1)?.chars().next()?;
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    for (at, found) in letters.char_indices() {
        if found == letter {
            return Some(at + 1);
        }
        // What follows is its value.
        if takes_a_value(&format!("-{found}")) {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_the_command_line_that_runs_it_alone() {
        let among = Among {
            words: vec!["a.fio".into(), "b.fio".into()],
            own: "b.fio".to_owned(),
            together: Together { begun_unix_ns: 1, sharing_alpha: 2 },
            has_others: true,
        };
        let without = |words: &str, option: &str| {
            let mut words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            remove(&mut words, option, |word| matches!(word, "-o" | "-t" | "--output"));
            words.join(" ")
        };
        for (words, left) in [
            ("run -o a.md x", "run x"),
            ("run -oa.md x", "run x"),
            ("run -qo a.md x", "run -q x"),
            ("run -qoa.md x", "run -q x"),
            ("run -tloop:1g x", "run -tloop:1g x"),
            ("run x -- -o", "run x -- -o"),
        ] {
            assert_eq!(without(words, "-o"), left);
        }
        assert_eq!(without("run --force x", "--force"), "run x");
        let alone = |words: &str, set: &[(&str, Option<&str>)]| {
            let words = words.split(' ').map(str::to_owned).collect();
            let set: Vec<_> = set.iter().map(|(option, value)| (*option, value.map(str::to_owned))).collect();
            among
                .alone(words, &set, |word| matches!(word, "--name" | "--alpha" | "--vary" | "--html"))
                .join(" ")
        };
        let alpha = ("--alpha", Some("0.025"));
        assert_eq!(
            alone("assay run a.fio b.fio --vary bs=4k,8k", &[alpha, ("--html", None)]),
            "assay run --alpha 0.025 b.fio --vary bs=4k,8k"
        );
        assert_eq!(
            alone(
                "assay run --name night --alpha 5% -q a.fio b.fio --html page.html",
                &[("--html", None), alpha, ("--name", Some("night/b"))]
            ),
            "assay run --name night/b --alpha 0.025 -q b.fio"
        );
        assert_eq!(
            alone("assay run --vary a.fio a.fio b.fio --name=x -- --name=y", &[("--name", Some("x/b"))]),
            "assay run --name x/b --vary a.fio b.fio -- --name=y"
        );
    }
}
