//! Paths that are no files: devices, FIFOs, files without an end, as inputs and outputs; files of others where a result is to go;
//! packages and caches that somebody else has prepared.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::bad_inputs::without_privilege;
use crate::sandbox::{Sandbox, errors};
use crate::tools::{available, is_root, skipped};

const SIMULATED: &str = "name = \"s\"\njob_text = \"[w]\\nsize=1m\\n\"\nengine = \"simulated\"\n[stop]\nrounds = 4\n\
                         [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n";
/// Nothing here takes longer, unless it waits for somebody who does not come.
const PATIENCE: Duration = Duration::from_secs(60);

/// A sandbox with one stored run.
fn with_run() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("s.toml", SIMULATED);
    sandbox.succeed(&["run", "s.toml", "--quiet"]);
    sandbox
}

fn fifo(sandbox: &Sandbox, name: &str) {
    let path = sandbox.path().join(name);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn collected(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// The answer of a command that must not hang, with at most 500 MB of memory.
fn answer(mut command: Command) -> Output {
    let arguments: Vec<OsString> = command.get_args().map(ToOwned::to_owned).collect();
    let mut bounded = Command::new("sh");
    bounded.args(["-c", "ulimit -d 500000; exec \"$@\"", "sh"]).arg(command.get_program()).args(&arguments);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        bounded.current_dir(directory);
    }
    command = bounded;
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = collected(child.stdout.take().unwrap());
    let err = collected(child.stderr.take().unwrap());
    let begun = std::time::Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("still waiting: {arguments:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    Output { status, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
}

fn refused(sandbox: &Sandbox, arguments: &[&str], words: &str) {
    let output = answer(sandbox.assay(arguments));
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(said.contains(words) && said.contains("hint: "), "{arguments:?}: {said}");
}

#[test]
fn no_input_is_a_fifo_a_device_or_without_end() {
    let sandbox = with_run();
    fifo(&sandbox, "fifo");
    sandbox.write("job.fio", "[w]\nrw=write\nsize=64k\n");
    sandbox.write("good.txt", "1\n2\n3\n4\n");
    std::fs::File::create(sandbox.path().join("sparse")).unwrap().set_len(2 << 30).unwrap();
    let cases =
        [("fifo", "is a FIFO"), ("/dev/zero", "is a character device"), ("sparse", "is larger than ")];
    for (path, words) in cases {
        for name in ["input", "input.toml", "input.csv", "input.json"] {
            let _ = std::fs::remove_file(sandbox.path().join(name));
            symlink(path, sandbox.path().join(name)).unwrap();
        }
        sandbox.write("includes.fio", &format!("[w]\nrw=write\nsize=64k\ninclude {path}\n"));
        sandbox.write(
            "names.toml",
            &format!("job = \"{path}\"\n[[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\n"),
        );
        for arguments in [
            &["run", path, "--vary", "bs=4k,8k"][..],
            &["run", "input", "--vary", "bs=4k,8k"],
            &["run", "input.toml"],
            &["run", "names.toml"],
            &["run", "includes.fio", "--vary", "bs=4k,8k"],
            &["compare", path, "good.txt"],
            &["compare", "good.txt", path],
            &["compare", "input.json", "input.json"],
            &["compare", "input.csv", "--arm", "a", "--value", "b"],
            &["report", path],
            &["show", path],
            &["export", path],
        ] {
            refused(&sandbox, arguments, words);
        }
    }
    refused(&sandbox, &["run", "job.fio", "--vary", "kernel=host,fifo"], "no such file");
    refused(&sandbox, &["run", "job.fio", "--vary", "kernel=host,/dev/zero"], "no such file");
}

#[test]
fn three_million_numbers_or_mistakes_are_refused() {
    let sandbox = Sandbox::new();
    let numbers: String = (0..1_500_000).map(|n| format!("{}\n", 100 + n % 7)).collect();
    sandbox.write("a.txt", &numbers);
    sandbox.write("b.txt", &numbers);
    sandbox.write("few.txt", "1\n2\n3\n4\n");
    for pair in [["a.txt", "b.txt"], ["few.txt", "b.txt"]] {
        refused(&sandbox, &["compare", pair[0], pair[1]], "more results than the 400000");
    }
    sandbox.write("table.csv", &format!("arm,value\n{}", "a,1\nb,2\n".repeat(1_500_000)));
    refused(&sandbox, &["compare", "table.csv", "--arm", "arm", "--value", "value"], "more results than");
    sandbox.write("job.fio", &numbers[..3 << 20]);
    refused(&sandbox, &["run", "job.fio", "--vary", "bs=4k,8k"], "before the first [section]");
    // Files that include each other twice, fourteen deep.
    for at in 0..14 {
        let next = at + 1;
        sandbox.write(&format!("{at}.inc"), &format!("include {next}.inc\ninclude {next}.inc\n"));
    }
    sandbox.write("14.inc", "bs=4k\n");
    sandbox.write("laughs.fio", "[w]\nsize=64k\nrw=write\ninclude 0.inc\n");
    refused(&sandbox, &["run", "laughs.fio", "--vary", "bs=4k,8k"], "files are included");
    // As many as are taken stay within the limit, too.
    sandbox.write("a.txt", &numbers[..4 * 200_000]);
    sandbox.write("b.txt", &numbers[..4 * 190_000]);
    let output = answer(sandbox.assay(&["compare", "a.txt", "b.txt"]));
    assert!(output.status.success(), "{}", errors(&output));
}

#[test]
fn a_fifo_in_a_compared_directory_is_named() {
    let sandbox = Sandbox::new();
    for side in ["a", "b"] {
        std::fs::create_dir(sandbox.path().join(side)).unwrap();
        sandbox.write(&format!("{side}/1.txt"), "1\n2\n3\n4\n");
    }
    fifo(&sandbox, "b/fifo");
    let output = answer(sandbox.assay(&["compare", "a", "b"]));
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("b/fifo is a FIFO") && said.contains("--skip-unreadable"), "{said}");
    let output = answer(sandbox.assay(&["compare", "a", "b", "--skip-unreadable"]));
    assert!(output.status.success() && errors(&output).contains("left out: b/fifo"), "{}", errors(&output));
}

#[test]
fn a_pipe_of_the_shell_is_read() {
    let sandbox = with_run();
    let program = env!("CARGO_BIN_EXE_assay");
    for line in [
        format!("'{program}' compare <(seq 5) <(seq 3 9)"),
        format!("'{program}' export 1 --format csv | '{program}' compare /dev/stdin"),
        format!("'{program}' export 1 | '{program}' report /dev/stdin"),
        format!("'{program}' run <(printf '[w]\\nsize=64k\\nrw=write\\n') --vary bs=4k,8k --plan"),
    ] {
        let output = sandbox.command("bash").args(["-c", &line]).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "{line}: {}", errors(&output));
    }
}

