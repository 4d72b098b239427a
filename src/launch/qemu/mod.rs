//! Trials in guests: each kernel booted in a virtual machine, once for each round and arm, and the same agent in it.
//!
//! Enters: the requests of all cells, then one trial's after the other. Leaves: replies whose facts are the guest's, with what the
//! guest was run by. It must not know plans, factors or stores.

mod accelerator;
mod channel;
mod cpio;
mod decompressed;
mod elf;
mod error;
mod guest;
mod initramfs;
mod inside;
mod kernel_image;
mod known_kernels;
mod machine;
mod modprobe;
mod modules;
mod needs;
mod offer;
mod opened;
mod options;
mod package;
mod room;
mod tar;
mod vmlinux;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{Answer, LaunchError, Launcher, Reply, Request, Unready, Why};
use crate::catalog::LauncherKind;
use crate::record::HostFacts;
use crate::target::{Disturbance, GuestSettings, Interference};

use accelerator::{Accelerator, Mishap};
pub use error::GuestError;
use guest::{Ended, Guest};
pub use inside::guest_part;
use kernel_image::KernelImage;
pub use known_kernels::{NoSource, newest_kernel, newest_kernel_of, newest_source};
use machine::Machine;
use modules::ModuleSet;
use needs::{Needs, wanted_pmem};
pub use offer::{Forecast, GuestOffer, guests_offered};
pub use opened::{OpenedKernel, opened_kernel};
pub use options::kernel_options;

/// How much longer than its task's own limit a trial in a guest may take: as much as the agent there may, and a little.
const ALLOWANCE: Duration = Duration::from_secs(630);

/// A kind of guest: all trials with the same settings share it, as far as they want the same persistent memory.
struct Kind {
    settings: GuestSettings,
    /// Bytes of persistent memory; `None`: no trial has wanted any so far.
    pmem: Option<u64>,
    needs: Needs,
    kernel: Option<KernelImage>,
    initramfs: Option<PathBuf>,
    running: Option<Guest>,
    /// It was learned of or booted since the last round ended.
    of_this_round: bool,
    /// What the last one that died in this round died of, where nothing was measured in it and the emulator may be why.
    booted_again: Option<Mishap>,
}

/// Runs trials whose settings name a kernel.
pub(super) struct Guests {
    kinds: Vec<Kind>,
    booted: u32,
    /// All guests of a run are run by the same, or arms would differ by it.
    accelerator: Accelerator,
    /// Whether a trial has been run, after which the accelerator is not changed any more.
    settled: bool,
    /// Whether kernels are decompressed beforehand: all or none, for the same reason.
    decompressed: Option<bool>,
    /// Whether some trials of the run are not run in a guest.
    others: bool,
    /// What was free when no guest was running, the last time that was looked at: all guests of a round have that together.
    free: Option<room::Free>,
}

impl Guests {
    /// No guest is known yet.
    pub(super) fn new() -> Guests {
        let accelerator = Accelerator::likely();
        Guests {
            kinds: Vec::new(),
            booted: 0,
            accelerator,
            settled: false,
            decompressed: None,
            others: false,
            free: None,
        }
    }

    /// Learns what a cell needs of its guest.
    fn learn(&mut self, request: &Request) -> Result<(), GuestError> {
        let Some((settings, pmem)) = guest_of(request) else {
            self.others = true;
            return Ok(());
        };
        let fits =
            |kind: &Kind| kind.holds(settings, pmem) || (kind.settings == *settings && kind.pmem.is_none());
        let at = match self.kinds.iter().position(fits) {
            Some(at) => at,
            None => {
                let (needs, settings) = (Needs::of(settings), settings.clone());
                self.kinds.push(Kind {
                    settings,
                    pmem,
                    needs,
                    kernel: None,
                    initramfs: None,
                    running: None,
                    of_this_round: true,
                    booted_again: None,
                });
                self.kinds.len() - 1
            }
        };
        let kind = &mut self.kinds[at];
        kind.of_this_round = true;
        kind.pmem = kind.pmem.or(pmem);
        kind.needs.add(request)
    }

