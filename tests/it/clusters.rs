//! Results that come in boots or sessions, from a table through `assay compare`: what is recognised, what is judged, how often it is
//! wrong.

use std::path::Path;

use assay::analyse::{self, Comparison, Method, Role, Verdict};
use assay::import::{self, Clusters, Columns, Input, ValueColumn, find_files};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::compare::{assay, ok};

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt() * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

/// How the boots of a table are laid out.
#[derive(Clone, Copy)]
struct Layout {
    /// Boots of a kernel.
    boots: u32,
    /// Both kernels in each boot.
    shared: bool,
    /// Standard deviation of what a boot does to one kernel only, where both are in it.
    own: f64,
    /// Effect of the second kernel.
    effect: f64,
}

const FIVE: Layout = Layout { boots: 5, shared: false, own: 0.0, effect: 0.0 };

/// Lines (kernel, boot, start in s, KB/s): six repeats a boot, 2 % between boots, 1 % within.
fn lines(layout: Layout, rng: &mut ChaCha8Rng) -> Vec<(&'static str, u32, u64, f64)> {
    let mut lines = Vec::new();
    let mut start_s = 1_700_000_000;
    let mut shared: Vec<f64> = Vec::new();
    for (arm, kernel) in ["old", "new"].into_iter().enumerate() {
        for boot in 0..layout.boots {
            if arm == 0 {
                shared.push(0.02 * normal(rng));
            }
            let level = if layout.shared {
                shared[boot as usize] + layout.own * normal(rng)
            } else {
                0.02 * normal(rng)
            };
            start_s += 240;
            for _ in 0..6 {
                start_s += 31;
                let log = level + 0.01 * normal(rng) + arm as f64 * layout.effect.ln_1p();
                lines.push((kernel, boot + 1, start_s, 100_000.0 * log.exp()));
            }
        }
    }
    lines
}

/// The column of the arms: two kernels never share a boot, two modes may. Both count their boots from 1.
fn arms(layout: Layout) -> &'static str {
    if layout.shared { "mode" } else { "kernel" }
}

fn table(layout: Layout, seed: u64, with: &str) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = format!("{},{with},kb_s\n", arms(layout));
    for (kernel, boot, start_s, value) in lines(layout, &mut rng) {
        let column = if with == "timestamp" { start_s } else { u64::from(boot) };
        text.push_str(&format!("{kernel},{column},{value:.3}\n"));
    }
    text
}

fn judged(path: &Path, layout: Layout, clusters: Clusters, rows: &[&str]) -> Vec<Comparison> {
    let columns = Columns {
        arm: Some(arms(layout).to_owned()),
        rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        values: vec![ValueColumn::parse_spec("kb_s:higher").unwrap()],
        clusters,
        ..Columns::default()
    };
    let input = Input::Files(find_files(path.to_str().unwrap(), None).unwrap());
    let options = import::Options { columns, ..import::Options::default() };
    let run = import::load(vec![input], &options).unwrap().run;
    analyse::analyse(&run, &analyse::Options::default()).comparisons
}

/// Of `sets` simulated tables those in which a difference is claimed, in per cent.
fn claims(layout: Layout, seed: u64, sets: u32, clusters: &Clusters, rows: &[&str]) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.csv");
    let mut claimed = 0;
    for set in 0..sets {
        std::fs::write(&path, table(layout, seed * 10_000 + u64::from(set), "boot")).unwrap();
        let claim = |c: &Comparison| {
            let real = Verdict::NoDifference { real_but_below_delta: true };
            c.role == Role::Primary
                && (matches!(c.verdict, Verdict::Faster { .. } | Verdict::Slower { .. }) || c.verdict == real)
        };
        claimed += u32::from(judged(&path, layout, clusters.clone(), rows).iter().any(claim));
    }
    100.0 * f64::from(claimed) / f64::from(sets)
}

const SETS: u32 = 300;

