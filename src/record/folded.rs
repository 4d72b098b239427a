//! Folded stacks: time by stack of functions, one line a stack, as flamegraph.pl and difffolded.pl read it
//! (github.com/brendangregg/FlameGraph): `outermost;…;innermost NUMBER`.
//!
//! Enters: stacks of an observer, or such a text, which a store that anybody has made may hold. Leaves: the text in a limited size, or stacks.
//! Names are data from elsewhere: what would end a name or a line never is in one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::KeptFile;

/// Where the rarest stacks go.
const OTHER: &str = "(other)";
/// Room for that line with the largest number.
const OTHER_BYTES: usize = OTHER.len() + 22;
/// Frames of a stack. Observers have fewer.
const MOST_FRAMES: usize = 100;
/// Letters of a name.
const LONGEST_NAME: usize = 200;

named! {
    /// What the time of stacks was.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum StackKind {
        /// On a processor (the observer `cpu`).
        Cpu = "cpu",
        /// Asleep (the observer `waits`).
        Waits = "waits",
    }
}

impl StackKind {
    /// Bytes of the stacks of one trial. A larger file was not made by an observer.
    pub const MOST_BYTES: usize = 64 << 10;

    /// The name of the file that is kept with a trial.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            StackKind::Cpu => "cpu.folded",
            StackKind::Waits => "waits.folded",
        }
    }

    /// The file that is kept with a trial, with times in ns. It is there where the trial was watched, and empty where nothing was seen.
    #[must_use]
    pub fn kept(self, stacks: &Folded) -> KeptFile {
        let text = stacks.within(Self::MOST_BYTES).text();
        KeptFile { name: self.file().to_owned(), bytes: text.into_bytes() }
    }

    /// What is in this file; `None`: it is another one, or too large for one of an observer.
    #[must_use]
    pub fn of_file(self, file: &KeptFile) -> Option<Folded> {
        (file.name == self.file() && file.bytes.len() <= Self::MOST_BYTES).then(|| Folded::parse(&file.bytes))
    }
}

/// Stacks with a number each, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// By their frames with `;` between them, the outermost first.
    stacks: BTreeMap<String, u64>,
}

impl Folded {
    /// Adds to the number of a stack, given from the outermost frame inwards. Frames beyond 100 are left out.
    pub fn add<'n>(&mut self, frames: impl IntoIterator<Item = &'n str>, number: u64) {
        let names: Vec<String> = frames.into_iter().take(MOST_FRAMES).map(plain).collect();
        let stack = if names.is_empty() { "[unknown]".to_owned() } else { names.join(";") };
        self.add_stack(stack, number);
    }

    /// The stacks and their numbers.
    pub fn stacks(&self) -> impl Iterator<Item = (&str, u64)> {
        self.stacks.iter().map(|(stack, number)| (stack.as_str(), *number))
    }

    /// One line a stack.
    #[must_use]
    pub fn text(&self) -> String {
        self.stacks().map(|(stack, number)| format!("{stack} {number}\n")).collect()
    }

    /// Reads such a text. Lines that are none are left out, and names are made plain again.
    fn parse(bytes: &[u8]) -> Folded {
        let mut folded = Folded::default();
        for line in String::from_utf8_lossy(bytes).lines() {
            let Some((stack, number)) = line.rsplit_once(' ') else { continue };
            if let Ok(number) = number.parse() {
                folded.add(stack.split(';'), number);
            }
        }
        folded
    }

    /// The same with a text of at most so many bytes: the largest stacks stay, the others become one line.
    fn within(&self, most: usize) -> Folded {
        let bytes = |(stack, number): (&str, u64)| stack.len() + number.to_string().len() + 2;
        if self.stacks().map(bytes).sum::<usize>() <= most {
            return self.clone();
        }
        let mut largest: Vec<(&str, u64)> = self.stacks().collect();
        largest.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
        // Where one finds no room, none behind it has a line: what has one was larger than what has none.
        let (mut kept, mut room) = (Folded::default(), most.checked_sub(OTHER_BYTES));
        for (stack, number) in largest {
            room = room.and_then(|room| room.checked_sub(bytes((stack, number))));
            kept.add_stack(room.map_or(OTHER, |_| stack).to_owned(), number);
        }
        kept
    }

    fn add_stack(&mut self, stack: String, number: u64) {
        if number > 0 {
            let known = self.stacks.entry(stack).or_default();
            *known = known.saturating_add(number);
        }
    }
}

