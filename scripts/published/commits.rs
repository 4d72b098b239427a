//! Which commit a run was measured at, as `scripts/published.sh` writes it down before it runs anything.
//!
//! Enters: lines of `NANOSECONDS COMMIT`, the time since 1970. Leaves: the commit of a run by when it began, and words about
//! it. It must not ask git: what is checked out now is not what was measured then.

/// Where nobody wrote it down.
const UNKNOWN: &str = "unknown";

/// Commits by the time from which on they were measured, the earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commits(Vec<(u64, String)>);

impl Commits {
    /// From the file's text; a line that is none is left out.
    pub(crate) fn parse(text: &str) -> Commits {
        let line = |line: &str| {
            let (time, commit) = line.split_once(' ')?;
            Some((time.parse().ok()?, commit.trim().to_owned()))
        };
        let mut known: Vec<(u64, String)> = text.lines().filter_map(line).collect();
        known.sort();
        Commits(known)
    }

    /// The commit of a run that began then.
    pub(crate) fn at(&self, unix_ns: u64) -> &str {
        let known = self.0.iter().rev().find(|(from, _)| *from <= unix_ns);
        known.map_or(UNKNOWN, |(_, commit)| commit)
    }

    /// What a chapter says of its runs' commits; nothing where all are the page's own.
    pub(crate) fn of_chapter(&self, page: &str, runs: impl Iterator<Item = (String, u64)>) -> Option<String> {
        let runs: Vec<(String, &str)> = runs.map(|(name, began)| (name, self.at(began))).collect();
        let (_, first) = runs.first()?;
        match runs.iter().all(|(_, commit)| commit == first) {
            true if *first == page => None,
            true => Some(format!("Measured earlier, at commit {first}.")),
            false => {
                let each: Vec<String> =
                    runs.iter().map(|(name, commit)| format!("{name} at commit {commit}")).collect();
                Some(format!("Measured: {}.", each.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_the_commit_of_its_own_time() {
        let commits = Commits::parse("100 aaa\nnonsense\n200 bbb-dirty\n");
        let at = [99, 100, 199, 200, 5000].map(|time| commits.at(time));
        assert_eq!(at, ["unknown", "aaa", "aaa", "bbb-dirty", "bbb-dirty"]);
        assert_eq!(Commits::parse("").at(1), "unknown");
    }

    #[test]
    fn a_chapter_tells_the_commit_of_runs_that_were_kept() {
        let commits = Commits::parse("100 aaa\n200 bbb\n");
        let said = |page: &str, began: &[(&str, u64)]| {
            commits.of_chapter(page, began.iter().map(|(name, at)| ((*name).to_owned(), *at)))
        };
        assert_eq!(said("bbb", &[("x", 250)]), None);
        assert_eq!(said("bbb", &[("x", 150)]).unwrap(), "Measured earlier, at commit aaa.");
        assert_eq!(
            said("bbb", &[("x", 150), ("y", 250)]).unwrap(),
            "Measured: x at commit aaa, y at commit bbb."
        );
        assert_eq!(said("bbb", &[]), None);
    }
}
