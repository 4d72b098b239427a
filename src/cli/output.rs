//! Writing a result where it was asked for.

use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use super::Failure;

/// Whether a file can be made there, asked before the work whose result it is to hold.
///
/// # Errors
/// A [`Failure`] with exit code 2 naming the file.
pub fn can_be_written(file: &Path) -> Result<(), Failure> {
    let directory = directory_of(file);
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let reason = match std::fs::metadata(directory) {
        Err(error) => format!("{}: {error}", directory.display()),
        Ok(found) if !found.is_dir() => format!("{} is not a directory", directory.display()),
        Ok(_) if file.is_dir() => "it is a directory".to_owned(),
        Ok(_) if is_block_device(file) => "it is a block device".to_owned(),
        Ok(_) => match rustix::fs::access(directory, access) {
            // Devices and pipes are written to, not replaced.
            Err(_) if file.exists() && !file.is_file() => return Ok(()),
            Err(error) => format!("{}: {error}", directory.display()),
            Ok(()) => return Ok(()),
        },
    };
    Err(Failure::request(format!("cannot write {}: {reason}", file.display())).hint(HINT))
}

const HINT: &str = "name a file in a directory that exists and can be written";

fn is_block_device(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|found| FileTypeExt::is_block_device(&found.file_type()))
}

fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What the system says, without the name of the temporary file that tempfile adds and the user never gave.
fn in_words(error: &std::io::Error) -> std::io::Error {
    match error.raw_os_error() {
        Some(code) => std::io::Error::from_raw_os_error(code),
        None => std::io::Error::from(error.kind()),
    }
}

/// Writes `text` to the file, whole or not at all, or to standard output.
///
/// # Errors
/// A [`Failure`] naming the file; a closed pipe.
pub fn write_output(file: Option<&Path>, text: &str) -> anyhow::Result<()> {
    let Some(file) = file else {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        return Ok(out.flush()?);
    };
    can_be_written(file)?;
    let failed = |error: std::io::Error| {
        let reason = in_words(&error);
        Failure::tool(format!("cannot write {}: {reason}", file.display())).hint(HINT)
    };
    if !file.is_dir() && file.exists() && !file.is_file() {
        // A device or a pipe cannot be replaced by a rename.
        return Ok(std::fs::write(file, text).map_err(failed)?);
    }
    let mut temporary = tempfile::NamedTempFile::new_in(directory_of(file)).map_err(failed)?;
    temporary.as_file_mut().write_all(text.as_bytes()).map_err(failed)?;
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    temporary.as_file().set_permissions(readable).map_err(failed)?;
    temporary.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_temporary_file_is_not_named() {
        let missing = tempfile::NamedTempFile::new_in("/nonexistent").unwrap_err();
        assert!(missing.to_string().contains("/nonexistent/.tmp"), "{missing}");
        assert_eq!(in_words(&missing).to_string(), "entity not found");
        let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
        assert_eq!(in_words(&full).to_string(), full.to_string());
        // Nobody makes files in /proc, though root may write to the directory.
        let refused = write_output(Some(Path::new("/proc/x.html")), "text").unwrap_err().to_string();
        assert!(refused.starts_with("cannot write /proc/x.html: ") && !refused.contains(".tmp"), "{refused}");
    }
}
