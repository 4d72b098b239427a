//! What a report is made of: sections, each a heading with blocks.
//!
//! Enters: words, tables and numbers from `sections/`. Leaves: values that every format walks through in their order. A section must
//! not know which format shows it, and a format not which section it shows: each takes the blocks that it has a form for.

use super::document::Document;
use super::picture::Picture;
use super::table::Table;
use super::verdict_words::Tone;
use crate::analyse::Comparison;

/// A part of the report.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// A name in small letters, for those who cannot see where it begins, and for names of files.
    pub(super) name: &'static str,
    /// What stands above it.
    pub(super) heading: Heading,
    /// What it is to the reader.
    pub(super) weight: Weight,
    /// How it gives way where the whole report is to fit one screen; `None`: it does not.
    pub(super) gives_way: Option<GivesWay>,
    /// What it says, in reading order; formats leave out a section of which they show no block.
    pub(super) blocks: Vec<Block>,
}

impl Section {
    /// A section of words that gives no way.
    pub(super) fn new(name: &'static str, heading: Heading, blocks: Vec<Block>) -> Section {
        Section { name, heading, weight: Weight::Words, gives_way: None, blocks }
    }

    /// Its weight.
    pub(super) fn of_weight(self, weight: Weight) -> Section {
        Section { weight, ..self }
    }

    /// How it gives way on one screen.
    pub(super) fn gives_way(self, how: GivesWay) -> Section {
        Section { gives_way: Some(how), ..self }
    }
}

/// What stands above a section, in small letters: formats that begin headings with a capital do so themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heading {
    /// Nothing: its first words are head enough.
    None,
    /// A heading where sections lie far apart, as on a page. Elsewhere the captions of its blocks suffice.
    OnPage(String),
    /// A heading everywhere, with what is said beside it.
    Shown(String, Option<String>),
    /// A name, which is written as it is, with what is said beside it.
    Named(String, Option<String>),
}

impl Heading {
    /// A heading everywhere.
    pub(super) fn shown(text: &str) -> Heading {
        Heading::Shown(text.to_owned(), None)
    }
}

/// What a section is to the reader; formats place and dress it by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// Words about the whole.
    Words,
    /// The comparisons, in tables and pictures. A format with tables of its own shows those instead.
    Figures,
    /// May be why the figures are as they are: stands before them where a page is not read to its end.
    Warning,
    /// To look things up: stands last and folded where that can be.
    Reference,
}

/// How a section gives way where the whole report is to fit one screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GivesWay {
    /// When it goes as a whole, 1 first; `None`: never.
    pub(super) turn: Option<u8>,
    /// What it is called where it is left out.
    pub(super) called: &'static str,
    /// Items of its lists: as many as are read willingly, and where room is short.
    pub(super) most: [usize; 2],
    /// What one item is called, and several.
    pub(super) items: [&'static str; 2],
}

