//! Properties that hold for every text.

use std::path::Path;

use proptest::prelude::*;

use crate::workload::{DataDirection, JobFile, Offsets, Workload, fio_option_names};

/// A line of a job file, well formed or not.
fn line() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = fio_option_names().collect();
    let value = prop_oneof![
        "[0-9]{1,20}[kmgtKMGB%]{0,3}",
        "[a-z]{1,10}",
        "[0-9]{1,3}[-:,][0-9]{1,3}[km]?",
        "\\PC{0,12}",
        "[0-9]{1,3}k?/[0-9]{0,3}(:[0-9]{1,3}k?(/[0-9]{1,3})?){0,3}(,[0-9]{1,2}k?/[0-9]{1,2})?",
        "(zipf|pareto|normal|zoned|zoned_abs|roundrobin)(:[0-9]{1,2}(\\.[0-9]{1,2})?(/[0-9]{1,3}k?)?){0,3}",
        "(0x[0-9a-f]{1,9}|\"[a-z]{1,3}\"|%o|-?[0-9]{1,11}){1,4}",
        Just("randrw".to_owned()),
        Just("io_uring".to_owned()),
        Just("${NAME}".to_owned()),
    ];
    prop_oneof![
        4 => (prop::sample::select(names.clone()), value).prop_map(|(name, value)| format!("{name}={value}")),
        2 => prop::sample::select(names).prop_map(str::to_owned),
        2 => "\\[[a-z]{1,6}\\]",
        1 => Just("[global]".to_owned()),
        1 => "\\PC{0,20}",
        1 => "[;#]\\PC{0,10}",
    ]
}

