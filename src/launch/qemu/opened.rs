//! A kernel for somebody who builds modules of it.
//!
//! Enters: the path of an image or package. Leaves: an [`OpenedKernel`]; a package is unpacked into the cache.

use std::path::{Path, PathBuf};

use super::kernel_image::{KernelImage, built_tree};
use super::known_kernels;
use crate::launch::Unready;

/// What there is of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedKernel {
    /// As `uname -r` will say.
    pub release: String,
    /// The file the loader takes.
    pub image: PathBuf,
    /// `…/lib/modules/RELEASE`.
    pub modules: Option<PathBuf>,
    /// `config-RELEASE`, where that lies beside the image.
    pub config: Option<PathBuf>,
    /// Where packages of kernels are put, those of headers among them.
    pub packages: Vec<PathBuf>,
}

/// Opens an image or package.
///
/// # Errors
/// [`Unready`]: unreadable, or no kernel.
pub fn opened_kernel(path: &Path) -> Result<OpenedKernel, Unready> {
    let KernelImage { image, release, modules, .. } = KernelImage::open(path)?;
    // Patches are built into modules as they are installed, not among the objects of a tree.
    let modules = modules.filter(|_| built_tree(&image).is_none());
    let config = image.with_file_name(format!("config-{release}"));
    let config = config.is_file().then_some(config);
    Ok(OpenedKernel { release, image, modules, config, packages: known_kernels::packages() })
}
