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
    /// The command line that runs this one alone.
    /// `takes_a_value`: whether the word behind this one is its value.
    pub(super) fn alone(
        &self,
        words: Vec<String>,
        name: Option<&str>,
        alpha: f64,
        takes_a_value: fn(&str) -> bool,
    ) -> Vec<String> {
        let mut left: Vec<&OsStr> = self.words.iter().map(|word| word.as_os_str()).collect();
        let mut alone: Vec<String> = Vec::new();
        let mut is_named = false;
        for word in words {
            let before = alone.last().cloned().unwrap_or_default();
            let is_value = takes_a_value(&before);
            if let Some(at) = left.iter().position(|named| !is_value && *named == OsStr::new(&word)) {
                left.remove(at);
                if !std::mem::replace(&mut is_named, true) {
                    alone.push(self.own.clone());
                }
                continue;
            }
            alone.push(match name {
                Some(name) if before == "--name" => name.to_owned(),
                Some(name) if word.starts_with("--name=") => format!("--name={name}"),
                _ => word,
            });
        }
        if self.together.sharing_alpha > 1 {
            let given = alone.iter().position(|word| word == "--alpha" || word.starts_with("--alpha="));
            if let Some(at) = given {
                alone.drain(at..at + if alone[at] == "--alpha" { 2 } else { 1 });
            }
            alone.splice(2..2, ["--alpha".to_owned(), alpha.to_string()]);
        }
        alone
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
        let alone = |words: &str, name: Option<&str>| {
            let words = words.split(' ').map(str::to_owned).collect();
            among.alone(words, name, 0.025, |word| matches!(word, "--name" | "--alpha" | "--vary")).join(" ")
        };
        assert_eq!(
            alone("assay run a.fio b.fio --vary bs=4k,8k", None),
            "assay run --alpha 0.025 b.fio --vary bs=4k,8k"
        );
        assert_eq!(
            alone("assay run --name night --alpha 5% -q a.fio b.fio", Some("night/b")),
            "assay run --alpha 0.025 --name night/b -q b.fio"
        );
        assert_eq!(
            alone("assay run --vary a.fio a.fio b.fio --name=x", Some("x/b")),
            "assay run --alpha 0.025 --vary a.fio b.fio --name=x/b"
        );
    }
}
