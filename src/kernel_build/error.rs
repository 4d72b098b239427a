//! Why a kernel is not built.
//!
//! Enters: what a step found. Leaves: one clear message each, with what helps.

use std::path::{Path, PathBuf};

use crate::sys::cache::CacheError;
use crate::sys::regular_file::Unfit;

/// The system's words for a lack of space (strerror(3)), as programs put them behind a name.
const SPACE: [&str; 2] = [": No space left on device", ": Disk quota exceeded"];
/// The same for memory: of gcc, whose compiler the kernel has ended, and of whatever could not get any.
const MEMORY: [&str; 6] = [
    ": Killed signal terminated program",
    ": Cannot allocate memory",
    ": out of memory allocating ",
    // Of linkers, and of other compilers.
    " terminated with signal 9",
    "(signal: 9, SIGKILL",
    "unable to execute command: Killed",
];

/// Programs that run nothing of a source.
const BESIDE: [&str; 4] = ["git", "tar", "strip", "dpkg-deb"];

/// What kept a kernel from being built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A file could not be read or written.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// Neither a tree nor a repository nor a package.
    #[error("source {} {found}", path.display())]
    NoSource {
        /// What was named.
        path: PathBuf,
        /// Why it is none, as a clause behind the path.
        found: String,
    },
    /// The repository has no such revision.
    #[error("{} has no revision {revision}: {said}", path.display())]
    NoRevision {
        /// The repository.
        path: PathBuf,
        /// What was asked for.
        revision: String,
        /// git's words.
        said: String,
    },
    /// Only a repository has revisions.
    #[error("rev={revision}: {} is no git repository", path.display())]
    NotARepository {
        /// The source.
        path: PathBuf,
        /// What was asked for.
        revision: String,
    },
    /// Not a unified diff of a kernel tree.
    #[error("patch {} {found}", path.display())]
    NoPatch {
        /// The file.
        path: PathBuf,
        /// Why it is none, as a clause behind the path.
        found: String,
    },
    /// A patch is for another source.
    #[error("{} does not apply to {source_name}: {said}", patch.display())]
    DoesNotApply {
        /// The patch.
        patch: PathBuf,
        /// Which source.
        source_name: String,
        /// The first hunk that failed, in patch's words.
        said: String,
    },
    /// A kernel whose modules are to be replaced, and a patch of something else.
    #[error("{} changes {touched}, which is in no module of {release}", patch.display())]
    NotAModule {
        /// The patch, or which revisions, in words.
        patch: PathBuf,
        /// The first such file.
        touched: String,
        /// The kernel.
        release: String,
    },
    /// A patch of which nothing was compiled.
    #[error("{} changes nothing that this kernel is made of: {file} is no part of it", patch.display())]
    LeftOut {
        /// The patch.
        patch: PathBuf,
        /// The first file of it.
        file: String,
    },
    /// Two revisions, and nothing was compiled of what they differ in.
    #[error("{one} and {other} are one kernel: they differ in {file}, which is no part of it")]
    OneKernel {
        /// A revision.
        one: String,
        /// The other.
        other: String,
        /// The first file in which they differ.
        file: String,
    },
    /// There is nothing to build in modules.
    #[error("kernel and source are given, and no patch or revision says which modules are to be built")]
    NothingToBuild,
    /// The headers are missing.
    #[error("there are no headers of {release}: {missing} was not found in {places}")]
    NoHeaders {
        /// The kernel.
        release: String,
        /// The first package that is missing.
        missing: String,
        /// Where was looked.
        places: String,
    },
    /// Headers that nobody named, and that others can change.
    #[error("{} is not used, as its makefiles and programs would be run: {reason}", path.display())]
    UntrustedHeaders {
        /// The newest package, or what is installed.
        path: PathBuf,
        /// Who else can change it.
        reason: String,
        /// The directory above it that others can change, where it is that one.
        above: Option<PathBuf>,
    },
    /// A file or link of a source tree that is not, or does not stay, in the tree.
    #[error("{} {found}", path.display())]
    Elsewhere {
        /// The file or link.
        path: PathBuf,
        /// What about it, as a clause.
        found: &'static str,
    },
    /// make succeeded, and what it was to make is not there.
    #[error("make has not made {}", path.display())]
    NotMade {
        /// The file.
        path: PathBuf,
    },
    /// Source and kernel do not belong together.
    #[error(
        "source {source_version} is not that of kernel {release}, whose headers are of {headers_version}"
    )]
    OtherVersion {
        /// The version in the source's Makefile.
        source_version: String,
        /// The kernel.
        release: String,
        /// The version in the headers' Makefile.
        headers_version: String,
    },
    /// Programs or libraries are missing.
    #[error("building a kernel needs {}, which this machine has not", what.join(", "))]
    NoTools {
        /// Their names.
        what: Vec<&'static str>,
        /// Debian's packages of them.
        packages: Vec<String>,
    },
    /// A configuration is missing something.
    #[error("{what}")]
    Configuration {
        /// What, as a sentence.
        what: String,
        /// What helps.
        hint: String,
    },
    /// Not enough space.
    #[error("building needs {needed_mib} MiB in {}, and {free_mib} MiB are free", place.display())]
    NoSpace {
        /// The cache.
        place: PathBuf,
        /// What is needed, in MiB.
        needed_mib: u64,
        /// What is there, in MiB.
        free_mib: u64,
    },
    /// The compiler found mistakes.
    #[error("{what} does not compile:\n{}", indented(first))]
    DoesNotCompile {
        /// What was built.
        what: String,
        /// Its first mistakes.
        first: Vec<String>,
        /// All it said.
        log: PathBuf,
    },
    /// A module uses symbols that the kernel does not export.
    #[error("{what} does not fit its kernel:\n{}", indented(symbols))]
    Symbols {
        /// What was built.
        what: String,
        /// The linker's lines.
        symbols: Vec<String>,
        /// All it said.
        log: PathBuf,
    },
    /// A program could not be started.
    #[error("{command} cannot be started: {source}")]
    NotStarted {
        /// The command.
        command: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// Some program failed in another way.
    #[error("{command} failed: {said}")]
    Failed {
        /// The command.
        command: String,
        /// Its last words.
        said: String,
    },
    /// What was built is not what the key of the cache is of.
    #[error("the source {} changed while it was built", path.display())]
    SourceChanged {
        /// The source.
        path: PathBuf,
    },
    /// The machine ran out of something; the same would have been built a moment earlier.
    #[error("{what} failed: {said}")]
    Machine {
        /// `building a kernel`, or the program that failed.
        what: String,
        /// What a program of the build said.
        said: String,
        /// Whether space is missing, so that what is half built is not kept.
        is_space: bool,
    },
    /// Ended by a signal to assay.
    #[error("interrupted while {what}; no half-built kernel is kept")]
    Interrupted {
        /// `building a kernel`.
        what: String,
    },
}