    /// Whether all the guests of a round can be had: emulator, kernels, modules, room for them and, in `place`, for their disks. A
    /// search learns of kernels as it goes, and those of earlier rounds run no more. Only the cache is touched.
    fn can_be_had(&mut self, place: &Path) -> Result<(), GuestError> {
        for kind in self.kinds.iter_mut().filter(|kind| kind.of_this_round) {
            machine::emulator()?;
            let kernel = kind.kernel()?.clone();
            ModuleSet::of(&kernel, &kind.needs.drivers)?;
        }
        let is_idle = self.kinds.iter().all(|kind| kind.running.is_none());
        let free = self.free.filter(|_| !is_idle).unwrap_or_else(|| room::Free::now(place));
        self.free = Some(free);
        let of_round = self.kinds.iter().filter(|kind| kind.of_this_round);
        room::check(of_round.map(|kind| (&kind.settings, &kind.needs)), free)
    }

    /// Whether all trials of the run are run in one guest: what its boot happens to be like is then no arm's alone.
    fn is_shared(&self) -> bool {
        self.kinds.len() == 1 && !self.others
    }

    /// A guest of this kind: the running one, or one booted now.
    fn guest(&mut self, at: usize, directory: &Path, cancelled: &AtomicBool) -> Result<Guest, Ended> {
        if let Some(guest) = self.kinds[at].running.take() {
            return Ok(guest);
        }
        match self.boot(at, directory, cancelled) {
            Err(Ended::Dead(GuestError::Dead { what, mute, .. }))
                if self.accelerator == Accelerator::Kvm && !self.settled =>
            {
                // A kernel that printed something did run. If it died by its own fault, it dies again, and that is reported.
                if mute {
                    accelerator::remember_that_kvm_does_not_run();
                }
                let _ = writeln!(crate::sys::terminal::err(), "{}", accelerator::fallback(&what, mute));
                self.accelerator = Accelerator::Tcg;
                self.kinds.iter_mut().for_each(|kind| kind.running = None);
                self.boot(at, directory, cancelled)
            }
            other => other,
        }
    }

    /// What a guest died of, if an emulated one may die of it without a fault of its kernel, before anything was measured in it.
    fn mishap(&self, error: &GuestError, rehearsal: bool) -> Option<Mishap> {
        let measured = matches!(error, GuestError::Dead { came_up: true, .. }) && !rehearsal;
        Mishap::of(error).filter(|_| self.accelerator == Accelerator::Tcg && !measured)
    }

    /// A request answered in a guest of this kind, which runs on for the next one.
    fn asked(
        &mut self,
        at: usize,
        request: &Request,
        directory: &Path,
        cancelled: &AtomicBool,
    ) -> Result<Reply, Ended> {
        let mut guest = self.guest(at, directory, cancelled)?;
        self.settled |= !request.rehearsal;
        // A limit that does not fit is none.
        let limit = request.task.timeout_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let limit = limit.map(|limit| limit.saturating_add(ALLOWANCE));
        // No guest sees what is taken from this machine. Its device is the guest's business: there is none of that path.
        let watch = Interference::look(Path::new(""));
        let asked = Instant::now();
        let mut reply = guest.ask(request, limit, cancelled)?;
        if let (Answer::Done(_), Some(of_job)) = (&reply.answer, &reply.disturbance) {
            let besides_s = asked.elapsed().as_secs_f64() - of_job.elapsed_s;
            self.accelerator.trial_took(besides_s.max(0.1));
        }
        let emulated = self.accelerator == Accelerator::Tcg;
        let seen = reply.disturbance.map(|seen| worse(seen, &watch.since()));
        reply.disturbance = seen.map(|seen| Disturbance { emulated, ..seen });
        self.kinds[at].tell(&guest, &mut reply);
        self.kinds[at].running = Some(guest);
        Ok(reply)
    }