/// Every way to name an output, each with the arguments before the file.
const OUTPUTS: &[&[&str]] = &[
    &["report", "1", "-o"],
    &["export", "1", "-o"],
    &["compare", "1", "1", "-o"],
    &["generate", "man", "-o"],
    &["run", "s.toml", "--quiet", "--html"],
];

#[test]
fn a_file_that_assay_did_not_write_is_not_replaced() {
    let sandbox = with_run();
    let victim = sandbox.write("victim", "precious\n");
    std::fs::write(sandbox.path().join("victim.html"), "<!DOCTYPE html>\n<p>precious\n").unwrap();
    symlink(&victim, sandbox.path().join("link")).unwrap();
    symlink(sandbox.path().join("none"), sandbox.path().join("dangling")).unwrap();
    let runs = || sandbox.succeed(&["list"]).lines().count();
    let before = runs();
    for arguments in OUTPUTS {
        for file in ["victim", "victim.html", "link", "dangling"] {
            let arguments = [*arguments, &[file]].concat();
            let output = answer(sandbox.assay(&arguments));
            assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", errors(&output));
            assert!(errors(&output).contains("hint: --force replaces it"), "{}", errors(&output));
        }
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    assert_eq!(
        std::fs::read_to_string(sandbox.path().join("victim.html")).unwrap(),
        "<!DOCTYPE html>\n<p>precious\n"
    );
    assert!(!sandbox.path().join("none").exists());
    assert_eq!(runs(), before, "refused before the work");
    // With --force the link is replaced, not what it leads to.
    sandbox.succeed(&["report", "1", "--force", "-o", "link"]);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious\n");
    sandbox.succeed(&["report", "1", "--force", "-o", "victim"]);
    assert!(std::fs::read_to_string(&victim).unwrap().contains("bs=8k"));
}

#[test]
fn a_report_is_replaced_until_somebody_edits_it() {
    let sandbox = with_run();
    let path = |name: &str| sandbox.path().join(name);
    for name in ["r.html", "r.json", "r.csv"] {
        sandbox.succeed(&["report", "1", "-o", name]);
        // A copy has no extended attributes, and is known by its content.
        std::fs::write(path("copy"), std::fs::read(path(name)).unwrap()).unwrap();
        std::fs::rename(path("copy"), path(name)).unwrap();
        sandbox.succeed(&["report", "1", "-o", name]);
    }
    for name in ["e.json", "e.csv"] {
        sandbox.succeed(&["export", "1", "--format", &name[2..], "-o", name]);
        std::fs::write(path("copy"), std::fs::read(path(name)).unwrap()).unwrap();
        std::fs::rename(path("copy"), path(name)).unwrap();
        sandbox.succeed(&["export", "1", "--format", &name[2..], "-o", name]);
    }
    std::fs::write(path("empty"), "").unwrap();
    sandbox.succeed(&["report", "1", "-o", "empty"]);
    if rustix::fs::getxattr(path("empty"), "user.assay.report", &mut [0_u8; 16]).is_err() {
        return skipped("the filesystem of the build has no extended attributes of users");
    }
    for name in ["empty", "r.txt", "r.md", "r.html"] {
        sandbox.succeed(&["report", "1", "-o", name]);
        sandbox.succeed(&["report", "1", "-o", name]);
        let edited = std::fs::read_to_string(path(name)).unwrap() + "my notes\n";
        std::fs::write(path(name), &edited).unwrap();
        refused(&sandbox, &["report", "1", "-o", name], "was changed since assay wrote it");
        assert_eq!(std::fs::read_to_string(path(name)).unwrap(), edited);
    }
}

#[test]
fn an_output_is_no_device_and_no_file_without_reader() {
    let sandbox = with_run();
    fifo(&sandbox, "fifo");
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.path().join("socket")).unwrap();
    for arguments in OUTPUTS {
        for (file, words) in [
            ("/dev/zero", "it is a character device"),
            ("socket", "it is a socket"),
            (".", "it is a directory"),
        ] {
            refused(&sandbox, &[*arguments, &[file]].concat(), words);
            if arguments[0] != "run" {
                refused(
                    &sandbox,
                    &[&arguments[..arguments.len() - 1], &["--force", "-o", file]].concat(),
                    words,
                );
            }
        }
    }
    refused(&sandbox, &["report", "1", "-o", "fifo"], "nobody reads this FIFO");
    let program = env!("CARGO_BIN_EXE_assay");
    for line in [
        format!("'{program}' report 1 -o /dev/stdout | grep -q 'bs=8k against'"),
        format!("'{program}' report 1 -o /dev/stderr 2>&1 >/dev/null | grep -q 'bs=8k against'"),
        format!("'{program}' report 1 -o /dev/null"),
        format!("'{program}' report 1 -o /dev/stdout > kept && grep -q 'bs=8k against' kept"),
        format!("grep -q 'bs=8k against' fifo & '{program}' report 1 -o fifo; wait $!"),
        format!(
            "'{program}' report 1 -o >(cat > piped); for n in $(seq 100); do [ -s piped ] && exit; sleep .1; done; exit 1"
        ),
    ] {
        let output = sandbox.command("bash").args(["-c", &line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", errors(&output));
    }
}

#[test]
fn a_block_device_is_no_output() {
    if !is_root() {
        return;
    }
    let sandbox = with_run();
    let image = sandbox.path().join("image");
    std::fs::write(&image, vec![7; 1 << 20]).unwrap();
    let Some(device) = crate::loop_device::LoopDevice::on(&image, 1 << 20) else { return };
    let before = std::fs::read(&device.path).unwrap();
    let name = device.path.to_string_lossy().into_owned();
    for arguments in OUTPUTS {
        refused(&sandbox, &[*arguments, &[&name]].concat(), "it is a block device");
    }
    let line = format!("'{}' report 1 -o /dev/stdout > {name}", env!("CARGO_BIN_EXE_assay"));
    let output = sandbox.command("sh").args(["-c", &line]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(std::fs::read(&device.path).unwrap() == before, "the device was written to");
}

#[test]
fn a_link_of_others_in_a_shared_directory_is_not_followed() {
    if !is_root() {
        return;
    }
    let sandbox = with_run();
    let shared = sandbox.path().join("shared");
    let target = sandbox.path().join("target");
    std::fs::create_dir(&shared).unwrap();
    std::fs::create_dir(&target).unwrap();
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).unwrap();
    for link in ["report", "directory"] {
        let place = shared.join(link);
        symlink(if link == "report" { target.join("victim") } else { target.clone() }, &place).unwrap();
        rustix::fs::chownat(
            rustix::fs::CWD,
            &place,
            Some(rustix::fs::Uid::from_raw(65534)),
            None,
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        )
        .unwrap();
    }
    for file in ["shared/report", "shared/directory/report"] {
        refused(&sandbox, &["report", "1", "-o", file], "is a link of somebody else");
        refused(&sandbox, &["report", "1", "--force", "-o", file], "is a link of somebody else");
    }
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
}

#[test]
fn an_argument_that_is_not_utf_8_is_no_panic() {
    let sandbox = with_run();
    let odd = OsString::from_vec(b"od\xffd".to_vec());
    std::fs::write(sandbox.path().join(&odd), "[w]\nrw=write\nsize=64k\n").unwrap();
    for before in [
        &["run"][..],
        &["run", "--vary", "bs=4k,8k"],
        &["run", "--vary"],
        &["run", "s.toml", "--destroy"],
        &["run", "s.toml", "--quiet", "--html"],
        &["compare"],
        &["report"],
        &["show"],
        &["list", "--db"],
        &["generate"],
        &[],
    ] {
        let mut command = sandbox.assay(before);
        command.arg(&odd);
        let output = answer(command);
        assert_eq!(output.status.code(), Some(2), "{before:?}: {}", errors(&output));
        assert!(errors(&output).contains("hint: "), "{before:?}: {}", errors(&output));
    }
    let mut command = sandbox.assay(&["report", "1", "-o"]);
    assert!(
        answer({
            command.arg(&odd);
            command
        })
        .status
        .code()
            == Some(2),
        "it is no report"
    );
    let other = OsString::from_vec(b"oth\xfer".to_vec());
    let mut command = sandbox.assay(&["report", "1", "-o"]);
    assert!(
        answer({
            command.arg(&other);
            command
        })
        .status
        .success()
    );
    assert!(sandbox.path().join(other).is_file());
    let mut command = sandbox.assay(&["doctor"]);
    assert!(
        answer({
            command.arg(&odd);
            command
        })
        .status
        .success()
    );
    // Nor is a directory of such a name.
    let here = sandbox.path().join(OsString::from_vec(b"he\xffre".to_vec()));
    std::fs::create_dir(&here).unwrap();
    std::fs::write(here.join("s.toml"), SIMULATED).unwrap();
    let mut command = sandbox.assay(&["run", "s.toml", "--quiet"]);
    command.current_dir(&here);
    let output = answer(command);
    assert!(!errors(&output).contains("panicked"), "{}", errors(&output));
}

/// An archive of ar(5) as a Debian package is one.
fn package(data: &[u8]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in [("debian-binary", &b"2.0\n"[..]), ("control.tar", &[0; 1024]), ("data.tar", data)]
    {
        bytes.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 100_644, content.len()).bytes(),
        );
        bytes.extend(content);
        if content.len() % 2 == 1 {
            bytes.push(b'\n');
        }
    }
    bytes
}

