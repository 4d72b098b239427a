//! An arm that fails when it is slow, through the real program: what is left of it looks faster than it is.

use crate::sandbox::{Sandbox, errors};

/// Both arms draw the same values, every third one slow. The candidate ends with 1 instead of being slow; the next attempt works.
const DRAW: &str = "
arm=$1
n=$(cat \"$2/$arm\" 2>/dev/null || echo 0)
echo $((n + 1)) > \"$2/$arm\"
t=$((1000 + n * 7 % 11))
if [ $((n % 3)) = 2 ]; then
    [ $arm = candidate ] && exit 1
    t=$((t + 500))
fi
echo took $t
";

#[test]
fn an_arm_that_exits_with_1_when_slow_is_not_comparable() {
    let sandbox = Sandbox::new();
    let script = sandbox.write("draw.sh", DRAW);
    let [script, place] = [&*script, sandbox.path()].map(|path| path.to_string_lossy().into_owned());
    let run = [
        "run",
        "--quiet",
        "--vary",
        "arm=baseline,candidate",
        "--rounds",
        "30",
        "--seed",
        "1",
        "--metric",
        "took=took (\\d+):ms:lower",
        "--",
        "sh",
        script.as_str(),
        "${arm}",
        place.as_str(),
    ];
    let output = sandbox.run(&run);
    let (said, report) = (errors(&output), String::from_utf8_lossy(&output.stdout).into_owned());
    print!("{report}{said}");
    let headline = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(output.status.code(), Some(1), "{report}{said}");
    assert!(said.contains("not comparable") && said.contains("--failures worst"), "{said}");
    let wanted = "arm=candidate is not comparable with arm=baseline: arm=candidate failed in";
    assert!(headline.contains(wanted) && headline.contains("of 30 trials, arm=baseline in 0"), "{report}");
    assert!(headline.contains(", and the trials that failed may have been its slow ones"), "{report}");
    assert!(!headline.contains("is faster"), "{report}");

    let json: serde_json::Value =
        serde_json::from_str(&sandbox.succeed(&["report", "1", "--format", "json"])).unwrap();
    let found = &json["analysis"]["comparisons"][0];
    assert_eq!(
        (&found["verdict"], &found["failures"]["baseline_failed"]),
        (&"not_comparable".into(), &0.into())
    );
    let failed = found["failures"]["candidate_failed"].as_u64().unwrap();
    assert!((9..=15).contains(&failed) && found["failures"]["p"].as_f64().unwrap() < 0.05, "{found}");

    let worst = sandbox.succeed(&["report", "1", "--failures", "worst"]);
    assert!(!worst.contains("not comparable") && !worst.contains("is faster"), "{worst}");
    let undecided = sandbox.run(&["report", "1", "--fail-if", "undecided"]);
    assert_eq!(undecided.status.code(), Some(3), "no verdict is not a pass");
}
