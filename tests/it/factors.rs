//! Crossed factors and numbers of workers in reports: which factor does what, and how it scales.

use serde_json::Value;

use crate::sandbox::Sandbox;

/// Three crossed factors that nobody uses, of which two make a difference, each on its own.
fn crossed() -> Sandbox {
    let sandbox = Sandbox::new();
    let toml = "engine = \"simulated\"\n[simulated]\nbw = 1e8\ncv = 0.01\nsleep_ms = 0\n\
                effects = { \"a=2\" = 0.3, \"b=2\" = -0.2 }\n\
                [[factor]]\nname = \"a\"\nlevel = [{ label = \"1\", set = { numjobs = 1 } }, { label = \"2\", set = { numjobs = 2 } }]\n\
                [[factor]]\nname = \"b\"\nlevel = [{ label = \"1\", set = { bs = \"4k\" } }, { label = \"2\", set = { bs = \"8k\" } }]\n\
                [[factor]]\nname = \"c\"\nlevel = [{ label = \"1\", set = { size = \"1m\" } }, { label = \"2\", set = { size = \"2m\" } }]\n";
    std::fs::write(sandbox.path().join("crossed.toml"), toml).unwrap();
    sandbox.succeed(&["run", "-q", "--rounds", "16", "--seed", "5", "crossed.toml"]);
    sandbox
}

/// Two arms whose throughput follows a law of the number of I/Os in flight.
fn scaled() -> Sandbox {
    let sandbox = Sandbox::new();
    let law = |n: f64| n / (1.0 + 0.05 * (n - 1.0) + 0.002 * n * (n - 1.0));
    let levels = [1, 2, 4, 8, 16, 32];
    let effects: Vec<String> =
        levels[1..].iter().map(|n| format!("\"iodepth={n}\" = {}", law(f64::from(*n)) - 1.0)).collect();
    let factor: Vec<String> =
        levels.iter().map(|n| format!("{{ label = \"{n}\", set = {{ iodepth = {n} }} }}")).collect();
    let toml = format!(
        "engine = \"simulated\"\n[simulated]\nbw = 1e8\ncv = 0.005\nsleep_ms = 0\neffects = {{ \"arm=b\" = 0.2, {} }}\n\
         [[factor]]\nname = \"arm\"\nlevel = [{{ label = \"a\", set = {{ bs = \"4k\" }} }}, {{ label = \"b\", set = {{ bs = \"8k\" }} }}]\n\
         [[factor]]\nname = \"iodepth\"\nlevel = [{}]\n",
        effects.join(", "),
        factor.join(", ")
    );
    std::fs::write(sandbox.path().join("scaled.toml"), toml).unwrap();
    sandbox.succeed(&["run", "-q", "--rounds", "8", "--seed", "7", "scaled.toml"]);
    sandbox
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.succeed(&["report", "1", "--format", "json"])).unwrap()
}

/// The lines of the part that begins with "which factor".
fn lines_of_it(text: &str) -> usize {
    let part = text.split("\nwhich factor").nth(1).unwrap();
    part.lines().take_while(|line| !line.is_empty()).count()
}

