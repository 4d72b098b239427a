//! The recipes, as a newcomer meets them: listed, shown, planned, run.

use std::collections::BTreeSet;
use std::path::Path;

use assay::record::{Run, RunState};

use crate::sandbox::{Sandbox, errors, failure};
use crate::target_bench::zram;
use crate::tools::{is_root, skipped};

/// Names of all recipes, as `assay recipes` lists them: the lines that begin at the margin, but for the commands below.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let list = sandbox.succeed(&["recipes"]);
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let at_margin = |line: &&str| !line.is_empty() && !line.starts_with(' ') && !line.starts_with("assay ");
    list.lines().filter(at_margin).map(str::to_owned).collect()
}

/// A sandbox in which a kernel is found: of the real ones where `make kernels` was, else one that only looks like it.
fn with_kernel() -> Sandbox {
    let sandbox = Sandbox::new();
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/kernels");
    std::fs::create_dir(sandbox.path().join("target")).unwrap();
    if kernels.is_dir() {
        std::os::unix::fs::symlink(kernels, sandbox.path().join("target/kernels")).unwrap();
    }
    sandbox
}

#[test]
fn every_recipe_is_shown_with_its_comment_and_questions() {
    let sandbox = Sandbox::new();
    let names = names(&sandbox);
    for known in ["dax-write", "journal-flush", "dio-append", "bdev-mix", "dio-scaling"] {
        assert!(names.iter().any(|name| name == known), "{names:?}");
    }
    let in_directory: BTreeSet<String> =
        std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().trim_end_matches(".toml").to_owned())
            .collect();
    assert_eq!(
        in_directory,
        names.iter().cloned().collect(),
        "a file that is not embedded, or the other way"
    );
    for name in &names {
        let text = sandbox.succeed(&["recipes", "show", name]);
        let comment = text.lines().take_while(|line| line.starts_with('#')).count();
        assert!(comment >= 8, "{name}: {comment} lines of comment");
        assert!(text.contains("[recipe]") && text.contains("asks = [") && text.contains("[quick"), "{name}");
        assert!(text.contains(&format!("assay run {name}")), "{name} shows no command");
        assert!(text.contains("\nkeep_disturbed = true\n"), "{name} --quick throws rounds out");
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/recipes/{name}.md"));
        let page =
            std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
        assert!(
            page.contains("\n## Why\n") && page.contains(&format!("assay run {name} --quick --explain")),
            "{name} does not say what explains it"
        );
        let primaries = text.lines().filter_map(|line| line.strip_prefix("primary = \""));
        for metric in primaries.flat_map(|all| all.trim_end_matches('"').split(',')) {
            let event = metric.trim_start_matches("events_per_op.").trim_start_matches("events.");
            let words = match metric {
                "bw" => "andwidth",
                "ctx_per_op" => "ontext switches",
                _ => metric,
            };
            let told = [words, &event.replacen('.', ":", 1), &format!("`{metric}`")];
            assert!(
                told.iter().any(|name| page.contains(name)),
                "{name}: the page lacks {metric}, which decides"
            );
        }
    }
    assert_eq!(sandbox.names(), BTreeSet::new(), "listing makes nothing");
}

