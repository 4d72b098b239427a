//! The trial that leads into each round, with the real program: planned, stored, exported, left out.

use crate::sandbox::Sandbox;

const EXPERIMENT: &str = "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n\
                          [simulated]\ncv = 0.02\neffects = { \"bs=8k\" = 0.2 }\n\
                          [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";

fn with(experiment: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("e.toml", experiment);
    sandbox
}

#[test]
fn a_stored_and_exported_run_has_its_lead_ins_with_values() {
    let sandbox = with(EXPERIMENT);
    sandbox.succeed(&["run", "e.toml", "--rounds", "5"]);
    let run = sandbox.export("1");
    assert!(run.design.lead_in);
    assert_eq!((run.trials.len(), run.lead_ins.len()), (10, 5));
    let bandwidth = run.metrics.iter().position(|metric| metric.name == "write.bw").unwrap() as u32;
    for (round, lead_in) in (0..).zip(&run.lead_ins) {
        let first = run.trials.iter().find(|trial| trial.round == round).unwrap();
        assert_eq!((lead_in.round, lead_in.cell), (round, first.cell));
        assert!(lead_in.started_unix_ns <= first.started_unix_ns);
        let led = lead_in.values.iter().find(|(metric, _)| *metric == bandwidth).unwrap().1;
        assert!(led > 0.0 && Some(led) != first.value(bandwidth), "a seed of its own");
    }
    // It is in no table: 10 trials, not 15.
    assert!(sandbox.succeed(&["report", "1"]).contains("10 trials"));
}

#[test]
fn without_lead_ins_there_are_none() {
    let sandbox = with(EXPERIMENT);
    sandbox.succeed(&["run", "e.toml", "--rounds", "5", "--no-lead-in"]);
    sandbox.succeed(&["run", "e.toml", "--rounds", "3"]);
    sandbox.write("declined.toml", &EXPERIMENT.replace("engine =", "lead_in = false\nengine ="));
    sandbox.succeed(&["run", "declined.toml", "--rounds", "5"]);
    sandbox.write("wanted.toml", &EXPERIMENT.replace("engine =", "lead_in = true\nengine ="));
    sandbox.succeed(&["run", "wanted.toml", "--rounds", "5", "--no-lead-in"]);
    for id in ["1", "2", "3", "4"] {
        let run = sandbox.export(id);
        assert_eq!((run.design.lead_in, run.lead_ins.len()), (false, 0), "run {id}");
    }
}

#[test]
fn the_plan_names_what_leads_into_a_round_and_its_time() {
    let sandbox = with(EXPERIMENT);
    let plan = |more: &[&str]| sandbox.succeed(&[&["run", "e.toml", "--plan"], more].concat());
    let usual = plan(&[]);
    assert!(
        usual.contains("into each round: one trial that is not judged, of the cell that goes first"),
        "{usual}"
    );
    assert!(usual.contains("it takes 1/3 of the time, and --no-lead-in goes without it"), "{usual}");
    assert!(usual.contains("(60 trials at most and 30 that lead in)"), "{usual}");
    assert!(plan(&["--vary", "bs=4k,8k,16k"]).contains("1/4 of the time"));
    for more in [&["--no-lead-in"][..], &["--rounds", "3"]] {
        let plan = plan(more);
        assert!(!plan.contains("into each round") && !plan.contains("lead in"), "{plan}");
    }
}