#[test]
fn five_boots_a_kernel_claim_falsely_in_at_most_6_percent() {
    let automatic = Clusters::Automatic;
    let mut sum = [0.0; 3];
    let seeds = seeds();
    for seed in 1..=seeds {
        let nested = claims(FIVE, seed, SETS, &automatic, &[]);
        let shared = claims(Layout { shared: true, ..FIVE }, seed, SETS, &automatic, &[]);
        let own = claims(Layout { shared: true, own: 0.02, ..FIVE }, seed, SETS, &automatic, &[]);
        println!(
            "seed {seed}: false claims of {SETS}: boots within kernels {nested:.1} %, both modes in each boot {shared:.1} %, \
             and boots that do more to one of them {own:.1} %"
        );
        sum.iter_mut().zip([nested, shared, own]).for_each(|(sum, share)| *sum += share);
    }
    let mean = sum.map(|sum| sum / f64::from(seeds as u32));
    println!("mean of {seeds} seeds: {mean:.1?}");
    assert!(mean.iter().all(|share| *share <= 6.0), "{mean:?}");
    // What it is for: trials taken for themselves, and a row a boot.
    let never = claims(FIVE, 1, SETS, &Clusters::Never, &[]);
    let rows = claims(FIVE, 1, 60, &Clusters::Never, &["boot"]);
    println!("--cluster none: false claims {never:.1} %; with --row boot {rows:.1} %");
    assert!(never > 25.0 && rows > 80.0, "{never} {rows}");
}

/// One seed, or as many as `ASSAY_TEST_SEEDS` asks for.
fn seeds() -> u64 {
    std::env::var("ASSAY_TEST_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

#[test]
fn a_difference_of_10_percent_is_found_with_five_boots() {
    for (effect, least) in [(0.10, 97.0), (0.05, 70.0)] {
        let nested = claims(Layout { effect, ..FIVE }, 2, 100, &Clusters::Automatic, &[]);
        let shared = claims(Layout { effect, shared: true, ..FIVE }, 2, 100, &Clusters::Automatic, &[]);
        println!(
            "right claims at {effect}: boots within kernels {nested:.0} %, both modes in each boot {shared:.0} %"
        );
        assert!(nested >= least && shared >= 99.0, "{effect}: {nested} {shared}");
    }
}

#[test]
fn rows_by_boot_claim_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.csv");
    let shared = Layout { shared: true, ..FIVE };
    std::fs::write(&path, table(shared, 1, "boot")).unwrap();
    let rows = judged(&path, shared, Clusters::Automatic, &["boot"]);
    assert_eq!(rows.len(), 5);
    assert!(
        rows.iter().all(|row| row.verdict == Verdict::TooFew { n: 1 } && row.method == Method::ChangeOnly)
    );
    // A host comes back: a row a host is a question of its own.
    std::fs::write(&path, table(shared, 1, "host")).unwrap();
    let rows = judged(&path, shared, Clusters::Automatic, &["host"]);
    assert!(rows.iter().all(|row| row.method == Method::MannWhitney));
}

fn squeezed(text: &str) -> String {
    text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_format_tells_the_method_the_note_and_the_variances() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.csv");
    std::fs::write(&path, table(Layout { effect: 0.1, ..FIVE }, 3, "boot")).unwrap();
    let line = ["compare", path.to_str().unwrap(), "--arm", "kernel", "--value", "kb_s:higher"];
    for format in ["text", "markdown", "html", "json", "lkml", "mmtests", "csv"] {
        let words = ["--format", format, "--verbose"];
        let out = squeezed(&ok(&[&line[..], &words[..]].concat()).replace("&#x27;", "'"));
        for words in [
            "judged by boots, not by trials: Mann-Whitney U of one mean a boot",
            "standard deviations: between boots ",
            "of the error: next time more boots, more trials in each hardly help",
        ] {
            assert!(out.contains(words), "{format}: {words}: {out}");
        }
        if format != "csv" {
            assert!(out.contains("boots of different arms that bear the same number"), "{format}: {out}");
            assert!(out.contains("recognised by the name of column 'boot'"), "{format}: {out}");
            assert!(out.contains("--cluster none takes every trial for itself"), "{format}: {out}");
        }
    }
    let text = squeezed(&ok(&line));
    assert!(
        text.contains("kernel=new is faster than kernel=old by more than 2 %: kb_s +")
            && text.contains("5 boots each, p = 0.008"),
        "{text}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&ok(&[&line[..], &["--format", "json"]].concat())).unwrap();
    let comparison = &json["analysis"]["comparisons"][0];
    assert_eq!(
        (comparison["method"].as_str(), comparison["n"].as_u64()),
        (Some("cluster_mann_whitney"), Some(5))
    );
    let variance =
        comparison["caveats"].as_array().unwrap().iter().find_map(|c| c.get("cluster_variance")).unwrap();
    assert!(variance["between"].as_f64().unwrap() > 0.005 && variance["repeats"] == 6.0, "{variance}");
    assert!(!text.contains("assay.cluster"), "{text}");
}

#[test]
fn a_boot_column_can_be_named_and_switched_off() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.csv");
    std::fs::write(&path, table(FIVE, 3, "rack")).unwrap();
    let line = ["compare", path.to_str().unwrap(), "--arm", "kernel", "--value", "kb_s:higher"];
    let plain = squeezed(&ok(&line));
    assert!(
        plain.contains("30 repeats each") && plain.contains("--cluster rack would judge by them"),
        "{plain}"
    );
    let racks = squeezed(&ok(&[&line[..], &["--cluster", "rack"]].concat()));
    assert!(racks.contains("5 clusters") && racks.contains("--cluster takes from 'rack'"), "{racks}");
    std::fs::write(&path, table(FIVE, 3, "boot")).unwrap();
    let none = squeezed(&ok(&[&line[..], &["--cluster", "none"]].concat()));
    assert!(none.contains("30 repeats each") && !none.contains("--row boot"), "{none}");
    for (column, words) in [
        ("boots", "no column 'boots'; the nearest is 'boot'"),
        ("kernel", "column 'kernel' holds arms or results"),
    ] {
        let answer = assay(&[&line[..], &["--cluster", column]].concat());
        assert_eq!(answer.code, Some(2), "{}", answer.out);
        assert!(squeezed(&answer.err).contains(words) && answer.err.contains("hint: "), "{}", answer.err);
    }
}

#[test]
fn gaps_in_time_stamps_make_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.csv");
    std::fs::write(&path, table(Layout { effect: 0.1, ..FIVE }, 4, "timestamp")).unwrap();
    let line = ["compare", path.to_str().unwrap(), "--arm", "kernel", "--value", "kb_s:higher"];
    let text = squeezed(&ok(&line));
    assert!(text.contains("5 sessions each, p = 0.008"), "{text}");
    assert!(text.contains("column 'timestamp' is taken as the time at which a trial began"), "{text}");
    assert!(text.contains("time stamps have gaps of 271 s and more, which make 10 of them"), "{text}");
    let none = squeezed(&ok(&[&line[..], &["--cluster", "none"]].concat()));
    assert!(
        none.contains("30 repeats each") && none.contains("the arms were measured one after the other"),
        "{none}"
    );
}

