//! Three and more levels: the ranking in each format, and `--all-pairs`.

use crate::sandbox::Sandbox;

/// A run of four levels of which two are alike. They are called schedulers and set a number that nobody uses: no test changes a
/// setting of the disk that others are on.
fn four_levels() -> Sandbox {
    let sandbox = Sandbox::new();
    let toml = "engine = \"simulated\"\n[simulated]\nbw = 1e8\ncv = 0.01\nsleep_ms = 0\n\
                effects = { \"scheduler=mq-deadline\" = 0.3, \"scheduler=kyber\" = 0.6, \"scheduler=bfq\" = -0.2 }\n\
                [[factor]]\nname = \"scheduler\"\n\
                level = [{ label = \"none\", set = { numjobs = 1 } }, { label = \"mq-deadline\", set = { numjobs = 2 } },\n\
                { label = \"kyber\", set = { numjobs = 3 } }, { label = \"bfq\", set = { numjobs = 4 } }]\n";
    std::fs::write(sandbox.path().join("four.toml"), toml).unwrap();
    sandbox.succeed(&["run", "-q", "--rounds", "10", "--seed", "5", "four.toml"]);
    sandbox
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn without_all_pairs_the_ranking_names_the_option() {
    let report = words(&four_levels().succeed(&["report", "1"]));
    let caption = "ranking of scheduler by write.bw, the best first; each was compared with none only, `assay report 1 \
                   --all-pairs` compares every pair";
    assert!(report.contains(&words(caption)), "{report}");
    assert!(
        report.contains(
            "1st kyber, mq-deadline (by estimate, not compared with each other); 3rd none; 4th bfq"
        ),
        "{report}"
    );
}

#[test]
fn all_pairs_are_ranked_in_each_format() {
    let sandbox = four_levels();
    let ranking = "1st kyber; 2nd mq-deadline; 3rd none; 4th bfq";
    for format in ["text", "markdown", "html"] {
        let report = words(&sandbox.succeed(&["report", "1", "--all-pairs", "--format", format]));
        assert!(report.replace('\\', "").contains(ranking), "{format}: {report}");
        assert!(report.contains("every pair was compared"), "{format}");
    }
    let again = ["run", "-q", "--rounds", "10", "--seed", "5", "--all-pairs", "four.toml"];
    let report = words(&sandbox.succeed(&again));
    assert!(report.contains(ranking) && report.contains("every pair was compared"), "{report}");
    let text = sandbox.succeed(&["report", "1", "--all-pairs"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(
        words(&text).contains("scheduler=bfq is slower than scheduler=mq-deadline by more than 2 %"),
        "{text}"
    );
    assert!(words(&text).contains("medians of scheduler=bfq against scheduler=kyber"), "{text}");
    let html = sandbox.succeed(&["report", "1", "--all-pairs", "--format", "html"]);
    assert!(html.contains("kyber against mq-deadline"), "the picture names both arms of a pair");
    let json = sandbox.succeed(&["report", "1", "--all-pairs", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ranking = &report["analysis"]["rankings"][0];
    assert_eq!((&ranking["all_pairs"], &ranking["places"][3]["arm"]), (&true.into(), &"bfq".into()));
    assert_eq!(report["verdicts"].as_array().unwrap().len(), 6);
    for format in ["lkml", "mmtests", "csv"] {
        sandbox.succeed(&["report", "1", "--all-pairs", "--format", format]);
    }
}

#[test]
fn what_fail_if_asks_is_about_the_baseline() {
    let sandbox = four_levels();
    let output = sandbox.run(&["report", "1", "--all-pairs", "--fail-if", "slower"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
