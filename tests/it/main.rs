//! The one integration binary.

mod browser;
mod doctor;
mod engine_command;
mod engine_fio;
mod fixtures;
mod golden;
mod layers;

mod native_engine;
mod store;
mod tools;
