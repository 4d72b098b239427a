//! Programs that are told nothing by whatever the user has set for other programs.
//!
//! Enters: a program's name. Leaves: a command with a few harmless variables, so that the same input gives the same output on
//! everybody's terminal: no `GIT_DIR`, `MAKEFLAGS`, `CPATH`, `TAR_OPTIONS` or `VERSION_CONTROL`.

use std::process::Command;

/// Where programs, files of the user's and temporary ones are, and who the user is.
const KEPT: [&str; 8] = [
    "PATH", "HOME", "TMPDIR", "USER", "LOGNAME",
    // git believes root, who was a user before, that the user's repositories are his.
    "SUDO_UID", // ccache keeps its files there, and git and ccache their settings.
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
];
/// All that begin like this are for ccache(1) …
const CCACHE: &str = "CCACHE_";
/// … but for those that have it run something else than the compiler that it is asked to.
const OF_PROGRAMS: [&str; 6] = [
    "CCACHE_COMPILER", "CCACHE_COMPILERTYPE", "CCACHE_COMPILERCHECK", "CCACHE_PATH", "CCACHE_PREFIX",
    "CCACHE_PREFIX_CPP",
];

/// A command in an environment of nothing but harmless variables, and in English.
#[must_use]
pub fn clean_command(program: &str) -> Command {
    let mut command = Command::new(program);
    let kept = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept));
    command.env_clear().envs(kept).env("LC_ALL", "C");
    command
}

fn is_kept(name: &str) -> bool {
    KEPT.contains(&name) || (name.starts_with(CCACHE) && !OF_PROGRAMS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_see_what_is_harmless_and_nothing_else() {
        for name in ["PATH", "HOME", "SUDO_UID", "CCACHE_DIR", "CCACHE_MAXSIZE"] {
            assert!(is_kept(name), "{name}");
        }
        for name in
            ["GIT_DIR", "GIT_CONFIG_COUNT", "MAKEFLAGS", "KCFLAGS", "CPATH", "CCACHE_COMPILER", "LD_PRELOAD"]
        {
            assert!(!is_kept(name), "{name}");
        }
        // Under cargo there are many others.
        let output = clean_command("env").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("LC_ALL=C\n") && text.contains("PATH="), "{text}");
        assert!(!text.contains("CARGO"), "{text}");
    }
}
