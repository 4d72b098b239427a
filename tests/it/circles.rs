//! Circles of files: a file that leads back to itself through the items it names. Two files that belong together may name each other; of
//! more none can be read, moved or tested without the others.
//!
//! A path counts for the file that has the item at its end, whichever `mod.rs` hands it on. Tests inside of files do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::layers::{module_path, rust_files, source, tokens};

/// `pub use` of a `pub use` of …: more steps than there are anywhere.
const MOST_STEPS: u8 = 12;

/// A file of the source, as far as names go.
#[derive(Default)]
struct File {
    module: Vec<String>,
    name: String,
    /// What is defined at its top.
    items: BTreeSet<String>,
    /// Imported names and their paths as written.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths before `::*`.
    globs: Vec<Vec<String>>,
    /// All other words and marks.
    words: Vec<String>,
}

/// All files by their modules.
pub(crate) struct Tree(BTreeMap<Vec<String>, File>);

impl Tree {
    pub(crate) fn read(source: &Path) -> Tree {
        let files = rust_files(source).into_iter().map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let relative = path.strip_prefix(source).unwrap();
            let module = module_path(relative);
            let words: Vec<String> = tokens(&text).into_iter().map(|(word, _)| word).collect();
            let name = relative.display().to_string();
            (module.clone(), File { module, name, ..file(&without_tests(&words)) })
        });
        Tree(files.collect())
    }

    /// A path in a module as a path from the root; `None`: it leads out of this crate, or to the module's own items.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut at = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" | "super" => {
                while let Some(word) = rest.first().filter(|word| matches!(word.as_str(), "self" | "super")) {
                    if word == "super" {
                        at.pop()?;
                    }
                    rest = &rest[1..];
                }
                at.extend_from_slice(rest);
                Some(at)
            }
            _ => {
                at.extend_from_slice(path);
                self.0.contains_key(&at[..=module.len()]).then_some(at)
            }
        }
    }

    /// The file that has the item at the end of a path from the root.
    fn owner(&self, path: &[String], steps: u8) -> Option<&File> {
        let steps = steps.checked_sub(1)?;
        let mut at = 0;
        while at < path.len() && self.0.contains_key(&path[..=at]) {
            at += 1;
        }
        let file = self.0.get(&path[..at])?;
        let item = path.get(at)?;
        if file.items.contains(item) {
            return Some(file);
        }
        if let Some(import) = file.imports.get(item) {
            let mut there = self.absolute(&file.module, import)?;
            there.extend_from_slice(&path[at + 1..]);
            return self.owner(&there, steps);
        }
        self.behind_globs(file, &path[at..], steps)
    }

    fn behind_globs(&self, file: &File, path: &[String], steps: u8) -> Option<&File> {
        file.globs.iter().find_map(|glob| {
            let mut there = self.absolute(&file.module, glob)?;
            there.extend_from_slice(path);
            self.owner(&there, steps)
        })
    }

    /// The files whose items a file names.
    fn named_by(&self, file: &File) -> BTreeSet<&str> {
        let paths = paths(&file.words);
        let owner = |path: &Vec<String>| match file.imports.get(&path[0]) {
            Some(import) => {
                let mut there = self.absolute(&file.module, import)?;
                there.extend_from_slice(&path[1..]);
                self.owner(&there, MOST_STEPS)
            }
            None if path.len() > 1 => self.owner(&self.absolute(&file.module, path)?, MOST_STEPS),
            None if file.items.contains(&path[0]) => None,
            None => self.behind_globs(file, path, MOST_STEPS),
        };
        let owners = paths.iter().filter_map(owner).map(|owner| owner.name.as_str());
        owners.filter(|owner| *owner != file.name).collect()
    }

    /// Files that lead to one another in a circle of more than two: each set, and who in it names whom.
    pub(crate) fn circles(&self) -> Vec<(BTreeSet<&str>, Vec<String>)> {
        let names: BTreeMap<&str, BTreeSet<&str>> =
            self.0.values().map(|file| (file.name.as_str(), self.named_by(file))).collect();
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            names.keys().copied().map(|name| (name, reached_from(name, &names))).collect();
        let mut sets = BTreeSet::new();
        for (name, from_here) in &reached {
            let back = |other: &&&str| reached[**other].contains(name);
            let set: BTreeSet<&str> = from_here.iter().filter(back).copied().collect();
            if set.len() > 2 {
                sets.insert(set);
            }
        }
        let with_edges = sets.into_iter().map(|set| {
            let edges: Vec<String> = set
                .iter()
                .flat_map(|from| names[from].intersection(&set).map(move |to| format!("{from} → {to}")))
                .collect();
            (set, edges)
        });
        with_edges.filter(|(set, edges)| !is_tree_of_pairs(set, edges.len(), &names)).collect()
    }
}

