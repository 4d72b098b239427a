//! Kernels from source: whole ones, or the modules of one that is there, with patches and revisions as levels.
//!
//! Enters: [`Wanted`] kernels (source, revision, patches, configuration). Leaves: images with their modules in the cache, by content, and
//! the facts that tell them from each other. Whoever boots them needs to know nothing of patches. It must not know experiments, targets
//! or guests. The user's trees and repositories are only read; make and the scripts of a source run, as whoever names a source asks.

mod build;
mod builds;
mod compiled;
mod config;
mod digests;
mod entries;
mod error;
#[cfg(test)]
mod fake;
mod git;
mod headers;
mod includes;
mod kbuild;
mod logs;
mod make;
mod mark;
mod modules;
mod overlay;
mod patch;
mod progress;
mod room;
mod size;
mod source;
mod tools;
mod touched;
mod tree;
mod wanted;
mod whole;

pub use build::BuiltKernel;
pub use builds::Builds;
pub use compiled::MadeOf;
pub use entries::{Left, empty_the_cache, in_the_cache};
pub use error::BuildError;
pub use progress::Step;
pub use wanted::{Base, Wanted};
