//! What of a job's files is in the page cache: the native engine leaves and finds there what fio does.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use assay::engine::EngineKind;

use crate::native_engine::{agent, done, work};
use crate::sandbox::{Sandbox, errors};
use crate::tools::{impossible_here, is_root};

const PAGE: usize = 4096;
const PAGES: usize = 1024;

/// Held for writing by who drops the caches of the machine.
static CACHED: RwLock<()> = RwLock::new(());

/// Pages of a file that are in the page cache: mincore(2).
#[expect(unsafe_code, reason = "no library wraps mincore")]
fn cached_pages(path: &Path) -> usize {
    let file = File::open(path).unwrap();
    let length = file.metadata().unwrap().len() as usize;
    let mut there = vec![0_u8; length.div_ceil(PAGE)];
    // SAFETY: a new mapping of the file at an address of the kernel's choice, given back below; mincore writes a byte a page.
    unsafe {
        let address =
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(address, libc::MAP_FAILED);
        assert_eq!(libc::mincore(address, length, there.as_mut_ptr()), 0);
        libc::munmap(address, length);
    }
    there.iter().filter(|page| **page & 1 == 1).count()
}

/// Two reads of a file of 1024 pages; how many of these are cached afterwards.
fn cached_after(engine: EngineKind, options: &str) -> usize {
    let (_base, work) = work();
    let job = format!("[j]\nrw=randread\nbs=4k\nsize=4m\nio_size=8k\n{options}\n");
    done(engine, &job, work.path());
    cached_pages(&work.path().join("j.0.0"))
}

/// The kernel may have taken back some meanwhile, on a busy machine more than a tenth: what is read beforehand and what is not differ by
/// nearly all.
fn is_all(pages: usize) -> bool {
    pages >= PAGES / 2
}

#[test]
fn files_are_as_warm_as_fio_leaves_them() {
    let _kept = CACHED.read().unwrap_or_else(PoisonError::into_inner);
    for engine in [EngineKind::Native, EngineKind::Fio] {
        for method in ["psync", "io_uring\niodepth=4", "libaio\niodepth=4", "mmap"] {
            let cached = |options: &str| cached_after(engine, &format!("ioengine={method}\n{options}"));
            // What was laid out just now leaves the cache whatever `invalidate` says.
            for cold in ["", "invalidate=0"] {
                let pages = cached(cold);
                assert!(pages <= 64, "{engine:?} {method:?} {cold:?}: {pages} pages");
            }
            for warm in ["pre_read=1", "pre_read=1\ninvalidate=1"] {
                let pages = cached(warm);
                assert!(is_all(pages), "{engine:?} {method:?} {warm:?}: {pages} pages");
            }
        }
    }
}

#[test]
fn invalidate_0_keeps_what_is_cached_of_a_file_that_is_there() {
    let _kept = CACHED.read().unwrap_or_else(PoisonError::into_inner);
    for (options, all) in [("invalidate=0", true), ("", false)] {
        let (base, work) = work();
        // Not in the work directory, which is emptied before a trial.
        let path = base.path().join("there");
        std::fs::write(&path, vec![7; PAGES * PAGE]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let name = path.display();
        let job = format!("[j]\nrw=randread\nbs=4k\nsize=4m\nio_size=8k\nfilename={name}\n{options}\n");
        done(EngineKind::Native, &job, work.path());
        assert_eq!(is_all(cached_pages(&path)), all, "{options:?}");
    }
}

/// Pages of a file that is there, which nobody else takes out of the page cache.
#[test]
fn drop_caches_leaves_a_file_that_was_cached_cold() {
    if !is_root() {
        return;
    }
    // The whole machine's: not while others look at what is cached.
    let _alone = CACHED.write().unwrap_or_else(PoisonError::into_inner);
    for (dropped, all) in [(&[][..], true), (&["--drop-caches"], false)] {
        let sandbox = Sandbox::new();
        let path = sandbox.path().join("there");
        std::fs::write(&path, vec![7; PAGES * PAGE]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let name = path.display();
        let job =
            format!("[j]\nrw=randread\nbs=${{n}}\nsize=4m\nio_size=8k\ninvalidate=0\nfilename={name}\n");
        sandbox.write("job.fio", &job);
        // One trial shows it.
        let words = ["run", "job.fio", "-q", "--vary", "n=4k,8k", "--rounds", "1", "--time-budget", "1ms"];
        let output = sandbox.run(&[&words[..], dropped].concat());
        if errors(&output).contains("the caches of this machine cannot be dropped") {
            return impossible_here("the caches of this machine cannot be dropped");
        }
        assert!(output.status.success(), "{}", errors(&output));
        assert_eq!(is_all(cached_pages(&path)), all, "{dropped:?}: {} pages", cached_pages(&path));
    }
}

#[test]
fn a_job_finds_what_it_pre_read_though_another_dropped_it() {
    let _kept = CACHED.read().unwrap_or_else(PoisonError::into_inner);
    let (_base, work) = work();
    let job = "[global]\nrw=randread\nbs=4k\nsize=4m\nio_size=8k\nfilename=both\n[cold]\n[warm]\nstonewall\npre_read=1\n";
    done(EngineKind::Native, job, work.path());
    let pages = cached_pages(&work.path().join("both"));
    assert!(is_all(pages), "{pages} pages");
}

#[test]
fn what_is_not_there_yet_is_not_read_beforehand() {
    let (_base, work) = work();
    for options in ["fallocate=none", "create_on_open=1", "ioengine=null"] {
        let job = format!("[j]\nrw=write\nbs=4k\nsize=64k\npre_read=1\n{options}\n");
        done(EngineKind::Native, &job, work.path());
    }
    let job = "[j]\nrw=read\nbs=4k\nsize=64k\npre_read=1\ndirect=1\n";
    let refused = format!("{:?}", agent(EngineKind::Native, job, work.path()).answer);
    assert!(refused.contains("pre_read=1 fills the page cache"), "{refused}");
}
