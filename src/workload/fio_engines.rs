//! The I/O engines of fio 3.33 to 3.42, by what their jobs work on.
//!
//! Enters: a value of `ioengine`. Leaves: its [`FioEngine`]. Whether it can be used here is not known.

/// What jobs of an engine work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FioEngine<'v> {
    /// On files and devices named by paths, on memory, or on nothing.
    Paths,
    /// On storage that is no path of this machine, or not only: names in `filename` may be names there.
    Elsewhere,
    /// On nothing: it executes `program`.
    Executes,
    /// Nobody knows: fio loads its code from this file.
    Loads(&'v str),
    /// Nobody knows: assay has never heard of it, and fio looks for its code.
    Unknown,
}

impl FioEngine<'_> {
    /// The engine of this value of `ioengine`.
    #[must_use]
    pub fn of(value: &str) -> FioEngine<'_> {
        if let Some(path) = value.strip_prefix("external:") {
            FioEngine::Loads(path.trim())
        } else if value == "exec" {
            FioEngine::Executes
        } else if PATHS.contains(&value) {
            FioEngine::Paths
        } else if ELSEWHERE.contains(&value) {
            FioEngine::Elsewhere
        } else {
            FioEngine::Unknown
        }
    }

    /// All of them, to tell a misspelt one from one that is not native.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        PATHS.iter().chain(ELSEWHERE).copied().chain(["exec"])
    }
}

/// `net`, `netsplice` and `rdma` store nothing: they talk to another fio.
const PATHS: &[&str] = &[
    "cpuio", "dev-dax", "dircreate", "dirdelete", "dirstat", "e4defrag", "falloc", "filecreate",
    "filedelete", "filestat", "ftruncate", "gpuaccel", "io_uring", "io_uring_cmd", "libaio", "libcufile",
    "libhipfile", "libpmem", "libzbc", "linuxaio", "mmap", "mtd", "net", "netsplice", "null", "page_fault",
    "pmemblk", "posixaio", "psync", "pvsync", "pvsync2", "rdma", "sg", "splice", "sync", "vsync",
];

const ELSEWHERE: &[&str] = &[
    "dfs", "gfapi", "gfapi_async", "http", "ime_aio", "ime_psync", "ime_psyncv", "libblkio", "libhdfs",
    "libiscsi", "librpma_apm_client", "librpma_apm_server", "librpma_gpspm_client", "librpma_gpspm_server",
    "nbd", "nfs", "rados", "rbd", "xnvme",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_by_what_they_work_on() {
        assert_eq!(FioEngine::of("libaio"), FioEngine::Paths);
        assert_eq!(FioEngine::of("nbd"), FioEngine::Elsewhere);
        assert_eq!(FioEngine::of("exec"), FioEngine::Executes);
        assert_eq!(FioEngine::of("external:/x.so"), FioEngine::Loads("/x.so"));
        for name in ["", "external", "/x.so", "libaio:x", "../x"] {
            assert_eq!(FioEngine::of(name), FioEngine::Unknown, "{name}");
        }
    }
}
