//! What tracefs and perf print behind an event's name.
//!
//! Enters: the name and the text behind it, as `print fmt` of events/*/*/format makes it. Leaves: action, device, flags, place,
//! length, task name, error.

use super::event::{Action, Call, Comm, Device, Event};
use super::flags::Flags;
use super::page_event::{begins_file_sync, block_action, ends_file_sync};
use super::source::Names;
use super::text_lines::{Words, hexadecimal, number, signed};

/// Adds what the text says to the event. Nothing when the text is not what such an event prints.
pub(super) fn read(event: &mut Event, name: &[u8], text: &[u8], names: &mut Names) -> Option<()> {
    if let Some(action) = block_action(name) {
        event.action = action;
        return block(event, text);
    }
    if let Some(filesystem) = begins_file_sync(name) {
        event.action = Action::FileSync(filesystem);
        return file_sync(event, text);
    }
    if ends_file_sync(name) {
        event.action = Action::FileSyncEnd;
        return file_sync(event, text);
    }
    if let Some(call) = name.strip_prefix(b"sys_enter_").and_then(Call::from_name) {
        // perf prints "fd: 0x00000003".
        event.action = Action::Enter(call);
        event.sector = argument(text);
        return Some(());
    }
    if let Some(call) = name.strip_prefix(b"sys_exit_").and_then(Call::from_name) {
        event.action = Action::Exit(call);
        event.error = returned(text)?;
        return Some(());
    }
    if name == b"tracing_mark_write" || name == b"print" {
        event.action = Action::Marker;
        return Some(());
    }
    event.action = names.action(&String::from_utf8_lossy(name));
    event.device = device_of(text);
    Some(())
}

/// tracefs prints a system call as `sys_fsync(fd: 3)` and `sys_fsync -> 0x0`. Returns whether this was one.
pub(super) fn system_call(event: &mut Event, text: &[u8], names: &mut Names) -> Option<()> {
    let call = text.strip_prefix(b"sys_")?;
    let length = call.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    let (name, rest) = call.split_at(length);
    let begins = rest.starts_with(b"(");
    if !begins && !rest.starts_with(b" -> ") {
        return None;
    }
    match Call::from_name(name) {
        Some(call) if begins => {
            event.action = Action::Enter(call);
            event.sector = argument(&rest[1..]);
        }
        Some(call) => {
            event.action = Action::Exit(call);
            event.error = returned(&rest[4..])?;
        }
        None => {
            let kind = if begins { "enter" } else { "exit" };
            event.action = names.action(&format!("sys_{kind}_{}", String::from_utf8_lossy(name)));
        }
    }
    Some(())
}

/// The file descriptor in `fd: 0x00000003`, or 0.
fn argument(text: &[u8]) -> u64 {
    let Some(value) = text.strip_prefix(b"fd: ") else { return 0 };
    let length = value.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(value.len());
    // tracefs leaves out 0x of a single digit; both are hexadecimal.
    hexadecimal(&value[..length]).unwrap_or(0)
}

/// `0x0`, `0xfffffffffffffffb`, `-5`: as a signed number of 32 bits.
fn returned(text: &[u8]) -> Option<i32> {
    let word = Words(text).word()?;
    match signed(word) {
        Some(value) => i32::try_from(value).ok(),
        None => u32::try_from(hexadecimal(word)? & 0xffff_ffff).ok().map(u32::cast_signed),
    }
}

/// The events of block.h.
fn block(event: &mut Event, text: &[u8]) -> Option<()> {
    if matches!(event.action, Action::Plug | Action::Unplug) {
        return Some(());
    }
    let mut words = Words(text);
    event.device = device(words.word()?)?;
    event.flags = Flags::from_letters(words.word()?);
    let has_command = matches!(
        event.action,
        Action::Insert | Action::Issue | Action::Complete | Action::Requeue | Action::RequestMerge
    );
    if has_command {
        // Bytes, where they are printed, and the command of a passthrough request in brackets.
        let before = words;
        let first = words.word()?;
        if !first.starts_with(b"(") {
            number(first)?;
        } else {
            words = before;
        }
        let close = words.0.iter().position(|byte| *byte == b')')?;
        words.0 = &words.0[close + 1..];
    }
    event.sector = words.number()?;
    match words.word()? {
        b"+" => event.sectors = u32::try_from(words.number()?).ok()?,
        b"/" => {
            let rest = words.number()?;
            event.sectors = u32::try_from(rest.checked_sub(event.sector)?).ok()?;
        }
        _ => return None,
    }
    let tail = words.rest();
    let open = tail.iter().position(|byte| *byte == b'[');
    let inside = open.and_then(|at| tail[at + 1..].strip_suffix(b"]"));
    match event.action {
        Action::Complete | Action::BioComplete | Action::Requeue => {
            event.error = i32::try_from(signed(inside?)?).ok()?;
        }
        Action::Remap => {}
        _ => event.comm = Comm::new(inside?),
    }
    Some(())
}

/// `7,1` and `7:1`.
fn device(text: &[u8]) -> Option<Device> {
    let separator = text.iter().position(|byte| matches!(byte, b',' | b':'))?;
    let part = |bytes: &[u8]| number(bytes).and_then(|value| u32::try_from(value).ok());
    Device::new(part(&text[..separator])?, part(&text[separator + 1..])?)
}

