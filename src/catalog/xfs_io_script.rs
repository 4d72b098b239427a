//! What a script of xfs_io may do: read, write, sync and lay out the trial's own file, and look at it.
//!
//! Enters: commands. Leaves: the same a line each, or why one is not run. All that is not known to keep to the file is refused: xfs_io
//! learns new commands (exchangerange, commitrange, …), and a benchmark must not label, freeze or repair a filesystem.

use crate::workload::nearest;

/// Commands that keep to the open file, with the short names that xfs_io has for some of them.
const ALLOWED: [&str; 54] = [
    // Data.
    "pwrite", "w", "pread", "r", "mmap", "mm", "mremap", "mrm", "munmap", "mu", "mread", "mr", "mwrite", "mw",
    "msync", "ms", "madvise", "ma", "mincore", "mi", "fadvise", "fsync", "s", "fdatasync", "ds", "sync",
    "syncfs", "sync_range", // Where they lie.
    "truncate", "t", "falloc", "fpunch", "fcollapse", "finsert", "funshare", "fzero", "zero", "allocsp",
    "freesp", "resvsp", "unresvsp", "extsize", "cowextsize", "chattr", "lsattr", "chproj", "lsproj",
    // Looking.
    "stat", "statx", "statfs", "seek", "bmap", "fiemap", "utimes",
];

/// Commands that take data from another file, which must lie in the trial's directory.
const FROM_A_FILE: [&str; 6] = ["copy_range", "reflink", "dedupe", "sendfile", "send", "pwrite"];

/// Commands a line each, looked at one by one.
///
/// # Errors
/// A clause that names the command and says why it is not run.
pub(super) fn read(text: &str) -> Result<String, String> {
    let all: Vec<&str> =
        text.split([';', '\n']).map(str::trim).filter(|command| !command.is_empty()).collect();
    if all.is_empty() {
        return Err("there is no command; write e.g. \"pwrite 0 64m; fsync\"".to_owned());
    }
    for command in &all {
        let words: Vec<&str> = command.split_whitespace().collect();
        let (name, rest) = words.split_first().map_or(("", &words[..]), |(name, rest)| (*name, rest));
        if let Some(why) = objection(name, rest) {
            return Err(format!("'{command}': {why}"));
        }
    }
    Ok(all.join("\n"))
}

/// Why a command is not run; `None`: it is.
fn objection(name: &str, words: &[&str]) -> Option<String> {
    if !ALLOWED.contains(&name) && !FROM_A_FILE.contains(&name) {
        let near = nearest(name, ALLOWED, 1).first().map(|near| format!(" ({near} is the nearest of them)"));
        return Some(format!(
            "xfs_io only reads, writes, syncs and lays out the trial's own file here, and {name} is none of the commands known \
             to do no more{}; take it out, or run xfs_io as a command: assay run -- xfs_io …",
            near.unwrap_or_default()
        ));
    }
    let options: String = words.iter().filter_map(|word| options(name, word)).collect();
    let transfers = matches!(name, "pwrite" | "w" | "pread" | "r") || FROM_A_FILE.contains(&name);
    if transfers && options.contains(['C', 'q']) {
        return Some("-C and -q hide the result; take them out".to_owned());
    }
    // Numbers, options and names have no slash; a name without one is looked up in the trial's directory.
    let elsewhere = words.iter().find(|word| word.contains('/') || word.ends_with(".."));
    if let (true, Some(word)) = (name == "w" || FROM_A_FILE.contains(&name), elsewhere) {
        return Some(format!(
            "{word} is another file than the trial's; a name in the trial's directory would do"
        ));
    }
    let stays = |word: &&&str| word.strip_prefix('+').is_some_and(|flags| flags.contains(['i', 'a']));
    if let (true, Some(word)) = (name == "chattr", words.iter().find(stays)) {
        return Some(format!("{word} makes a file that cannot be removed; take it out"));
    }
    None
}

