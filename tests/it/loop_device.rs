//! A loop device of one test alone. The kernel gives numbers of loop devices out again as soon as they are free, and tests run side
//! by side: so nothing else here attaches or detaches one, its name is no one's after it is gone, and only what still has the test's
//! own image is detached.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sandbox::{Sandbox, errors};
use crate::tools;

/// A loop device on a sparse file, detached when this goes.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    image: PathBuf,
    /// As long as it is open, the kernel gives its number to nobody else, even if somebody detaches it.
    held: Option<File>,
}

impl LoopDevice {
    /// On `image`, which is made `bytes` large; `None`, said on standard error, where this machine has none to give.
    pub(crate) fn on(image: &Path, bytes: u64) -> Option<LoopDevice> {
        if !tools::is_root() || !tools::available("losetup") {
            return None;
        }
        File::create(image).unwrap().set_len(bytes).unwrap();
        let made = Command::new("losetup").args(["-f", "--show"]).arg(image).output().unwrap();
        if !made.status.success() {
            tools::skipped(&format!("no loop device to be had: {}", errors(&made)));
            return None;
        }
        let path = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        let held = Some(File::open(&path).unwrap());
        let device = LoopDevice { path, image: image.canonicalize().unwrap(), held };
        assert!(device.is_ours(), "{} has another image", device.path.display());
        Some(device)
    }

    /// On an image of its own in a sandbox.
    pub(crate) fn new(sandbox: &Sandbox, mebibytes: u64) -> LoopDevice {
        LoopDevice::on(&sandbox.path().join("own.img"), mebibytes << 20).unwrap()
    }

    pub(crate) fn sys(&self) -> PathBuf {
        Path::new("/sys/block").join(self.path.file_name().unwrap())
    }

    fn is_ours(&self) -> bool {
        let image = std::fs::read_to_string(self.sys().join("loop/backing_file")).unwrap_or_default();
        // The kernel says so of a file that is gone.
        Path::new(image.trim().trim_end_matches(" (deleted)")) == self.image
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let ours = self.is_ours();
        // Detached at the last close, which is this one's.
        let detached = ours && Command::new("losetup").arg("-d").arg(&self.path).status().unwrap().success();
        self.held = None;
        assert!(detached || std::thread::panicking(), "{} was not ours any more", self.path.display());
    }
}

/// A loop device of a number that nobody is given: the kernel hands out the lowest ones.
pub(crate) struct NumberedLoop {
    pub(crate) path: PathBuf,
}

impl NumberedLoop {
    pub(crate) fn new(sandbox: &Sandbox, image: &str) -> NumberedLoop {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = 10_000 + (std::process::id() % 1000) * 16 + NEXT.fetch_add(1, Ordering::SeqCst);
        let device = NumberedLoop { path: PathBuf::from(format!("/dev/loop{number}")) };
        device.attach(&sandbox.path().join(image));
        device
    }

    fn attach(&self, image: &Path) {
        std::fs::write(image, vec![0_u8; 16 << 20]).unwrap();
        let status = Command::new("losetup").arg(&self.path).arg(image).status().unwrap();
        assert!(status.success(), "losetup {} {}", self.path.display(), image.display());
    }

    /// The same name, another disk.
    pub(crate) fn exchange(&self, sandbox: &Sandbox) -> PathBuf {
        let victim = sandbox.path().join("own.img.victim");
        assert!(Command::new("losetup").arg("-d").arg(&self.path).status().unwrap().success());
        self.attach(&victim);
        victim
    }

    /// A shell command that puts another file behind a name, and says so when it could.
    pub(crate) fn exchanging(name: &str, victim: &Path) -> String {
        format!("losetup -d {name}; losetup {name} {} && touch exchanged; true", victim.display())
    }

    pub(crate) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

impl Drop for NumberedLoop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
        let Some(number) = self.name().trim_start_matches("/dev/loop").parse::<libc::c_ulong>().ok() else {
            return;
        };
        const LOOP_CTL_REMOVE: libc::c_ulong = 0x4C81;
        if let Ok(control) = File::open("/dev/loop-control") {
            #[expect(unsafe_code, reason = "an ioctl that no crate wraps")]
            // SAFETY: LOOP_CTL_REMOVE takes a number and no pointer.
            unsafe {
                libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&control), LOOP_CTL_REMOVE, number);
            }
        }
    }
}

#[test]
fn loop_devices_are_attached_and_detached_here_alone() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut directories = vec![tests];
    let mut others = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with(file!()) {
                let text = std::fs::read_to_string(&path).unwrap();
                let own = ["\"losetup\"", "/dev/loop0", "LOOP_CTL", "LOOP_SET", "LOOP_CLR"];
                others.extend(own.iter().any(|words| text.contains(words)).then_some(path));
            }
        }
    }
    assert_eq!(others, Vec::<PathBuf>::new(), "use LoopDevice");
}