/// The head of a member of a tar archive.
fn member(name: &str, kind: u8, bytes: usize) -> Vec<u8> {
    let mut head = vec![0_u8; 512];
    head[..name.len()].copy_from_slice(name.as_bytes());
    head[100..107].copy_from_slice(b"0000644");
    head[124..135].copy_from_slice(format!("{bytes:011o}").as_bytes());
    head[156] = kind;
    head[257..265].copy_from_slice(b"ustar\x0000");
    head[148..156].fill(b' ');
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    head
}

#[test]
fn a_package_with_a_fifo_or_without_end_is_refused() {
    if !available("dpkg-deb") || !available("qemu-system-x86_64") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nsize=64k\n");
    let end = vec![0_u8; 1024];
    let fifo = [member("./boot/vmlinuz-6.1.0", b'6', 0), end.clone()].concat();
    let up =
        [member("./boot/../../../../../up", b'0', 2), b"up".to_vec(), vec![0; 510], end.clone()].concat();
    let link = [member("./boot/vmlinuz-6.1.0", b'2', 0), end].concat();
    let endless = member("./usr/share/doc/x", b'0', 0).repeat(250_000);
    for (name, data, words) in [
        ("fifo.deb", fifo, "a package without boot/vmlinuz-*"),
        ("link.deb", link, "a package without boot/vmlinuz-*"),
        ("up.deb", up, "a package without boot/vmlinuz-*"),
        ("endless.deb", endless, "too many members"),
    ] {
        std::fs::write(sandbox.path().join(name), package(&data)).unwrap();
        let kernels = format!("kernel={name},host");
        let mut command = sandbox.assay(&["run", "job.fio", "--vary", &kernels, "--plan"]);
        command.env("XDG_CACHE_HOME", sandbox.path());
        let output = answer(command);
        assert_eq!(output.status.code(), Some(2), "{name}: {}", errors(&output));
        assert!(errors(&output).contains(words), "{name}: {}", errors(&output));
    }
    assert!(!sandbox.path().join("up").exists() && !sandbox.path().join("assay/up").exists());
    let unpacked = std::fs::read_dir(sandbox.path().join("assay/kernels")).unwrap().flatten();
    for package in unpacked {
        let files = walk(&package.path());
        assert!(files.iter().all(|path| path.is_file()), "{files:?}");
    }
}

