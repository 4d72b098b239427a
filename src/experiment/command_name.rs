//! What a command is called: by its program; a script of a shell by its file, or by the first program in it that does something.
//!
//! Enters: the words behind `--`. Leaves: a path or a name, of which the run's name is made.

use std::path::Path;

const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];
/// What only prepares the program that follows, or stands around it.
const PREPARES: [&str; 24] = [
    "cd", "set", "export", "umask", "ulimit", "mkdir", "trap", "unset", "source", ".", "test", "[", "echo",
    "printf", "sleep", "sync", "rm", "true", "for", "case", "read", "local", "done", "fi",
];
/// What begins a command and is none: words of the shell, and programs that run the one behind their flags and numbers.
const LEADS: [&str; 19] = [
    "exec", "time", "command", "if", "then", "else", "while", "until", "do", "eval", "!", "sudo", "env",
    "nice", "ionice", "nohup", "timeout", "taskset", "numactl",
];

/// `pgbench` of `pgbench -c 8`, and of `sh -c 'cd /data && PGPORT=5433 pgbench -c 8'`.
pub(super) fn command_name(argv: &[String]) -> &str {
    let Some((program, words)) = argv.split_first() else { return "command" };
    if !SHELLS.contains(&last_part(program)) {
        return program;
    }
    let mut words = words.iter();
    let mut is_script = false;
    while let Some(word) = words.next() {
        match word.as_str() {
            // `set -o pipefail`.
            "-o" | "+o" | "-O" => drop(words.next()),
            // `-c`, or as in `sh -ec`.
            flag if flag.starts_with('-') => is_script |= !flag.starts_with("--") && flag.ends_with('c'),
            script if is_script => return program_in(script).unwrap_or(program),
            file => return file,
        }
    }
    program
}

/// The first program of a script that does more than prepare; `None` where that is not plain to see.
fn program_in(script: &str) -> Option<&str> {
    for command in script.split(['\n', ';', '|', '&', '(', ')', '{', '}']) {
        let mut words = command.split_whitespace().peekable();
        let mut behind_a_lead = false;
        while let Some(word) = words.peek() {
            let assigns = word.split_once('=').is_some_and(|(name, _)| is_name(name));
            if assigns && word.ends_with('$') {
                // `D=$(…)`: what is in it is not what the script is there for.
                return None;
            }
            let is_lead = LEADS.contains(word);
            // `timeout -k 5 60`.
            let is_its = behind_a_lead && word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            if !assigns && !is_lead && !is_its {
                break;
            }
            behind_a_lead |= is_lead;
            words.next();
        }
        match words.next() {
            None => {}
            Some(word) if PREPARES.contains(&word) => {}
            Some(word) => return is_name(last_part(word)).then_some(word),
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-+".contains(c))
}

fn last_part(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_called_by_what_it_runs() {
        let name = |argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            command_name(&argv).to_owned()
        };
        assert_eq!(name(&["/usr/bin/pgbench", "-c", "8"]), "/usr/bin/pgbench");
        assert_eq!(name(&["sh", "-c", "cd $ASSAY_DIRECTORY && PGPORT=5433 pgbench -c 8 -T 10"]), "pgbench");
        assert_eq!(name(&["bash", "-euc", "set -o pipefail; dd if=/dev/zero of=x|gzip"]), "dd");
        assert_eq!(name(&["/bin/sh", "-c", "exec ./bench.sh"]), "./bench.sh");
        assert_eq!(name(&["sh", "-c", "(time tar xf a.tar)"]), "tar");
        assert_eq!(name(&["sh", "-e", "t/run.sh", "-c"]), "t/run.sh");
        assert_eq!(
            name(&["bash", "-o", "pipefail", "-c", "sync; timeout -k 5 60 fs_mark -n 9 | cat"]),
            "fs_mark"
        );
        assert_eq!(name(&["sh", "-c", "for i in 1 2; do sudo taskset -c 0 dd if=a of=b; done"]), "dd");
        for nothing in ["$TOOL x; rm y", "D=$(mktemp -d); cp a $D", "cd /", "A=1", ""] {
            assert_eq!(name(&["sh", "-c", nothing]), "sh", "{nothing}");
        }
        assert_eq!(name(&[]), "command");
    }
}
