//! `verify` and the content of buffers beside real fio: what one engine wrote the other reads as right, and a flipped
//! byte is found by both.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use assay::engine::EngineKind;
use assay::launch::Answer;
use assay::record::Outcome;
use assay::target::WorkDirectory;

use crate::native_engine::agent;
use crate::spoiled::{expect, unless_spoiled};
use crate::tools;

/// One trial of `job` over the file `block` in `directory`; lines, not a whole file.
fn answer(engine: EngineKind, directory: &Path, job: &str) -> Answer {
    let mut text = format!("[v]\nfilename={}\n{job}\n", directory.join("block").display());
    if engine == EngineKind::Fio {
        // It would leave a file in the current directory.
        text.push_str("verify_state_save=0\n");
    }
    let work = WorkDirectory::create(&WorkDirectory::path_for(directory, "test")).unwrap();
    agent(engine, &text, work.path()).answer
}

fn done(engine: EngineKind, directory: &Path, job: &str) -> Outcome {
    match answer(engine, directory, job) {
        Answer::Done(outcome) => outcome,
        other => panic!("{engine:?}: {job}\n{other:?}"),
    }
}

fn failed(engine: EngineKind, directory: &Path, job: &str) -> String {
    match answer(engine, directory, job) {
        Answer::Failed { reason, output, .. } => format!("{reason}\n{output}"),
        other => panic!("{engine:?}: {job}\n{other:?}"),
    }
}

/// I/Os and bytes read and written.
fn counts(outcome: &Outcome) -> [u64; 4] {
    ["read.total_ios", "read.io_bytes", "write.total_ios", "write.io_bytes"].map(|name| {
        let found = outcome.samples.iter().filter(|sample| sample.metric.name == name);
        found.map(|sample| sample.value as u64).sum()
    })
}

/// Beside the build rather than in /tmp, which may be memory without O_DIRECT.
fn place() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Inverts a bit of the byte at `offset`.
fn flip(directory: &Path, offset: u64) {
    let file = File::options().read(true).write(true).open(directory.join("block")).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
    file.sync_all().unwrap();
}

const METHODS: [&str; 5] = [
    "ioengine=psync",
    "ioengine=mmap",
    "ioengine=pvsync2",
    "ioengine=io_uring\niodepth=16\ndirect=1\nfixedbufs=1\nregisterfiles=1",
    "ioengine=libaio\niodepth=8\ndirect=1",
];

/// What is written, and how it is read again; the methods take turns.
const CASES: [&str; 9] = [
    "verify=crc32c\nrw=write\nbs=4k",
    "verify=crc32c\nrw=randwrite\nbs=4k\nverify_interval=512",
    "verify=crc32c\nrw=randwrite\nbs=16k\nverify_interval=4k",
    "verify=crc32c\nrw=randwrite\nbs=64k\nbuffer_compress_percentage=50",
    "verify=crc32c\nrw=write\nbs=8k\nverify_pattern=\"assay\"\nverify_backlog=16",
    "verify=xxhash\nrw=randwrite\nbs=4k\nverify_backlog=32\nverify_backlog_batch=8",
    "verify=pattern\nverify_pattern=\"abcdefg\"%o\"xyz\"\nrw=randwrite\nbs=4k",
    "verify=pattern\nverify_pattern=0xdeadbeef\nrw=write\nbs=8k\nnrfiles=1",
    "verify=crc32c\nrw=write\nbs=4k\nloops=2",
];

#[test]
fn what_one_engine_wrote_the_other_reads_as_right() {
    if !tools::available("fio") {
        return;
    }
    for (number, case) in CASES.iter().enumerate() {
        let method = METHODS[number % METHODS.len()];
        for (writer, reader) in [(EngineKind::Native, EngineKind::Fio), (EngineKind::Fio, EngineKind::Native)]
        {
            let place = place();
            let job = format!("{method}\n{case}\nsize=1m");
            let written = counts(&done(writer, place.path(), &job));
            let loops = if case.contains("loops") { 2 } else { 1 };
            assert_eq!(written[1], loops << 20, "{writer:?} reads back everything once: {job}");
            assert_eq!(written, [written[2], written[3], written[2], written[3]], "{writer:?}: {job}");
            for rw in ["read", "randread"] {
                let read = job.replace("randwrite", "write").replace("rw=write", &format!("rw={rw}"));
                let read = counts(&done(reader, place.path(), &read.replace("loops=2", "loops=1")));
                assert_eq!((read[1], read[3]), (1 << 20, 0), "{reader:?}: {job}");
            }
        }
    }
}

