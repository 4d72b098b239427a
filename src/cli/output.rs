//! Writing a result where it was asked for.

use std::io::Write;
use std::path::Path;

use super::Failure;

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
    let directory = file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |error: std::io::Error| {
        Failure::tool(format!("cannot write {}: {error}", file.display()))
            .hint("-o names a file in a directory that exists and can be written")
    };
    if !file.is_dir() && file.exists() && !file.is_file() {
        // A device or a pipe cannot be replaced by a rename.
        return Ok(std::fs::write(file, text).map_err(failed)?);
    }
    let mut temporary = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
    temporary.write_all(text.as_bytes()).map_err(failed)?;
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    temporary.as_file().set_permissions(readable).map_err(failed)?;
    temporary.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}
