//! Guests under KVM, as far as a machine without a usable one allows: the emulator is started by a script that stands in for `/dev/kvm`.
//!
//! What a real processor does under a guest is not shown by this, nor how long anything takes.

use std::fs::OpenOptions;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::process::{Command, Output, Stdio};

use assay::record::Status;

use crate::guests::{assay, fact, kernels, nothing_left, shared_cache};
use crate::sandbox::{Sandbox, errors};

/// Runs the emulator as asked, but with its interpreter, and with a console that has said something from the beginning; the words that ask for
/// KVM are kept.
const RUNS: &str = r#"
for word; do
    case $word in
        kvm) word=tcg,thread=multi; echo kvm >> "$asked" ;;
        host) word=max; echo host >> "$asked" ;;
        file,id=console,path=*) echo begun > "${word##*path=}"; word=$word,append=on ;;
        console=*) word="$word tsc=reliable" ;;
    esac
    set -- "$@" "$word"
    shift
done
exec "$real" "$@"
"#;

/// Opens, and then nothing comes, as on some virtual machines.
const HANGS: &str = r#"
case $* in *"-accel kvm"*) echo kvm >> "$asked"; exec sleep 600 ;; esac
exec "$real" "$@"
"#;

/// A run of two trials in guests that this script starts; its cache, in which is kept what KVM does here, is the test's own.
fn run_with(sandbox: &Sandbox, script: &str, kernel: &str) -> Output {
    let real = assay::sys::find_system_program("qemu-system-x86_64").unwrap();
    let asked = sandbox.path().join("asked");
    let script = format!(
        "#!/bin/bash\nreal={} asked={}\ncase $* in *id=console*) ;; *) exec \"$real\" \"$@\" ;; esac\n{script}",
        real.display(),
        asked.display(),
    );
    std::fs::create_dir_all(sandbox.path().join("bin")).unwrap();
    let wrapper = sandbox.write("bin/qemu-system-x86_64", &script);
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", wrapper.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let kernel = format!("kernel={kernel}");
    let words = ["run", "-q", "-t", &kernel, "--vary", "n=1,2", "--rounds", "1", "--no-lead-in"];
    let mut command = assay(sandbox, &[&words[..], &["--", "true", "${n}"]].concat());
    unpacked_already(sandbox);
    command.env("PATH", path).env("XDG_CACHE_HOME", sandbox.path().join("cache")).output().unwrap()
}

/// Puts what the others have unpacked and packed into the test's own cache.
fn unpacked_already(sandbox: &Sandbox) {
    let own = sandbox.path().join("cache/assay");
    if own.exists() {
        return;
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&own).unwrap();
    for kind in ["kernels", "vmlinux", "initramfs"] {
        let there = shared_cache().join("assay").join(kind);
        // Where nobody was yet, or somebody is at this moment, it is made here.
        let copied = Command::new("cp").arg("-al").arg(there).arg(&own).stderr(Stdio::null()).status();
        assert!(copied.is_ok(), "{copied:?}");
    }
}

/// What the doctor says of guests with that cache.
fn doctor(sandbox: &Sandbox) -> String {
    let output =
        assay(sandbox, &["doctor"]).env("XDG_CACHE_HOME", sandbox.path().join("cache")).output().unwrap();
    String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kvm_opens() -> bool {
    OpenOptions::new().read(true).write(true).open("/dev/kvm").is_ok()
}

#[test]
fn where_kvm_runs_guests_are_not_called_emulated() {
    let Some((kernels, _alone)) = kernels() else { return };
    // An interpreter's kernel dies now and then without a fault of its own, which under KVM nobody expects.
    for attempt in 1.. {
        let sandbox = Sandbox::new();
        let output = run_with(&sandbox, RUNS, &kernels[0]);
        assert!(output.status.success(), "{}", errors(&output));
        nothing_left(&sandbox);
        let run = sandbox.export("1");
        let is_whole = run.trials.iter().all(|trial| trial.status == Status::Done);
        let died = errors(&output).contains("under /dev/kvm the guest ") || !is_whole;
        if kvm_opens() && attempt < 3 && died {
            continue;
        }
        assert!(is_whole, "{:?}", run.trials);
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        if !kvm_opens() {
            assert!(!sandbox.path().join("asked").exists());
            assert!(fact(&run, 0, "guest.accelerator").starts_with("tcg"));
            assert!(doctor(&sandbox).contains("; emulated: "), "{}", doctor(&sandbox));
            return;
        }
        assert_eq!(fact(&run, 0, "guest.accelerator"), "kvm");
        assert!(!report.contains("emulated"), "{report}");
        assert!(doctor(&sandbox).contains("; KVM, which runs;"), "{}", doctor(&sandbox));
        let asked = std::fs::read_to_string(sandbox.path().join("asked")).unwrap();
        assert!(asked.starts_with("kvm\nhost\n") || asked.starts_with("host\nkvm\n"), "{asked}");
        return;
    }
}

#[test]
fn a_silent_guest_under_kvm_has_all_emulated_from_then_on() {
    let Some((kernels, _alone)) = kernels() else { return };
    let sandbox = Sandbox::new();
    for again in [false, true] {
        let output = run_with(&sandbox, HANGS, &kernels[0]);
        assert!(output.status.success(), "{}", errors(&output));
        nothing_left(&sandbox);
        let said = errors(&output);
        let falls_back = said.contains("under /dev/kvm the guest did not come up within 20 s");
        assert_eq!(falls_back, kvm_opens() && !again, "{said}");
        let run = sandbox.export(if again { "2" } else { "1" });
        assert!(fact(&run, 0, "guest.accelerator").starts_with("tcg"));
    }
    let asked = std::fs::read_to_string(sandbox.path().join("asked")).unwrap_or_default();
    assert_eq!(asked, if kvm_opens() { "kvm\n" } else { "" }, "it is tried once");
    assert!(doctor(&sandbox).contains("; emulated: "), "{}", doctor(&sandbox));
}
