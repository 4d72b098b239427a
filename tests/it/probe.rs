//! `assay probe` on the machine the tests run on: what it measures, where it is seen later, and what it leaves behind.

use std::path::Path;

use assay::record::Run;
use assay::stats::descriptive::median;
use serde_json::Value;

use crate::sandbox::{Sandbox, errors};
use crate::tools::impossible_here;

/// A quick probe of these groups in `on`, as JSON.
fn probed(sandbox: &Sandbox, on: &str, groups: &str) -> Value {
    let arguments = ["probe", on, "--quick", "--only", groups, "--format", "json"];
    serde_json::from_str(&sandbox.succeed(&arguments)).unwrap()
}

/// Name, unit, median, low and high of every figure.
fn figures(probe: &Value) -> Vec<(String, String, [f64; 3])> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let of = |figure: &Value| {
        let numbers = ["median", "low", "high"].map(|name| figure[name].as_f64().unwrap());
        (format!("{} {}", text(&figure["group"]), text(&figure["name"])), text(&figure["unit"]), numbers)
    };
    probe["measured"].as_array().unwrap().iter().map(of).collect()
}

/// An empty directory of the sandbox.
fn place(sandbox: &Sandbox) -> String {
    let place = sandbox.path().join("place");
    std::fs::create_dir(&place).unwrap();
    place.to_str().unwrap().to_owned()
}

fn is_empty(directory: &str) -> bool {
    std::fs::read_dir(directory).unwrap().count() == 0
}

#[test]
fn every_group_has_figures_with_units_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let place = place(&sandbox);
    let probe = probed(&sandbox, &place, "copies,locks,calls,device");
    assert_eq!((probe["format"].as_str(), probe["version"].as_u64()), (Some("assay-probe"), Some(1)));
    let all = figures(&probe);
    for (name, unit, [median, low, high]) in &all {
        assert!(
            median.is_finite() && *low > 0.0 && low <= median && median <= high,
            "{name}: {low} {median} {high}"
        );
        let expected = match name.split_once(' ').unwrap() {
            ("copies", _) => "B/s",
            ("locks", _) => "/s",
            ("calls", _) => "ns",
            (_, figure) if figure.contains(".d") => "/s",
            _ => "ns",
        };
        assert_eq!(unit, expected, "{name}");
        // Whatever else runs, the kernel is not entered faster than that.
        assert!(unit != "ns" || *median > 10.0, "{name}: {median} ns");
    }
    for name in [
        "copies read.4k.t1", "copies cached.16m.t1", "locks exclusive.held_0.t1", "locks epoch.held_2us.t1",
        "calls system_call", "calls context_switch", "calls page_fault", "device fsync.one_page",
    ] {
        assert!(all.iter().any(|figure| figure.0 == name), "{name} is missing: {all:?}");
    }
    let direct = all.iter().any(|figure| figure.0 == "device write.4k.stable");
    let notes = probe["notes"].to_string();
    assert!(direct || notes.contains("not measured: reads, writes and flushes of the device"), "{notes}");
    if all.iter().any(|figure| figure.0 == "device read.4k.d64") {
        let depths: Vec<u64> =
            probe["saturation"].as_array().unwrap().iter().map(|s| s["depth"].as_u64().unwrap()).collect();
        assert!(depths.len() == 2 && depths.iter().all(|depth| (1..=256).contains(depth)), "{depths:?}");
    } else {
        impossible_here("a device that is measured by depth");
    }
    assert!(is_empty(&place));
}

#[test]
fn a_probe_is_listed_and_shown_and_never_the_latest_run() {
    let sandbox = Sandbox::new();
    let place = place(&sandbox);
    // Before the first there is nothing to say.
    assert!(!sandbox.succeed(&["doctor", &place]).contains("\nprobe "));
    assert_eq!(probed(&sandbox, &place, "calls")["run"], 1);
    assert_eq!(probed(&sandbox, &place, "calls,locks")["run"], 2);
    let doctor = sandbox.succeed(&["doctor", &place]);
    let doctor = doctor.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        doctor.contains(" probe run 2, 20") && doctor.contains("(less than an hour old); one lock "),
        "{doctor}"
    );
    let list = sandbox.succeed(&["list"]);
    assert_eq!(list.matches("probe of /").count(), 2, "{list}");
    let text = sandbox.succeed(&["show", "1", "--values"]);
    assert!(text.contains("calls: system_call = "), "{text}");
    // It compares nothing, and words that mean the last run do not mean it.
    for (run, said) in
        [("1", "run 1 is a probe: it compares nothing"), ("latest", "there is no run in the store yet")]
    {
        let output = sandbox.run(&["report", run]);
        assert_eq!(output.status.code(), Some(2));
        assert!(errors(&output).contains(said), "{}", errors(&output));
    }
}

