//! `${NAME}` in job texts and commands: found and replaced as fio does it.
//!
//! Enters: one text. Leaves: the names in it, or the text with their values. An unclosed `${` is plain text.

use std::collections::BTreeSet;

/// One `${NAME}` and the text in front of it.
struct Parts<'a> {
    before: &'a str,
    name: &'a str,
    after: &'a str,
}

fn split_first(text: &str) -> Option<Parts<'_>> {
    let start = text.find("${")?;
    let length = text[start + 2..].find('}')?;
    let end = start + 2 + length;
    Some(Parts { before: &text[..start], name: &text[start + 2..end], after: &text[end + 1..] })
}

/// Adds the names in `text` to `names`.
pub fn collect(text: &str, names: &mut BTreeSet<String>) {
    let mut rest = text;
    while let Some(parts) = split_first(rest) {
        names.insert(parts.name.to_owned());
        rest = parts.after;
    }
}

/// `text` with every `${NAME}` replaced by the last of `values` of that name, else by the process's environment.
///
/// # Errors
/// A sentence that names the variable without a value, or whose value would end the line or begin a comment.
pub fn substitute(text: &str, values: &[(String, String)]) -> Result<String, String> {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(parts) = split_first(rest) {
        done.push_str(parts.before);
        let value = values
            .iter()
            .rev()
            .find(|(name, _)| name == parts.name)
            .map(|(_, value)| value.clone())
            .or_else(|| environment(parts.name));
        let Some(value) = value else {
            return Err(format!("${{{}}} has no value (fio would put nothing there)", parts.name));
        };
        if value.contains(['\n', '\r', ';', '#']) {
            return Err(format!("the value of ${{{}}} holds a line break, ';' or '#'", parts.name));
        }
        done.push_str(&value);
        rest = parts.after;
    }
    done.push_str(rest);
    // fio would replace it once more, by something that nobody has looked at.
    match split_first(&done) {
        Some(parts) => Err(format!("with the values in place there is another ${{{}}}", parts.name)),
        None => Ok(done),
    }
}

/// The value that the process's environment has for a name.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    // std::env::var panics on no name, but a name with '=' or NUL is simply never found.
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn replaces_every_name() {
        let values = values(&[("A", "old"), ("A", "4k"), ("B", "")]);
        assert_eq!(substitute("x${A}y${B}z${A}", &values), Ok("x4kyz4k".to_owned()));
        assert_eq!(substitute("no variable, $A, ${open", &values), Ok("no variable, $A, ${open".to_owned()));
    }

    #[test]
    fn a_name_without_value_is_an_error() {
        let message = substitute("bs=${ASSAY_TEST_NOT_SET}", &[]).unwrap_err();
        assert!(message.contains("${ASSAY_TEST_NOT_SET}"), "{message}");
        assert!(substitute("${}", &[]).is_err());
        assert!(substitute("${a=b}", &[]).is_err());
    }

    #[test]
    fn a_value_cannot_smuggle_in_a_line() {
        assert!(substitute("${A}", &values(&[("A", "4k\n[evil]")])).is_err());
    }

    #[test]
    fn a_value_cannot_bring_another_variable() {
        assert!(substitute("${A}", &values(&[("A", "${B}"), ("B", "x")])).is_err());
        assert!(substitute("$${A}{B}", &values(&[("A", ""), ("B", "x")])).is_err());
    }

    #[test]
    fn the_environment_is_the_last_resort() {
        // PATH is set wherever tests run.
        assert_eq!(substitute("${PATH}", &values(&[("PATH", "mine")])), Ok("mine".to_owned()));
        assert!(substitute("${PATH}", &[]).is_ok_and(|path| !path.is_empty()));
    }

    #[test]
    fn names_are_collected_once() {
        let mut names = BTreeSet::new();
        collect("${B}${A}${B}", &mut names);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["A", "B"]);
    }
}