#[test]
fn the_read_back_is_counted_as_fio_counts_it() {
    if !tools::available("fio") {
        return;
    }
    // Amounts that do not depend on the dice.
    for job in [
        "rw=write\nio_size=512k",
        "rw=write\nio_size=4m",
        "rw=randwrite\nio_size=6m",
        "rw=randwrite\nio_size=1200k",
        "rw=write\nio_size=4m\nverify_backlog=32",
        "rw=write\ndo_verify=0",
        "rw=randwrite\nloops=3\nioengine=libaio\niodepth=4",
        "rw=write\nfsync=16\nend_fsync=1",
        "rw=write\nthinktime=1ms\nthinktime_blocks=32\nramp_time=0",
        "rw=write\nrate_iops=4000\nioengine=io_uring\niodepth=4",
        "rw=write\nbs=3k\nverify_interval=1k",
    ] {
        let job = format!("bs=4k\nsize=1m\nverify=crc32c\n{job}");
        let (ours, theirs) = (place(), place());
        let native = counts(&done(EngineKind::Native, ours.path(), &job));
        assert_eq!(native, counts(&done(EngineKind::Fio, theirs.path(), &job)), "{job}");
    }
    // Nothing is transferred, and every block is right, as with fio's null method.
    let nothing = place();
    let null = counts(&done(EngineKind::Null, nothing.path(), "verify=crc32c\nrw=write\nbs=4k\nsize=1m"));
    assert_eq!(null, [256, 1 << 20, 256, 1 << 20]);
    // With dice: every block of a map is read back; of a mixed job the reads count as well.
    let place = place();
    let mixed = counts(&done(EngineKind::Native, place.path(), "verify=crc32c\nrw=randrw\nbs=4k\nsize=1m"));
    assert_eq!((mixed[0], mixed[2] > 64, mixed[2] < 192), (256, true, true), "{mixed:?}");
    let sizes = "verify=crc32c\nrw=randwrite\nbsrange=4k-32k\nsize=2m\nioengine=io_uring\niodepth=16";
    let sizes = counts(&done(EngineKind::Native, place.path(), sizes));
    assert_eq!(sizes, [sizes[2], 2 << 20, sizes[2], 2 << 20]);
}

/// Without a map blocks are written again and again, many at once: only the newest is read back, each once.
#[test]
fn of_blocks_written_again_the_newest_is_read_back() {
    for method in METHODS {
        let place = place();
        let job = format!("{method}\nverify=crc32c\nrw=randwrite\nnorandommap\nbs=4k\nsize=512k\nio_size=4m");
        let found = counts(&done(EngineKind::Native, place.path(), &job));
        assert_eq!(found[2], 1024, "{method}");
        assert!((120..=128).contains(&found[0]), "1 − e^−8 of 128 blocks are hit: {found:?}, {method}");
        // In fio 3.33 the older of two writes is expected here, and the block reported.
        let some = format!("{method}\nverify=crc32c\nrw=randwrite\npercentage_random=50\nbs=4k\nsize=512k");
        let found = counts(&done(EngineKind::Native, place.path(), &some));
        assert!(found[2] == 128 && found[0] < 128, "{found:?}");
        let timed = format!(
            "{method}\nverify=crc32c\nrw=randwrite\nnorandommap\nbs=4k\nsize=256k\nverify_backlog=16\n"
        );
        let timed = timed + "time_based\nruntime=200ms";
        // Of a busy machine it may get no time at all.
        unless_spoiled(|| {
            let found = counts(&done(EngineKind::Native, place.path(), &timed));
            assert!(found[0] <= found[2], "{found:?}");
            expect(found[0] > 16, || format!("{found:?}"))
        });
        if tools::available("fio") {
            let read = "verify=crc32c\nrw=read\nbs=4k\nsize=256k";
            assert_eq!(counts(&done(EngineKind::Fio, place.path(), read))[0], 64);
        }
    }
}

#[test]
fn a_flipped_byte_is_found_by_both_engines() {
    let fio = tools::available("fio");
    for (verify, at, says) in [
        ("verify=crc32c", 0, "at offset 8192 of FILE are wrong: it begins with 0x"),
        ("verify=crc32c", 17, "at offset 8192 of FILE are wrong: its header says that it belongs at offset "),
        ("verify=crc32c", 1000, "4096 bytes at offset 8192 of FILE are wrong: crc32c 0x"),
        ("verify=crc32c\nverify_interval=512", 1000, "512 bytes at offset 8704 of FILE are wrong: crc32c 0x"),
        ("verify=xxhash", 4095, "4096 bytes at offset 8192 of FILE are wrong: xxhash 0x"),
        (
            "verify=pattern\nverify_pattern=\"0123456789abcdef\"",
            1003,
            "wrong: byte 1003 of the block, at offset 9195, is 0x66 where the pattern has 0x62 (1 bytes differ)",
        ),
    ] {
        let place = place();
        let job = format!("{verify}\nbs=4k\nsize=64k\nioengine=libaio\niodepth=4\ndirect=1");
        done(EngineKind::Native, place.path(), &format!("rw=write\n{job}"));
        flip(place.path(), 8192 + at);
        // fio 3.33 judges only the last part of a block unless the first is fatal.
        let read = format!("rw=read\n{job}\nverify_fatal=1");
        let reason = failed(EngineKind::Native, place.path(), &read);
        let says = says.replace("FILE", &place.path().join("block").display().to_string());
        assert!(reason.contains(&says) && reason.contains("EILSEQ"), "{says}\n{reason}");
        if fio {
            let theirs = failed(EngineKind::Fio, place.path(), &read);
            assert!(theirs.contains("verify") || theirs.contains("Invalid or incomplete"), "{theirs}");
        }
    }
}

