//! A device is the disk that was named, not whichever has its name by now.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use assay::engine::{EngineKind, Task};
use assay::launch::{Answer, PROTOCOL, Reply, Request};
use assay::target::{ClaimedDevice, TargetSpec, WorkDirectory};

use super::victims::sum;
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::can_make;

/// A loop device of a number that nobody is given: the kernel hands out the lowest ones.
struct Numbered {
    path: PathBuf,
}

impl Numbered {
    fn new(sandbox: &Sandbox, image: &str) -> Numbered {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = 10_000 + (std::process::id() % 1000) * 16 + NEXT.fetch_add(1, Ordering::SeqCst);
        let device = Numbered { path: PathBuf::from(format!("/dev/loop{number}")) };
        device.attach(&sandbox.path().join(image));
        device
    }

    fn attach(&self, image: &Path) {
        std::fs::write(image, vec![0_u8; 16 << 20]).unwrap();
        let status = Command::new("losetup").arg(&self.path).arg(image).status().unwrap();
        assert!(status.success(), "losetup {} {}", self.path.display(), image.display());
    }

    /// The same name, another disk.
    fn exchange(&self, sandbox: &Sandbox) -> PathBuf {
        let victim = sandbox.path().join("own.img.victim");
        assert!(Command::new("losetup").arg("-d").arg(&self.path).status().unwrap().success());
        self.attach(&victim);
        victim
    }

    fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
        let Some(number) = self.name().trim_start_matches("/dev/loop").parse::<libc::c_ulong>().ok() else {
            return;
        };
        const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
        if let Ok(control) = std::fs::File::open("/dev/loop-control") {
            #[expect(unsafe_code, reason = "an ioctl that no crate wraps")]
            // SAFETY: LOOP_CTL_REMOVE takes a number and no pointer.
            unsafe {
                libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&control), LOOP_CTL_REMOVE, number);
            }
        }
    }
}

#[test]
fn a_run_does_not_go_on_on_another_disk_of_the_same_name() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Numbered::new(&sandbox, "own.img");
    let name = device.name();
    sandbox.write("job.fio", &format!("[w]\nrw=write\nbs=${{BS}}\nsize=1m\nfilename={name}\n"));
    let words = ["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--rounds", "2", "--destroy", &name];
    sandbox.succeed(&words);
    let store = sandbox.path().join("assay.db");
    super::victims::sql(
        &store,
        "UPDATE run SET state = '\"interrupted\"'; DELETE FROM value; DELETE FROM histogram; DELETE FROM series;
         DELETE FROM trial WHERE round = 1",
    );
    let victim = device.exchange(&sandbox);
    let before = sum(&victim);
    let output = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("is another disk now"), "{}", errors(&output));
    assert_eq!(sum(&victim), before);
    // A store cannot say that it is the same one.
    super::victims::sql(&store, "DELETE FROM claim");
    let output = sandbox.run(&["run", "--resume", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert_eq!(sum(&victim), before);
}

/// What a launcher asks of an agent before each trial.
#[test]
fn a_trial_on_another_disk_than_the_one_claimed_does_not_begin() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Numbered::new(&sandbox, "own.img");
    let before = sum(&device.path);
    let work = WorkDirectory::create(&sandbox.path().join("assay-1")).unwrap();
    let job = format!("[w]\nrw=write\nbs=4k\nsize=1m\nfilename={}\n", device.name());
    let claimed = ClaimedDevice::of(std::slice::from_ref(&device.path));
    let mut other = serde_json::to_value(&claimed).unwrap();
    other[0]["identity"]["sequence"] = 1.into();
    for (claimed, begins) in [(serde_json::from_value(other).unwrap(), false), (claimed, true)] {
        let target = TargetSpec { directory: work.path().to_owned(), claimed, ..TargetSpec::default() };
        let task = Task { job: Some(job.clone()), directory: work.path().to_owned(), ..Task::default() };
        let request = Request {
            protocol: PROTOCOL,
            engine: EngineKind::Native,
            task,
            target,
            rehearsal: false,
            observe: Vec::new(),
            before: None,
            after: None,
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_assay"))
            .arg("agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        serde_json::to_writer(child.stdin.take().unwrap(), &request).unwrap();
        let output = child.wait_with_output().unwrap();
        let reply: Reply = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(matches!(reply.answer, Answer::Done(_)), begins, "{reply:?}");
        assert_eq!(format!("{reply:?}").contains("is another disk now"), !begins, "{reply:?}");
        assert_eq!(sum(&device.path) == before, !begins);
    }
}

/// As long as a run lives it holds its device open, so that nothing else can get the name.
#[test]
fn a_disk_cannot_be_exchanged_during_a_run() {
    if !can_make() {
        return;
    }
    let sandbox = Sandbox::new();
    let device = Numbered::new(&sandbox, "own.img");
    let name = device.name();
    let victim = sandbox.write("own.img.victim", &"7".repeat(16 << 20));
    sandbox.write("job.fio", &format!("[w]\nrw=write\nbs=${{BS}}\nsize=1m\nfilename={name}\n"));
    let before = sum(&victim);
    let hook = format!("losetup -d {name}; losetup {name} {} && touch exchanged; true", victim.display());
    let words =
        ["run", "job.fio", "-q", "--vary", "BS=4k,8k", "--rounds", "2", "--destroy", &name, "--after", &hook];
    let output = sandbox.run(&words);
    assert!(!sandbox.path().join("exchanged").exists(), "{}", errors(&output));
    assert_eq!(sum(&victim), before, "{}", errors(&output));
}
