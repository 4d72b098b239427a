//! The edges of the process: files of others that are read, text that leaves for a terminal or a file.
//!
//! Enters: paths and text. Leaves: bytes of regular files, text in which nothing acts on a terminal. It must not know what the
//! bytes mean or which command asks.

pub mod csv_cell;
pub mod private_directory;
pub mod regular_file;
pub mod terminal;