    fn boot(&mut self, at: usize, directory: &Path, cancelled: &AtomicBool) -> Result<Guest, Ended> {
        let accelerator = self.accelerator;
        let decompressed = accelerator == Accelerator::Tcg && self.kernels_are_decompressed();
        let name = format!("guest-{}", self.booted);
        self.booted += 1;
        self.kinds[at].of_this_round = true;
        let guest = self.kinds[at].boot(accelerator, decompressed, (directory, &name), cancelled)?;
        accelerator.came_up(guest.boot_s);
        Ok(guest)
    }

    fn kernels_are_decompressed(&mut self) -> bool {
        let kinds = &mut self.kinds;
        let all = || {
            let mut images = kinds.iter_mut().map(Kind::kernel);
            images.all(|kernel| kernel.is_ok_and(|kernel| vmlinux::unpacked(&kernel.image).is_some()))
        };
        *self.decompressed.get_or_insert_with(all)
    }
}

/// The settings of the guest a request asks for, and the persistent memory it wants there.
fn guest_of(request: &Request) -> Option<(&GuestSettings, Option<u64>)> {
    let settings = &request.target.setup.as_ref()?.settings;
    (settings.launcher() == LauncherKind::Guests).then(|| (&settings.guest, wanted_pmem(settings)))
}

impl Kind {
    /// Whether trials with these settings that want so much persistent memory are run in it: of several the first one.
    fn holds(&self, settings: &GuestSettings, pmem: Option<u64>) -> bool {
        self.settings == *settings && (pmem.is_none() || self.pmem == pmem)
    }

    fn kernel(&mut self) -> Result<&KernelImage, GuestError> {
        let opened = match self.kernel.take() {
            Some(kernel) => kernel,
            None => KernelImage::open(self.settings.kernel.as_deref().unwrap_or(Path::new("")))?,
        };
        Ok(self.kernel.insert(opened))
    }

    /// Boots one; its files lie in a directory and bear a name.
    fn boot(
        &mut self,
        accelerator: Accelerator,
        decompressed: bool,
        (directory, name): (&Path, &str),
        cancelled: &AtomicBool,
    ) -> Result<Guest, Ended> {
        let kernel = self.kernel().map_err(Ended::Dead)?.clone();
        let initramfs = match &self.initramfs {
            // It may have been removed from the cache meanwhile.
            Some(path) if path.exists() => path.clone(),
            _ => initramfs::packed(&kernel, &self.needs).map_err(Ended::Dead)?,
        };
        self.initramfs = Some(initramfs.clone());
        let alone = decompressed.then(|| vmlinux::unpacked(&kernel.image)).flatten();
        let machine = Machine {
            kernel: alone.as_deref().unwrap_or(&kernel.image),
            initramfs: &initramfs,
            settings: &self.settings,
            needs: &self.needs,
            accelerator,
            directory,
            name,
        };
        Guest::boot(&machine, cancelled)
    }

    /// Adds what only the host knows.
    fn tell(&self, guest: &Guest, reply: &mut Reply) {
        let facts = &mut reply.facts;
        if *facts != HostFacts::default() {
            facts.set("guest.accelerator", guest.accelerator.name());
            facts.set("guest.image", guest.image);
            facts.set("guest.memory", format!("{} MiB", machine::memory(&self.settings, &self.needs) >> 20));
            facts.set("now.guest.boot_s", format!("{:.1}", guest.boot_s));
            // The guest's own load says nothing of who else uses the machine under it.
            for (name, value) in crate::host::moment().0 {
                facts.set(name.replacen("now.", "now.host.", 1), value);
            }
            self.settings.facts.iter().for_each(|(name, value)| facts.set(name, value));
            if let Some(config) = self.kernel.as_ref().and_then(|kernel| kernel.config.as_deref()) {
                facts.set("kernel.config_digest", config);
            }
        }
        match &mut reply.answer {
            Answer::Done(outcome) => {
                outcome.notes.extend(self.booted_again.map(|mishap| mishap.note().into()));
                outcome
                    .notes
                    .extend(guest.missing.iter().map(|message| format!("in the guest: {message}").into()));
            }
            Answer::Failed { output, .. } => {
                // What the kernel said meanwhile may be why, e.g. that memory ran out.
                let said = guest.said_since_asked();
                if !said.is_empty() {
                    output.push_str(&format!("\nlast lines of the guest's console:\n{said}"));
                }
                output.extend(guest.little_room().map(|words| format!("\n{words}")));
            }
            Answer::Unsupported { .. } => {}
        }
    }
}

