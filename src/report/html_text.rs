//! Text of others inside HTML.

use html_escape::encode_quoted_attribute;

/// Text in which nothing is markup, for elements and quoted attributes; control characters become blanks.
pub(super) fn escape(text: &str) -> String {
    let plain = text.replace('\t', "    ").replace(|c: char| c.is_control() && c != '\n', " ");
    encode_quoted_attribute(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_markup() {
        assert_eq!(
            escape("<a b=\"c\" d='e'>&\u{1b}\n\t"),
            "&lt;a b=&quot;c&quot; d=&#x27;e&#x27;&gt;&amp; \n    "
        );
    }
}