/// A name without what ends a frame, a number or a line, and without what acts on a terminal.
fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() || c.is_ascii_graphic() && c != ';' { c } else { '_' };
    let plain: String = name.chars().take(LONGEST_NAME).map(letter).collect();
    if plain.is_empty() { "?".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_reads_back_as_the_stacks_it_was_made_of() {
        let mut folded = Folded::default();
        folded.add(["[kernel]", "vfs_read", "copy_to_user"], 5);
        folded.add(["[kernel]", "vfs_read"], 2);
        folded.add(["[kernel]", "vfs_read", "copy_to_user"], 7);
        folded.add(["[user]"], 0);
        folded.add([], 3);
        assert_eq!(folded.text(), "[kernel];vfs_read 2\n[kernel];vfs_read;copy_to_user 12\n[unknown] 3\n");
        let file = StackKind::Cpu.kept(&folded);
        assert!(file.name == "cpu.folded" && KeptFile::is_name(&file.name));
        assert_eq!((StackKind::Cpu.of_file(&file), StackKind::Waits.of_file(&file)), (Some(folded), None));
    }

    #[test]
    fn no_name_ends_a_frame_a_number_or_a_line() {
        let mut folded = Folded::default();
        folded.add(["a;b c\n9", "<T as X>::f&\"'\u{1b}[2J\u{202e}\0", ""], 4);
        assert_eq!(folded.text(), "a_b_c_9;<T_as_X>::f&\"'_[2J__;? 4\n");
        assert_eq!(Folded::parse(folded.text().as_bytes()), folded);
        folded.add(["é".repeat(1000).as_str()], 1);
        assert_eq!(folded.stacks().last(), Some(("é".repeat(LONGEST_NAME).as_str(), 1)));
    }

    #[test]
    fn what_is_no_line_of_stacks_is_left_out() {
        let text = b"a;b 1\n\na;b\na;b -3\na;b 1.5\n 7\n;; 2\na\x1b\xff 4\r\na;b 18446744073709551615\n";
        let folded = Folded::parse(text);
        let stacks: Vec<(&str, u64)> = folded.stacks().collect();
        assert_eq!(stacks, [("?", 7), ("?;?;?", 2), ("a;b", u64::MAX), ("a__", 4)]);
        let deep = format!("{} 1\n", vec!["f"; 10_000].join(";"));
        let folded = Folded::parse(deep.as_bytes());
        let frames = folded.stacks().map(|(stack, _)| stack.split(';').count()).collect::<Vec<_>>();
        assert_eq!(frames, [MOST_FRAMES]);
    }

    #[test]
    fn rare_stacks_become_one_line_and_no_time_is_lost() {
        let mut folded = Folded::default();
        (1..=100).for_each(|number| folded.add([format!("function_{number:03}").as_str()], number));
        let within = folded.within(10 * 16 + OTHER_BYTES + 1);
        let text = within.text();
        assert_eq!(text.lines().count(), 11, "{text}");
        assert!(text.len() <= 10 * 16 + OTHER_BYTES + 1, "{text}");
        assert!(text.starts_with("(other) 4095\nfunction_091 91\n"), "{text}");
        let sum = |of: &Folded| of.stacks().map(|(_, number)| number).sum::<u64>();
        assert_eq!((sum(&within), folded.within(folded.text().len())), (5050, folded.clone()));
        assert_eq!(folded.within(0).text(), "(other) 5050\n");
        let large = KeptFile { name: "cpu.folded".to_owned(), bytes: vec![b' '; StackKind::MOST_BYTES + 1] };
        assert_eq!(StackKind::Cpu.of_file(&large), None);
    }
}
