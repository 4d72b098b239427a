//! Importers under random damage: whatever the bytes, an error or a run, never a panic, and a run's export reads back.

use std::fs;

use assay::import::{Columns, ValueColumn, read_bytes_twice};
use proptest::prelude::*;

/// Real files of every format; one of them is damaged in each case.
fn seeds() -> Vec<Vec<u8>> {
    let data = |name: &str| fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut seeds: Vec<Vec<u8>> = [
        "fio/groups.json+",
        "fio/single-4k-1.json",
        "fio/client.json",
        "fio/status-interval.json",
        "dbench/sync-2.txt",
        "fs_mark/verbose-threads-2.txt",
        "xfs_io/write-read-timed.txt",
        "benchstat/old.txt",
        "published/f2fs-dio-serialize.csv",
        "published/dbench-mmtests-amean.csv",
    ]
    .into_iter()
    .map(data)
    .collect();
    seeds.push(br#"{"results":[{"command":"a","times":[1.0,2.0],"exit_codes":[0,1]}]}"#.to_vec());
    seeds.push(b"# ms\n1.5\n2.5\n-3e300\n".to_vec());
    let run = read_bytes_twice(&seeds[1], &Columns::default()).unwrap();
    seeds.push(serde_json::to_vec(&run).unwrap());
    seeds.push(
        b"trial,round,position,attempt,status,bs,job,metric,unit,value\n0,0,0,0,done,4k,,bw,B/s,1\n".to_vec(),
    );
    seeds
}

fn columns(choice: u8) -> Columns {
    let values =
        |specs: &[&str]| specs.iter().map(|spec| ValueColumn::parse_spec(spec).unwrap()).collect::<Vec<_>>();
    match choice % 3 {
        0 => Columns::default(),
        1 => Columns {
            arm: Some("variant".to_owned()),
            rows: vec!["io_size".to_owned()],
            values: values(&["kb_s:higher"]),
            ..Columns::default()
        },
        _ => Columns {
            rows: vec!["clients".to_owned()],
            arm_columns: vec![values(&["vanilla", "patched:lower"])],
            ..Columns::default()
        },
    }
}

/// What is done to a file: (where, how much to cut, what to put in).
fn damage() -> impl Strategy<Value = Vec<(prop::sample::Index, usize, Vec<u8>)>> {
    let word = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..6),
        prop::sample::select(vec![
            "nan", "-1", "{", "}", "[", "]", "\"", ",", "\n", "1e999", "null", "18446744073709551615"
        ])
        .prop_map(|word| word.as_bytes().to_vec()),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0_usize..40, word), 0..5)
}

fn check(bytes: &[u8], choice: u8) {
    if let Ok(run) = read_bytes_twice(bytes, &columns(choice)) {
        assert!(run.trials.iter().all(|trial| (trial.cell as usize) < run.cells.len()));
        assert!(run.trials.iter().flat_map(|trial| &trial.values).all(|(_, value)| value.is_finite()));
        let export = serde_json::to_vec(&run).unwrap();
        let back = read_bytes_twice(&export, &Columns::default());
        assert!(back.is_ok(), "its own export is refused: {}", back.unwrap_err());
    }
}

/// Enough for every `make test`; `make fuzz` asks for more where there is no nightly toolchain.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn damaged_files_never_panic(seed in any::<prop::sample::Index>(), damage in damage(), choice in any::<u8>()) {
        let seeds = seeds();
        let mut bytes = seeds[seed.index(seeds.len())].clone();
        for (at, cut, word) in damage {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            let end = (at + cut).min(bytes.len());
            bytes.splice(at..end, word);
        }
        check(&bytes, choice);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), choice in any::<u8>()) {
        check(&bytes, choice);
    }
}

#[test]
fn whole_seeds_are_runs() {
    for (index, seed) in seeds().iter().enumerate() {
        let good = (0..3).any(|choice| read_bytes_twice(seed, &columns(choice)).is_ok());
        assert!(good, "seed {index}: {}", String::from_utf8_lossy(&seed[..40.min(seed.len())]));
    }
}
