//! Every action that undoing knows, offered by somebody else: in a journal in a marked directory that a store names, in a record in a
//! directory that others can write to, in a record of another user's, and in this user's own record of something that is another thing
//! by now. None is done.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use assay::target::UNDO_ACTIONS;
use serde_json::{Value, json};

use super::victims::{Mounted, is_whole, precious, quoted, sql, sum};
use crate::sandbox::{Sandbox, errors};
use crate::target_bench::{Loop, can_make, run, succeed, zram};
use crate::tools::installed;

/// Something that is not assay's, the entry of a record that would undo it, and whether it is still as it was.
struct Case {
    made: Value,
    intact: Box<dyn Fn() -> bool>,
    /// Ends with the case.
    _kept: Vec<Box<dyn std::any::Any>>,
}

/// A victim of each action; `None`: this machine cannot have one, which is said.
fn case(action: &str, sandbox: &Sandbox) -> Option<Case> {
    let plain = |made: Value, intact: Box<dyn Fn() -> bool>| Some(Case { made, intact, _kept: Vec::new() });
    let wrong = json!({ "device": 1, "number": 1, "born": null });
    match action {
        "loop" => {
            let device = Loop::new(sandbox, 16);
            let (image, attached) = (sandbox.path().join("own.img"), device.sys().join("loop/backing_file"));
            let made = json!({ "loop": { "image": image, "inode": wrong } });
            let intact = move || image.exists() && attached.exists();
            Some(Case { made, intact: Box::new(intact), _kept: vec![Box::new(device)] })
        }
        "zram" => {
            let alone = zram()?;
            let control = Path::new("/sys/class/zram-control");
            let number = std::fs::read_to_string(control.join("hot_add")).unwrap().trim().to_owned();
            let sys = PathBuf::from(format!("/sys/block/zram{number}"));
            std::fs::write(sys.join("disksize"), "16777216").unwrap();
            let made = json!({ "zram": { "before": [], "number": number.parse::<u32>().unwrap(), "added": true,
                "bytes": 16_777_216, "sequence": 1 } });
            let size = sys.join("disksize");
            let intact = move || std::fs::read_to_string(&size).is_ok_and(|text| text.trim() == "16777216");
            let ends = Ends(Box::new(move || {
                let _ = std::fs::write(sys.join("reset"), "1");
                let _ = std::fs::write(control.join("hot_remove"), &number);
            }));
            Some(Case { made, intact: Box::new(intact), _kept: vec![Box::new(ends), Box::new(alone)] })
        }
        // No host has the driver for certain: a name that leads to an empty directory, which removing a device would remove.
        "null_blk" => {
            let empty = sandbox.path().join("empty");
            std::fs::create_dir(&empty).unwrap();
            let made = json!({ "null_blk": { "name": empty } });
            plain(
                made,
                Box::new(move || std::fs::read_dir(&empty).is_ok_and(|mut entries| entries.next().is_none())),
            )
        }
        // Nor is there a mapped device for certain; none of assay's own is called like a logical volume.
        "mapped" => {
            let before = mapped();
            let made = json!({ "mapped": { "name": "LVM-root", "below": null } });
            plain(made, Box::new(move || before.is_subset(&mapped())))
        }
        "module" => {
            let modules = || std::fs::read_to_string("/proc/modules").unwrap_or_default();
            let (before, name) = (modules(), modules().split(' ').next().unwrap_or("loop").to_owned());
            plain(json!({ "module": { "name": name } }), Box::new(move || modules() == before))
        }
        "filesystem" => {
            let device = Loop::new(sandbox, 16);
            if !installed("mkfs.ext4") {
                return None;
            }
            let mkfs = assay::sys::find_system_program("mkfs.ext4").unwrap();
            let made = std::process::Command::new(mkfs).arg("-q").arg(&device.path).status().unwrap();
            assert!(made.success());
            let (path, before) = (device.path.clone(), sum(&device.path));
            let bytes = std::fs::read(&path).unwrap();
            let identity: String = bytes[0x468..0x478].iter().map(|byte| format!("{byte:02x}")).collect();
            let disk = json!({ "boot": "x", "sequence": 1, "number": "7:0", "bytes": 1, "serial": null,
                "partition_start": null });
            let made = json!({ "filesystem": { "device": path, "disk": disk, "identity": format!("ext4 {identity}") } });
            Some(Case { made, intact: Box::new(move || sum(&path) == before), _kept: vec![Box::new(device)] })
        }
        "mount" => {
            let mounted = std::rc::Rc::new(Mounted::new(sandbox, "victim-mount"));
            let made = json!({ "mount": { "point": mounted.point, "mount": [1, "ext4 /dev/nothing"] } });
            let kept = std::rc::Rc::clone(&mounted);
            Some(Case { made, intact: Box::new(move || mounted.is_whole()), _kept: vec![Box::new(kept)] })
        }
        "pair" => {
            let files = ["amount", "share"].map(|name| sandbox.write(name, "1"));
            let made = json!({ "pair": { "paths": files, "before": ["0", "20"] } });
            let reads = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text == "1");
            plain(made, Box::new(move || files.iter().all(reads)))
        }
        "knob" => {
            let text = sandbox.write("text", "mine");
            let made = json!({ "knob": { "path": text, "before": "theirs", "sequence": null } });
            plain(made, Box::new(move || std::fs::read_to_string(&text).is_ok_and(|text| text == "mine")))
        }
        _ => panic!("the action '{action}' has no forged case: add one here"),
    }
}

