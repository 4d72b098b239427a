//! How many of something, in words.

/// `1 round`, `8 rounds`.
#[must_use]
pub fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_s() {
        let said = [0, 1, 2].map(|n| counted(n, "round"));
        assert_eq!(said, ["0 rounds", "1 round", "2 rounds"]);
    }
}
