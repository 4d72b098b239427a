//! The parts of the page that are pictures: the frame around each, and which are folded away.

use super::super::document::Document;
use super::super::html_text::escape;
use super::super::picture::{Picture, arm_class};
use super::super::section::Drawings;
use super::super::words::count;
use super::search;
use crate::record::SoFar;

/// Lines of pictures of a section that are there before anything is unfolded: one wide one, or two beside each other.
const UNFOLDED: [usize; 2] = [2, 1];

/// One picture in its frame; `keys`: the colours of arms, as HTML.
pub(super) fn figure(out: &mut String, keys: &str, picture: &Picture, caption: &str, wide: bool) {
    out.push_str("<figure>\n");
    if !picture.title.is_empty() {
        out.push_str(&format!("<p class=\"title\">{}</p>\n", escape(&picture.title)));
    }
    out.push_str(keys);
    let class = match (wide, &picture.narrow) {
        (true, Some(_)) => " wide has-narrow",
        (true, None) => " wide",
        (false, Some(_)) => " has-narrow",
        (false, None) => "",
    };
    out.push_str(&format!("<div class=\"picture{class}\">\n{}</div>\n", picture.svg));
    if let Some(narrow) = &picture.narrow {
        out.push_str(&format!("<div class=\"picture narrow\">\n{narrow}</div>\n"));
    }
    if !caption.is_empty() {
        out.push_str(&format!("<figcaption>{}</figcaption>\n", escape(caption)));
    }
    out.push_str("</figure>\n");
}

/// Which colour is which arm.
fn keys(document: &Document<'_>, picture: &Picture) -> String {
    if picture.arms.is_empty() {
        return String::new();
    }
    let key = |index: &usize| {
        let label = document.analysis.arms.get(*index).map(|arm| document.arm(arm)).unwrap_or_default();
        format!("<span class=\"key {}\"><span>{}</span></span>", arm_class(*index), escape(&label))
    };
    format!("<div>{}</div>\n", picture.arms.iter().map(key).collect::<String>())
}

/// A picture's caption, with how far the run is while rounds are missing.
fn caption(document: &Document<'_>, words: &str) -> String {
    match document.analysis.so_far() {
        Some(SoFar { rounds, of }) => format!("So far, {rounds} of {of} rounds, no verdict. {words}"),
        None => words.to_owned(),
    }
}

/// The pictures of one kind.
pub(super) fn all(out: &mut String, document: &Document<'_>, drawings: &Drawings) {
    let Drawings { pictures, wide, left_out, searchable } = drawings;
    let (wide, left_out) = (*wide, *left_out);
    // What is true of all of them is said once.
    let common = pictures.iter().all(|picture| picture.caption == pictures[0].caption);
    if common {
        let caption = caption(document, &pictures[0].caption);
        out.push_str(&format!("<p class=\"muted\">{}</p>\n", escape(&caption)));
    }
    let (unfolded, folded) = pictures.split_at(pictures.len().min(UNFOLDED[usize::from(wide)]));
    if *searchable {
        out.push_str(search::FIELD);
    }
    figures(out, document, unfolded, common, wide);
    if !folded.is_empty() {
        let more = count(folded.len() as u64, "more picture");
        out.push_str(&format!("<details><summary>{more}</summary>\n"));
        figures(out, document, folded, common, wide);
        out.push_str("</details>\n");
    }
    if left_out > 0 {
        let rows = count(left_out as u64, "more row");
        out.push_str(&format!(
            "<p class=\"muted\">{rows} without a picture; the numbers above have all.</p>\n"
        ));
    }
}

/// Pictures one below the other, or where they are not wide, beside each other.
fn figures(out: &mut String, document: &Document<'_>, pictures: &[Picture], common: bool, wide: bool) {
    if !wide {
        let one = if pictures.len() == 1 { " one" } else { "" };
        out.push_str(&format!("<div class=\"pair{one}\">\n"));
    }
    for picture in pictures {
        let caption = if common { String::new() } else { caption(document, &picture.caption) };
        figure(out, &keys(document, picture), picture, &caption, wide);
    }
    if !wide {
        out.push_str("</div>\n");
    }
}