fn indented(lines: &[String]) -> String {
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

impl BuildError {
    pub(super) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> BuildError {
        let path = path.into();
        move |source| BuildError::Io { what, path, source }
    }

    /// The same of a file that somebody named.
    pub(super) fn unfit(what: &'static str, path: &Path) -> impl FnOnce(Unfit) -> BuildError {
        let io = BuildError::io(what, path);
        move |unfit| io(unfit.into())
    }

    /// Whether another revision of the same source may be built all the same.
    #[must_use]
    pub fn is_of_the_revision(&self) -> bool {
        matches!(
            self,
            BuildError::DoesNotCompile { .. }
                | BuildError::DoesNotApply { .. }
                | BuildError::Symbols { .. }
                | BuildError::Configuration { .. }
                | BuildError::LeftOut { .. }
                | BuildError::NotMade { .. }
                | BuildError::Elsewhere { .. }
                | BuildError::OtherVersion { .. }
        ) || matches!(self, BuildError::Failed { command, .. } if !is_beside(command))
    }

    /// A program's complaint, if it is one of the machine: of a lack of space or memory, whatever was built.
    #[must_use]
    pub fn of_the_machine(text: &str, what: &str) -> Option<BuildError> {
        let of_space = |line: &&str| SPACE.iter().any(|words| line.contains(words));
        let of_memory = |line: &&str| {
            MEMORY.iter().any(|words| line.contains(words))
                // 137: a shell's word for the same.
                || (line.starts_with("make") && (line.ends_with("] Killed") || line.ends_with("] Error 137")))
                || *line == "Killed"
        };
        let first = |is: &dyn Fn(&&str) -> bool| text.lines().map(str::trim).find(is);
        let found = |said: &str, is_space| BuildError::Machine {
            what: what.to_owned(),
            said: said.to_owned(),
            is_space,
        };
        first(&of_space)
            .map(|said| found(said, true))
            .or_else(|| first(&of_memory).map(|said| found(said, false)))
    }

    /// Whether space is missing.
    pub(super) fn is_of_space(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match self {
            BuildError::Machine { is_space, .. } => *is_space,
            BuildError::Io { source, .. } => matches!(source.kind(), StorageFull | QuotaExceeded),
            _ => false,
        }
    }

    /// Whether the request is wrong, so that nothing was begun; otherwise the build itself failed.
    #[must_use]
    pub fn is_of_the_request(&self) -> bool {
        !matches!(
            self,
            BuildError::DoesNotCompile { .. }
                | BuildError::Symbols { .. }
                | BuildError::Failed { .. }
                | BuildError::NotStarted { .. }
                | BuildError::NotMade { .. }
                | BuildError::Machine { .. }
                | BuildError::SourceChanged { .. }
                | BuildError::Interrupted { .. }
        )
    }

    /// What helps; may be empty.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            BuildError::NoSource { .. } => {
                "a source is a kernel tree, a git repository (or REPOSITORY@REV), a tarball, or Debian's linux-source .deb".to_owned()
            }
            // As git says itself, further below.
            BuildError::NoRevision { said, path, .. } if said.contains("dubious ownership") => {
                format!("git config --global --add safe.directory {}", path.display())
            }
            BuildError::NoRevision { .. } => "git tag, git log: a tag, branch or commit of that repository".to_owned(),
            BuildError::NotARepository { .. } => "rev needs --source REPOSITORY; a patch is a level of any source".to_owned(),
            BuildError::NoPatch { .. } => {
                "write it with git diff or diff -ru in the kernel's top directory; patch=none is the source as it is".to_owned()
            }
            BuildError::DoesNotApply { .. } => {
                "the patch is for another version of the source, or a patch in front of it changed the same lines".to_owned()
            }
            BuildError::NotAModule { .. } => {
                "without kernel= a whole kernel is built from the source, with this change".to_owned()
            }
            BuildError::LeftOut { .. } | BuildError::OneKernel { .. } => {
                "both arms would be the same kernel; code that its configuration leaves out is built with --config FILE (without kernel=)"
                    .to_owned()
            }
            BuildError::NothingToBuild => {
                "--vary patch=none,FILE builds what the patch changes, --vary rev=A,B what differs; without kernel= a whole kernel is built"
                    .to_owned()
            }
            BuildError::NoHeaders { .. } => {
                "apt-get download them beside the kernel's package (`assay help patches`); nothing needs to be installed"
                    .to_owned()
            }
            BuildError::UntrustedHeaders { above: Some(above), reason, .. } => {
                let remedy = if reason.contains(" belongs to ") {
                    "chown root"
                } else if reason.contains(" by group ") {
                    "chmod g-w"
                } else {
                    "chmod go-w"
                };
                format!("{remedy} {}", above.display())
            }
            BuildError::UntrustedHeaders { .. } => {
                "chown and chmod it so that only you and root can write to it, and the directories above it".to_owned()
            }
            BuildError::Elsewhere { .. } => {
                "put what it leads to into the tree, or take REPOSITORY@REV: assay neither reads nor writes outside of a source".to_owned()
            }
            BuildError::OtherVersion { .. } => {
                "take the linux-source of the kernel's own version; without kernel= a whole kernel is built from this source".to_owned()
            }
            BuildError::NoTools { packages, .. } => format!("sudo apt-get install {}", packages.join(" ")),
            BuildError::Configuration { hint, .. } => hint.clone(),
            BuildError::NoSpace { .. } => {
                "assay cleanup --cache removes what earlier builds left; XDG_CACHE_HOME names another place".to_owned()
            }
            BuildError::SourceChanged { .. } => {
                "run it again when nobody writes there; REPOSITORY@REV is a source that does not change".to_owned()
            }
            BuildError::Machine { is_space, .. } => of_machine(*is_space).to_owned(),
            BuildError::DoesNotCompile { first, log, .. }
                if first.iter().any(|line| line.contains("No such file or directory")) =>
            {
                format!(
                    "with kernel= there are only the modules' own directories and the kernel's headers; without it a whole kernel is \
                     built from all of the source; {} has all that the build said",
                    log.display()
                )
            }
            BuildError::DoesNotCompile { log, .. } | BuildError::Symbols { log, .. } => {
                format!("{} has all that the build said", log.display())
            }
            BuildError::NotStarted { .. } => OF_NO_SOURCE.to_owned(),
            BuildError::Failed { command, .. } if is_beside(command) => OF_NO_SOURCE.to_owned(),
            BuildError::Io { .. }
            | BuildError::Failed { .. }
            | BuildError::NotMade { .. }
            | BuildError::Interrupted { .. } => String::new(),
        }
    }
}