#[test]
fn crossed_factors_are_told_in_each_format() {
    let sandbox = crossed();
    let text = sandbox.succeed(&["report", "1"]);
    assert!(lines_of_it(&text) <= 6 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(words(&text).contains("write.bw, averaged over the others: a=2 against 1 +"), "{text}");
    for format in ["markdown", "html"] {
        let report = words(&sandbox.succeed(&["report", "1", "--format", format])).replace('\\', "");
        assert!(report.contains("which factor, 6 effects judged together"), "{format}: {report}");
        assert!(report.contains("a=2 against 1 by b=2 against 1"), "{format} has the whole table: {report}");
    }
    let verbose = sandbox.succeed(&["report", "1", "-v"]);
    assert!(verbose.contains("a=2 against 1 by b=2 against 1"), "{verbose}");
    assert!(!text.contains("a=2 against 1 by b=2 against 1"), "{text}");
    for format in ["lkml", "mmtests", "csv"] {
        sandbox.succeed(&["report", "1", "--format", format]);
    }
    let report = json(&sandbox);
    let effects = &report["analysis"]["effects"][0];
    assert_eq!((&effects["family"], effects["effects"].as_array().unwrap().len()), (&6.into(), 6));
    let first = &effects["effects"][0];
    assert_eq!(
        (&first["of"][0]["factor"], &first["verdict"]["faster"]["beyond_delta"]),
        (&"a".into(), &true.into())
    );
    assert!((first["change"].as_f64().unwrap() - 0.3).abs() < 0.02, "{first}");
    let parts = effects["shares"]["parts"].as_array().unwrap();
    assert!((parts[1]["estimate"].as_f64().unwrap() + 0.2).abs() < 0.02, "{parts:?}");
}

#[test]
fn an_imported_table_has_effects_too() {
    let sandbox = Sandbox::new();
    let mut table = String::from("mount,state,bw\n");
    for run in 0..6 {
        for (mount, state, bw) in [
            ("cache", "allocate", 880.0),
            ("DAX", "allocate", 240.0),
            ("cache", "overwrite", 1120.0),
            ("DAX", "overwrite", 1130.0),
        ] {
            table.push_str(&format!("{mount},{state},{}\n", bw * (1.0 + 0.004 * f64::from((run * 7) % 5))));
        }
    }
    std::fs::write(sandbox.path().join("dax.csv"), table).unwrap();
    let text =
        sandbox.succeed(&["compare", "--arm", "mount", "--row", "state", "--value", "bw:higher", "dax.csv"]);
    assert!(
        words(&text)
            .contains("the effect of mount depends on state, so neither has one alone; state taken out: "),
        "{text}"
    );
    assert!(lines_of_it(&text) <= 6, "{text}");
}

#[test]
fn both_arms_scaling_is_fitted_and_drawn() {
    let sandbox = scaled();
    let report = json(&sandbox);
    let scaling = &report["analysis"]["scaling"][0];
    assert_eq!(scaling["curves"].as_array().unwrap().len(), 2);
    let law = &scaling["curves"][1]["law"];
    assert!((law["alpha"]["estimate"].as_f64().unwrap() - 0.05).abs() < 0.01, "{law}");
    assert_eq!(scaling["differences"][0]["differs"], serde_json::json!(["gamma"]));
    let text = sandbox.succeed(&["report", "1"]);
    assert!(lines_of_it(&text) <= 6, "{text}");
    let told = words(&text);
    assert!(told.contains("scaling with iodepth: arm=a mean write.bw in MiB/s: 95"), "{text}");
    assert_eq!(told.matches("law up to 32: serial share ").count(), 2, "both arms' laws, whole: {text}");
    let html = sandbox.succeed(&["report", "1", "--format", "html"]);
    assert!(
        html.contains("<h2>Scaling</h2>") && html.contains("never beyond twice the last level"),
        "picture"
    );
}

#[test]
fn too_few_levels_have_points_and_a_reason() {
    let sandbox = Sandbox::new();
    let run = [
        "run", "-q", "--rounds", "4", "--engine", "simulated", "--vary", "bs=4k,8k", "--vary",
        "iodepth=1,2,4",
    ];
    let job = "[w]\nrw=write\nsize=1m\nioengine=libaio\n";
    std::fs::write(sandbox.path().join("w.fio"), job).unwrap();
    sandbox.succeed(&[&run[..], &["w.fio"]].concat());
    let text = words(&sandbox.succeed(&["report", "1", "-v"]));
    assert!(text.contains("no law, because it takes 6 levels and there are 3"), "{text}");
}

/// A row of mmtests has a value of each arm, also of one whose difference is not clear.
#[test]
fn mmtests_has_a_value_of_each_arm() {
    let sandbox = Sandbox::new();
    let toml = "engine = \"simulated\"\n[simulated]\nbw = 1e8\ncv = 0.01\nsleep_ms = 0\n\
                effects = { \"bs=16k\" = 0.5 }\n\
                [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\", \"16k\"]\n";
    std::fs::write(sandbox.path().join("three.toml"), toml).unwrap();
    sandbox.succeed(&["run", "-q", "--rounds", "8", "--seed", "5", "three.toml"]);
    let report = sandbox.succeed(&["report", "1", "--format", "mmtests"]);
    let means: Vec<&str> =
        report.lines().filter(|line| line.get(1..).is_some_and(|rest| rest.starts_with("mean "))).collect();
    assert!(report.contains("(exploratory)") && means.len() > 1, "{report}");
    assert!(means.iter().all(|line| line.matches('%').count() == 3 && !line.contains(" - ")), "{report}");
}
