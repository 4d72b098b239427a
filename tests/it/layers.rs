//! The layers: which top-level module may import which. Reads the sources, so that an edge the table does not have fails
//! here, whoever adds it. `src/lib.rs` repeats the table for readers and must say the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Module → what it may import. `cli` may import all and is not listed; nothing may import `cli`.
pub(crate) const ALLOWED: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("stats", &[]),
    ("sys", &[]),
    ("workload", &["units", "sys"]),
    ("record", &["units", "workload"]),
    ("catalog", &["record", "units", "workload"]),
    ("experiment", &["catalog", "units", "workload", "sys"]),
    ("plan", &["experiment", "catalog", "workload"]),
    ("host", &["record", "units", "sys"]),
    ("target", &["host", "experiment", "catalog", "sys"]),
    ("engine", &["catalog", "workload", "record", "units", "sys"]),
    ("observe", &["catalog", "record", "host", "trace", "sys", "units"]),
    ("launch", &["engine", "catalog", "observe", "target", "record", "host", "sys"]),
    ("run", &["plan", "launch", "catalog", "host", "record"]),
    ("store", &["record"]),
    ("import", &["catalog", "record", "units", "sys"]),
    ("analyse", &["record", "stats", "units"]),
    ("history", &["analyse", "record", "stats"]),
    ("report", &["analyse", "history", "record", "units", "sys"]),
    ("trace", &["sys"]),
    ("probe", &["units"]),
    ("kernel_build", &["sys"]),
];

/// A path out of one top-level module into another.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) file: PathBuf,
    line: usize,
}

/// The edges that the table does not have, one sentence each.
fn violations(source: &Path) -> Vec<String> {
    let table: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let complaint = |edge: &Edge| {
        let allowed = match edge.from.as_str() {
            "main" => edge.to == "cli",
            "cli" => edge.to == "cli" || table.contains_key(edge.to.as_str()),
            from => edge.from == edge.to || table.get(from).is_some_and(|to| to.contains(&edge.to.as_str())),
        };
        let Edge { from, to, file, line } = edge;
        (!allowed).then(|| format!("{}:{line}: {from} → {to} is not in the table of layers", file.display()))
    };
    edges(source).iter().filter_map(complaint).collect()
}

pub(crate) fn edges(source: &Path) -> Vec<Edge> {
    let mut edges = Vec::new();
    for file in rust_files(source) {
        let text = std::fs::read_to_string(&file).unwrap();
        let relative = file.strip_prefix(source).unwrap().to_owned();
        let module = module_path(&relative);
        let from = module.first().cloned().unwrap_or_default();
        // The root declares the modules; it imports nothing.
        for (to, line) in targets(&tokens(&text), &module) {
            edges.push(Edge { from: from.clone(), to, file: relative.clone(), line });
        }
    }
    edges.sort();
    edges
}

pub(crate) fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// `a/b/c.rs` and `a/b/c/mod.rs` are a::b::c; `main.rs` is "main"; `lib.rs` is the root.
pub(crate) fn module_path(relative: &Path) -> Vec<String> {
    let mut names: Vec<String> = relative.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let last = names.pop().unwrap();
    let stem = last.trim_end_matches(".rs");
    if stem != "mod" && stem != "lib" {
        names.push(stem.to_owned());
    }
    names
}

/// Identifiers and single punctuation marks with their lines; comments, strings, characters and numbers are left out.
pub(crate) fn tokens(text: &str) -> Vec<(String, usize)> {
    let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut tokens = Vec::new();
    flatten(stream, &mut tokens);
    tokens
}

fn flatten(stream: TokenStream, tokens: &mut Vec<(String, usize)>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Ident(name) => tokens.push((name.to_string(), line)),
            TokenTree::Punct(mark) => tokens.push((mark.to_string(), line)),
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push((open.to_owned(), line));
                flatten(group.stream(), tokens);
                tokens.push((close.to_owned(), group.span_close().start().line));
            }
        }
    }
}