impl From<GuestError> for Unready {
    fn from(error: GuestError) -> Unready {
        Unready { reason: error.to_string(), hint: error.hint() }
    }
}

impl Launcher for Guests {
    fn expect(&mut self, request: &Request) -> Result<(), Unready> {
        Ok(self.learn(request)?)
    }

    fn check(&mut self, place: &Path) -> Result<(), Unready> {
        Ok(self.can_be_had(place)?)
    }

    /// Each kind of guest is booted once a round, and a guest that all trials share once.
    fn forecast(&self) -> Option<Forecast> {
        (!self.kinds.is_empty()).then(|| offer::forecast(self.kinds.len() as u32, self.is_shared()))
    }

    fn launch(&mut self, request: &Request, cancelled: &AtomicBool) -> Result<Reply, LaunchError> {
        let Some((settings, pmem)) = guest_of(request) else {
            return Ok(Reply::failed("a guest is asked for without a kernel", String::new()));
        };
        let Some(at) = self.kinds.iter().position(|kind| kind.holds(settings, pmem)) else {
            return Ok(Reply::failed("a guest is asked for that was not expected", String::new()));
        };
        let directory = request.target.setup.as_ref().map_or(&request.target.directory, |setup| &setup.work);
        let mut boots = 0;
        loop {
            let error = match self.asked(at, request, directory, cancelled) {
                Err(Ended::Dead(error)) => error,
                other => return other.or_else(of_ended),
            };
            let Some(mishap) = self.mishap(&error, request.rehearsal) else {
                return of_ended(Ended::Dead(error));
            };
            if boots >= mishap.boots_again() {
                // A trial that was lost so is a failed one, and may be tried again as such.
                return of_ended(Ended::Dead(error)).map(Reply::caused_outside);
            }
            let _ = writeln!(crate::sys::terminal::err(), "{}", mishap.booted_again());
            self.kinds[at].booted_again = Some(mishap);
            boots += 1;
        }
    }

    /// The next round boots anew, so that what one boot happens to be like is not taken for the kernel. One guest of all trials runs on.
    fn round_ends(&mut self) {
        let is_shared = self.is_shared();
        for kind in &mut self.kinds {
            (kind.booted_again, kind.of_this_round) = (None, false);
            kind.running = kind.running.take().filter(|_| is_shared);
        }
    }
}

/// What a guest saw, with the time that was stolen from the machine it runs on, where that is more.
fn worse(inside: Disturbance, here: &Disturbance) -> Disturbance {
    if here.steal_share <= inside.steal_share {
        return inside;
    }
    Disturbance { steal_s: here.steal_s, steal_share: here.steal_share, ..inside }
}