/// Whether all circles in a set are of two: then each file that names another is named by it, and the pairs make a tree, which has
/// one pair less than files.
fn is_tree_of_pairs(set: &BTreeSet<&str>, edges: usize, names: &BTreeMap<&str, BTreeSet<&str>>) -> bool {
    let answered = |from: &&str| names[*from].intersection(set).all(|to| names[*to].contains(from));
    edges == 2 * (set.len() - 1) && set.iter().all(answered)
}

/// All files that a file leads to.
fn reached_from<'n>(name: &'n str, names: &BTreeMap<&'n str, BTreeSet<&'n str>>) -> BTreeSet<&'n str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![name]);
    while let Some(from) = open.pop() {
        for to in &names[from] {
            if reached.insert(*to) {
                open.push(*to);
            }
        }
    }
    reached
}

/// The words without items that only tests have.
fn without_tests(words: &[String]) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < words.len() {
        if words.get(at..at + MARK.len()).is_none_or(|here| here != MARK) {
            kept.push(words[at].clone());
            at += 1;
            continue;
        }
        // The item ends with its braces, or with a semicolon before any.
        let mut depth = 0;
        while at < words.len() {
            match words[at].as_str() {
                "{" => depth += 1,
                "}" if depth == 1 => break,
                "}" => depth -= 1,
                ";" if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        at += 1;
    }
    kept
}

/// What a file defines, imports and says.
fn file(words: &[String]) -> File {
    const DEFINES: [&str; 8] = ["fn", "struct", "enum", "trait", "const", "static", "type", "union"];
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let mut file = File::default();
    let (mut at, mut depth) = (0, 0);
    while at < words.len() {
        let begins = at == 0 || matches!(word(at - 1), ";" | "{" | "}" | "]" | ")" | "pub");
        match word(at) {
            "use" if begins => {
                at = import(words, at + 1, &[], &mut file);
                continue;
            }
            "mod" if word(at + 2) == ";" => {
                at += 3;
                continue;
            }
            "{" => depth += 1,
            "}" => depth -= 1,
            "macro_rules" if depth == 0 => {
                file.items.insert(word(at + 2).to_owned());
            }
            defines if depth == 0 && DEFINES.contains(&defines) && is_name(word(at + 1)) => {
                file.items.insert(word(at + 1).to_owned());
            }
            _ => {}
        }
        file.words.push(words[at].clone());
        at += 1;
    }
    file
}

/// Reads the tree of a `use` from here; returns the place behind it.
fn import(words: &[String], mut at: usize, above: &[String], file: &mut File) -> usize {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let mut path = above.to_vec();
    while at < words.len() {
        match word(at) {
            ":" => at += 1,
            "*" => {
                file.globs.push(path);
                return at + 1;
            }
            "{" => {
                at += 1;
                while at < words.len() && word(at) != "}" {
                    at = if word(at) == "," { at + 1 } else { import(words, at, &path, file) };
                }
                return at + 1;
            }
            "as" => {
                file.imports.insert(word(at + 1).to_owned(), path);
                return at + 2;
            }
            name if is_name(name) => {
                path.push(name.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    // `use a::{self, b}`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(last) = path.last().cloned() {
        file.imports.insert(last, path);
    }
    at
}

/// The paths in words: `a`, `a::b`, but no fields and methods.
fn paths(words: &[String]) -> Vec<Vec<String>> {
    let is = |at: usize, mark: &str| words.get(at).is_some_and(|word| word == mark);
    let name = |at: usize| words.get(at).filter(|word| is_name(word));
    let mut paths = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let goes_on = at > 0 && (is(at - 1, ".") || at > 1 && is(at - 1, ":") && is(at - 2, ":"));
        let Some(first) = name(at).filter(|_| !goes_on) else {
            at += 1;
            continue;
        };
        let mut path = vec![first.clone()];
        at += 1;
        while let Some(next) = name(at + 2).filter(|_| is(at, ":") && is(at + 1, ":")) {
            path.push(next.clone());
            at += 3;
        }
        paths.push(path);
    }
    paths
}

fn is_name(word: &str) -> bool {
    word.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

#[test]
fn no_circle_has_more_than_two_files() {
    let tree = Tree::read(&source());
    let said = |(set, edges): (BTreeSet<&str>, Vec<String>)| {
        format!("{} files in a circle:\n{}", set.len(), edges.join("\n"))
    };
    let circles: Vec<String> = tree.circles().into_iter().map(said).collect();
    assert!(circles.is_empty(), "{}", circles.join("\n\n"));
}

#[test]
fn the_reader_of_names_sees_real_paths() {
    let tree = Tree::read(&source());
    let named = |module: &[&str]| {
        let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
        tree.named_by(&tree.0[&module])
    };
    // By `super::` through a `pub use`, by a path in the text, and through `use a::{self, …}`.
    assert!(named(&["engine", "fio"]).contains("engine/task.rs"));
    assert!(named(&["launch"]).contains("launch/descendants.rs"));
    assert!(named(&["experiment", "toml_file"]).contains("experiment/recipe_table.rs"));
}

const NONE: [usize; 0] = [];

/// The sizes of circles in a tree with these files.
fn in_tree(files: &[(&str, &str)]) -> Vec<usize> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Tree::read(root.path()).circles().iter().map(|(set, _)| set.len()).collect()
}

#[test]
fn circles_are_found_however_they_are_written() {
    let root = ("lib.rs", "mod a; mod b; mod c;");
    let with = |a: &str, b: &str, c: &str| in_tree(&[root, ("a.rs", a), ("b.rs", b), ("c.rs", c)]);
    assert_eq!(
        with("use crate::b::B; struct A(B);", "use super::c::{C}; struct B(C);", "struct C(crate::a::A);"),
        [3]
    );
    assert_eq!(
        with(
            "use crate::b; fn a() { b::b() }",
            "fn b() { super::c::c() }",
            "use super::a::*; fn c() { a() }"
        ),
        [3]
    );
    // Two that name each other, twice, are pairs.
    assert_eq!(
        with(
            "fn a() { super::b::b() }",
            "fn b() { super::a::a(); super::c::c() }",
            "fn c() { super::b::b() }"
        ),
        NONE
    );
    // Unused imports, tests and words in texts are no circle.
    assert_eq!(
        with(
            "use crate::b::b; fn a() { b() }",
            "use crate::c::c; fn b() { c() }",
            "fn c() {} #[cfg(test)] mod tests { fn t() { crate::a::a() } }"
        ),
        NONE
    );
    assert_eq!(
        with(
            "use crate::b::b; fn a() { b() }",
            "fn b() { crate::c::c() }",
            "// crate::a::a\nfn c() { \"crate::a::a\"; }"
        ),
        NONE
    );
}

#[test]
fn what_is_handed_on_counts_for_its_own_file() {
    let root = ("lib.rs", "mod x;");
    let door = "mod low; mod high; pub use low::Low; pub fn all() { high::high() }";
    let high = ("x/high.rs", "use super::Low; pub fn high() -> Low { Low }");
    assert_eq!(in_tree(&[root, ("x/mod.rs", door), ("x/low.rs", "pub struct Low;"), high]), NONE);
    let knows_all = ("x/low.rs", "pub struct Low; fn f() { super::all() }");
    assert_eq!(in_tree(&[root, ("x/mod.rs", door), knows_all, high]), [3]);
}
