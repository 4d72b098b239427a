//! The edges of the process: files of others that are read, text that leaves for a terminal or a file, places that only this user can
//! change.
//!
//! Enters: paths and text. Leaves: bytes of regular files, text in which nothing acts on a terminal, opened directories. It must not
//! know what the bytes mean or which command asks.

pub mod csv_cell;
pub mod laid_link;
pub mod private_directory;
pub mod random;
pub mod regular_file;
pub mod terminal;
pub mod user_state;

pub use laid_link::laid_link;
pub use private_directory::{Untrusted, private_directory, trusted_directory};
pub use random::{random_bytes, random_digits};
pub use user_state::user_secret;
