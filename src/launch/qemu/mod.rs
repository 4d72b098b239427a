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
mod kind;
mod known_kernels;
mod machine;
mod modprobe;
mod module_files;
mod modules;
mod needs;
mod offer;
mod opened;
mod options;
mod package;
mod room;
mod tar;
mod unpacked_before;
mod vmlinux;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::{Answer, LaunchError, Launcher, Reply, Request, Unready, Why};
use crate::catalog::LauncherKind;
use crate::record::{FailureKind, HostFacts};
use crate::target::{Disturbance, GuestSettings, Interference};

use accelerator::{ACCELERATOR, Accelerator, Kvm, Mishap};
pub use error::{GuestError, readable_copy};
use guest::{Ended, Guest};
pub use inside::guest_part;
use kind::{How, Kind};
pub use known_kernels::{
    NoSource, known_releases, newest_kernel, newest_kernel_of, newest_source, unreadable_kernel,
};
use needs::wanted_pmem;
pub use offer::{Forecast, GuestOffer, guests_offered};
pub use opened::{OpenedKernel, opened_kernel};
pub use options::kernel_options;
pub use unpacked_before::{Unpacked, remove_unpacked, unpacked_in_cache};

/// How much longer than its task's own limit a trial in a guest may take: as much as the agent there may, and a little.
const ALLOWANCE: Duration = Duration::from_secs(630);

/// The names of the modules that these trials load, where modules are built for the kernel that they boot.
///
/// # Errors
/// A kernel or a module that is needed is not there.
pub fn loaded_modules(requests: &[Request]) -> Result<BTreeSet<String>, Unready> {
    let mut guests = Guests::new();
    requests.iter().try_for_each(|request| guests.learn(request))?;
    let mut names = BTreeSet::new();
    for kind in &guests.kinds {
        let all = kind.base_modules()?.map(|set| set.modules).unwrap_or_default();
        names.extend(all.into_iter().map(|(name, _)| name));
    }
    Ok(names)
}

/// Of each of these trials the digest of the modules that its guest is given; `None`: it is given none, or modules of a kernel that is
/// yet to be built.
///
/// # Errors
/// A kernel or a module that is needed is not there.
pub fn module_digests(requests: &[Request]) -> Result<Vec<Option<String>>, Unready> {
    let mut guests = Guests::new();
    requests.iter().try_for_each(|request| guests.learn(request))?;
    guests.kinds.iter_mut().filter(|kind| !kind.is_to_be_built()).try_for_each(Kind::look)?;
    let of = |request: &Request| {
        let (settings, pmem) = guest_of(request)?;
        guests.kinds.iter().find(|kind| kind.holds(settings, pmem))?.modules_digest.clone()
    };
    Ok(requests.iter().map(of).collect())
}

