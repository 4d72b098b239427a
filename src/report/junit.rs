//! JUnit XML, the form in which build servers read results of tests: a suite a run, a case for each comparison that decides.
//!
//! Enters: documents, and what kept runs from having one. Leaves: XML: the verdicts, each with what sections say of a comparison in a
//! table. It must not judge: which verdicts fail a case is the gate's.

use std::fmt::Write;

use html_escape::encode_double_quoted_attribute as attribute;
use html_escape::encode_text;

use super::comparisons::of_role;
use super::document::Document;
use super::layout::{one_line, printable};
use super::section::Block;
use super::verdict_words::{sentence, verdict_word};
use super::words::Names;
use crate::analyse::{Comparison, Gate, Role, Verdict};

/// Its first lines, by which a file is known for one of assay's.
pub(super) const BEGINNING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\"";

/// One run's.
pub(super) fn render(document: &Document<'_>) -> String {
    of_several(&[(&document.run.name, Some(document), None)])
}

/// Those of several runs: what each is called, its report, and why it failed.
pub(super) fn of_several(runs: &[(&str, Option<&Document<'_>>, Option<&str>)]) -> String {
    let suites: Vec<Suite> =
        runs.iter().map(|(name, document, why)| Suite::of(name, *document, *why)).collect();
    let mut all = Counts::default();
    suites.iter().for_each(|suite| all.add(suite.counts));
    let mut out = format!("{BEGINNING}{}>\n", all.attributes());
    suites.iter().for_each(|suite| out.push_str(&suite.text));
    out.push_str("</testsuites>\n");
    out
}

#[derive(Clone, Copy, Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
    elapsed_s: f64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.skipped += other.skipped;
        self.elapsed_s += other.elapsed_s;
    }

    fn attributes(&self) -> String {
        format!(
            " tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
            self.tests, self.failures, self.errors, self.skipped, self.elapsed_s
        )
    }
}

/// One run.
struct Suite {
    counts: Counts,
    text: String,
}

impl Suite {
    fn of(name: &str, document: Option<&Document<'_>>, why: Option<&str>) -> Suite {
        let mut suite = Suite { counts: Counts::default(), text: String::new() };
        let name = plain(name);
        let mut timestamp = String::new();
        if let Some(document) = document {
            let elapsed = document.run.trials.iter().map(|trial| trial.elapsed_s);
            suite.counts.elapsed_s = elapsed.filter(|seconds| seconds.is_finite()).sum();
            timestamp = began(document);
            for comparison in of_role(document.analysis, Role::Primary) {
                suite.case(&name, comparison, document);
            }
        }
        if let Some(why) = why {
            suite.failed(&name, "run", why);
        } else if suite.counts.tests == 0 {
            suite.failed(&name, "run", "nothing was compared");
        }
        let attributes = suite.counts.attributes();
        suite.text = format!(
            "  <testsuite name=\"{}\"{attributes}{timestamp}>\n{}  </testsuite>\n",
            attribute(&name),
            suite.text
        );
        suite
    }

    fn case(&mut self, run: &str, comparison: &Comparison, document: &Document<'_>) {
        let (names, gate) = (document.names(), document.options.gate);
        let said = plain(&sentence(comparison, &names));
        let of_sections = document.blocks().into_iter().filter_map(|block| match block {
            Block::Column { head, cell } => Some((*head, cell(document, comparison))),
            _ => None,
        });
        let told = of_sections.filter(|(_, text)| !text.is_empty());
        let told = told.map(|(head, text)| plain(&format!("{head}: {text}")));
        let all: Vec<String> = std::iter::once(said.clone()).chain(told).collect();
        let all = all.join("\n");
        let within = match outcome(comparison, gate) {
            Case::Passed => format!("<system-out>{}</system-out>", encode_text(&all)),
            Case::Failed => {
                self.counts.failures += 1;
                let kind = plain(verdict_word(comparison));
                let (kind, said, all) = (attribute(&kind), attribute(&said), encode_text(&all));
                format!("<failure type=\"{kind}\" message=\"{said}\">{all}</failure>")
            }
            Case::Error => {
                self.counts.errors += 1;
                with_message("error", &said, &all)
            }
            Case::Skipped => {
                self.counts.skipped += 1;
                with_message("skipped", &said, &all)
            }
        };
        self.push(run, &case_name(comparison, &names), &within);
    }

    fn failed(&mut self, run: &str, case: &str, why: &str) {
        self.counts.errors += 1;
        self.push(run, case, &format!("<error message=\"{}\"/>", attribute(&plain(why))));
    }

    fn push(&mut self, run: &str, case: &str, within: &str) {
        self.counts.tests += 1;
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.text,
            "    <testcase classname=\"{}\" name=\"{}\">\n      {within}\n    </testcase>",
            attribute(run),
            attribute(case)
        );
    }
}