/// What helps where a program failed that runs nothing of the source.
const OF_NO_SOURCE: &str = "see to what it complains of, then run it again: no source is at fault";

/// Whether a command lays out sources or results, and compiles nothing: what it fails of, it fails of with every revision.
pub(super) fn is_beside(command: &str) -> bool {
    BESIDE.contains(&command.split(' ').next().unwrap_or(command))
}

fn of_machine(is_space: bool) -> &'static str {
    if is_space {
        "make space, then run it again or go on with --resume; assay cleanup --cache removes what earlier builds left"
    } else {
        "the kernel ends programs when memory is short: run it again, or go on with --resume, when there is more"
    }
}

impl From<CacheError> for BuildError {
    fn from(CacheError { what, path, source }: CacheError) -> BuildError {
        BuildError::Io { what, path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lays_out_sources_fails_of_the_machine() {
        let failed = |command: &str| BuildError::Failed { command: command.to_owned(), said: "x".to_owned() };
        for command in ["git", "git cat-file", "tar", "strip"] {
            let error = failed(command);
            assert!(!error.is_of_the_revision() && !error.is_of_the_request(), "{command}");
            assert!(error.hint().contains("no source is at fault"), "{command}");
        }
        assert!(failed("make").is_of_the_revision() && failed("make").hint().is_empty());
    }
}
