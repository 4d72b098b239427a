//! What a trial writes to: a directory, a file, a block device, or a device and filesystem made for it; brought to the same
//! state before each trial, put back afterwards.
//!
//! Enters: a [`TargetSpec`]. Leaves: a directory or device in a known state, and facts about it. All of it happens in the
//! agent, so that a guest does what a host does; what was made is written down before it is made, in a record that only this user
//! can have written ([`ledger`]), and whoever removes the work directory (the agent's parent, `assay cleanup`) undoes it. It must not know
//! engines or jobs. It removes only what a record names and recognises, and writes only to devices that were named for it or that it made.

mod abandoned;
mod busy;
mod claim;
mod device_mapper;
mod directory;
mod error;
mod extent_size;
mod files_watch;
mod follows;
mod frozen;
mod guest_disk;
mod held_settings;
mod identity;
mod journal;
mod knobs;
mod ledger;
mod log_device;
mod loop_device;
mod loop_users;
mod made;
mod mapped_device;
mod mkfs;
mod mkfs_ahead;
mod module;
mod mount;
mod null_blk;
mod obstacles;
mod overwrite;
mod own_file;
mod places;
mod pmem;
mod ramdisk;
mod removal;
mod room;
mod scsi_debug;
mod second_device;
mod setting_pair;
mod spec;
mod stack;
mod superblock;
mod trial;
mod undo;
mod unload;
mod zram;

pub use abandoned::{Abandoned, abandoned, is_left, is_recorded, session_lives};
pub use claim::{Claims, claim};
pub use directory::{Session, WorkDirectory, hint_of, is_marked, remove_marked};
pub use error::TargetError;
pub use guest_disk::guest_disk_serial;
pub use held_settings::settings_are_free;
pub use identity::{ClaimedDevice, DeviceIdentity};
pub use made::{MARK, UNDO_ACTIONS};
pub use mkfs::{begins_usage, mkfs_release};
pub use mkfs_ahead::mkfs_refusal;
pub use obstacles::{obstacle, offered, settings_of};
pub use overwrite::{Refusal, may_overwrite};
pub use removal::{empty as empty_opened, open as open_itself};
pub use room::Room;
pub use spec::{Setup, TargetSpec};
pub use trial::{
    Ready, Released, check_files, engine_begins, engine_ended, facts, prepare, rehearse, release,
};

// What others do to the machine is seen by `host`; launchers reach it through the target they disturb.
pub use crate::host::{Disturbance, Interference};
// Launchers make a machine for what a target asks.
pub use crate::experiment::{Device, DeviceKind, GuestSettings, TargetSettings};
