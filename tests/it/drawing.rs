//! The drawing of the structure in docs/ARCHITECTURE.md is what the sources say: rooms (top-level modules) and the arrows between
//! them. `UPDATE_GOLDEN=1` writes docs/structure-now.dot; `make structure` makes the picture of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::circles::Tree;
use crate::layers::{ALLOWED, edges, source};

/// Room and imported room → how many files have the import. Arrows of `cli`, which may import all, are not drawn.
type Arrows = BTreeMap<(String, String), usize>;

fn arrows(source: &Path) -> Arrows {
    let files: BTreeSet<_> = edges(source)
        .into_iter()
        .filter(|edge| edge.from != edge.to && edge.from != "cli" && edge.from != "main")
        .map(|edge| (edge.from, edge.to, edge.file))
        .collect();
    let mut arrows = Arrows::new();
    for (from, to, _) in files {
        *arrows.entry((from, to)).or_default() += 1;
    }
    arrows
}

/// Whether other arrows lead from one room to the other.
fn is_implied((from, to): &(String, String), arrows: &Arrows) -> bool {
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(room) = open.pop() {
        for (_, next) in arrows.keys().filter(|(at, next)| at == room && (at != from || next != to)) {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

/// The structure in Graphviz's language. An arrow is the wider the more files have the import, grey where others lead there, too,
/// and red where the table of layers has none. A room says how many of its files are in circles of more than two.
fn drawing(source: &Path, title: &str) -> String {
    let arrows = arrows(source);
    let tree = Tree::read(source);
    let mut circling: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (set, _) in tree.circles() {
        let rooms: BTreeSet<&str> = set.iter().filter_map(|file| file.split('/').next()).collect();
        rooms.into_iter().for_each(|room| circling.entry(room).or_default().push(set.len()));
    }
    let mut dot = format!(
        "digraph structure {{\n  label=\"{title}\";\n  labelloc=t;\n  fontname=\"DejaVu Sans\";\n  nodesep=0.3;\n  \
         node [shape=box style=\"rounded,filled\" fillcolor=\"#f4f4f4\" fontname=\"DejaVu Sans\"];\n  \
         cli [label=\"cli\\n(imports all)\"];\n"
    );
    for room in rooms(source).iter().filter(|room| *room != "cli") {
        match circling.get(room.as_str()) {
            None => writeln!(dot, "  {room};").unwrap(),
            Some(sizes) => {
                let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
                writeln!(
                    dot,
                    "  {room} [label=\"{room}\\nin circles of {} files\" color=\"#c00000\" fontcolor=\"#c00000\"];",
                    sizes.join(", ")
                )
                .unwrap();
            }
        }
    }
    // Without an arrow `cli` would stand beside the rooms that it imports.
    dot.push_str("  cli -> run [style=invis];\n  cli -> report [style=invis];\n");
    for (arrow, files) in &arrows {
        let (from, to) = arrow;
        let allowed = ALLOWED.iter().any(|(room, may)| room == from && may.contains(&to.as_str()));
        let color = match (allowed, is_implied(arrow, &arrows)) {
            (false, _) => "#c00000",
            (true, true) => "#c8c8c8",
            (true, false) => "#303030",
        };
        let width = f64::from(u8::try_from(*files).unwrap_or(u8::MAX)).sqrt() / 2.0;
        writeln!(dot, "  {from} -> {to} [color=\"{color}\" penwidth={width:.1} tooltip=\"{files} files\"];")
            .unwrap();
    }
    dot.push_str("}\n");
    dot
}

fn rooms(source: &Path) -> BTreeSet<String> {
    let directories = std::fs::read_dir(source).unwrap().flatten().filter(|entry| entry.path().is_dir());
    directories.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_drawing_is_what_the_sources_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let drawn = drawing(&source(), "Now");
    let file = root.join("docs/structure-now.dot");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &drawn).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(file).unwrap();
    assert_eq!(kept, drawn, "`UPDATE_GOLDEN=1 cargo test --test it -- drawing`, then `make structure`");
    // The picture is not of an older drawing. Graphviz names each arrow in a title.
    let picture = std::fs::read_to_string(root.join("docs/structure-now.svg")).unwrap();
    let shown = picture.split("<title>").skip(1).filter_map(|rest| rest.split_once("</title>"));
    let shown: BTreeSet<String> = shown
        .map(|(title, _)| title.replace("&#45;&gt;", " -> "))
        .filter(|title| title.contains(" -> ") && !title.starts_with("cli"))
        .collect();
    let wanted: BTreeSet<String> =
        arrows(&source()).keys().map(|(from, to)| format!("{from} -> {to}")).collect();
    assert_eq!(shown, wanted, "`make structure` makes the picture anew");
}

#[test]
fn an_arrow_is_implied_where_others_lead_there() {
    let arrows: Arrows = [("a", "b"), ("b", "c"), ("a", "c")]
        .into_iter()
        .map(|(from, to)| ((from.to_owned(), to.to_owned()), 1))
        .collect();
    let implied = |from: &str, to: &str| is_implied(&(from.to_owned(), to.to_owned()), &arrows);
    assert_eq!([implied("a", "c"), implied("a", "b"), implied("b", "c")], [true, false, false]);
}
