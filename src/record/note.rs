//! A sentence that a reader of a run or of a trial must know, with what assay itself may do with it.
//!
//! Enters: words. Leaves: a [`Note`], in JSON a string, or an object where it is more than words. Nobody decides by the words.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A note to a run or to one of its trials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Form", into = "Form")]
pub struct Note {
    /// One sentence.
    pub text: String,
    /// What it is.
    pub kind: NoteKind,
}

/// What a note is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// It stays with the run, or the trial.
    #[default]
    Lasting,
    /// It says how a session ended: the next session of the run drops it.
    Ending,
    /// It says what the audit of flushes found in a trial.
    Audit,
    /// It says that the kernel gave I/Os of a trial to worker threads of io_uring.
    WorkerThreads,
    /// It says that counts of a trial hold time before its operations are counted (`ramp_time`).
    Ramp,
    /// It says that observers counted, or the budget lacks, threads that the other has, or that observers missed many.
    Beside,
    /// It is what the kernel said of a fault of its own.
    Fault,
    /// It says that watching made a trial so slow that its times are too long.
    Distorting,
}

impl Note {
    /// How a session ended.
    #[must_use]
    pub fn ending(text: impl Into<String>) -> Note {
        Note { text: text.into(), kind: NoteKind::Ending }
    }
}

impl<T: Into<String>> From<T> for Note {
    fn from(text: T) -> Note {
        Note { text: text.into(), kind: NoteKind::Lasting }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The JSON of a note. Assay writes it; the plain string is what all notes once were.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Kinded { kind: NoteKind, text: String },
}

impl From<Form> for Note {
    fn from(form: Form) -> Note {
        match form {
            Form::Text(text) => Note { kind: kind_of_old(&text), text },
            Form::Kinded { kind, text } => Note { text, kind },
        }
    }
}

/// Notes of trials had no kind before these were told apart by it: stores have them as plain strings.
fn kind_of_old(text: &str) -> NoteKind {
    if text.starts_with("audit of flushes (") {
        NoteKind::Audit
    } else if text.starts_with("io_uring: the kernel gave I/Os to worker threads") {
        NoteKind::WorkerThreads
    } else if text.contains(": watching distorts this trial: ") {
        NoteKind::Distorting
    } else {
        NoteKind::Lasting
    }
}

impl From<Note> for Form {
    fn from(Note { text, kind }: Note) -> Form {
        match kind {
            NoteKind::Lasting => Form::Text(text),
            kind => Form::Kinded { kind, text },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_note_is_a_string_and_all_read_back() {
        let notes = vec![Note::from("it was warm"), Note::ending("the time budget ended it after 3 rounds")];
        let json = serde_json::to_string(&notes).unwrap();
        assert_eq!(
            json,
            r#"["it was warm",{"kind":"ending","text":"the time budget ended it after 3 rounds"}]"#
        );
        assert_eq!(serde_json::from_str::<Vec<Note>>(&json).unwrap(), notes);
        let old = r#"["audit of flushes (xfs): PASS","io_uring: the kernel gave I/Os to worker threads of its own: …","blocks: watching distorts this trial: …"]"#;
        let kinds: Vec<NoteKind> =
            serde_json::from_str::<Vec<Note>>(old).unwrap().iter().map(|note| note.kind).collect();
        assert_eq!(kinds, [NoteKind::Audit, NoteKind::WorkerThreads, NoteKind::Distorting]);
        assert!(serde_json::from_str::<Vec<Note>>(r#"[{"kind":"unheard_of","text":"x"}]"#).is_err());
    }
}
