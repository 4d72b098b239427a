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
            remove(&mut alone, option);
            if let Some(value) = value {
                alone.splice(2..2, [(*option).to_owned(), value.clone()]);
            }
        }
        alone
    }
}

/// Takes an option with its value out of a command line.
fn remove(words: &mut Vec<String>, option: &str) {
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let is_it =
        |word: &String| word == option || word.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
    if let Some(at) = words[..end].iter().position(is_it) {
        let with_value = if words[at] == option { 2 } else { 1 };
        words.drain(at..(at + with_value).min(words.len()));
    }
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