fn of_ended(ended: Ended) -> Result<Reply, LaunchError> {
    match ended {
        Ended::Cancelled => Err(LaunchError::Cancelled { left: Vec::new() }),
        Ended::Dead(error) => {
            let why = Why { hint: error.hint(), of_place: true, left: Vec::new() };
            let reason = error.to_string();
            let output = if let GuestError::Dead { console, .. } = error { console } else { String::new() };
            Ok(Reply { why, ..Reply::failed(reason, output) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial in a guest of a kernel in this directory, with this device.
    fn request(directory: &Path, kernel: &str, device: &str) -> Request {
        std::fs::write(directory.join(kernel), "x").unwrap();
        let mut setup = crate::target::Setup::default();
        for (key, value) in [("kernel", kernel), ("device", device)] {
            setup.settings.set(key, value, directory).unwrap();
        }
        Request {
            protocol: super::super::PROTOCOL,
            engine: super::super::EngineKind::Null,
            task: super::super::Task::default(),
            target: super::super::TargetSpec { setup: Some(setup), ..Default::default() },
            rehearsal: false,
            observe: Vec::new(),
            before: None,
            after: None,
        }
    }

    #[test]
    fn guests_of_earlier_rounds_need_no_room() {
        let directory = tempfile::tempdir().unwrap();
        let mut guests = Guests::new();
        let of_round = |guests: &Guests| guests.kinds.iter().filter(|kind| kind.of_this_round).count();
        for step in 0..40 {
            guests.expect(&request(directory.path(), &format!("vmlinuz-{step}"), "ram:64m")).unwrap();
            assert_eq!(of_round(&guests), 1);
            guests.round_ends();
        }
        assert_eq!((guests.kinds.len(), of_round(&guests)), (40, 0));
        guests.expect(&request(directory.path(), "vmlinuz-0", "ram:64m")).unwrap();
        assert_eq!((guests.kinds.len(), of_round(&guests)), (40, 1));
    }

    #[test]
    fn a_guest_is_shared_where_no_trial_is_run_elsewhere() {
        let directory = tempfile::tempdir().unwrap();
        let in_guest = |kernel: &str| request(directory.path(), kernel, "ram:64m");
        let here = Request { target: super::super::TargetSpec::default(), ..in_guest("vmlinuz") };
        let is_shared = |requests: &[&Request]| {
            let mut guests = Guests::new();
            requests.iter().for_each(|request| guests.expect(request).unwrap());
            (guests.is_shared(), guests.forecast().map(|ahead| ahead.once))
        };
        let (one, other) = (in_guest("vmlinuz"), in_guest("vmlinuz-other"));
        assert_eq!(is_shared(&[&one, &one]), (true, Some(true)));
        assert_eq!(is_shared(&[&one, &other]), (false, Some(false)));
        assert_eq!(is_shared(&[&one, &here]), (false, Some(false)), "an arm here, one there");
        assert_eq!(is_shared(&[&here]), (false, None));
    }

    #[test]
    fn trials_that_want_other_pmem_run_in_other_guests() {
        let directory = tempfile::tempdir().unwrap();
        let asked = |device: &str| request(directory.path(), "vmlinuz", device);
        let mut guests = Guests::new();
        let devices = ["ram:64m", "pmem:128m", "pmem:1g", "nvme:64m", "pmem:100m", "pmem:1g"];
        devices.iter().for_each(|device| guests.expect(&asked(device)).unwrap());
        let of = |device: &str| {
            let request = asked(device);
            let (settings, pmem) = guest_of(&request).unwrap();
            guests.kinds.iter().position(|kind| kind.holds(settings, pmem)).unwrap()
        };
        assert_eq!(devices.map(of), [0, 0, 1, 0, 0, 1]);
        let sizes: Vec<u64> = guests.kinds.iter().map(|kind| kind.needs.pmem_bytes).collect();
        assert_eq!(sizes, [128 << 20, 1 << 30]);
        assert_eq!(guests.kinds[0].needs.disks.len(), 1);
    }

    #[test]
    fn time_stolen_from_the_host_is_stolen_from_its_guests() {
        let seen = |steal_s, steal_share| Disturbance {
            steal_s,
            steal_share,
            foreign_read_bytes: Some(7),
            ..Disturbance::default()
        };
        let (calm, robbed) = (seen(0.0, 0.0), seen(2.0, 0.2));
        for (inside, here) in [(&calm, &robbed), (&robbed, &calm)] {
            let both = worse(*inside, here);
            assert_eq!((both.steal_s, both.steal_share, both.foreign_read_bytes), (2.0, 0.2, Some(7)));
        }
        assert_eq!(worse(calm, &calm), calm);
    }
}
