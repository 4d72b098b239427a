//! The one integration binary.

mod bad_inputs;
mod browser;
mod compare;
mod doctor;
mod engine_command;
mod engine_fio;
mod execution;
mod fixtures;
mod golden;
mod import;
mod jobs;
mod layers;
mod native_engine;
mod published;
mod report_program;
mod published_job;
mod resume;
mod sandbox;
mod store;
mod tools;
