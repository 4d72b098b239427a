//! Turns a record of a ring-buffer page, or of perf's raw samples, which are the same, into an event, by the kernel's description of its fields.
//!
//! Enters: layouts, then records. Leaves: events. What to read of a record is decided once for each layout, not for each record.

use std::collections::HashMap;

use super::event::{Action, Call, Comm, Device, Event, Filesystem};
use super::flags::Flags;
use super::page_format::{Field, Formats, Layout};
use super::source::Names;

/// What is read of an event.
#[derive(Clone, Debug)]
enum Plan {
    Block { action: Action, fields: Block },
    Enter { call: Call, argument: Option<Field> },
    Exit { call: Call, result: Field },
    FileSync { filesystem: Filesystem, device: Option<Field>, inode: Option<Field> },
    FileSyncEnd { device: Option<Field>, inode: Option<Field>, result: Option<Field> },
    Marker,
    Named { name: String, device: Option<Field> },
}

/// Fields of block events. Which are there depends on the event.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    device: Option<Field>,
    sector: Option<Field>,
    sectors: Option<Field>,
    rest_sector: Option<Field>,
    letters: Option<Field>,
    comm: Option<Field>,
    error: Option<Field>,
}

/// Decodes the records of one kernel's events.
#[derive(Clone, Debug)]
pub struct Decoder {
    plans: HashMap<u16, Plan>,
    pid: Field,
}

/// The tracepoints that say something of a bio, a request or a plug.
pub(super) fn block_action(name: &[u8]) -> Option<Action> {
    Some(match name {
        b"block_bio_queue" => Action::Queue,
        b"block_getrq" => Action::GetRequest,
        b"block_sleeprq" => Action::Sleep,
        b"block_rq_insert" => Action::Insert,
        b"block_rq_issue" => Action::Issue,
        b"block_rq_complete" => Action::Complete,
        b"block_bio_complete" => Action::BioComplete,
        b"block_rq_requeue" => Action::Requeue,
        b"block_bio_backmerge" => Action::BackMerge,
        b"block_bio_frontmerge" => Action::FrontMerge,
        b"block_rq_merge" => Action::RequestMerge,
        b"block_split" => Action::Split,
        b"block_bio_remap" => Action::Remap,
        b"block_bio_bounce" => Action::Bounce,
        b"block_plug" => Action::Plug,
        b"block_unplug" => Action::Unplug,
        _ => return None,
    })
}

/// The tracepoints at which a filesystem begins to sync a file.
pub(super) fn begins_file_sync(name: &[u8]) -> Option<Filesystem> {
    Some(match name {
        b"xfs_file_fsync" => Filesystem::Xfs,
        b"ext4_sync_file_enter" => Filesystem::Ext4,
        b"btrfs_sync_file" => Filesystem::Btrfs,
        b"f2fs_sync_file_enter" => Filesystem::F2fs,
        _ => return None,
    })
}

/// The tracepoints at which it has done so.
pub(super) fn ends_file_sync(name: &[u8]) -> bool {
    matches!(name, b"ext4_sync_file_exit" | b"f2fs_sync_file_exit")
}

fn plan(layout: &Layout) -> Plan {
    let name = layout.name.as_bytes();
    let field = |name: &str| layout.field(name);
    if let Some(action) = block_action(name) {
        let fields = Block {
            device: field("dev"),
            sector: field("sector"),
            sectors: field("nr_sector"),
            rest_sector: field("new_sector"),
            letters: field("rwbs"),
            comm: field("comm"),
            error: field("error"),
        };
        return Plan::Block { action, fields };
    }
    if let Some(call) = name.strip_prefix(b"sys_enter_").and_then(Call::from_name) {
        return Plan::Enter { call, argument: field("fd") };
    }
    if let (Some(call), Some(result)) =
        (name.strip_prefix(b"sys_exit_").and_then(Call::from_name), field("ret"))
    {
        return Plan::Exit { call, result };
    }
    let (device, inode) = (field("dev"), field("ino"));
    if let Some(filesystem) = begins_file_sync(name) {
        Plan::FileSync { filesystem, device, inode }
    } else if ends_file_sync(name) {
        Plan::FileSyncEnd { device, inode, result: field("ret") }
    } else if name == b"print" {
        Plan::Marker
    } else {
        Plan::Named { name: layout.name.clone(), device }
    }
}