/// The top-level modules that paths in a file lead to, with lines: `crate::x`, `crate::{x, y::z}`, `super::…::x` when it
/// climbs to the root, `assay::x`. A whole root (`crate::*`, `use crate as c`) is "*", which nobody may import.
fn targets(tokens: &[(String, usize)], module: &[String]) -> Vec<(String, usize)> {
    let word = |at: usize| tokens.get(at).map_or("", |(text, _)| text.as_str());
    let mut found = Vec::new();
    // Inline modules: the depth of braces at which each was opened.
    let (mut inline, mut depth): (Vec<usize>, usize) = (Vec::new(), 0);
    let mut at = 0;
    while at < tokens.len() {
        let mut behind = None;
        match word(at) {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                inline.retain(|opened| *opened <= depth);
            }
            "mod" if word(at + 2) == "{" => inline.push(depth + 1),
            "crate" | "assay" if word(at + 1) == ":" && word(at + 2) == ":" && !in_a_path(tokens, at) => {
                behind = Some(at + 3);
            }
            "crate" if word(at + 1) == "as" => found.push(("*".to_owned(), tokens[at].1)),
            "super" if word(at + 1) == ":" && !in_a_path(tokens, at) => {
                let mut climbed = 1;
                let mut next = at + 3;
                while word(next) == "super" {
                    climbed += 1;
                    next += 3;
                }
                if climbed >= module.len() + inline.len() {
                    behind = Some(next);
                }
            }
            _ => {}
        }
        if let Some(behind) = behind {
            first_segments(tokens, behind, &mut found);
        }
        at += 1;
    }
    found
}

/// Whether `::` stands before this token (`other::crate` is no path from our root), unless it is `$crate`'s.
fn in_a_path(tokens: &[(String, usize)], at: usize) -> bool {
    at >= 2 && tokens[at - 1].0 == ":" && tokens[at - 2].0 == ":"
}

/// The segment behind `crate::`, or all first segments of a group there.
fn first_segments(tokens: &[(String, usize)], at: usize, found: &mut Vec<(String, usize)>) {
    let Some((first, line)) = tokens.get(at) else { return };
    if first != "{" {
        // `crate::self` does not exist; anything else is a name or `*`.
        found.push((first.clone(), *line));
        return;
    }
    let (mut depth, mut at, mut expects) = (1, at + 1, true);
    while depth > 0 && at < tokens.len() {
        let (text, line) = &tokens[at];
        match text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 1 => expects = true,
            name if expects => {
                found.push((if name == "self" { "*".to_owned() } else { name.to_owned() }, *line));
                expects = false;
            }
            _ => {}
        }
        at += 1;
    }
}

pub(crate) fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

