//! `--aa` is ten rounds of the baseline against itself, and later reports of the same host and job name what it found.

use assay::analyse;
use assay::record::RunState;

use crate::sandbox::Sandbox;

const EXPERIMENT: &str = "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nmax_rounds = 8\n\
                          [simulated]\ncv = 0.02\neffects = { \"bs=8k\" = 0.2 }\n\
                          [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";

#[test]
fn an_a_a_run_is_the_noise_floor_of_later_reports() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", EXPERIMENT);
    let run = |more: &[&str]| {
        // A busy machine has more to say than fits one screen.
        let arguments = [&["run", "s.toml", "--quiet", "--seed", "7", "--verbose"], more].concat();
        sandbox.succeed(&arguments).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(run(&[]).contains("noise floor unknown"), "nothing is known yet");
    let of_itself = run(&["--aa"]);
    assert!(of_itself.contains("A/A, A against itself"), "{of_itself}");
    let aa = sandbox.export("2");
    assert_eq!(
        (aa.state, aa.aa, aa.trials.len(), aa.design.stop.rounds),
        (RunState::Finished, true, 16, Some(8))
    );
    // Both arms are the baseline: no effect of 8k in either.
    let bw = aa.metrics.iter().position(|m| m.name == "write.bw").unwrap() as u32;
    let mean = |cell: u32| {
        let values: Vec<f64> =
            aa.trials.iter().filter(|t| t.cell == cell).filter_map(|t| t.value(bw)).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    assert!((mean(1) / mean(0) - 1.0).abs() < 0.05, "{} {}", mean(0), mean(1));

    let floor = analyse::noise_floor(&aa, &analyse::Options::default()).unwrap();
    let later = run(&[]);
    assert!(later.contains("noise floor (A/A run 2): write.bw"), "{later}");
    let claims = u32::from(analyse::claims_a_difference(&aa));
    let p = if claims == 0 { "1.000" } else { "0.050" };
    let counted =
        format!("{claims} of 1 A/A run claimed a difference (at most 5 % should; binomial p = {p})");
    assert!(later.contains(&counted) && of_itself.contains(&counted), "{later}");
    let report =
        sandbox.succeed(&["report", "1", "--verbose"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("noise floor (A/A run 2)"), "also of runs before it: {report}");
    let spread = format!("spreads by {:.2} %", floor.s_d * 100.0);
    assert!(later.contains(&spread), "{spread}: {later}");
    // A second A/A run of the same experiment is pooled with the first.
    sandbox.succeed(&["run", "s.toml", "--quiet", "--seed", "8", "--aa"]);
    let pooled = run(&[]);
    // What differs on this machine from run to run makes it another host: it is told here.
    let of = |run: &str| sandbox.export(run).facts[0].clone();
    let differ = |run: &str| {
        of(run)
            .into_iter()
            .filter(|(name, value)| of("2").get(name) != Some(value.as_str()))
            .collect::<Vec<_>>()
    };
    assert!(
        pooled.contains("2 A/A runs together"),
        "{pooled}: run 4 {:?} run 5 {:?}",
        differ("4"),
        differ("5")
    );
    // Another job is not measured by it.
    sandbox.write("other.toml", &EXPERIMENT.replace("size=1m", "size=2m"));
    let other = sandbox.succeed(&["run", "other.toml", "--quiet", "--verbose"]);
    assert!(other.contains("noise floor unknown"), "{other}");
}

#[test]
fn another_command_is_another_job() {
    let sandbox = Sandbox::new();
    let experiment = |command: &str| {
        format!(
            "name = \"c\"\ncommand = [\"sh\", \"-c\", \"{command} ${{x}}\"]\n[stop]\nrounds = 4\n\
             [[factor]]\nname = \"x\"\nlevels = [\"1\", \"2\"]\n"
        )
    };
    sandbox.write("c.toml", &experiment("true"));
    sandbox.write("other.toml", &experiment("test"));
    sandbox.succeed(&["run", "c.toml", "--quiet", "--aa"]);
    let same = sandbox.succeed(&["run", "c.toml", "--quiet", "--verbose"]);
    assert!(same.contains("noise floor (A/A"), "{same}");
    let other = sandbox.succeed(&["run", "other.toml", "--quiet", "--verbose"]);
    assert!(other.contains("noise floor unknown"), "{other}");
}

/// What an upgrade changed: the same measured alone before and after it.
#[test]
fn a_run_measured_alone_is_one_arm_of_a_later_comparison() {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", EXPERIMENT);
    for (name, seed, bw) in [("before", "7", ""), ("after", "8", "bw = 2e8\n")] {
        sandbox.write("s.toml", &EXPERIMENT.replace("cv = 0.02\n", &format!("cv = 0.02\n{bw}")));
        let wanted = ["--quiet", "--seed", seed, "--name", name];
        sandbox.succeed(
            &[&["run", "s.toml", "--aa", "--primary", "write.bw", "--delta", "3%"], &wanted[..]].concat(),
        );
    }
    let csv = sandbox.succeed(&["compare", "before", "after", "--format", "csv"]);
    let rows: Vec<&str> = csv.lines().filter(|line| line.contains(",primary,")).collect();
    assert_eq!(rows.len(), 1, "both arms of each are one, 16 trials: {csv}");
    assert!(rows[0].contains(",run before,run after,16,16,") && rows[0].contains("write.bw"), "{csv}");
    // Exported, the runs are judged by the same.
    for name in ["before", "after"] {
        let exported = sandbox.succeed(&["export", name, "--format", "json"]);
        sandbox.write(&format!("{name}.json"), &exported);
    }
    let of_files = sandbox.succeed(&["compare", "before.json", "after.json"]);
    assert!(of_files.contains("δ 3 %") && of_files.contains("write.bw"), "{of_files}");
}