#[test]
fn all_wrong_blocks_are_counted_unless_the_first_is_fatal() {
    let place = place();
    let job = "verify=crc32c\nbs=4k\nsize=256k";
    done(EngineKind::Native, place.path(), &format!("rw=write\n{job}"));
    for block in [60, 3, 17] {
        flip(place.path(), block * 4096 + 100);
    }
    let counted = failed(EngineKind::Native, place.path(), &format!("rw=read\n{job}\nverify_fatal=0"));
    assert!(
        counted.contains("at offset 12288 of") && counted.contains("; 3 blocks are wrong in all"),
        "{counted}"
    );
    let fatal = failed(EngineKind::Native, place.path(), &format!("rw=read\n{job}\nverify_fatal=1"));
    assert!(fatal.contains("at offset 12288 of") && !fatal.contains("in all"), "{fatal}");
    // Blocks that were written without are wrong, too.
    let longer = failed(EngineKind::Native, place.path(), "verify=crc32c\nbs=4k\nsize=512k\nrw=read");
    assert!(longer.contains("128 blocks are wrong in all"), "{longer}");
}

/// Share of zero bytes, and of blocks of 4 KiB that are copies of others, both in percent.
fn redundancy(directory: &Path) -> (f64, f64) {
    let bytes = std::fs::read(directory.join("block")).unwrap();
    let zeroes = bytes.iter().filter(|byte| **byte == 0).count() as f64;
    let blocks: BTreeSet<&[u8]> = bytes.chunks(4096).collect();
    let total = bytes.len() as f64;
    (100.0 * zeroes / total, 100.0 * (1.0 - blocks.len() as f64 * 4096.0 / total))
}

#[test]
fn compressible_and_repeated_shares_are_fios() {
    if !tools::available("fio") {
        return;
    }
    for (content, zeroes, copies) in [
        ("buffer_compress_percentage=30", 30.0, 0.0),
        ("buffer_compress_percentage=75\nbuffer_compress_chunk=512", 75.0, 0.0),
        ("dedupe_percentage=40", 0.4, 40.0),
        ("dedupe_percentage=60\nbuffer_compress_percentage=50", 50.0, 60.0),
        // One buffer, filled once.
        ("buffer_compress_percentage=50\nrefill_buffers=0", 50.0, 100.0),
        ("dedupe_percentage=100", 0.4, 100.0),
        ("buffer_compress_percentage=100", 100.0, 100.0),
    ] {
        let job = format!("rw=write\nbs=4k\nsize=16m\n{content}");
        for engine in [EngineKind::Native, EngineKind::Fio] {
            let place = place();
            done(engine, place.path(), &job);
            let found = redundancy(place.path());
            assert!((found.0 - zeroes).abs() < 3.0, "{engine:?} {content}: {found:?}");
            assert!((found.1 - copies).abs() < 3.0, "{engine:?} {content}: {found:?}");
        }
    }
}

#[test]
fn memory_is_as_asked_or_one_clear_error() {
    let place = place();
    let job = "rw=write\nbs=64k\nsize=1m\nioengine=io_uring\niodepth=8";
    for memory in [
        "mem=mmap", "mem=mmapshared", "mem=shm", "lockmem=1m", "numa_mem_policy=local",
        "numa_mem_policy=prefer:0",
    ] {
        let job = format!("{job}\nverify=crc32c\n{memory}");
        assert_eq!(counts(&done(EngineKind::Native, place.path(), &job))[1], 1 << 20, "{memory}");
    }
    let reason = failed(EngineKind::Native, place.path(), &format!("{job}\nnuma_mem_policy=bind:77"));
    assert!(reason.contains("there is no node 77; this machine has "), "{reason}");
    let reserved = std::fs::read_to_string("/proc/sys/vm/nr_hugepages").unwrap_or_default();
    match reserved.trim() {
        "0" => {
            for memory in ["mem=mmaphuge", "mem=shmhuge"] {
                let reason = failed(EngineKind::Native, place.path(), &format!("{job}\n{memory}"));
                assert!(
                    reason.contains("ENOMEM") && reason.contains("/proc/sys/vm/nr_hugepages"),
                    "{reason}"
                );
            }
        }
        _ => {
            done(EngineKind::Native, place.path(), &format!("{job}\nmem=mmaphuge"));
        }
    }
}