#[test]
fn too_few_boots_claim_nothing_and_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.csv");
    std::fs::write(&path, table(Layout { boots: 3, effect: 0.5, ..FIVE }, 5, "boot_id")).unwrap();
    let line = ["compare", path.to_str().unwrap(), "--arm", "kernel", "--value", "kb_s:higher"];
    let text = squeezed(&ok(&line));
    assert!(text.contains("too few boots to judge kernel=new against kernel=old"), "{text}");
    assert!(text.contains("3 boots each (3 of the 4 that an interval needs)"), "{text}");
    let answer = assay(&[&line[..], &["--fail-if", "undecided"]].concat());
    assert_eq!(answer.code, Some(3), "{}", answer.err);
}

#[test]
fn keys_of_benchmark_text_may_name_boots() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    let paths = ["old", "new"].map(|name| {
        let mut text = String::new();
        for boot in 0..5 {
            text.push_str(&format!("boot: {name}-{boot}\n"));
            for _ in 0..4 {
                text.push_str(&format!("BenchmarkX 10 {} ns/op\n", 1e6 * (0.01 * normal(&mut rng)).exp()));
            }
        }
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let text = squeezed(&ok(&["compare", &paths[0], &paths[1]]));
    assert!(text.contains("5 boots each"), "{text}");
}