fn with_message(element: &str, message: &str, content: &str) -> String {
    format!("<{element} message=\"{}\">{}</{element}>", attribute(message), encode_text(content))
}

/// What becomes of a comparison as a test.
enum Case {
    Passed,
    Failed,
    Error,
    Skipped,
}

fn outcome(comparison: &Comparison, gate: Gate) -> Case {
    match &comparison.verdict {
        _ if gate.holds_for(comparison) => Case::Failed,
        Verdict::NotComparable => Case::Error,
        Verdict::Undecided { .. }
        | Verdict::SoFar { .. }
        | Verdict::TooFew { .. }
        | Verdict::NotMeasured(_) => Case::Skipped,
        Verdict::Faster { .. } | Verdict::Slower { .. } | Verdict::NoDifference { .. } => Case::Passed,
    }
}

/// `bs=4k: direct=1 against direct=0: write.bw`, the same from run to run, so that a server can follow it.
fn case_name(comparison: &Comparison, names: &Names<'_>) -> String {
    let arms = names.against(&comparison.candidate.arm, &comparison.baseline.arm);
    plain(&format!("{}{arms}: {}", names.before(&comparison.row), comparison.metric.name))
}

/// When a run was begun, as an attribute in UTC; nothing where it is not known.
fn began(document: &Document<'_>) -> String {
    let at = i128::from(document.run.started_unix_ns);
    match jiff::Timestamp::from_nanosecond(at) {
        Ok(at) if document.run.started_unix_ns > 0 => {
            format!(" timestamp=\"{}\"", at.strftime("%Y-%m-%dT%H:%M:%S"))
        }
        _ => String::new(),
    }
}

/// One line with plain blanks and nothing that XML forbids.
fn plain(text: &str) -> String {
    printable(&one_line(text)).replace(['\u{fffe}', '\u{ffff}'], " ")
}

#[cfg(test)]
mod tests {
    use super::super::section_tests::made_up;
    use super::*;
    use crate::analyse::Gated;
    use crate::report::Options;

    /// Name and attributes of all elements of a case, and the whole text.
    fn written(verdict: Verdict, gate: Gate, why: Option<&str>) -> (Vec<String>, String) {
        let (run, mut analysis) = made_up();
        analysis.comparisons[0].verdict = verdict;
        let document = Document::build(&run, &analysis, &Options { gate, ..Options::default() });
        let text = of_several(&[("a <b> & \"c\" \u{1b}", Some(&document), why)]);
        let read = roxmltree::Document::parse(&text).unwrap();
        let elements = read.descendants().filter(roxmltree::Node::is_element);
        (elements.map(|element| element.tag_name().name().to_owned()).collect(), text)
    }

    #[test]
    fn a_verdict_is_the_result_of_a_test() {
        let undecided = || Verdict::Undecided { rounds_to_claim: None, rounds_for_no_difference: None };
        let usual = Gate::default();
        let either = Gate { of: Some(Gated::Either), ..usual };
        let strict = Gate { undecided: true, ..usual };
        for (verdict, gate, element) in [
            (Verdict::Slower { beyond_delta: true }, usual, "failure"),
            (Verdict::Slower { beyond_delta: false }, usual, "system-out"),
            (Verdict::Slower { beyond_delta: false }, strict, "failure"),
            (Verdict::Faster { beyond_delta: true }, usual, "system-out"),
            (Verdict::Faster { beyond_delta: true }, either, "failure"),
            (undecided(), usual, "skipped"),
            (undecided(), strict, "failure"),
            (Verdict::NotComparable, usual, "error"),
            (Verdict::TooFew { n: 3 }, usual, "skipped"),
        ] {
            let (elements, text) = written(verdict, gate, None);
            assert_eq!(elements, ["testsuites", "testsuite", "testcase", element], "{text}");
            assert!(text.contains("name=\"cache=off against cache=on: bw\""), "{text}");
        }
    }

    #[test]
    fn a_run_that_failed_is_an_error_with_its_reason() {
        let (elements, text) =
            written(Verdict::Faster { beyond_delta: true }, Gate::default(), Some("a < b"));
        assert_eq!(elements, ["testsuites", "testsuite", "testcase", "system-out", "testcase", "error"]);
        let read = roxmltree::Document::parse(&text).unwrap();
        let of = |name: &str, attribute: &str| {
            let element = read.descendants().find(|element| element.has_tag_name(name)).unwrap();
            element.attribute(attribute).unwrap().to_owned()
        };
        assert_eq!(
            (of("error", "message"), of("testsuites", "errors")),
            ("a < b".to_owned(), "1".to_owned())
        );
        assert_eq!(of("testsuite", "name"), "a <b> & \"c\"  ");
        assert_eq!(
            (of("testsuite", "tests"), of("testsuite", "time")),
            ("2".to_owned(), "10.000".to_owned())
        );
        assert!(text.starts_with(BEGINNING), "{text}");
    }
}