#[test]
fn every_recipe_can_be_planned_in_both_sizes() {
    let sandbox = with_kernel();
    if !sandbox.path().join("target/kernels").exists() {
        return skipped("no kernels in target/kernels; `make kernels` fetches them");
    }
    for name in names(&sandbox) {
        for size in [&["--quick"][..], &[]] {
            let output = sandbox.run(&[&["run", &name, "--plan"], size].concat());
            let (said, plan) = (errors(&output), String::from_utf8_lossy(&output.stdout).into_owned());
            // What stands in the way is this machine, and is said with the way out of it; never the recipe.
            if !output.status.success() {
                assert!(said.contains("hint: ") && output.status.code() == Some(2), "{name}: {said}");
                skipped(&format!("{name}: {said}"));
                continue;
            }
            assert!(plan.contains("nothing has been run, written or erased"), "{name}: {plan}");
            assert!(
                plan.contains("\ncells (") && plan.contains("targets, put back afterwards"),
                "{name}: {plan}"
            );
            let forecast = plan.split_whitespace().collect::<Vec<_>>().join(" ");
            let decides = forecast.contains("probably show one of") && !forecast.contains("can show nothing");
            assert!(decides, "{name} {size:?} cannot decide what it asks: {plan}");
            // Four rounds of many comparisons show no change that anybody meets.
            for found in forecast.split("probably show one of ").skip(1) {
                let least: f64 = found.split(' ').next().and_then(|number| number.parse().ok()).unwrap();
                assert!(least <= 50.0, "{name} {size:?} shows only what is at least {least} %: {plan}");
            }
        }
    }
    assert_eq!(sandbox.names(), BTreeSet::from(["target".to_owned()]), "planning makes nothing");
}