fn job_text() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..25).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in "(?s).{0,300}") {
        let _ = JobFile::parse(&text, "p.fio", Path::new("/nonexistent"));
    }

    #[test]
    fn no_job_makes_resolving_panic_and_every_problem_has_a_message(text in job_text()) {
        let Ok(file) = JobFile::parse(&format!("[first]\nsize=1m\n{text}"), "p.fio", Path::new("/nonexistent")) else {
            return Ok(());
        };
        match Workload::resolve(&file) {
            Ok(workload) => {
                let instances = workload.instances(Path::new("/d"));
                prop_assert_eq!(instances.len() as u32, workload.jobs.iter().map(|job| job.numjobs).sum::<u32>());
            }
            Err(errors) => {
                prop_assert!(!errors.problems.is_empty());
                prop_assert!(errors.problems.iter().all(|problem| !problem.message.is_empty()));
            }
        }
    }

    #[test]
    fn what_is_written_out_reads_the_same(text in job_text()) {
        let Ok(file) = JobFile::parse(&format!("[first]\n{text}"), "p.fio", Path::new("/nonexistent")) else {
            return Ok(());
        };
        let written = file.to_fio_text();
        let again = JobFile::parse(&written, "p.fio", Path::new("/nonexistent")).unwrap();
        prop_assert_eq!(&again.to_fio_text(), &written);
        let content = |file: &JobFile| -> Vec<(String, Option<String>)> {
            file.settings().map(|setting| (setting.name.clone(), setting.value.clone())).collect()
        };
        prop_assert_eq!(content(&again), content(&file));
    }

    #[test]
    fn an_override_is_what_resolving_sees(min in 1_u64..64, max in 1_u64..64, global in any::<bool>()) {
        let head = if global { "[global]\nbsrange=1k-2k\n" } else { "" };
        let mut file = JobFile::parse(&format!("{head}[a]\nrw=write\nsize=1m\nbs=512\n"), "p.fio", Path::new("")).unwrap();
        file.set_everywhere("bs", &format!("{min}k,{max}k")).unwrap();
        let again = JobFile::parse(&file.to_fio_text(), "p.fio", Path::new("")).unwrap();
        let sizes = Workload::resolve(&again).unwrap().jobs[0].block_sizes;
        prop_assert_eq!((sizes.read.min, sizes.write.max), (min << 10, max << 10));
    }

    #[test]
    fn random_offsets_cover_every_block_once(blocks in 0_u64..3000, tail in 0_u64..4096, seed in any::<u64>()) {
        let text = "[a]\nrw=randwrite\nbs=4k\nsize=1m\n";
        let file = JobFile::parse(text, "p.fio", Path::new("")).unwrap();
        let job = Workload::resolve(&file).unwrap().jobs.remove(0);
        let mut offsets = Offsets::new(&job, 0, blocks * 4096 + tail, seed);
        let mut hit = vec![false; blocks as usize];
        while let Some((at, length)) = offsets.draw(DataDirection::Write) {
            prop_assert_eq!(length, 4096);
            let slot = &mut hit[(at / 4096) as usize];
            prop_assert!(!*slot);
            *slot = true;
        }
        prop_assert!(hit.into_iter().all(|was| was));
    }

    #[test]
    fn skewed_and_partly_random_ios_stay_in_their_region(
        access in prop::sample::select(vec!["randread", "randrw"]),
        distribution in prop::sample::select(vec![
            "random", "zipf:1.3", "zipf:0.4:0.9", "pareto:0.1", "normal:30:0.1", "zoned:50/1:50", "zoned_abs:90/8k:10/16k",
        ]),
        sizes in prop::sample::select(vec![
            "bs=4k", "bssplit=2k/10:8k:16k/5", "bsrange=3k-18k", "bssplit=4k/90:12k,bs=8k", "bs=4k,6k",
        ]),
        percent in prop::sample::select(vec![0, 30, 100]),
        length in 1_u64..300_000,
        seed in any::<u64>(),
    ) {
        let sizes = sizes.replace(",bs=", "\nbs=,");
        let text = format!(
            "[a]\nrw={access}\n{sizes}\nfilename=f\nrandom_distribution={distribution}\npercentage_random={percent}\n"
        );
        let file = JobFile::parse(&text, "p.fio", Path::new("")).unwrap();
        let job = Workload::resolve(&file).unwrap().jobs.remove(0);
        let mut offsets = Offsets::new(&job, 7000, length, seed);
        for index in 0..200 {
            let write = access == "randrw" && index % 3 == 0;
            let (direction, sizes) = match write {
                true => (DataDirection::Write, job.block_sizes.write),
                false => (DataDirection::Read, job.block_sizes.read),
            };
            let Some((at, bytes)) = offsets.draw(direction) else { continue };
            prop_assert!(at >= 7000 && at + bytes <= 7000 + length, "{at} {bytes}");
            prop_assert!((sizes.min..=sizes.max).contains(&bytes) && bytes % sizes.min == 0, "{bytes} of {sizes:?}");
            prop_assert!((at - 7000) % sizes.min == 0, "{at} of {sizes:?}");
        }
    }

    #[test]
    fn every_io_stays_in_its_region(
        kind in prop::sample::select(vec!["read", "randread", "rw", "randrw"]),
        map in any::<bool>(),
        low in 1_u64..20,
        high in 1_u64..60,
        length in 1_u64..300_000,
        seed in any::<u64>(),
    ) {
        let nomap = if map { "" } else { "norandommap\n" };
        let text = format!("[a]\nrw={kind}\nbsrange={low}k-{high}k,{high}k-{high}k\nfilename=f\n{nomap}");
        let file = JobFile::parse(&text, "p.fio", Path::new("")).unwrap();
        let job = Workload::resolve(&file).unwrap().jobs.remove(0);
        let mut offsets = Offsets::new(&job, 5000, length, seed);
        for index in 0..200 {
            let direction = if index % 3 == 0 && kind.ends_with("rw") { DataDirection::Write } else { DataDirection::Read };
            let Some((at, bytes)) = offsets.draw(direction) else { continue };
            let sizes = if direction == DataDirection::Read { job.block_sizes.read } else { job.block_sizes.write };
            prop_assert!(at >= 5000 && at + bytes <= 5000 + length, "{at} {bytes}");
            prop_assert!((sizes.min..=sizes.max).contains(&bytes), "{bytes} of {sizes:?}");
        }
    }
}