fn walk(below: &Path) -> Vec<std::path::PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![below.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                files.push(entry.path());
            }
        }
    }
    files
}

#[test]
fn a_fifo_among_known_kernels_does_not_hang_doctor() {
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path().join("target/kernels")).unwrap();
    std::fs::create_dir_all(sandbox.path().join("assay/kernels/0123/boot")).unwrap();
    fifo(&sandbox, "target/kernels/vmlinuz-6.1");
    fifo(&sandbox, "assay/kernels/0123/boot/vmlinuz-6.1");
    symlink("/dev/zero", sandbox.path().join("target/kernels/vmlinuz-6.2")).unwrap();
    let mut command = sandbox.assay(&["doctor"]);
    command.env("XDG_CACHE_HOME", sandbox.path());
    let output = answer(command);
    assert!(output.status.success(), "{}", errors(&output));
}

/// What assay says about the kernels it finds when that is its cache.
fn kernels_of(sandbox: &Sandbox, environment: &[(&str, &Path)]) -> String {
    let mut command = sandbox.assay(&["doctor", "--format", "json"]);
    command.env_remove("XDG_CACHE_HOME").envs(environment.iter().copied());
    String::from_utf8(answer(command).stdout).unwrap()
}

#[test]
fn a_cache_that_others_may_write_to_is_not_used() {
    let sandbox = Sandbox::new();
    let name = "linux-image-9999.7.0-1-amd64_9999.7-1_amd64.deb";
    let open = sandbox.path().join("open");
    for place in ["open/assay/kernels", "open/.cache/assay/kernels", "private/assay/kernels"] {
        std::fs::create_dir_all(sandbox.path().join(place)).unwrap();
        sandbox.write(&format!("{place}/{name}"), "");
    }
    let found = |environment: &[(&str, &Path)]| kernels_of(&sandbox, environment).contains("9999.7.0");
    let private = sandbox.path().join("private");
    if !found(&[("XDG_CACHE_HOME", &private)]) {
        return skipped("others may write to a directory above the build");
    }
    // Only root can give it a group that is not the user's own.
    let foreign = rustix::fs::chown(&open, None, Some(rustix::fs::Gid::from_raw(65534))).is_ok();
    for mode in [0o777, 0o775].into_iter().filter(|mode| foreign || *mode == 0o777) {
        std::fs::set_permissions(&open, PermissionsExt::from_mode(mode)).unwrap();
        assert!(!found(&[("XDG_CACHE_HOME", &open)]), "{mode:o}");
        assert!(!found(&[("HOME", &open)]), "{mode:o}");
        // Neither by a link in a safe place.
        let link = sandbox.path().join(format!("link-{mode:o}"));
        symlink(&open, &link).unwrap();
        assert!(!found(&[("XDG_CACHE_HOME", &link)]), "{mode:o}");
    }
    // Nor what another user has prepared where temporary files lie.
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o1777)).unwrap();
    assert!(!found(&[("TMPDIR", &open), ("HOME", Path::new(""))]));
    if is_root() {
        let owner = Some(rustix::fs::Uid::from_raw(65534));
        rustix::fs::chown(open.join("assay"), owner, None).unwrap();
        assert!(!found(&[("XDG_CACHE_HOME", &open)]), "of another user");
    }
}