/// What a section consists of. A format passes over blocks that it has no form for.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// Judgements in words, with their count.
    Verdicts(Verdicts),
    /// A table.
    Table(Table),
    /// Lines, one below the other.
    List(List),
    /// Sentences that need no point of a list, without their full stop.
    Remarks(Vec<String>),
    /// How the table above it is read: one line, in every format with tables.
    Key(String),
    /// How what stands above or below is read; for pages, which have room for it.
    Legend(String),
    /// Here stand the document's footnotes, in formats that do not put them elsewhere.
    Footnotes,
    /// What programs were asked and what they said.
    Transcripts(Transcripts),
    /// A command line, quoted for a shell.
    Command(String),
    /// Lines that stay as they are, and the words before them.
    Listing {
        /// `with this job:`.
        lead: String,
        /// The lines.
        text: String,
        /// What it is called where it is left out.
        called: &'static str,
    },
    /// Names and values.
    Facts(Facts),
    /// Pictures of one kind, drawn when a format shows them.
    Pictures(fn(&Document<'_>) -> Option<Drawings>),
    /// Blocks that are there when unfolded; where nothing folds, like any others.
    Folded {
        /// What is seen of it when folded.
        summary: String,
        /// Unfolded at first.
        open: bool,
        /// What is in it.
        blocks: Vec<Block>,
    },
    /// What is said in full only when all is asked for.
    Withheld(&'static str),
    /// A value for programs: a field of the JSON report, written when it is wanted.
    Raw {
        /// The field.
        name: &'static str,
        /// Its JSON.
        json: fn(&Document<'_>) -> String,
    },
    /// A column of the CSV report.
    Column {
        /// Its head.
        head: &'static str,
        /// Its cell in the line of a comparison.
        cell: fn(&Document<'_>, &Comparison) -> String,
    },
}

impl Block {
    /// Pictures that are there when unfolded.
    pub(super) fn folded_pictures(summary: &str, drawn: fn(&Document<'_>) -> Option<Drawings>) -> Block {
        Block::Folded { summary: summary.to_owned(), open: false, blocks: vec![Block::Pictures(drawn)] }
    }
}

/// Judgements in words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdicts {
    /// How many were faster, slower …; `None` for few.
    pub(super) tally: Option<String>,
    /// In few sentences, where tables have the verdict of each row.
    pub(super) sentences: Vec<Sentence>,
    /// One sentence each, for formats without such tables.
    pub(super) each: Vec<Sentence>,
    /// What is said when there is none.
    pub(super) otherwise: &'static str,
    /// They are of one pair of arms, so that the whole report is to fit one screen.
    pub(super) of_one_pair: bool,
}

impl Verdicts {
    /// The same without the marks of footnotes.
    pub(super) fn unmarked(mut self) -> Verdicts {
        self.sentences.iter_mut().chain(&mut self.each).for_each(|sentence| sentence.notes.clear());
        self
    }
}

/// A verdict in words.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sentence {
    /// What it means to the reader.
    pub(super) tone: Tone,
    /// The verdict in at most 13 characters.
    pub(super) word: &'static str,
    /// The words.
    pub(super) text: String,
    /// Numbers of its footnotes, from 1.
    pub(super) notes: Vec<usize>,
}

/// Lines, one below the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct List {
    /// What stands above the lines instead of the section's heading.
    pub(super) caption: Option<String>,
    /// The lines.
    pub(super) lines: Vec<Line>,
}

impl List {
    /// A list of plain sentences.
    pub(super) fn of(lines: impl IntoIterator<Item = String>) -> List {
        List { caption: None, lines: lines.into_iter().map(Line::from).collect() }
    }
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line(pub(super) Vec<Span>);

/// A part of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Span {
    /// Words.
    Words(String),
    /// What a machine reads or said.
    Code(String),
}

impl From<String> for Line {
    fn from(words: String) -> Line {
        Line(vec![Span::Words(words)])
    }
}

impl Line {
    /// The line with its spans as a format writes them.
    pub(super) fn written(&self, words: impl Fn(&str) -> String, code: impl Fn(&str) -> String) -> String {
        let span = |span: &Span| match span {
            Span::Words(text) => words(text),
            Span::Code(text) => code(text),
        };
        self.0.iter().map(span).collect()
    }
}

/// What programs were asked and what they said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transcripts {
    /// One each.
    pub(super) all: Vec<Transcript>,
    /// What commands and outputs are called where they are left out.
    pub(super) called: &'static str,
}

/// A command that something is said about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Transcript {
    /// What is said.
    pub(super) sentence: String,
    /// The command; may be empty.
    pub(super) command: String,
    /// Its last output; may be empty.
    pub(super) output: String,
}

/// Names and values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// All, sorted by name.
    pub(super) all: Vec<Fact>,
    /// Those that are told where there is no room for all, by their place in `all`, the most important first.
    pub(super) told: Vec<usize>,
    /// What it is called where it is left out.
    pub(super) called: &'static str,
}

/// A name and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fact {
    /// The name.
    pub(super) name: String,
    /// The value as people read it.
    pub(super) value: String,
    /// Arms and their values, where they differ and nobody said that they should.
    pub(super) differs: Vec<(String, String)>,
}

/// Pictures of one kind.
pub(super) struct Drawings {
    /// At least one.
    pub(super) pictures: Vec<Picture>,
    /// Whether each takes the width of a page.
    pub(super) wide: bool,
    /// Rows for which there was no room.
    pub(super) left_out: usize,
    /// Whether a page finds boxes of them by name.
    pub(super) searchable: bool,
}

impl Drawings {
    /// The pictures, where there is one.
    pub(super) fn of(pictures: Vec<Picture>, wide: bool, left_out: usize) -> Option<Drawings> {
        (!pictures.is_empty()).then_some(Drawings { pictures, wide, left_out, searchable: false })
    }

    /// The same with boxes that can be found by name.
    pub(super) fn searchable(self) -> Drawings {
        Drawings { searchable: true, ..self }
    }
}

/// Blocks with those that can be folded in their place.
pub(super) fn unfolded(blocks: &[Block]) -> Vec<&Block> {
    let all = blocks.iter().flat_map(|block| match block {
        Block::Folded { blocks, .. } => unfolded(blocks),
        block => vec![block],
    });
    all.collect()
}

/// A heading that begins with a capital.
pub(super) fn capital(heading: &str) -> String {
    let mut letters = heading.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_begins_with_a_capital() {
        assert_eq!(capital("notes so far"), "Notes so far");
        assert_eq!(capital(""), "");
    }
}