/// The number behind `dev` or `dev =` in a filesystem's event, or none.
fn device_of(text: &[u8]) -> Device {
    let mut words = Words(text);
    if !words.pass(b"dev") {
        return Device::default();
    }
    words.pass(b"=");
    let bare = |word: &'_ [u8]| {
        let inside = word.strip_suffix(b",").unwrap_or(word);
        let inside = inside.strip_prefix(b"(").and_then(|inside| inside.strip_suffix(b")")).unwrap_or(inside);
        device(inside)
    };
    words.word().and_then(bare).unwrap_or_default()
}

/// `dev 7,1 ino 12 parent 2 datasync 0`, `dev 7:1 ino 0x83 iflags 0x0`, `dev 7,1 ino 12 ret 0`.
fn file_sync(event: &mut Event, text: &[u8]) -> Option<()> {
    event.device = device_of(text);
    let mut words = Words(text);
    while let Some(word) = words.word() {
        // f2fs and btrfs write `ino = 5` and `ino=5`.
        let (key, value) = match word.iter().position(|byte| *byte == b'=') {
            Some(at) if at > 0 => (&word[..at], Some(&word[at + 1..])),
            _ => (word, None),
        };
        if !matches!(key, b"ino" | b"ret") {
            continue;
        }
        if value.is_none() {
            words.pass(b"=");
        }
        let value = value.filter(|value| !value.is_empty()).or_else(|| words.word());
        let value = value.map(|value| value.strip_suffix(b",").unwrap_or(value))?;
        if key == b"ret" {
            event.error = i32::try_from(signed(value)?).ok()?;
        } else if value.starts_with(b"0x") {
            event.sector = hexadecimal(value)?;
        } else {
            event.sector = number(value)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, text: &str) -> Option<Event> {
        let mut event = Event::at(1, 0, 9, Action::Marker);
        read(&mut event, name.as_bytes(), text.as_bytes(), &mut Names::default())?;
        Some(event)
    }

    #[test]
    fn block_events_of_tracefs_and_perf_are_read() {
        let issue = event("block_rq_issue", "7,1 RA 4096 () 6291328 + 8 be,0,4 [mount]").unwrap();
        assert_eq!((issue.sector, issue.sectors, issue.comm.to_string()), (6_291_328, 8, "mount".to_owned()));
        assert_eq!(event("block_rq_issue", "7,1 RA 4096 () 6291328 + 8 0x2,0,4 [mount]"), Some(issue));
        let old = event("block_rq_complete", "8,0 WS () 10 + 8 [-5]").unwrap();
        assert_eq!((old.error, old.action), (-5, Action::Complete));
        let flush = event("block_rq_complete", "7,1 FF () 18446744073709551615 + 0 none,0,0 [0]").unwrap();
        assert_eq!((flush.sector, flush.sectors), (u64::MAX, 0));
        let split = event("block_split", "7,1 WSM 3145778 / 3148338 [mount]").unwrap();
        assert_eq!((split.sector, split.sectors), (3_145_778, 2560));
        let command = event("block_rq_insert", "8,0 N 36 (12 00 00) 0 + 0 be,0,4 [udev worker]").unwrap();
        assert_eq!(command.comm.to_string(), "udev worker");
        let remap = event("block_bio_remap", "8,0 WS 100 + 8 <- (8,1) 36").unwrap();
        assert_eq!((remap.sector, remap.device.to_string()), (100, "8:0".to_owned()));
    }

    #[test]
    fn filesystems_say_the_file_and_the_device() {
        let ext4 = event("ext4_sync_file_enter", "dev 7,1 ino 12 parent 2 datasync 0").unwrap();
        assert_eq!((ext4.sector, ext4.device.to_string()), (12, "7:1".to_owned()));
        let xfs = event("xfs_file_fsync", "dev 7:1 ino 0x83 iflags 0x40").unwrap();
        assert_eq!((xfs.sector, xfs.action), (0x83, Action::FileSync(super::super::event::Filesystem::Xfs)));
        let f2fs = event(
            "f2fs_sync_file_exit",
            "dev = (7,1), ino = 5, cp_reason: no needed, datasync = 0, ret = -5",
        );
        assert_eq!(f2fs.map(|event| (event.sector, event.error)), Some((5, -5)));
        assert_eq!(event("ext4_sync_file_exit", "dev 7,1 ino 12 ret x"), None);
    }

    #[test]
    fn calls_say_their_descriptor_and_result() {
        let mut found = Event::at(1, 0, 9, Action::Marker);
        system_call(&mut found, b"sys_fsync(fd: 0xc)", &mut Names::default()).unwrap();
        assert_eq!((found.action, found.sector), (Action::Enter(Call::Fsync), 12));
        system_call(&mut found, b"sys_fdatasync -> 0xfffffffffffffffb", &mut Names::default()).unwrap();
        assert_eq!((found.action, found.error), (Action::Exit(Call::Fdatasync), -5));
        let mut names = Names::default();
        system_call(&mut found, b"sys_openat(dfd: 5)", &mut names).unwrap();
        assert_eq!(names.all(), ["sys_enter_openat"]);
        assert_eq!(system_call(&mut found, b"sys_fsync: nothing", &mut names), None);
    }

    #[test]
    fn what_no_event_prints_is_refused() {
        for text in [
            "", "7,1", "7,1 W", "7,1 W x + 8 [a]", "7,1 W 8 8 [a]", "7 W 8 + 8 [a]", "7,1 W 8 + 8 a",
            "9999,1 W 8 + 8 [a]",
        ] {
            assert_eq!(event("block_bio_queue", text), None, "{text}");
        }
        assert_eq!(event("block_rq_issue", "7,1 RA 4096 ( 8 + 8 [a]"), None);
        assert_eq!(event("block_split", "7,1 W 10 / 5 [a]"), None);
    }
}
