//! The edges of the process: files of others that are read, text that leaves for a terminal or a file, places that only this user can
//! change, the cache, programs, and what the kernel's own files say.
//!
//! Enters: paths and text. Leaves: bytes of regular files, text in which nothing acts on a terminal, opened directories, places of
//! programs, mounts and counters. It must not know what the bytes of others mean or which command asks.

pub mod block_stat;
pub mod cache;
pub mod clean_command;
pub mod csv_cell;
pub mod followed;
pub mod kept_open;
pub mod laid_link;
pub mod mountinfo;
pub mod parent_death;
pub mod private_directory;
pub mod program;
pub mod random;
pub mod regular_file;
pub mod server;
pub mod spawn_in_group;
pub mod task;
pub mod terminal;
pub mod usage;
pub mod user_state;
mod word_wrap;

pub use clean_command::clean_command;
pub use kept_open::keeps_open;
pub use laid_link::laid_link;
pub use parent_death::dies_with_its_parent;
pub use private_directory::{Untrusted, private_directory, trusted_directory};
pub use program::{find_program, find_system_program};
pub use random::{random_bytes, random_digits};
pub use spawn_in_group::Program;
pub use usage::usage;
pub use user_state::{is_kept, user_secret};