#[test]
fn what_is_no_recipe_is_told_with_the_nearest() {
    let sandbox = Sandbox::new();
    let output = sandbox.run(&["run", "bdev-mux", "--quick"]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("there is no file and no recipe bdev-mux; did you mean bdev-mix?"), "{said}");
    assert!(said.contains("hint: `assay recipes` lists"), "{said}");
    let output = sandbox.run(&["recipes", "show", "dax-wrte"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("did you mean dax-write?"));
    // A file of that name is what is meant, and that is said.
    sandbox.write("bdev-mix", "[w]\nrw=write\nsize=64k\n");
    let output = sandbox.run(&["run", "bdev-mix", "--vary", "bs=4k,8k", "--plan"]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("bdev-mix is a file here; the recipe of that name is not used"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("bs=8k"));
}

#[test]
fn what_a_recipe_is_missing_is_said_before_anything_is_made() {
    let sandbox = Sandbox::new();
    // Neither programs nor a kernel are found here.
    let mut command = sandbox.assay(&["run", "dax-write", "--quick"]);
    command.env("PATH", "/nowhere").env("HOME", sandbox.path()).env_remove("XDG_CACHE_HOME");
    let output = command.output().unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    if !said.contains("no kernel is found to boot") {
        // One of /boot with its modules.
        assert!(std::fs::read_dir("/lib/modules").is_ok(), "{said}");
    } else {
        // Or one that only root may read.
        let helped = said.contains("apt-get download") || said.contains("sudo install");
        assert!(helped && said.contains("hint: "), "{said}");
    }
    assert_eq!(sandbox.names(), BTreeSet::new());
}

/// The recipe for real, as small as it gets.
fn really(arguments: &[&str]) -> (Sandbox, Run, String) {
    let sandbox = with_kernel();
    let output = sandbox.run(&[&["run"], arguments, &["--quick"]].concat());
    assert!(output.status.success(), "{}", failure(arguments, &output));
    let run = sandbox.export("1");
    assert_eq!(run.state, RunState::Finished);
    assert!(run.trials.iter().all(|trial| trial.counts()), "{:?}", run.trials);
    let left: Vec<String> = sandbox.names().into_iter().filter(|name| name.starts_with("assay-")).collect();
    assert_eq!(left, Vec::<String>::new());
    (sandbox, run, errors(&output))
}

fn has(run: &Run, job: &str, metric: &str) -> bool {
    let at =
        run.metrics.iter().position(|known| known.name == metric && (job.is_empty() || known.job == job));
    at.is_some_and(|at| run.trials.iter().all(|trial| trial.value(at as u32).is_some()))
}

#[test]
fn bdev_mix_runs_its_six_groups() {
    if !is_root() {
        return;
    }
    let (sandbox, run, said) = really(&["bdev-mix", "--rounds", "2"]);
    assert!(said.contains("bdev-mix: runs on "), "{said}");
    assert_eq!(run.trials.len(), 4);
    for (group, direction) in [
        ("write1", "write"),
        ("read1", "read"),
        ("randwrite1", "write"),
        ("randread1", "read"),
        ("readwrite1", "read"),
        ("randrw1", "write"),
    ] {
        for metric in ["bw", "iops"] {
            assert!(has(&run, group, &format!("{direction}.{metric}")), "{group} {direction}.{metric}");
        }
        for metric in ["usr_cpu", "sys_cpu", "ctx"] {
            assert!(has(&run, group, metric), "{group} {metric}: {:?}", run.metrics);
        }
    }
    // What is varied acts on the device it runs on: the scheduler makes one request of neighbours.
    let merges = run.metrics.iter().position(|metric| metric.name == "dev.read_merges").unwrap() as u32;
    let of = |arm: u32| {
        let of_arm = run.trials.iter().filter(|trial| run.cells[trial.cell as usize].levels[0] == arm);
        of_arm.map(|trial| trial.value(merges).unwrap()).sum::<f64>()
    };
    assert_eq!(run.design.factors[0].levels, ["none", "mq-deadline"]);
    // An emulated processor hardly ever has two of them waiting.
    if run.facts[0].get("guest.accelerator").is_none() {
        assert!(of(1) > of(0), "{} {}", of(0), of(1));
    }
    // Where it ran is in the facts and in the report, and the difference of the arms is the declared one.
    let place = run.facts[0].get("recipe.place").unwrap().to_owned();
    assert!(said.contains(&place), "{said}: {place}");
    assert_eq!(run.facts[0].get("recipe"), Some("bdev-mix --quick"));
    // A busy machine has more to say than fits one screen.
    let report = sandbox.succeed(&["report", "1", "--verbose"]);
    assert!(report.contains(&format!("runs on {place}")), "{report}");
    assert!(!report.contains("undeclared differences between the arms"), "{report}");
    assert_eq!(run.command_line[1..3], ["run".to_owned(), "--seed".to_owned()]);
}

/// Flushes of the whole trials or of a job, the writeback arm's and the writethrough arm's.
fn flushes(run: &Run, job: &str) -> [Vec<f64>; 2] {
    let named = |metric: &assay::record::Metric| metric.job == job && metric.name == "dev.flushes";
    let at = run.metrics.iter().position(named).unwrap() as u32;
    let compared = run.design.compare;
    [0, 1].map(|arm| {
        let of_arm = run.trials.iter().filter(|trial| run.cells[trial.cell as usize].levels[compared] == arm);
        of_arm.map(|trial| trial.value(at).unwrap()).collect()
    })
}

#[test]
fn journal_flush_counts_the_flushes_of_its_arms() {
    if !is_root() {
        return;
    }
    let line = ["journal-flush/dbench", "--vary", "fs=xfs", "--vary", "clients=1", "--rounds", "4"];
    let (sandbox, run, _) = really(&line);
    assert_eq!((run.trials.len(), run.design.factors[run.design.compare].name.as_str()), (8, "cache"));
    let [with, without] = flushes(&run, "");
    assert!(with.iter().all(|n| *n > 10.0), "{with:?}");
    assert_eq!(without, [0.0; 4]);
    let report = sandbox.succeed(&["report", "1", "--verbose"]);
    let fewer = "cache=writethrough has fewer dev.flushes_per_sync than cache=writeback by more than 2 %";
    assert!(report.split_whitespace().collect::<Vec<_>>().join(" ").contains(fewer), "{report}");
    for shown in ["beside: lat_ns.max in ", "beside: dev.flushes", "beside: target.umount", "fewer by > δ"] {
        assert!(report.contains(shown), "{shown}: {report}");
    }
    let (sandbox, run, _) = really(&["journal-flush/fs_mark", "--vary", "fs=ext4", "--rounds", "1"]);
    for phase in ["create", "chown", "unlink"] {
        let [with, without] = flushes(&run, phase);
        assert!(with[0] >= 1.0 && without[0] == 0.0, "{phase}: {with:?} {without:?}");
    }
    let report = sandbox.succeed(&["report", "1", "--format", "markdown"]);
    assert!(
        report.contains("beside: dev.flushes\\_per\\_op") || report.contains("beside: dev.flushes_per_op"),
        "{report}"
    );
}

#[test]
fn dio_scaling_runs_with_options_over_it() {
    if !is_root() {
        return;
    }
    // Where there is no ramdisk it makes a zram device.
    let Some(_alone) = zram() else { return };
    let (_, run, said) = really(&["dio-scaling", "--vary", "threads=1,2", "--rounds", "2"]);
    assert!(said.contains("dio-scaling: runs on "), "{said}");
    assert_eq!(run.trials.len(), 8, "two numbers of threads, two things they do, two rounds");
    assert_eq!(run.design.factors[run.design.compare].name, "threads");
    let facts = &run.facts[run.trials[0].facts.unwrap() as usize];
    assert_eq!(facts.get("fs.type"), Some("xfs"));
    // Whatever the threads, the same amount of I/O.
    let amounts: BTreeSet<u64> = ["read.io_bytes", "write.io_bytes"]
        .iter()
        .filter_map(|name| run.metrics.iter().position(|metric| metric.name == *name))
        .flat_map(|at| run.trials.iter().filter_map(move |trial| trial.value(at as u32)))
        .filter(|bytes| *bytes > 0.0)
        .map(|bytes| bytes as u64)
        .collect();
    assert_eq!(amounts, BTreeSet::from([256 << 20]));
    assert!(has(&run, "", "runtime"));
}

#[test]
fn the_page_of_the_published_studies_has_both_tables_of_each() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/published.md")).unwrap();
    for name in names(&Sandbox::new()) {
        let heading = format!("\n## {name}\n");
        let (_, chapter) = page.split_once(&heading).unwrap_or_else(|| panic!("no chapter of {name}"));
        let chapter = chapter.split("\n## ").next().unwrap();
        let (was, here) = chapter.split_once("\nHere, ").unwrap_or_else(|| panic!("{name} was not run"));
        // The tables begin with their rule: the published one, ours, and the claims.
        assert!(was.contains("\nPublished:\n") && was.contains("---:"), "{name}");
        assert!(
            here.matches("---:").count() >= 2 && here.contains("| table | claim | published | here | |"),
            "{name}"
        );
        assert!(here.contains("kernel ") && here.contains(&format!(" {name}")), "{name}: {here}");
        let judged = ["| reproduced |", "| **contrary** |", "| undecided; about "];
        assert!(judged.iter().any(|word| here.contains(word)), "{name}: no claim is judged");
        assert!(
            here.contains("| not there |") && here.contains("\n- not there, "),
            "{name}: nothing has a reason"
        );
        assert!(
            here.contains("\n| because | what would name it | assay |\n"),
            "{name}: no reason of the study"
        );
    }
}

#[test]
fn a_recipe_of_several_runs_is_planned_whole_or_in_part() {
    let sandbox = with_kernel();
    let output = sandbox.run(&["run", "journal-flush", "--quick", "--plan", "--vary", "clients=1,2"]);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    // Whatever stands in the way, it is told of which run.
    assert!(said.contains("assay: journal-flush/"), "{said}");
    if is_root() {
        assert!(
            said.contains("journal-flush/fs_mark: clients: ")
                && said.contains("hint: `assay run journal-flush/fs_mark`"),
            "{said}"
        );
        let output =
            sandbox.run(&["run", "journal-flush/dbench", "--quick", "--plan", "--vary", "clients=1,2"]);
        let plan = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && plan.contains("clients=2"), "{}", errors(&output));
        let plan = sandbox.succeed(&["run", "journal-flush", "--quick", "--plan"]);
        assert_eq!(plan.matches("nothing has been run, written or erased").count(), 2, "{plan}");
    }
}