/// The option letters of a word, without an option's value behind its letter (`-b4k`, `-S0xC0`).
fn options<'w>(name: &str, word: &'w str) -> Option<&'w str> {
    let letters =
        word.strip_prefix('-').filter(|letters| !letters.starts_with(|c: char| c.is_ascii_digit()))?;
    let with_value: &[char] = match name {
        "pwrite" | "w" => &['b', 'i', 's', 'S', 'V', 'Z'],
        "pread" | "r" => &['b', 'V', 'Z'],
        "copy_range" => &['s', 'd', 'l', 'f'],
        "sendfile" | "send" => &['i', 'f'],
        _ => &[],
    };
    Some(letters.split(with_value).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of xfs_io 6.1 and later, all that reach other files or the filesystem, or end the script.
    const REACHING: [&str; 41] = [
        "open", "o", "close", "c", "file", "quit", "q", "swapext", "exchangerange", "commitrange",
        "startupdate", "commitupdate", "cancelupdate", "log_writes", "lw", "flink", "label", "fsuuid",
        "add_enckey", "rm_enckey", "set_encpolicy", "get_encpolicy", "enckey_status", "scrub", "repair",
        "scrubv", "health", "freeze", "thaw", "shutdown", "inject", "resblks", "bulkstat", "bulkstat_single",
        "inumbers", "inode", "fsmap", "fsrefcounts", "chmod", "parent", "readdir",
    ];

    #[test]
    fn what_reaches_further_than_the_file_is_named_and_refused() {
        for name in REACHING {
            let said = read(&format!("pwrite 0 1m\n{name} x")).unwrap_err();
            assert!(said.starts_with(&format!("'{name} x': xfs_io only reads, writes, syncs")), "{said}");
        }
        assert!(read("label").unwrap_err().contains("assay run -- xfs_io"), "{:?}", read("label"));
        assert!(read("pwrit 0 1m").unwrap_err().contains("(pwrite is the nearest of them)"));
    }

    /// What is allowed is known to the xfs_io that is here, by these very names.
    #[test]
    fn every_allowed_command_is_one() {
        let script =
            ALLOWED.iter().chain(&FROM_A_FILE).flat_map(|name| ["-c".to_owned(), format!("help {name}")]);
        let path = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin";
        let Ok(ran) = std::process::Command::new("xfs_io").args(script).env("PATH", path).output() else {
            assert!(std::env::var_os("CI").is_none(), "no xfs_io, and CI skips nothing");
            eprintln!("SKIPPED: there is no xfs_io");
            return;
        };
        let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
        // Later versions have no allocsp and freesp any more.
        let gone =
            |line: &&str| line.contains("not found") && !line.contains("allocsp") && !line.contains("freesp");
        assert!(said.contains("pwrite "), "{said}");
        assert_eq!(said.lines().filter(gone).collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn what_keeps_to_the_file_is_run_as_it_stands() {
        let script = "falloc -k 0 1m;pwrite -b4k -S0xC0 0 1m\n mmap 0 64k ; mw 0 4k; msync -s ;munmap; sync_range -w 0 1m; \
                      seek -d 0; extsize 1m; cowextsize; fadvise -d 0 0; stat -v; chattr +x; sync; fsync";
        let lines: Vec<String> = read(script).unwrap().lines().map(str::to_owned).collect();
        assert_eq!((lines.len(), lines[1].as_str()), (15, "pwrite -b4k -S0xC0 0 1m"));
        // From the trial's own directory.
        read("reflink file 0 1m 1m; copy_range -s 0 -d 1m -l 1m file; pwrite -i other 0 1m").unwrap();
        for (command, words) in [
            ("pwrite -i /etc/passwd 0 1m", "/etc/passwd is another file than the trial's"),
            ("w -i../x 0 1m", "is another file"),
            ("sendfile -i /dev/zero 0 1m", "/dev/zero is another file"),
            ("reflink ../other", "../other is another file"),
            ("sendfile -q -i x 0 1m", "hide the result"),
            ("w -qd 0 1m", "hide the result"),
            ("pread -C 0 1m", "hide the result"),
            ("chattr +i", "+i makes a file that cannot be removed"),
        ] {
            let said = read(command).unwrap_err();
            assert!(said.starts_with(&format!("'{command}': ")) && said.contains(words), "{said}");
        }
    }
}