/// The devices of the device mapper.
fn mapped() -> std::collections::BTreeSet<std::ffi::OsString> {
    let all = std::fs::read_dir("/sys/block").unwrap().flatten().map(|entry| entry.file_name());
    all.filter(|name| name.to_string_lossy().starts_with("dm-")).collect()
}

/// Does something when it goes.
struct Ends(Box<dyn FnMut()>);

impl Drop for Ends {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A record as assay writes it: two slots, the first one filled.
fn record(contents: &Value) -> Vec<u8> {
    let payload = serde_json::to_vec(contents).unwrap();
    let words = [1, payload.len() as u64, twox_hash::XxHash64::oneshot(0, &payload)];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(payload);
    bytes.resize(2 * (256 << 10), 0);
    bytes
}

fn contents(work: &Path, made: &Value) -> Value {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    json!({ "version": 1, "boot": boot.trim(), "session": "0".repeat(32), "run": "run 1 of x", "pid": 1,
        "work": { "path": work, "inode": { "device": 1, "number": 1, "born": null }, "token": "0".repeat(32) },
        "files": [], "entries": [{ "stack": "s", "made": made }], "standing": {} })
}

/// Places a record where the sandbox's runs keep theirs.
fn place(sandbox: &Sandbox, contents: &Value, directory_mode: u32, owner: Option<u32>) {
    std::fs::create_dir_all(sandbox.records()).unwrap();
    let file = sandbox.records().join("forged");
    std::fs::write(&file, record(contents)).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&file, owner, None).unwrap();
    std::fs::set_permissions(sandbox.records(), std::fs::Permissions::from_mode(directory_mode)).unwrap();
}

/// For each action: what is forged leads to nothing, said or not, and whatever `command` ends with.
fn harmless(forge: impl Fn(&Sandbox, &Value), commands: &[&[&str]], said: &str) {
    if !can_make() {
        return;
    }
    for action in UNDO_ACTIONS {
        let sandbox = Sandbox::new();
        sandbox.succeed(&["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--", "true", "${n}"]);
        let victim = precious(&sandbox, "victim");
        let Some(case) = case(action, &sandbox) else { continue };
        forge(&sandbox, &case.made);
        for command in commands {
            let output = run(&sandbox, command);
            let words = String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output);
            assert!(words.contains(said), "{action}, {command:?}: {words}");
            assert!((case.intact)(), "{action}, {command:?}: {words}");
            assert!(is_whole(&victim), "{action}, {command:?}: {words}");
        }
    }
}

#[test]
fn a_journal_in_a_directory_that_a_store_names_is_no_authority() {
    let forge = |sandbox: &Sandbox, made: &Value| {
        let victim = sandbox.path().join("victim");
        std::fs::write(victim.join(".assay-work"), "made by assay\n").unwrap();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let journal =
            json!({ "boot": boot.trim(), "entries": [{ "stack": "s", "made": made }], "standing": {} });
        std::fs::write(victim.join(".assay-journal"), journal.to_string()).unwrap();
        let row = format!("INSERT INTO leftover VALUES (1, {})", quoted(&victim));
        sql(&sandbox.path().join("assay.db"), &row);
    };
    harmless(forge, &[&["cleanup", "--dry-run"], &["cleanup"]], "left alone: ");
}

#[test]
fn a_record_where_others_can_write_is_not_read() {
    let forge = |sandbox: &Sandbox, made: &Value| {
        place(sandbox, &contents(&sandbox.path().join("victim"), made), 0o777, None);
    };
    harmless(forge, &[&["cleanup", "--dry-run"], &["cleanup"]], "are not trusted: ");
}

#[test]
fn a_record_of_another_users_is_not_read() {
    let forge = |sandbox: &Sandbox, made: &Value| {
        place(sandbox, &contents(&sandbox.path().join("victim"), made), 0o700, Some(65534));
    };
    harmless(forge, &[&["cleanup", "--dry-run"], &["cleanup"]], "belongs to somebody else: it is left alone");
}

#[test]
fn an_own_record_of_what_is_another_thing_now_undoes_nothing() {
    let forge = |sandbox: &Sandbox, made: &Value| {
        place(sandbox, &contents(&sandbox.path().join("victim"), made), 0o700, None);
    };
    harmless(forge, &[&["cleanup"]], "was to be removed and stays");
}

#[test]
fn a_dry_run_says_all_that_would_be_undone() {
    let sandbox = Sandbox::new();
    sandbox.succeed(&["run", "-q", "--vary", "n=1,2", "--rounds", "1", "--", "true", "${n}"]);
    let victim = precious(&sandbox, "victim");
    place(
        &sandbox,
        &contents(&victim, &json!({ "mount": { "point": "/some/where", "mount": null } })),
        0o700,
        None,
    );
    let said = succeed(&sandbox, &["cleanup", "--dry-run"]);
    assert!(said.contains("would unmount /some/where") && said.contains("would remove "), "{said}");
    assert!(is_whole(&victim) && sandbox.records().join("forged").exists());
}
