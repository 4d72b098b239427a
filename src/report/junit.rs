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
use crate::record::{Run, RunState};

/// Its first lines, by which a file is known for one of assay's.
pub(super) const BEGINNING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"assay\"";

/// One run's.
pub(super) fn render(document: &Document<'_>) -> String {
    of_several(&[(&document.run.name, Some(document), None)])
}

/// Those of several runs: what each is called where it has no report, its report, and why it failed.
pub(super) fn of_several(runs: &[(&str, Option<&Document<'_>>, Option<&str>)]) -> String {
    let mut suites: Vec<Suite> = Vec::new();
    for (name, document, why) in runs {
        // Numbers, by which runs are asked for, are others every night.
        let name = plain(document.map_or(name, |document| &document.run.name));
        let number = document.and_then(|document| document.run.id);
        let is_taken = suites.iter().any(|suite| suite.run == name);
        let title = match number.filter(|_| is_taken) {
            Some(number) => format!("{name} (run {number})"),
            None => name.clone(),
        };
        suites.push(Suite::of(name, &title, *document, *why));
    }
    let mut all = Counts::default();
    suites.iter().for_each(|suite| all.add(suite.counts));
    let mut out = format!("{BEGINNING}{}>\n", all.attributes());
    suites.iter().for_each(|suite| out.push_str(&suite.text));
    out.push_str("</testsuites>\n");
    out
}

/// Why a run is an error, whatever its comparisons say; one that came to its end is none for trials that failed.
fn not_ended<'w>(run: &Run, why: Option<&'w str>) -> Option<&'w str> {
    match run.state {
        RunState::Finished => why.filter(|_| run.failures().next().is_none()),
        RunState::Interrupted => why.or(Some("interrupted")),
        RunState::Running => why.or(Some("it is not finished")),
        RunState::Failed => why.or(Some("it did not come to its end")),
    }
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
    run: String,
    counts: Counts,
    text: String,
}

impl Suite {
    fn of(run: String, title: &str, document: Option<&Document<'_>>, why: Option<&str>) -> Suite {
        let mut suite = Suite { run, counts: Counts::default(), text: String::new() };
        let mut timestamp = String::new();
        if let Some(document) = document {
            let elapsed = document.run.trials.iter().map(|trial| trial.elapsed_s);
            suite.counts.elapsed_s = elapsed.filter(|seconds| seconds.is_finite()).sum();
            timestamp = began(document);
            for comparison in of_role(document.analysis, Role::Primary) {
                suite.case(comparison, document);
            }
        }
        if let Some(why) = document.map_or(why, |document| not_ended(document.run, why)) {
            suite.failed("run", why);
        } else if suite.counts.tests == 0 {
            suite.failed("run", "nothing was compared");
        }
        let attributes = suite.counts.attributes();
        suite.text = format!(
            "  <testsuite name=\"{}\"{attributes}{timestamp}>\n{}  </testsuite>\n",
            attribute(title),
            suite.text
        );
        suite
    }

    fn case(&mut self, comparison: &Comparison, document: &Document<'_>) {
        let names = document.names();
        let said = plain(&sentence(comparison, &names));
        let of_sections = document.blocks().into_iter().filter_map(|block| match block {
            Block::Column { head, cell } => Some((*head, cell(document, comparison))),
            _ => None,
        });
        let told = of_sections.filter(|(_, text)| !text.is_empty());
        let told = told.map(|(head, text)| plain(&format!("{head}: {text}")));
        let all: Vec<String> = std::iter::once(said.clone()).chain(told).collect();
        let all = all.join("\n");
        let within = match outcome(comparison, document) {
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
        self.push(&case_name(comparison, &names), &within);
    }

    fn failed(&mut self, case: &str, why: &str) {
        self.counts.errors += 1;
        self.push(case, &format!("<error message=\"{}\"/>", attribute(&plain(why))));
    }

    fn push(&mut self, case: &str, within: &str) {
        self.counts.tests += 1;
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.text,
            "    <testcase classname=\"{}\" name=\"{}\">\n      {within}\n    </testcase>",
            attribute(&self.run),
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

fn outcome(comparison: &Comparison, document: &Document<'_>) -> Case {
    let run = document.run;
    // What differs between a job and itself is the machine's, unless somebody asks.
    let gate = document.options.gate.or((!run.aa).then(Gate::default));
    let (base, cand) = (comparison.baseline.n, comparison.candidate.n);
    let is_lost = (base == 0) != (cand == 0) || (base + cand == 0 && run.failures().next().is_some());
    match &comparison.verdict {
        _ if gate.is_some_and(|gate| gate.holds_for(comparison)) => Case::Failed,
        Verdict::NotComparable => Case::Error,
        Verdict::NotMeasured(_) if is_lost => Case::Error,
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
        let (mut run, mut analysis) = made_up();
        run.name = "a <b> & \"c\" \u{1b}".to_owned();
        analysis.comparisons[0].verdict = verdict;
        let document = Document::build(&run, &analysis, &Options { gate: Some(gate), ..Options::default() });
        let text = of_several(&[("7", Some(&document), why)]);
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
            (Verdict::SoFar { rounds: 3, of: 9 }, strict, "skipped"),
            (Verdict::NotMeasured("x".to_owned()), usual, "skipped"),
            (Verdict::Slower { beyond_delta: true }, Gate { of: None, ..strict }, "system-out"),
            (Verdict::Slower { beyond_delta: false }, Gate { however_little: true, ..usual }, "failure"),
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

    #[test]
    fn what_did_not_end_is_an_error_and_what_ended_is_none_for_one_trial() {
        let (run, analysis) = made_up();
        let elements = |run: &Run, analysis: &crate::analyse::Analysis, why: Option<&str>| {
            let document = Document::build(run, analysis, &Options::default());
            let text = of_several(&[("7", Some(&document), why), ("8", Some(&document), None)]);
            assert!(
                text.contains("<testsuite name=\"r (run 7)\"") && !text.contains("classname=\"7"),
                "{text}"
            );
            text.matches("<error ").count()
        };
        assert_eq!(elements(&run, &analysis, None), 0);
        assert_eq!(elements(&run, &analysis, Some("not run with the others")), 1);
        let mut broken = run.clone();
        (broken.trials[0].attempt, broken.trials[0].status) =
            (1, crate::record::Status::failed(crate::record::FailureKind::Passing, "x"));
        assert_eq!(elements(&broken, &analysis, Some("some trials failed")), 0);
        broken.state = RunState::Interrupted;
        assert_eq!(elements(&broken, &analysis, None), 2);
        let mut one_sided = analysis.clone();
        one_sided.comparisons[0].candidate.n = 0;
        one_sided.comparisons[0].verdict = Verdict::NotMeasured("no trial worked".to_owned());
        assert_eq!(elements(&run, &one_sided, None), 2);
        let mut same = run.clone();
        same.aa = true;
        let mut claimed = analysis.clone();
        claimed.comparisons[0].verdict = Verdict::Slower { beyond_delta: true };
        let written = |claimed: &crate::analyse::Analysis, gate| {
            render(&Document::build(&same, claimed, &Options { gate, ..Options::default() }))
        };
        assert!(!written(&claimed, None).contains("<failure"), "what differs between a job and itself");
        assert!(written(&claimed, Some(Gate::default())).contains("<failure"), "somebody asks");
        assert!(written(&one_sided, None).contains("<error"), "an arm has no value");
    }
}
