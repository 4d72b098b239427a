//! Whether guests fit: their devices into their memory, all of them into this machine's, their disks onto its.
//!
//! Enters: settings and needs of all guests of a round, and which of them end with their trial. Leaves: the first that does not fit.

use std::path::Path;

use super::error::GuestError;
use super::machine;
use super::needs::Needs;
use crate::target::GuestSettings;

const MIB: u64 = 1 << 20;
/// What kernel, agent and initramfs need for themselves.
const OWN: u64 = 192 * MIB;
/// Less free space than this may be why a guest's disk fails.
const LITTLE: u64 = 16 * MIB;
/// What a guest takes of this machine's memory besides its devices and what it keeps in memory of its disks: it touches no more of
/// its own in an ordinary trial.
const TOUCHED: u64 = 320 * MIB;

/// Free bytes of this machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    /// Of its memory; `None`: not known.
    pub(super) memory: Option<u64>,
    /// Of its memory and swap, used or not: no program is given more at once; `None`: not known.
    pub(super) at_once: Option<u64>,
    /// Where disks of guests will lie.
    pub(super) disk: Option<u64>,
}

impl Free {
    /// As it is now; disks will lie in `place` or, where that is not there yet, beside it.
    pub(super) fn now(place: &Path) -> Free {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let bytes = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
        };
        let there = place.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        // A filesystem without blocks (ramfs) has no size.
        let space = rustix::fs::statvfs(there).ok().filter(|space| space.f_blocks > 0);
        Free {
            memory: bytes("MemAvailable:"),
            at_once: bytes("MemTotal:").zip(bytes("SwapTotal:")).map(|(memory, swap)| memory + swap),
            disk: space.map(|space| space.f_bavail.saturating_mul(space.f_frsize)),
        }
    }
}

/// That a place where disks grow is nearly full, in words; `None`: it is not.
pub(super) fn little_left(place: &Path) -> Option<String> {
    let free = Free::now(place).disk.filter(|free| *free < LITTLE)?;
    Some(format!(
        "{} MiB are free in {}, where the disks of guests grow: a write that finds no room is an I/O error in the guest",
        free / MIB,
        place.display()
    ))
}

/// A guest of a round.
#[derive(Clone, Copy)]
pub(super) struct Resident<'g> {
    pub(super) settings: &'g GuestSettings,
    pub(super) needs: &'g Needs,
    /// It has one trial a round, and ends with that: no other such guest lives beside it.
    pub(super) is_last: bool,
}

/// What guests take that live at the same time.
#[derive(Clone, Copy, Default)]
struct Taken {
    touched: u64,
    disks: u64,
    count: u32,
}

/// Whether all that live at the same time fit.
///
/// # Errors
/// [`GuestError::NoRoom`].
pub(super) fn check<'g>(guests: impl Iterator<Item = Resident<'g>>, free: Free) -> Result<(), GuestError> {
    let (mut all, mut largest) = (Taken::default(), Taken::default());
    for Resident { settings, needs, is_last } in guests {
        inside(settings, needs)?;
        let memory = machine::memory(settings, needs);
        if let Some(at_once) = free.at_once.filter(|at_once| memory > *at_once) {
            let what = format!(
                "a guest with {} MiB of memory is larger than this machine, which has {}",
                memory / MIB,
                at_once / MIB
            );
            let hint = "a smaller memory=; without it a guest has what its devices need".to_owned();
            return Err(GuestError::NoRoom { what, hint });
        }
        let own_disks = needs.disks.iter().map(|disk| disk.bytes).sum::<u64>();
        // A job without direct I/O may have all of a disk in the guest's page cache.
        let cached = own_disks.saturating_add(TOUCHED + needs.memory_bytes);
        let touched = memory.min(cached) + needs.pmem_bytes;
        let sum = |of: Taken| Taken {
            touched: of.touched + touched,
            disks: of.disks + own_disks,
            count: of.count + 1,
        };
        if is_last {
            let Taken { touched, disks, count } = sum(Taken::default());
            largest = Taken { touched: largest.touched.max(touched), disks: largest.disks.max(disks), count };
        } else {
            all = sum(all);
        }
    }
    let (touched, disks) = (all.touched + largest.touched, all.disks + largest.disks);
    let count = all.count + largest.count;
    let of = |count: u32| {
        if count == 1 { "the guest".to_owned() } else { format!("{count} guests at the same time") }
    };
    if let Some(free) = free.memory.filter(|free| touched > *free) {
        let what = format!(
            "{} will take about {} MiB of memory, and {} are free here",
            of(count),
            touched / MIB,
            free / MIB
        );
        let hint = "make devices in memory smaller, or compare fewer guests at a time".to_owned();
        return Err(GuestError::NoRoom { what, hint });
    }
    if let Some(free) = free.disk.filter(|free| disks > *free) {
        let what = format!(
            "disks of {} may take {} MiB, and {} are free for them",
            of(count),
            disks / MIB,
            free / MIB
        );
        let hint = "make them smaller, or name a place with more room: --directory".to_owned();
        return Err(GuestError::NoRoom { what, hint });
    }
    Ok(())
}