/// Runs trials whose settings name a kernel.
pub(super) struct Guests {
    kinds: Vec<Kind>,
    booted: u32,
    /// All guests of a run are run by the same, or arms would differ by it.
    accelerator: Accelerator,
    /// Whether a trial has been run, or a guest has come up under KVM, after which the accelerator is not changed any more.
    settled: bool,
    /// That guests are emulated because one did not come up under KVM, for the notes of trials.
    fell_back: Option<String>,
    /// Seconds that the slowest guest of the run took to come up.
    slowest_boot_s: Option<f64>,
    /// Whether kernels are decompressed beforehand: all or none, for the same reason.
    decompressed: Option<bool>,
    /// Whether some trials of the run are not run in a guest.
    others: bool,
    /// Whether the kernels of the run were looked at.
    checked: bool,
    /// Whether all guests of the run fit side by side: then those of the rehearsal are those of the first round.
    all_fit: bool,
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
            fell_back: None,
            slowest_boot_s: None,
            decompressed: None,
            others: false,
            checked: false,
            all_fit: true,
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
                self.kinds.push(Kind::new(settings, pmem));
                self.kinds.len() - 1
            }
        };
        let kind = &mut self.kinds[at];
        kind.of_this_round = true;
        kind.cells += 1;
        kind.pmem = kind.pmem.or(pmem);
        kind.needs.add(request)
    }

    /// Whether all the guests of a round can be had: emulator, kernels, modules, room for them and, in `place`, for their disks. A
    /// search learns of kernels as it goes, and those of earlier rounds run no more. Only the cache is touched.
    fn can_be_had(&mut self, place: &Path) -> Result<(), GuestError> {
        for kind in self.kinds.iter_mut().filter(|kind| kind.of_this_round) {
            machine::emulator()?;
            kind.look()?;
        }
        // A search learns of its steps one by one, of which some may be alike.
        if !self.checked {
            self.boot_different_kernels()?;
        }
        self.checked = true;
        self.find_shared_modules();
        let is_idle = self.kinds.iter().all(|kind| kind.running.is_none());
        let free = self.free.filter(|_| !is_idle).unwrap_or_else(|| room::Free::now(place));
        self.free = Some(free);
        let of_round = || self.kinds.iter().filter(|kind| kind.of_this_round);
        room::check(of_round().map(Kind::resident), free)?;
        let beside = of_round().map(|kind| room::Resident { is_last: false, ..kind.resident() });
        self.all_fit = room::check(beside, free).is_ok();
        Ok(())
    }

    /// Two kernels that differ in what no trial loads are one: nothing of the change would be measured.
    fn boot_different_kernels(&self) -> Result<(), GuestError> {
        let mut seen: Vec<(&Kind, &Path)> = Vec::new();
        for kind in self.kinds.iter().filter(|kind| kind.of_this_round) {
            let Some(image) = kind.kernel.as_ref().map(|kernel| kernel.image.as_path()) else { continue };
            if let Some((_, other)) = seen.iter().find(|(known, path)| known.boots_as(kind) && *path != image)
            {
                return Err(GuestError::Alike { one: other.to_path_buf(), other: image.to_owned() });
            }
            seen.push((kind, image));
        }
        Ok(())
    }

    /// Two images of one release that lie without modules of their own boot with the same ones: a change in a module is in both or in none.
    fn find_shared_modules(&mut self) {
        let loaded = |kind: &Kind| {
            let kernel = kind.kernel.as_ref().filter(|_| kind.modules_digest.is_some())?;
            Some((kernel.modules.clone()?, kernel.image.clone()))
        };
        let all: Vec<_> = self.kinds.iter().map(loaded).collect();
        for (kind, own) in self.kinds.iter_mut().zip(&all) {
            let Some((place, image)) = own else { continue };
            kind.shares_modules |= all.iter().flatten().any(|(other, by)| other == place && by != image);
        }
    }

    /// Whether all trials of the run are run in one guest: what its boot happens to be like is then no arm's alone.
    fn is_shared(&self) -> bool {
        self.kinds.len() == 1 && !self.others
    }

    /// Whether one of these trials is run in a guest of this kind: of several that hold it the first one.
    fn is_wanted(&self, at: usize, left: &[Request]) -> bool {
        let of = |(settings, pmem)| self.kinds.iter().position(|kind| kind.holds(settings, pmem));
        left.iter().filter_map(guest_of).any(|asked| of(asked) == Some(at))
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
                // A kernel that printed something did run. If it died by its own fault, it dies again, and that is reported. Nor is a
                // mute one KVM's fault where another has come up under it.
                let is_kvm = mute && Kvm::here() != Kvm::Runs;
                if is_kvm {
                    accelerator::remember_that_kvm_does_not_run();
                }
                let _ = writeln!(crate::sys::terminal::err(), "{}", accelerator::fallback(&what, is_kvm));
                self.fell_back = Some(accelerator::fallback_note(&what));
                self.accelerator = Accelerator::Tcg;
                self.kinds.iter_mut().for_each(|kind| kind.running = None);
                self.boot(at, directory, cancelled)
            }
            other => other,
        }
    }

    /// What a guest died of, if an emulated one may die of it without a fault of its kernel, before anything was measured in it.
    fn mishap(&self, ended: &Ended, rehearsal: bool) -> Option<Mishap> {
        let (mishap, measured) = match ended {
            Ended::Dead(error) => {
                (Mishap::of(error), matches!(error, GuestError::Dead { came_up: true, .. }))
            }
            Ended::Hung(_) => (Some(Mishap::Hang), true),
            Ended::Cancelled => (None, false),
        };
        mishap.filter(|_| self.accelerator == Accelerator::Tcg && (rehearsal || !measured))
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
        let limit = limit_of(request);
        // What was built or written on this machine before is not the trial's to wait for.
        if !request.rehearsal {
            rustix::fs::sync();
        }
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
        if let Answer::Done(outcome) = &mut reply.answer {
            outcome.notes.extend(self.fell_back.clone().map(Into::into));
        }
        // Processes that cannot be ended are the guest's, and end with it.
        let stays = self.all_fit || !request.rehearsal || self.is_shared();
        if ends_with_its_guest(&mut reply) {
            return Err(Ended::Hung(Box::new(reply)));
        }
        if stays {
            self.kinds[at].running = Some(guest);
        }
        Ok(reply)
    }

    fn boot(&mut self, at: usize, directory: &Path, cancelled: &AtomicBool) -> Result<Guest, Ended> {
        let accelerator = self.accelerator;
        let is_decompressed = accelerator == Accelerator::Tcg && self.kernels_are_decompressed();
        let how = How {
            accelerator,
            decompressed: is_decompressed.then(|| self.kept()),
            patience: guest::patience(self.slowest_boot_s),
        };
        let name = format!("guest-{}", self.booted);
        self.booted += 1;
        self.kinds[at].of_this_round = true;
        let guest = self.kinds[at].boot(how, (directory, &name), cancelled)?;
        accelerator.came_up(guest.boot_s);
        self.slowest_boot_s =
            Some(self.slowest_boot_s.map_or(guest.boot_s, |slowest| slowest.max(guest.boot_s)));
        // Another kernel that does not come up is not KVM's fault.
        self.settled |= accelerator == Accelerator::Kvm;
        Ok(guest)
    }

    /// How many kernels are used at a time.
    fn kept(&self) -> usize {
        self.kinds.iter().filter(|kind| kind.of_this_round).count()
    }

    fn kernels_are_decompressed(&mut self) -> bool {
        let (kept, kinds) = (self.kept(), &mut self.kinds);
        let all = || {
            let mut images = kinds.iter_mut().map(Kind::kernel);
            images.all(|kernel| kernel.is_ok_and(|kernel| vmlinux::unpacked(&kernel.image, kept).is_some()))
        };
        *self.decompressed.get_or_insert_with(all)
    }
}