#[test]
fn figures_that_the_store_cannot_take_are_printed_all_the_same() {
    let sandbox = Sandbox::new();
    let place = place(&sandbox);
    sandbox.succeed(&["probe", &place, "--quick", "--only", "calls"]);
    let child = sandbox.start(&["probe", &place, "--quick", "--only", "calls"]);
    // It opens the store first, and measures for a second or two.
    let begun = std::time::Instant::now();
    let has_store = || {
        let open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
        open.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file.ends_with("assay.db"))
    };
    while !has_store() && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    crate::attacks::sql(&sandbox.path().join("assay.db"), "DROP TABLE metric");
    let output = child.wait_with_output().unwrap();
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the probe was not stored: "), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nsystem call "), "{said}");
}

#[test]
fn text_fits_80_columns_and_names_what_it_stands_for() {
    let sandbox = Sandbox::new();
    let place = place(&sandbox);
    let text = sandbox.succeed(&["probe", &place, "--quick", "--only", "locks,calls,device"]);
    // The first lines name what may be long: a path, a processor.
    assert!(text.lines().skip(2).all(|line| line.chars().count() <= 80), "{text}");
    for words in [
        "\nlock, one owner, held 0, 1 thread ",
        "\nsystem call ",
        "\nfsync of one page ",
        "stand-ins outside the kernel",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_place_that_cannot_be_written_is_exit_code_2() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "a file");
    for (place, said) in [
        ("missing", "cannot measure in missing: No such file or directory"),
        ("file", "cannot measure in file: it is not a directory"),
        ("/proc", "cannot make a file in /proc: "),
    ] {
        let output = sandbox.run(&["probe", place, "--quick"]);
        assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
        assert!(errors(&output).contains(said), "{}", errors(&output));
    }
    assert!(!sandbox.succeed(&["list"]).contains("probe of"));
}

#[test]
fn memory_has_no_device_and_a_kill_leaves_no_file() {
    let sandbox = Sandbox::new();
    if Path::new("/dev/shm").is_dir() {
        let probe = probed(&sandbox, "/dev/shm", "device");
        let names: Vec<String> = figures(&probe).into_iter().map(|figure| figure.0).collect();
        assert_eq!(names, ["device fsync.one_page"], "{}", probe["notes"]);
    } else {
        impossible_here("a filesystem in memory at /dev/shm");
    }
    let place = place(&sandbox);
    let mut child = sandbox.start(&["probe", &place, "--only", "device"]);
    // Its file is there as soon as a descriptor leads to it.
    let opened = || {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
        entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|path| path.starts_with(&place))
    };
    let begun = std::time::Instant::now();
    while !opened() && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(opened(), "no file was opened within a minute");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_empty(&place));
}

#[test]
fn reports_say_how_near_a_run_came_to_it() {
    let sandbox = Sandbox::new();
    probed(&sandbox, sandbox.path().to_str().unwrap(), "copies");
    sandbox.write("w.fio", "[w]\nrw=read\nbs=64k\nsize=8m\npre_read=1\nloops=100\n");
    sandbox.succeed(&["run", "w.fio", "--vary", "bs=64k,128k", "--rounds", "3", "--quiet"]);
    let run = sandbox.export("2");
    // The device's counters are of all who use it, and other tests do: what is expected follows from what was stored.
    let cells = [("64k", 0), ("128k", 1)].into_iter();
    let expected: Vec<&str> =
        cells.filter(|(_, cell)| stayed_in_memory(&run, *cell)).map(|(arm, _)| arm).collect();
    let json: Value = serde_json::from_str(&sandbox.succeed(&["report", "2", "--format", "json"])).unwrap();
    // Without any limit the field is not there.
    let limits = json["analysis"]["limits"].as_array().cloned().unwrap_or_default();
    let arms: Vec<&str> = limits.iter().map(|limit| limit["arm"].as_str().unwrap()).collect();
    assert_eq!(arms, expected);
    for limit in &limits {
        assert_eq!(limit["kind"], "copies_out");
        let [value, most, share] = ["value", "limit", "share"].map(|name| limit[name].as_f64().unwrap());
        assert!((share - value / most).abs() < 1e-9 * share && share > 0.0, "{limit}");
    }
    let text = sandbox.succeed(&["report", "2", "--verbose"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "of what this machine's processors copy out of memory (";
    assert_eq!(text.matches(words).count(), expected.len(), "{text}");
}

/// Whether the workers copied, and at most 1 % of what they read came from the device.
fn stayed_in_memory(run: &Run, cell: u32) -> bool {
    let of_cell = |name: &str| -> Option<f64> {
        let metric = run.metrics.iter().position(|metric| metric.name == name)? as u32;
        let trials = run.trials.iter().filter(|trial| trial.cell == cell && trial.counts());
        Some(median(&trials.filter_map(|trial| trial.value(metric)).collect::<Vec<f64>>()))
    };
    // No counters: nothing is known.
    let Some(from_device) = of_cell("dev.read_bytes") else { return false };
    let [read, user, kernel] = ["read.io_bytes", "usr_cpu", "sys_cpu"].map(|name| of_cell(name).unwrap());
    from_device <= 0.01 * read && kernel > 0.0 && kernel >= 0.2 * (user + kernel)
}
