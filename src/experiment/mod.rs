//! What a user asks for: an experiment file or a job with `--vary`, as written → validated.
//!
//! Enters: TOML text, job text, command-line values. Leaves: one [`Experiment`], complete enough to be stored and run again.
//! It must not know cells, rounds or what a key is bound to (that is plan's), nor touch anything but the files named.

mod assemble;
mod command_name;
mod described;
mod device_spec;
mod errors;
mod filesystem_options;
mod guest_settings;
mod job_text;
mod kernel_source;
mod mapping;
mod newest_kernel;
mod placed;
mod recipe_table;
mod stop_rule;
mod target_limits;
mod target_names;
mod target_settings;
mod target_words;
mod toml_file;
mod toml_reader;
mod tool_settings;
mod unsaid;
mod vary;
mod watched;
mod written;

pub use assemble::check_name;
pub use described::{Assignment, Experiment, Factor, JobSource, Level, Namespace, Simulated};
pub use device_spec::{CACHES, Device, DeviceKind};
pub use errors::{ExperimentErrors, Mistake};
pub use guest_settings::{GUEST_KEYS, GuestSettings, NEWEST};
pub use kernel_source::{KernelSource, SOURCE_KEYS};
pub use mapping::Mapping;
pub use recipe_table::RecipeTable;
pub use stop_rule::MAX_ROUNDS;
pub use target_names::{TARGET_KEYS, nearest_target_key, of_no_filesystem, of_one_filesystem, target_key};
pub use target_settings::{
    BELOW_LINK, DEVICE_LINK, FileState, Filesystem, Fresh, Knob, LOG_LINK, MOUNT_POINT, TargetSettings,
};
pub use tool_settings::ToolSettings;
pub use watched::{OBSERVE_KEY, observers};
pub use written::{CommandLine, HOW_LONG, MEASURED, VARY_IS_V, WHAT};

#[cfg(test)]
mod tests;