impl Decoder {
    /// Decides what is read of each event.
    #[must_use]
    pub fn new(formats: &Formats) -> Decoder {
        let plans = formats.events().map(|(id, layout)| (id, plan(layout))).collect();
        let pid = formats.events().find_map(|(_, layout)| layout.field("common_pid"));
        Decoder { plans, pid: pid.unwrap_or(Field { offset: 4, size: 4 }) }
    }

    /// Whether the events of this number are completions.
    #[must_use]
    pub fn is_end(&self, id: u16) -> bool {
        let plan = self.plans.get(&id);
        matches!(plan, Some(Plan::Block { action: Action::Complete | Action::BioComplete, .. }))
    }

    /// The event of a record. An event without a layout is named by its number.
    ///
    /// # Errors
    /// What is wrong with the record, as a clause.
    pub fn decode(
        &self,
        record: &[u8],
        time_ns: u64,
        cpu: u32,
        names: &mut Names,
    ) -> Result<Event, &'static str> {
        const CUT: &str = "a record is shorter than its layout";
        let id = number(record, Field { offset: 0, size: 2 }).ok_or(CUT)?;
        let id = u16::try_from(id).map_err(|_| CUT)?;
        let pid = number(record, self.pid).ok_or(CUT)?;
        // Task numbers are 32 bits; the idle tasks are 0.
        let pid = u32::try_from(pid).unwrap_or(0);
        let event = |action: Action| Event::at(time_ns, cpu, pid, action);
        let read = |field: &Option<Field>| match field {
            Some(field) => number(record, *field).ok_or(CUT).map(Some),
            None => Ok(None),
        };
        let device = |field: &Option<Field>| -> Result<Device, &'static str> {
            Ok(Device(read(field)?.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)))
        };
        Ok(match self.plans.get(&id) {
            None => event(names.action(&format!("event {id}"))),
            Some(Plan::Marker) => event(Action::Marker),
            Some(Plan::Named { name, device: of }) => {
                Event { device: device(of)?, ..event(names.action(name)) }
            }
            Some(Plan::Enter { call, argument }) => {
                Event { sector: read(argument)?.unwrap_or(0), ..event(Action::Enter(*call)) }
            }
            Some(Plan::Exit { call, result }) => {
                Event { error: returned(number(record, *result).ok_or(CUT)?), ..event(Action::Exit(*call)) }
            }
            Some(Plan::FileSync { filesystem, device: of, inode }) => Event {
                device: device(of)?,
                sector: read(inode)?.unwrap_or(0),
                ..event(Action::FileSync(*filesystem))
            },
            Some(Plan::FileSyncEnd { device: of, inode, result }) => Event {
                device: device(of)?,
                sector: read(inode)?.unwrap_or(0),
                error: read(result)?.map_or(0, returned),
                ..event(Action::FileSyncEnd)
            },
            Some(Plan::Block { action, fields }) => {
                let sector = read(&fields.sector)?.unwrap_or(0);
                let sectors = match read(&fields.rest_sector)? {
                    Some(rest) => rest.saturating_sub(sector),
                    None => read(&fields.sectors)?.unwrap_or(0),
                };
                Event {
                    device: device(&fields.device)?,
                    flags: Flags::from_letters(text(record, fields.letters).ok_or(CUT)?),
                    sector,
                    sectors: u32::try_from(sectors).map_err(|_| "a request is longer than 2 TiB")?,
                    comm: Comm::new(text(record, fields.comm).ok_or(CUT)?),
                    error: read(&fields.error)?.map_or(0, returned),
                    ..event(*action)
                }
            }
        })
    }
}

/// A number of up to eight bytes.
fn number(record: &[u8], field: Field) -> Option<u64> {
    let bytes = record.get(field.offset..field.offset + field.size)?;
    let mut whole = [0; 8];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(whole))
}

/// What a call returned, as the low 32 bits keep it: error numbers are small and negative.
fn returned(value: u64) -> i32 {
    let low = u32::try_from(value & 0xffff_ffff).unwrap_or(0);
    low.cast_signed()
}

/// The text of a field up to its first zero; no text where the event has no such field.
fn text(record: &[u8], field: Option<Field>) -> Option<&[u8]> {
    let Some(field) = field else { return Some(&[]) };
    let bytes = record.get(field.offset..field.offset + field.size)?;
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Some(&bytes[..length])
}
