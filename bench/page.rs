//! The page docs/performance.md: an introduction, and a chapter for each processor that was measured.
//!
//! Enters: the page as it is, and what is new. Leaves: the page as it will be. It must not know what a chapter says.

/// How the heading of a chapter begins.
const CHAPTER: &str = "## ";

/// The page with a new introduction, and with `chapter` in the place of the former one of this processor, or at the end. The
/// chapters of other processors stay as they are.
pub(crate) fn with_chapter(page: &str, introduction: &str, processor: &str, chapter: &str) -> String {
    let new = format!("{CHAPTER}{processor}\n\n{}\n", chapter.trim());
    let (mut chapters, mut replaced) = (Vec::new(), false);
    for former in chapters_of(page) {
        let own = former.lines().next().and_then(|heading| heading.strip_prefix(CHAPTER)) == Some(processor);
        replaced |= own;
        chapters.push(if own { new.clone() } else { format!("{}\n", former.trim_end()) });
    }
    if !replaced {
        chapters.push(new);
    }
    format!("{}\n\n{}", introduction.trim_end(), chapters.join("\n"))
}

/// From each heading to the next.
fn chapters_of(page: &str) -> Vec<String> {
    let mut chapters: Vec<String> = Vec::new();
    for line in page.lines() {
        match chapters.last_mut() {
            _ if line.starts_with(CHAPTER) => chapters.push(format!("{line}\n")),
            Some(chapter) => chapter.push_str(&format!("{line}\n")),
            None => {}
        }
    }
    chapters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_replaces_the_chapter_of_its_own_processor() {
        let first = with_chapter("", "# Title\n\nWords.\n", "AMD EPYC", "| a |\n");
        assert_eq!(first, "# Title\n\nWords.\n\n## AMD EPYC\n\n| a |\n");
        let both = with_chapter(&first, "# Title\n\nWords.\n", "Intel Xeon", "| b |");
        assert_eq!(both, "# Title\n\nWords.\n\n## AMD EPYC\n\n| a |\n\n## Intel Xeon\n\n| b |\n");
        let newer = with_chapter(&both, "# New title\n", "AMD EPYC", "| c |");
        assert_eq!(newer, "# New title\n\n## AMD EPYC\n\n| c |\n\n## Intel Xeon\n\n| b |\n");
        // A name that begins like another one is another processor.
        let third = with_chapter(&newer, "# New title\n", "AMD EPYC 9B14", "| d |");
        assert!(third.contains("| c |") && third.ends_with("## AMD EPYC 9B14\n\n| d |\n"), "{third}");
    }
}