#[test]
fn no_module_imports_outside_the_table() {
    let found = violations(&source());
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn the_reader_sees_real_edges() {
    // If the reader went blind, the test above would pass for nothing.
    let seen: BTreeSet<(String, String)> =
        edges(&source()).into_iter().map(|edge| (edge.from, edge.to)).collect();
    for (from, to) in [("engine", "record"), ("observe", "host"), ("record", "units"), ("main", "cli")] {
        assert!(seen.contains(&(from.to_owned(), to.to_owned())), "{from} → {to} was not seen");
    }
}

#[test]
fn every_module_is_in_the_table_and_lib_says_the_same() {
    let listed: BTreeSet<String> =
        ALLOWED.iter().map(|(name, _)| (*name).to_owned()).chain(["cli".to_owned()]).collect();
    let directories = std::fs::read_dir(source()).unwrap().flatten().filter(|entry| entry.path().is_dir());
    let present: BTreeSet<String> =
        directories.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(present, listed);
    let lib = std::fs::read_to_string(source().join("lib.rs")).unwrap();
    let table = lib.split("```").nth(1).unwrap().trim_start_matches("text");
    let mut said: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // Entries stand in columns, two blanks or more apart.
    for entry in
        table.lines().flat_map(|line| line.trim_start_matches("//!").split("  ")).filter(|e| e.contains('→'))
    {
        let (from, to) = entry.split_once('→').unwrap();
        let names =
            |list: &str| list.split(',').map(|name| name.trim().to_owned()).collect::<BTreeSet<String>>();
        let to: BTreeSet<String> = names(to).into_iter().filter(|name| name != "nothing").collect();
        names(from).into_iter().for_each(|from| {
            said.insert(from, to.clone());
        });
    }
    assert_eq!(said.remove("cli"), Some(BTreeSet::from(["all".to_owned()])));
    let ours: BTreeMap<String, BTreeSet<String>> = ALLOWED
        .iter()
        .map(|(from, to)| ((*from).to_owned(), to.iter().map(|name| (*name).to_owned()).collect()))
        .collect();
    assert_eq!(said, ours);
}

#[test]
fn the_table_has_no_cycle() {
    let mut done: BTreeSet<&str> = BTreeSet::new();
    while done.len() < ALLOWED.len() {
        let next = ALLOWED
            .iter()
            .find(|(from, to)| !done.contains(from) && to.iter().all(|name| done.contains(name)));
        done.insert(next.expect("what is left imports itself in a circle").0);
    }
}

/// Violations in a tree with these files.
fn in_tree(files: &[(&str, &str)]) -> Vec<String> {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    violations(root.path())
}

#[test]
fn forbidden_edges_are_found_however_they_are_written() {
    for (path, text, edge) in [
        ("stats/mod.rs", "use crate::record::Run;", "1: stats → record"),
        ("stats/rank.rs", "\n\nfn f() { crate::units::parse_bytes(\"\", 1); }", "3: stats → units"),
        ("record/mod.rs", "use crate::{units::Unit, analyse::{A, B}, workload};", "1: record → analyse"),
        ("host/facts.rs", "use super::super::engine::Task;", "1: host → engine"),
        ("host/facts.rs", "mod tests { use super::super::super::run; }", "1: host → run"),
        ("host/mod.rs", "use super::{record, store};", "1: host → store"),
        ("plan/mod.rs", "#[cfg(test)]\nmod tests {\n    use crate::engine::Task;\n}", "3: plan → engine"),
        ("units/mod.rs", "use crate as a;", "1: units → *"),
        ("units/mod.rs", "use crate::*;", "1: units → *"),
        ("report/mod.rs", "macro_rules! m { () => { $crate::store::open() } }", "1: report → store"),
        ("run/mod.rs", "use crate::cli::Failure;", "1: run → cli"),
        ("main.rs", "fn main() { assay::run::go() }", "1: main → run"),
        ("stats/a.rs", "fn f<'a>(x: &'a str) -> char { '\"' }\nuse crate::host;", "2: stats → host"),
    ] {
        let found = in_tree(&[(path, text)]);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(&format!("{path}:{edge} is not")), "{text}: {found:?}");
    }
}

#[test]
fn what_is_allowed_or_no_import_is_left_alone() {
    let fine = in_tree(&[
        (
            "record/mod.rs",
            "pub(super) fn f() {} pub(crate) fn g() {} use crate::units::Unit;\nuse crate::record::x;\nmod tests { use super::*; use super::super::units; }",
        ),
        (
            "stats/mod.rs",
            "//! [`crate::record::Run`]\n/* crate::store /* crate::run */ crate::cli */\nconst A: &str = \"crate::store\";",
        ),
        (
            "stats/b.rs",
            "const B: &str = r#\"use crate::host; \"quoted\" \"#; use super::rank; /// assay::store\nfn f() {}",
        ),
        ("cli/run.rs", "use crate::{run, store, cli::Failure};\nuse super::Failure;"),
        ("main.rs", "fn main() { assay::cli::main() }"),
        ("engine/native/ring.rs", "use super::super::Task; mod a { mod b { use super::super::super::x; } }"),
    ]);
    assert_eq!(fine, Vec::<String>::new());
}
