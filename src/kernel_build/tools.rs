//! Programs and libraries that a build of a kernel needs.
//!
//! Enters: what is to be built. Leaves: the compiler's own name, or all that is missing at once with Debian's packages of it.

use std::path::Path;
use std::process::Stdio;

use super::config::Configuration;
use super::error::BuildError;
use crate::sys::{clean_command, find_program};

/// What any build needs: the program, and the package that has it.
const ALWAYS: [(&str, &str); 4] =
    [("make", "make"), ("gcc", "gcc"), ("patch", "patch"), ("strip", "binutils")];
/// What the kernel's own configuration and its image need besides.
const WHOLE: [(&str, &str); 4] = [("flex", "flex"), ("bison", "bison"), ("bc", "bc"), ("perl", "perl")];
/// What compresses or signs at the end of a build, by the option that asks for it.
const BY_OPTION: [(&str, &str, &str); 10] = [
    ("KERNEL_BZIP2", "bzip2", "bzip2"),
    ("KERNEL_LZMA", "lzma", "xz-utils"),
    ("KERNEL_XZ", "xz", "xz-utils"),
    ("KERNEL_LZO", "lzop", "lzop"),
    ("KERNEL_LZ4", "lz4", "lz4"),
    ("KERNEL_ZSTD", "zstd", "zstd"),
    ("MODULE_COMPRESS_GZIP", "gzip", "gzip"),
    ("MODULE_COMPRESS_XZ", "xz", "xz-utils"),
    ("MODULE_COMPRESS_ZSTD", "zstd", "zstd"),
    ("MODULE_SIG_ALL", "openssl", "openssl"),
];
/// What reads archives by the end of their names, and the package that has it.
const UNPACKERS: [(&str, &str, &str); 6] = [
    (".xz", "xz", "xz-utils"),
    (".txz", "xz", "xz-utils"),
    (".gz", "gzip", "gzip"),
    (".tgz", "gzip", "gzip"),
    (".bz2", "bzip2", "bzip2"),
    (".zst", "zstd", "zstd"),
];
/// Headers of libraries that programs of the build are linked with (objtool, the signing tools): where they lie.
const LIBRARIES: [(&str, &str, &str); 2] =
    [("libelf", "gelf.h", "libelf-dev"), ("libssl", "openssl/opensslv.h", "libssl-dev")];
/// Where compilers look for headers.
const HEADERS: [&str; 3] = ["/usr/include", "/usr/local/include", "/usr/include/x86_64-linux-gnu"];

/// The compiler of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compiler {
    /// `gcc`, or the one that a kernel's headers ask for: `gcc-12`.
    pub(super) program: String,
    /// The first line of `--version`.
    pub(super) version: String,
}

/// Looks for all that building needs: modules alone, or a whole kernel of this configuration; `asked` is a compiler that headers ask for.
///
/// # Errors
/// [`BuildError::NoTools`] with everything that is missing.
pub(super) fn compiler(
    configuration: Option<&Configuration>,
    asked: Option<&str>,
) -> Result<Compiler, BuildError> {
    let whole = configuration.is_some();
    let wanted: &[(&str, &str)] = if whole { &WHOLE } else { &[] };
    let by_option = configuration.into_iter().flat_map(programs_of);
    let needed = ALWAYS.iter().chain(wanted).copied().chain(by_option);
    let (mut what, mut packages): (Vec<&'static str>, Vec<String>) = (Vec::new(), Vec::new());
    for (program, package) in needed.filter(|(program, _)| find_program(program).is_none()) {
        if !what.contains(&program) {
            what.push(program);
            packages.push(package.to_owned());
        }
    }
    let there = |header: &str| HEADERS.iter().any(|place| Path::new(place).join(header).is_file());
    for (library, _, package) in LIBRARIES.iter().filter(|(_, header, _)| whole && !there(header)) {
        what.push(library);
        packages.push((*package).to_owned());
    }
    let program = asked.filter(|program| *program != "gcc").unwrap_or("gcc");
    if find_program(program).is_none() && !what.contains(&"gcc") {
        what.push("the compiler that the kernel was built with");
        packages.push(program.to_owned());
    }
    if what.is_empty() {
        return Ok(Compiler { program: program.to_owned(), version: version(program) });
    }
    Err(BuildError::NoTools { what, packages })
}

/// What options of a configuration need.
fn programs_of(configuration: &Configuration) -> impl Iterator<Item = (&'static str, &'static str)> {
    let on = BY_OPTION.iter().filter(|(option, ..)| configuration.is_on(option));
    on.map(|(_, program, package)| (*program, *package))
}

/// Looks for the program by which tar(1) reads an archive.
///
/// # Errors
/// [`BuildError::NoTools`]; tar itself would say `Child returned status 2`.
pub(super) fn can_unpack(archive: &Path) -> Result<(), BuildError> {
    lacks(archive, &|program| find_program(program).is_some())
}

fn lacks(archive: &Path, is_here: &dyn Fn(&str) -> bool) -> Result<(), BuildError> {
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    let needed = UNPACKERS.iter().find(|(end, ..)| name.ends_with(end));
    match needed {
        Some((_, program, package)) if !is_here(program) => {
            Err(BuildError::NoTools { what: vec![program], packages: vec![(*package).to_owned()] })
        }
        _ => Ok(()),
    }
}

/// The first line of what a program calls its version.
pub(super) fn version(program: &str) -> String {
    let output = clean_command(program).arg("--version").stdin(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or(program).trim().to_owned()
}

/// What make is told so that results of the compiler are kept where ccache is installed.
pub(super) fn compiler_words(compiler: &Compiler) -> Vec<String> {
    let cached = find_program("ccache").map_or("", |_| "ccache ");
    vec![format!("CC={cached}{}", compiler.program), format!("HOSTCC={cached}gcc")]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_compiler_that_is_not_here_is_named_with_its_package() {
        let error = compiler(None, Some("gcc-999")).unwrap_err();
        assert!(error.to_string().contains("the compiler that the kernel was built with"), "{error}");
        assert!(error.hint().ends_with("gcc-999"), "{}", error.hint());
    }

    #[test]
    fn what_a_configuration_compresses_and_signs_with_is_looked_for() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("mine.config");
        let text = "CONFIG_KERNEL_LZ4=y\n# CONFIG_KERNEL_XZ is not set\nCONFIG_MODULE_SIG_ALL=y\n";
        std::fs::write(&path, text).unwrap();
        let mine = Configuration::read(Some(&path), &BTreeSet::new()).unwrap();
        assert_eq!(programs_of(&mine).collect::<Vec<_>>(), [("lz4", "lz4"), ("openssl", "openssl")]);
        let own = Configuration::read(None, &BTreeSet::new()).unwrap();
        assert!(programs_of(&own).all(|(program, _)| find_program(program).is_some()));
    }

    #[test]
    fn what_reads_an_archive_is_named_where_it_is_missing() {
        let nothing = |name: &str| lacks(Path::new(name), &|_| false);
        for (archive, package) in [
            ("usr/src/linux-source-6.12.tar.xz", "xz-utils"),
            ("linux.tgz", "gzip"),
            ("linux.tar.bz2", "bzip2"),
            ("linux.tar.zst", "zstd"),
        ] {
            let error = nothing(archive).unwrap_err();
            assert_eq!(error.hint(), format!("sudo apt-get install {package}"));
        }
        assert!(nothing("linux.tar").is_ok());
        assert!(lacks(Path::new("linux.tar.xz"), &|program| program == "xz").is_ok());
    }
}
