//! The one integration binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on fails, and says so"
)]

mod agreement;
mod anytime;
mod attacks;
mod bad_inputs;
mod bisect;
mod blocks;
mod browser;
mod budget;
mod busy_machine;
mod circles;
mod clusters;
mod compare;
mod deadline;
mod device_counters;
mod doctor;
mod drawing;
mod early;
mod elsewhere;
mod engine_command;
mod engine_fio;
mod engine_tools;
mod execution;
mod explain;
mod extents;
mod factors;
mod failing_arm;
mod failing_case;
mod failing_io;
mod file_life;
mod finding_out;
mod fixtures;
mod flames;
mod fs;
mod golden;
mod guests;
mod guests_devices;
mod guests_failing;
mod guests_kvm;
mod guests_source;
mod hanging_io;
mod hook_files;
mod hook_metrics;
mod import;
mod instructions;
mod iolog;
mod jobs;
mod kernel_requests;
mod layers;
mod lead_in;
mod limits;
mod loop_device;
mod made_trace;
mod native_engine;
mod noise_floor;
mod observers;
mod one_screen;
mod open_loop;
mod oracles;
mod overwrite;
mod packaging;
mod page_cache;
mod placement;
mod probe;
mod process_tree;
mod promised_time;
mod published;
mod published_job;
mod ranking;
mod recipes;
mod refused_early;
mod report_program;
mod resume;
mod rooms;
mod sandbox;
mod settings_claims;
mod spoiled;
mod stolen_time;
mod store;
mod target_bench;
mod targets;
mod targets_claims;
mod targets_left;
mod targets_mounts;
mod targets_refused;
mod targets_settings;
mod tools;
mod torture;
mod trace_bad_input;
mod trace_command;
mod traces;
mod verify;
mod waiting;
mod what_is_compared;
mod whole_kernel;
mod why;
mod why_real;
mod why_real_device;
mod why_real_flushes;