/// After what time a guest is given up with its trial; a limit that does not fit is none.
fn limit_of(request: &Request) -> Option<Duration> {
    let of = |seconds: Option<f64>| seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
    let named = of(request.task.timeout_s).map(|limit| limit.saturating_add(ALLOWANCE));
    named.or_else(|| of(request.task.given_up_after_s))
}

/// The settings of the guest a request asks for, and the persistent memory it wants there.
fn guest_of(request: &Request) -> Option<(&GuestSettings, Option<u64>)> {
    let settings = &request.target.setup.as_ref()?.settings;
    (settings.launcher() == LauncherKind::Guests).then(|| (&settings.guest, wanted_pmem(settings)))
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

    /// All guests of a run are run by the same accelerator.
    fn goes_on(&mut self, earlier: &HostFacts) -> Result<(), Unready> {
        let named = earlier.get(ACCELERATOR);
        let Some(before) = named.and_then(Accelerator::named) else { return Ok(()) };
        before.is_here()?;
        (self.accelerator, self.settled) = (before, true);
        Ok(())
    }

    fn check(&mut self, place: &Path) -> Result<(), Unready> {
        Ok(self.can_be_had(place)?)
    }

    /// Each kind of guest is booted once a round, and a guest that all trials share once.
    fn forecast(&self) -> Option<Forecast> {
        let again = !self.all_fit && !self.is_shared();
        let of = |guests| Forecast { again, ..offer::forecast(guests, self.is_shared()) };
        (!self.kinds.is_empty()).then(|| of(self.kinds.len() as u32))
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
            let ended = match self.asked(at, request, directory, cancelled) {
                Err(ended) => ended,
                answered => return answered.or_else(of_ended),
            };
            let Some(mishap) = self.mishap(&ended, request.rehearsal) else {
                return of_ended(ended);
            };
            if boots >= mishap.boots_again() {
                // A trial that was lost so is a failed one, and may be tried again as such.
                return of_ended(ended).map(Reply::caused_outside);
            }
            let _ = writeln!(crate::sys::terminal::err(), "{}", mishap.booted_again());
            self.kinds[at].booted_again = Some(mishap);
            boots += 1;
        }
    }

    /// A guest of which no trial is left gives its memory and its disks to those that come.
    fn round_goes_on(&mut self, left: &mut dyn Iterator<Item = Request>) {
        if self.kinds.iter().all(|kind| kind.running.is_none()) {
            return;
        }
        let left: Vec<Request> = left.collect();
        for at in 0..self.kinds.len() {
            if !self.is_wanted(at, &left) {
                self.kinds[at].running = None;
            }
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

/// Whether a trial has left processes in its guest that nobody can end: a fresh one is without them, so that it may be tried again.
fn ends_with_its_guest(reply: &mut Reply) -> bool {
    if reply.why.left.is_empty() {
        return false;
    }
    reply.why.left.clear();
    if let Answer::Failed { kind, reason, .. } = &mut reply.answer {
        reason.push_str(" of the guest, which is given up");
        if *kind == FailureKind::Lasting {
            *kind = FailureKind::Passing;
        }
    }
    true
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
        Ended::Hung(reply) => Ok(*reply),
        Ended::Dead(error) => {
            let why = Why { hint: error.hint(), of_place: true, left: Vec::new() };
            let reason = error.to_string();
            let output = if let GuestError::Dead { console, .. } = error { console } else { String::new() };
            Ok(Reply { why, ..Reply::failed(reason, output) })
        }
    }
}

#[cfg(test)]
mod tests;
