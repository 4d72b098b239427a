//! Writing a result where it was asked for: whole or not at all, and never over a file that assay did not write.
//!
//! Enters: the file behind `-o` or `--html`, a text and its form. Leaves: the file, replaced by a rename; or the text on standard
//! output, in a pipe, in `/dev/null`. A link is not followed. Whether assay wrote a file is [`super::own_file`]'s to know.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Failure, own_file};
use crate::sys::laid_link;
use crate::sys::regular_file::{Kind, is_unnamed_pipe};
use crate::sys::terminal::{Form, error_output, harmless, out_as};

const HINT: &str = "name a file in a directory that exists and can be written";
/// How long nobody may read a FIFO.
const READER: Duration = Duration::from_secs(10);

/// `-o`, and whether it may replace anything.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Output {
    /// Write to FILE instead of standard output; of files that exist only those are replaced that assay wrote
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Replace FILE whoever wrote it
    #[arg(long)]
    pub force: bool,
}

impl Output {
    /// Whether it can be written, asked before the work whose result it is to hold.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2; nothing was touched.
    pub fn check(&self) -> Result<(), Failure> {
        self.file.as_deref().map_or(Ok(()), |file| place(file, self.force).map(drop))
    }

    /// Writes the text there, or to standard output.
    ///
    /// # Errors
    /// A [`Failure`] naming the file.
    pub fn write(&self, text: &str, form: Form) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(all(out_as(form), text)?) };
        // Something else may lie there by now.
        match place(file, self.force)? {
            Place::Stdout => Ok(all(out_as(form), text)?),
            Place::Stderr => Ok(all(error_output(), text)?),
            Place::Null => Ok(()),
            Place::Pipe(pipe) => Ok(all(pipe, &harmless(text, form))?),
            Place::Fifo => Ok(all(with_reader(file)?, &harmless(text, form))?),
            Place::New => Ok(put(file, harmless(text, form).as_bytes(), false)?),
            Place::Instead => Ok(put(file, harmless(text, form).as_bytes(), true)?),
        }
    }
}

/// Makes the directory that an option names, where it is missing.
///
/// # Errors
/// A [`Failure`] with exit code 2.
pub(super) fn make_directory(directory: &Path, option: &str) -> Result<(), Failure> {
    match std::fs::create_dir(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        Err(error) => Err(Failure::request(format!("cannot make {}: {error}", directory.display()))
            .hint(format!("{option} takes a directory, or the name of one to be made"))),
        Ok(()) => Ok(()),
    }
}

/// Writes a file of a report that is more than one text, under the same rules.
///
/// # Errors
/// A [`Failure`] naming the file.
pub(super) fn write_file(file: &Path, content: &[u8], force: bool) -> Result<(), Failure> {
    match place(file, force)? {
        Place::New => put(file, content, false),
        Place::Instead => put(file, content, true),
        _ => Err(refused(file, "it is not a regular file")),
    }
}

/// A reader that has closed the pipe (`| head`, a `tee` that Ctrl-C ended) has what it wanted; what is left to do, the exit code above
/// all, does not depend on it.
fn all(mut to: impl Write, text: &str) -> std::io::Result<()> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Where a text goes.
enum Place {
    Stdout,
    Stderr,
    Null,
    /// Without a name: `>(command)`.
    Pipe(File),
    Fifo,
    /// Nothing is there.
    New,
    /// What is there may go.
    Instead,
}

fn refused(file: &Path, reason: impl std::fmt::Display) -> Failure {
    Failure::request(format!("cannot write {}: {reason}", file.display())).hint(HINT)
}

/// Looks at what is there.
fn place(file: &Path, force: bool) -> Result<Place, Failure> {
    if let Some(place) = stream(file)? {
        return Ok(place);
    }
    if let Some(link) = laid_link(file) {
        let link = link.display();
        return Err(refused(
            file,
            format!("{link} is a link of somebody else in a directory that all may write to"),
        ));
    }
    match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => writable(file).map(|()| Place::New),
        Err(error) => Err(refused(file, error)),
        Ok(found) if found.is_symlink() => match pipe_behind(file) {
            Some(pipe) => Ok(Place::Pipe(pipe)),
            None if force => writable(file).map(|()| Place::Instead),
            None => Err(not_ours(file, "it is a symbolic link")),
        },
        Ok(found) => match Kind::of(&found) {
            Some(Kind::CharacterDevice) if is_null(&found) => Ok(Place::Null),
            Some(Kind::Fifo) if is_trusted(file, &found) => Ok(Place::Fifo),
            Some(kind) => Err(refused(file, format!("it is {kind}"))),
            None if force => writable(file).map(|()| Place::Instead),
            None => match own_file::why_not(file) {
                Some(reason) => Err(not_ours(file, reason)),
                None => writable(file).map(|()| Place::Instead),
            },
        },
    }
}

