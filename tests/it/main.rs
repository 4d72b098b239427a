//! The one integration binary.

mod engine_command;
mod engine_fio;
mod fixtures;
mod golden;
mod layers;