#[test]
fn what_replaces_an_unsafe_cache_is_private_and_removed() {
    if !available("dpkg-deb") || !available("qemu-system-x86_64") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("job.fio", "[w]\nrw=write\nsize=64k\n");
    let (open, temporary) = (sandbox.path().join("open"), sandbox.path().join("tmp"));
    std::fs::create_dir_all(open.join("assay")).unwrap();
    std::fs::create_dir(&temporary).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(sandbox.path().join("k.deb"), package(&[0; 1024])).unwrap();
    let mut command = sandbox.assay(&["run", "job.fio", "--vary", "kernel=k.deb,host", "--plan"]);
    command.env("XDG_CACHE_HOME", &open).env("TMPDIR", &temporary);
    let output = answer(command);
    let said = errors(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("can be written by everyone") && said.contains("until this run ends"), "{said}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "the private directory stays");
    assert_eq!(std::fs::read_dir(open.join("assay")).unwrap().count(), 0);
}

#[test]
fn an_unreadable_file_is_not_taken_for_assays() {
    let sandbox = with_run();
    let victim = sandbox.write("victim", "precious");
    std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o000)).unwrap();
    let run = sandbox.succeed(&["export", "1"]);
    let file = sandbox.write("run.json", &run);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let output = without_privilege(&sandbox, &["report", "run.json", "-o", "victim"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
}
