//! What the system offers to every layer: places that only this user can change.
//!
//! Enters: paths. Leaves: opened directories, or why they are not trusted. It must not know runs, targets or stores.

pub mod private_directory;
pub mod user_state;

pub use private_directory::{Untrusted, private_directory, trusted_directory};
pub use user_state::user_secret;
