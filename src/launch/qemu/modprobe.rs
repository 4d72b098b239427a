//! modprobe for guests, so that none needs to be there: what kernel and targets call it for, and no more.
//!
//! Enters: modprobe(8)'s arguments; `modules.dep` and `modules.alias` of the running kernel. Leaves: modules in the kernel.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use super::module_files::name_of;

/// Loads or, with `-r`, unloads what the arguments name.
///
/// # Errors
/// The kernel's words, with the module they are about.
pub(super) fn run(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| *word != "--").collect();
    let (flags, rest): (Vec<&str>, Vec<&str>) = words.into_iter().partition(|word| word.starts_with('-'));
    let Some((name, parameters)) = rest.split_first() else {
        return Err("no module is named".to_owned());
    };
    if flags.contains(&"-r") {
        return remove(name);
    }
    let set = parameters.join(" ");
    load(name, &set)
}

fn directory() -> PathBuf {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Path::new("/lib/modules").join(release.trim())
}

/// Loads a module behind all it uses; one that is there already is no error.
///
/// # Errors
/// There is none of this name, or the kernel's words.
pub(super) fn load(name: &str, parameters: &str) -> Result<(), String> {
    let root = directory();
    let text = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    let files = in_order(name, &text("modules.dep"), &text("modules.alias"));
    if files.is_empty() {
        let built_in = text("modules.builtin").lines().any(|line| name_of(line) == name.replace('-', "_"));
        return if built_in { Ok(()) } else { Err(format!("module {name} is not in the guest")) };
    }
    let last = files.len() - 1;
    let line = std::fs::read_to_string("/proc/cmdline").unwrap_or_default();
    for (at, file) in files.iter().enumerate() {
        let path = root.join(file);
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let own = if at == last { parameters } else { "" };
        let set = CString::new(format!("{} {own}", of_command_line(&name_of(file), &line)).trim())
            .unwrap_or_default();
        match rustix::system::init_module(&bytes, &set) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(format!("{file} cannot be loaded: {error}")),
        }
    }
    Ok(())
}

/// The parameters that the kernel's command line has for a module, as modprobe(8) reads them there: `nvme.poll_queues=2`.
fn of_command_line(module: &str, line: &str) -> String {
    let mut quoted = false;
    let words = line.trim().split(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    let of_module = words.filter_map(|word| {
        let (name, parameter) = word.split_once('.')?;
        (name.replace('-', "_") == module).then_some(parameter)
    });
    of_module.collect::<Vec<_>>().join(" ")
}

fn remove(name: &str) -> Result<(), String> {
    let plain = CString::new(name.replace('-', "_")).map_err(|error| error.to_string())?;
    rustix::system::delete_module(&plain, libc::O_NONBLOCK)
        .map_err(|error| format!("{name} cannot be unloaded: {error}"))
}

/// The files to load for a module or an alias, in order.
fn in_order(name: &str, dependencies: &str, aliases: &str) -> Vec<String> {
    let plain = name.replace('-', "_");
    let find = |wanted: &str| {
        dependencies.lines().find_map(|line| line.split_once(':').filter(|(file, _)| name_of(file) == wanted))
    };
    let aliased = || {
        let mut pairs = aliases.lines().filter_map(|line| line.strip_prefix("alias ")?.split_once(' '));
        pairs.find(|(alias, _)| *alias == plain).and_then(|(_, module)| find(module))
    };
    let Some((file, uses)) = find(&plain).or_else(aliased) else { return Vec::new() };
    let mut files: Vec<String> = uses.split_whitespace().rev().map(str::to_owned).collect();
    files.push(file.to_owned());
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_taken_from_the_command_line() {
        let line =
            "quiet nvme.poll_queues=2 nvme-core.x=1 brd.rd_size=4 nvme.dyndbg=\"file a +p\" xnvme.y=1\n";
        assert_eq!(of_command_line("nvme", line), "poll_queues=2 dyndbg=\"file a +p\"");
        assert_eq!(of_command_line("nvme_core", line), "x=1");
        assert_eq!(of_command_line("xfs", line), "");
    }

    #[test]
    fn what_is_used_comes_first() {
        let dependencies = "k/libcrc32c.ko: \nk/xfs.ko: k/exportfs.ko k/libcrc32c.ko\nk/crc32c-intel.ko: \n";
        let aliases = "alias fs_xfs xfs\nalias crypto_crc32c crc32c_intel\n";
        let order = |name: &str| in_order(name, dependencies, aliases);
        assert_eq!(order("xfs"), ["k/libcrc32c.ko", "k/exportfs.ko", "k/xfs.ko"]);
        assert_eq!(order("fs-xfs").last().map(String::as_str), Some("k/xfs.ko"));
        assert_eq!(order("crypto-crc32c"), ["k/crc32c-intel.ko"]);
        assert_eq!(order("ext4"), Vec::<String>::new());
        assert!(run(&["-q".to_owned(), "--".to_owned()]).is_err());
    }
}