fn not_ours(file: &Path, reason: &str) -> Failure {
    Failure::request(format!("{} exists, and {reason}", file.display())).hint("--force replaces it")
}

/// Standard output and standard error by the names that shells' users know.
fn stream(file: &Path) -> Result<Option<Place>, Failure> {
    let found = match file.to_str() {
        Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => {
            (rustix::fs::fstat(std::io::stdout()), Place::Stdout)
        }
        Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => {
            (rustix::fs::fstat(std::io::stderr()), Place::Stderr)
        }
        _ => return Ok(None),
    };
    let stat = found.0.map_err(|error| refused(file, error))?;
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::BlockDevice => Err(refused(file, "it is a block device")),
        _ => Ok(Some(found.1)),
    }
}

/// The pipe that the shell has made for `>(command)`.
fn pipe_behind(file: &Path) -> Option<File> {
    if !(file.starts_with("/dev/fd") || file.starts_with("/proc/self/fd")) {
        return None;
    }
    Kind::of(&std::fs::metadata(file).ok()?).filter(|kind| *kind == Kind::Fifo)?;
    let pipe = opened_without_waiting(file).ok().filter(is_unnamed_pipe)?;
    rustix::fs::fcntl_setfl(&pipe, rustix::fs::OFlags::empty()).ok()?;
    Some(pipe)
}

fn opened_without_waiting(file: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(file)
}

fn is_null(found: &Metadata) -> bool {
    found.rdev() == rustix::fs::makedev(1, 3)
}

/// Whether the FIFO was made by this user or root, or lies where nobody else can put one.
fn is_trusted(file: &Path, found: &Metadata) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let around = std::fs::metadata(directory_of(file));
    found.uid() == me || found.uid() == 0 || around.is_ok_and(|around| around.mode() & 0o022 == 0)
}

/// A FIFO that somebody reads, at last.
fn with_reader(file: &Path) -> Result<File, Failure> {
    let begun = Instant::now();
    loop {
        match opened_without_waiting(file) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) && begun.elapsed() < READER => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {
                return Err(refused(file, "nobody reads this FIFO"));
            }
            Err(error) => return Err(refused(file, error)),
            Ok(fifo) if !fifo.metadata().is_ok_and(|found| Kind::of(&found) == Some(Kind::Fifo)) => {
                return Err(refused(file, "it was a FIFO and is something else now"));
            }
            Ok(fifo) => {
                let waits = rustix::fs::fcntl_setfl(&fifo, rustix::fs::OFlags::empty());
                return waits.map(|()| fifo).map_err(|error| refused(file, error));
            }
        }
    }
}

fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether files can be made and renamed beside it.
fn writable(file: &Path) -> Result<(), Failure> {
    let directory = directory_of(file);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    match std::fs::metadata(directory) {
        Err(error) => Err(refused(file, format!("{}: {error}", directory.display()))),
        Ok(found) if !found.is_dir() => {
            Err(refused(file, format!("{} is not a directory", directory.display())))
        }
        Ok(_) => rustix::fs::access(directory, access)
            .map_err(|error| refused(file, format!("{}: {error}", directory.display()))),
    }
}

/// What the system says, without the name of the temporary file that tempfile adds and the user never gave.
fn in_words(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::from(error.kind()),
    }
}

/// Makes the file whole beside its place, then gives it its name.
fn put(file: &Path, content: &[u8], instead: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        let reason = in_words(&error);
        Failure::tool(format!("cannot write {}: {reason}", file.display())).hint(HINT)
    };
    let mut temporary = tempfile::NamedTempFile::new_in(directory_of(file)).map_err(failed)?;
    temporary.as_file_mut().write_all(content).map_err(failed)?;
    own_file::mark(temporary.as_file(), content);
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    temporary.as_file().set_permissions(readable).map_err(failed)?;
    // What has come there since nothing was there stays.
    let named = if instead { temporary.persist(file) } else { temporary.persist_noclobber(file) };
    named.map(drop).map_err(|error| failed(error.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(file: impl Into<PathBuf>) -> Output {
        Output { file: Some(file.into()), force: false }
    }

    #[test]
    fn the_temporary_file_is_not_named() {
        let missing = tempfile::NamedTempFile::new_in("/nonexistent").unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/.tmp"), "{missing}");
        assert_eq!(in_words(&missing).to_string(), "entity not found");
        let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
        assert_eq!(in_words(&full).to_string(), full.to_string());
        // Nobody makes files in /proc, though root may write to the directory.
        let refused = to("/proc/x.html").write("text", Form::Plain).unwrap_err().to_string();
        assert!(refused.starts_with("cannot write /proc/x.html: ") && !refused.contains(".tmp"), "{refused}");
    }

    #[test]
    fn what_has_appeared_meanwhile_stays() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("report");
        std::fs::write(&file, "precious").unwrap();
        assert!(put(&file, b"text", false).is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    }
}
