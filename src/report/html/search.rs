//! Finding boxes of flame graphs by name: the only script that a page may have, and only where it has such graphs.
//!
//! Enters: the page's body. Leaves: the script, and the policy that lets a browser run this one and no other. Without scripts the field is
//! not shown.

use base64::Engine;
use sha2::{Digest, Sha256};

/// Where a name is typed; the script shows it. The graphs are beside it.
pub(super) const FIELD: &str = "<p class=\"search\" hidden><label>Find a function: <input type=\"search\"></label> <output></output></p>\n";
const SCRIPT: &str = include_str!("search.js");

/// The script, at the end of a body that has something to find.
pub(super) fn script(body: &str) -> String {
    if body.contains(FIELD) { format!("<script>{SCRIPT}</script>\n") } else { String::new() }
}

/// What the page's policy says of scripts, behind what it says of styles.
pub(super) fn policy(body: &str) -> String {
    if !body.contains(FIELD) {
        return String::new();
    }
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(SCRIPT));
    format!("; script-src 'sha256-{digest}'")
}