/// Whether a guest's own memory, where it is set, holds its devices.
fn inside(settings: &GuestSettings, needs: &Needs) -> Result<(), GuestError> {
    let least = (OWN + needs.memory_bytes).next_multiple_of(MIB);
    // Such a kernel dies before it has a console, and would be waited for.
    if let Some((word, _)) = settings.memory_limit().filter(|(_, bytes)| *bytes < least) {
        return Err(GuestError::NoRoom {
            what: format!(
                "kernel_args={word}: too little memory for a guest, which needs {} MiB",
                least / MIB
            ),
            hint: format!("mem={}M is the least that assay tries", least / MIB),
        });
    }
    match settings.memory {
        Some(memory) if memory < least => Err(GuestError::NoRoom {
            what: format!(
                "a device of {} MiB does not fit into a guest with memory={}m",
                needs.memory_bytes / MIB,
                memory / MIB
            ),
            hint: format!(
                "memory={}m holds it; without memory= a guest has what its devices need",
                least / MIB
            ),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::needs::Disk;
    use super::*;
    use crate::target::DeviceKind;

    #[test]
    fn what_does_not_fit_is_told_with_sizes() {
        let settings = |memory| GuestSettings { memory, ..GuestSettings::default() };
        let disk = Disk { kind: DeviceKind::Nvme, bytes: 600 * MIB, cache: "none".to_owned() };
        let ram = Needs { memory_bytes: 300 * MIB, disks: vec![disk], ..Needs::default() };
        let pmem = Needs { pmem_bytes: 512 * MIB, ..Needs::default() };
        let said = |guests: &[(&GuestSettings, &Needs)], memory: u64, disk: u64| {
            let free = Free { memory: Some(memory * MIB), at_once: Some(9000 * MIB), disk: Some(disk * MIB) };
            let beside = guests.iter().map(|(settings, needs)| Resident { settings, needs, is_last: false });
            check(beside, free).map_err(|error| format!("{error}; {}", error.hint()))
        };
        let (small, large) = (settings(Some(400 * MIB)), settings(None));
        let message = said(&[(&small, &ram)], 9000, 9000).unwrap_err();
        assert!(
            message
                .starts_with("a device of 300 MiB does not fit into a guest with memory=400m; memory=492m"),
            "{message}"
        );
        let message = said(&[(&settings(Some(9001 * MIB)), &pmem)], 9000, 9000).unwrap_err();
        assert!(
            message
                .starts_with("a guest with 9001 MiB of memory is larger than this machine, which has 9000"),
            "{message}"
        );
        // 320 + 300 + 600 MiB, and 320 + 512 MiB.
        let both = [(&large, &ram), (&large, &pmem)];
        assert_eq!(said(&both, 2052, 600), Ok(()));
        let message = said(&both, 2051, 600).unwrap_err();
        assert!(
            message.contains("2 guests at the same time will take about 2052 MiB of memory, and 2051"),
            "{message}"
        );
        // One after the other: the larger memory, and the larger disk.
        let one = |is_last| both.map(|(settings, needs)| Resident { settings, needs, is_last });
        let free = Free { memory: Some(1220 * MIB), at_once: None, disk: Some(600 * MIB) };
        assert!(check(one(true).into_iter(), free).is_ok());
        assert!(
            check([one(true)[0], one(false)[1]].into_iter(), free).is_err(),
            "one stays for other trials"
        );
        let less = Free { memory: Some(1219 * MIB), ..free };
        let message = check(one(true).into_iter(), less).unwrap_err().to_string();
        assert!(message.starts_with("the guest will take about 1220 MiB of memory"), "{message}");
        // A disk that fills a guest's memory takes all of that and no more: 1 GiB.
        let disk = |kind| Disk { kind, bytes: 4096 * MIB, cache: "none".to_owned() };
        let full =
            Needs { disks: vec![disk(DeviceKind::Nvme), disk(DeviceKind::VirtioBlk)], ..Needs::default() };
        assert_eq!(said(&[(&large, &full)], 1024, 9000), Ok(()));
        assert!(said(&[(&large, &full)], 1023, 9000).unwrap_err().contains("about 1024 MiB of memory"));
        assert!(said(&both, 2052, 599).unwrap_err().contains("may take 600 MiB, and 599 are free"));
    }

    #[test]
    fn a_kernel_that_may_use_too_little_is_refused() {
        let said = |words: &str, needs: &Needs| {
            let arguments = words.split(' ').map(str::to_owned).collect();
            let settings = GuestSettings { arguments, ..GuestSettings::default() };
            inside(&settings, needs).map_err(|error| error.to_string())
        };
        let (none, ram) = (Needs::default(), Needs { memory_bytes: 300 * MIB, ..Needs::default() });
        let message = said("nosmt mem=48M", &none).unwrap_err();
        assert_eq!(message, "kernel_args=mem=48M: too little memory for a guest, which needs 192 MiB");
        assert_eq!(said("mem=192m", &none), Ok(()));
        assert!(said("mem=256M", &ram).unwrap_err().ends_with("needs 492 MiB"));
        // Another argument, and what only the kernel reads.
        assert_eq!(said("memtest=4 mem=nopentium mem=4M@1G", &none), Ok(()));
    }

    #[test]
    fn this_machine_has_room_for_one() {
        let free = Free::now(Path::new("/tmp/not/there/yet"));
        assert!(free.memory.unwrap() > 0 && free.disk.is_some());
    }
}
