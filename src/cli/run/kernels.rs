//! Kernels that a run needs built: what its cells ask for is looked at early, built before the first trial, and put into the cells'
//! settings as the image that is booted.
//!
//! Enters: a prepared run. Leaves: the same one, whose guests boot what was built, or the steps of a search that are kernels, each of which
//! is built when it is first asked for. How kernels are built is not known here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::arms::{Arms, Made};
use super::exercised;
use super::prepare::Prepared;
use super::teller::Teller;
use crate::catalog::{OWN_PATCH, own_patch};
use crate::cli::Failure;
use crate::experiment::GuestSettings;
use crate::kernel_build::{Base, BuildError, Builds, BuiltKernel, MadeOf, Wanted};
use crate::launch::{LaunchError, Launcher, Request, Unready, kernel_options, module_digests, opened_kernel};
use crate::plan::{CellSpec, Plan};
use crate::record::{HostFacts, Run, Status, Trial};
use crate::run::Surroundings;
use crate::sys::cache::{digest_of, directory};
use crate::sys::terminal::err;

/// Kernels of a run that are built.
#[derive(Default)]
pub(super) struct Kernels {
    /// `None`: none is built.
    builds: Option<Builds>,
    /// Which of them each cell boots.
    cells: Vec<Option<usize>>,
    /// Those that were built; nobody removes them from the cache while these are held.
    built: Vec<BuiltKernel>,
}

impl Kernels {
    /// Looks at what the cells ask for.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: a source, patch or configuration that is none, or programs that are missing.
    pub(super) fn of(cells: &[CellSpec]) -> Result<Kernels, Failure> {
        let (mut wanted, mut of_cells): (Vec<Wanted>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
        for cell in cells {
            let Some(mut asked) = asked(cell)? else {
                of_cells.push(None);
                continue;
            };
            // Cells that differ in their filesystem boot the same kernel.
            let same = |known: &Wanted| Wanted { options: asked.options.clone(), ..known.clone() } == asked;
            match wanted.iter().position(same) {
                Some(at) => {
                    wanted[at].options.append(&mut asked.options);
                    of_cells.push(Some(at));
                }
                None => {
                    of_cells.push(Some(wanted.len()));
                    wanted.push(asked);
                }
            }
        }
        let builds = if wanted.is_empty() {
            None
        } else {
            Some(Builds::look(&wanted).map_err(|error| failure(&error))?)
        };
        Ok(Kernels { builds, cells: of_cells, built: Vec::new() })
    }

    /// Whether a kernel that is booted is not built yet.
    pub(super) fn are_to_be_built(&self) -> bool {
        self.builds.is_some() && self.built.is_empty()
    }

    /// Whether each cell boots a kernel that is built.
    pub(super) fn are_of_all_cells(&self) -> bool {
        self.builds.is_some() && self.cells.iter().all(Option::is_some)
    }

    /// Whether there are some, each built whole.
    pub(super) fn are_whole(&self) -> bool {
        self.builds.as_ref().is_some_and(Builds::are_whole)
    }

    /// Builds the kernels of the ends of a search. An error is told with the end that it is of.
    pub(super) fn build_ends(
        &self,
        ends: [usize; 2],
        quiet: bool,
        cancelled: &AtomicBool,
    ) -> Result<BuiltEnds, (usize, BuildError)> {
        let mut built: Vec<(usize, BuiltKernel)> = Vec::new();
        for end in ends {
            let (Some(builds), Some(kernel)) = (&self.builds, self.cells[end]) else {
                return Err((end, BuildError::NothingToBuild));
            };
            let mut teller = Teller::new(quiet);
            let made = builds.carry_out_one(kernel, &mut |told| teller.tell(told), cancelled);
            teller.end();
            let made = made.map_err(|error| (end, error))?;
            if let Some((other, first)) = built.first() {
                builds.are_two_kernels((*other, first), (kernel, &made)).map_err(|error| (end, error))?;
            }
            built.push((kernel, made));
        }
        Ok(BuiltEnds { kernels: built.into_iter().map(|(_, kernel)| kernel).collect() })
    }

    /// What would be built for a cell.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: a patch that does not apply, no space.
    pub(super) fn planned_for(&self, cell: usize) -> Result<String, Failure> {
        match (&self.builds, self.cells.get(cell).copied().flatten()) {
            (Some(builds), Some(kernel)) => builds.plan_one(kernel).map_err(|error| failure(&error)),
            _ => Ok(String::new()),
        }
    }

    /// What would be built, a line each.
    ///
    /// # Errors
    /// A [`Failure`] with exit code 2: a patch that does not apply, or whose modules no trial loads; no space.
    pub(super) fn planned(&self, plan: &Plan, surroundings: &Surroundings) -> Result<Vec<String>, Failure> {
        let Some(builds) = &self.builds else { return Ok(Vec::new()) };
        let lines = builds.plan().map_err(|error| failure(&error))?;
        exercised::are_loaded(plan, surroundings, (builds, &self.cells))?;
        Ok(lines)
    }
}

/// The kernels of a search's ends, which stay in the cache while this is held.
pub(in crate::cli) struct BuiltEnds {
    kernels: Vec<BuiltKernel>,
}

impl BuiltEnds {
    /// What they were made of; `None`: that is not known of both.
    pub(in crate::cli) fn made_of(&self) -> Option<MadeOf> {
        BuiltKernel::made_of(&self.kernels)
    }
}

/// Builds what a run needs, if it is not built yet, and has its guests boot that.
///
/// # Errors
/// A [`Failure`]: with exit code 2 where the request is wrong, 1 where the build failed, 130 after a signal.
pub(super) fn build(prepared: &mut Prepared, quiet: bool, cancelled: &AtomicBool) -> Result<(), Failure> {
    note_images(prepared);
    as_before(prepared)?;
    if !prepared.kernels.are_to_be_built() {
        return Ok(());
    }
    let Some(builds) = &prepared.kernels.builds else { return Ok(()) };
    let of_cells = (builds, prepared.kernels.cells.as_slice());
    let unused = exercised::unused_filesystems(&prepared.plan, of_cells);
    let mut teller = Teller::new(quiet);
    let unpacked = builds.unpack(&mut |step| teller.tell(step), cancelled);
    let unpacked = unpacked.map_err(|error| failure(&error));
    let loaded =
        unpacked.and_then(|()| exercised::are_loaded(&prepared.plan, &prepared.surroundings, of_cells));
    let built = loaded.map(|()| builds.carry_out(&mut |step| teller.tell(step), cancelled));
    teller.end();
    let notes = builds.notes().into_iter().chain(unused);
    let built = built?.map_err(|error| failure(&error))?;
    for (at, target) in prepared.surroundings.targets.iter_mut().enumerate() {
        let kernel = prepared.kernels.cells.get(at).copied().flatten().map(|kernel| &built[kernel]);
        if let (Some(kernel), Some(setup)) = (kernel, &mut target.setup) {
            setup.settings.guest.kernel = Some(kernel.image.clone());
            setup.settings.guest.facts = kernel.facts.clone();
        }
    }
    for note in notes {
        if !quiet {
            let _ = writeln!(err(), "assay: {note}");
        }
        prepared.run.notes.push(note.into());
    }
    prepared.kernels.built = built;
    Ok(())
}

/// Which image a guest boots that nobody builds, by its bytes: a file of the same name may be another kernel when a run goes on.
const IMAGE: &str = "kernel.image_digest";
/// The same of the modules that a guest is given; the launcher sets it.
const MODULES: &str = "kernel.modules.digest";

fn note_images(prepared: &mut Prepared) {
    for target in &mut prepared.surroundings.targets {
        let Some(guest) = target.setup.as_mut().map(|setup| &mut setup.settings.guest) else { continue };
        if let Some(digest) = image_digest(guest) {
            guest.facts.retain(|(name, _)| name != IMAGE);
            guest.facts.push((IMAGE.to_owned(), digest));
        }
    }
}

fn image_digest(guest: &GuestSettings) -> Option<String> {
    let image = guest.kernel.as_deref().filter(|_| guest.build.source.is_none())?;
    digest_of(image).ok()
}

/// Refuses to explain trials of other kernels than those that guests would boot now.
///
/// # Errors
/// A [`Failure`] with exit code 2.
pub(super) fn same_images(run: &Run, prepared: &Prepared) -> Result<(), Failure> {
    let then: BTreeSet<&str> = run.facts.iter().filter_map(|facts| facts.get(IMAGE)).collect();
    let guests = prepared.plan.cells.iter().map(|cell| &cell.target.guest);
    let now: BTreeSet<String> = guests.filter_map(image_digest).collect();
    let booted = run.facts.iter().filter(|facts| facts.get(IMAGE).is_some());
    let loaded: BTreeSet<&str> = booted.filter_map(|facts| facts.get(MODULES)).collect();
    let loads = || Ok(modules_now(prepared)?.into_iter().flatten().collect::<BTreeSet<String>>());
    let all = |then: &BTreeSet<&str>, now: &BTreeSet<String>| then.iter().all(|digest| now.contains(*digest));
    // A kernel that no trial came back from is not known.
    if all(&then, &now) && (loaded.is_empty() || all(&loaded, &loads()?)) {
        return Ok(());
    }
    Err(Failure::request(
        "a kernel that its guests booted, or a module that they loaded, is another file now",
    )
    .hint("bring the kernels of that time back, or run it anew"))
}

/// The modules that the guest of each cell would be given now, as a digest.
fn modules_now(prepared: &Prepared) -> Result<Vec<Option<String>>, Failure> {
    let request = |cell| crate::run::request(&prepared.plan, &prepared.surroundings, cell, 0);
    let requests: Vec<Request> = (0..prepared.plan.cells.len()).map(request).collect();
    module_digests(&requests).map_err(unready)
}

/// What tells a kernel that nobody builds from others, with its modules.
fn with_modules(facts: &[(String, String)], modules: Option<&str>) -> Vec<(String, String)> {
    let is_image = facts.iter().any(|(name, _)| name == IMAGE);
    let modules = is_image.then(|| (MODULES.to_owned(), modules.unwrap_or("none").to_owned()));
    facts.iter().cloned().chain(modules).collect()
}

/// Steps that are kernels: each is built when it is first asked for.
pub(super) struct KernelSteps {
    kernels: Kernels,
    /// What the kernels of a search that goes on were, by step.
    earlier: BTreeMap<usize, HostFacts>,
    /// Those that are built by now.
    built: BTreeMap<usize, BuiltKernel>,
    /// Where guests have their files.
    place: PathBuf,
    quiet: bool,
}

impl KernelSteps {
    /// The kernels of a search; the run has none to build any more.
    pub(super) fn of(prepared: &mut Prepared, quiet: bool) -> KernelSteps {
        let run = &prepared.run;
        let facts =
            |trial: &Trial| Some((trial.cell as usize, run.facts.get(trial.facts? as usize)?.clone()));
        let earlier = run.trials.iter().filter(|trial| trial.status == Status::Done).filter_map(facts);
        let place = prepared.work.first().and_then(|path| path.parent()).unwrap_or(Path::new("."));
        KernelSteps {
            earlier: earlier.collect(),
            built: BTreeMap::new(),
            place: place.to_owned(),
            quiet,
            kernels: std::mem::take(&mut prepared.kernels),
        }
    }

    fn build(&self, step: usize, cancelled: &AtomicBool) -> Result<BuiltKernel, BuildError> {
        let (Some(builds), Some(kernel)) = (&self.kernels.builds, self.kernels.cells[step]) else {
            return Err(BuildError::NothingToBuild);
        };
        let mut teller = Teller::new(self.quiet);
        let built = builds.carry_out_one(kernel, &mut |told| teller.tell(told), cancelled);
        teller.end();
        built
    }
}

impl KernelSteps {
    /// Refuses ends that are one kernel, once both are built.
    fn ends_differ(&self) -> Result<(), BuildError> {
        let last = self.kernels.cells.len() - 1;
        let of = |step: usize| Some((self.kernels.cells[step]?, self.built.get(&step)?));
        match (&self.kernels.builds, of(0), of(last)) {
            (Some(builds), Some(good), Some(bad)) => builds.are_two_kernels(good, bad),
            _ => Ok(()),
        }
    }
}

impl Arms for KernelSteps {
    fn make(
        &mut self,
        step: usize,
        trial: &Request,
        launcher: &mut dyn Launcher,
        cancelled: &AtomicBool,
    ) -> Result<Made, LaunchError> {
        if let Some((builds, kernel)) = self.kernels.builds.as_ref().zip(self.kernels.cells[step])
            && let Some(earlier) = self.earlier.get(&step)
            && let Some((name, _)) = differing(&builds.identity(kernel), earlier)
        {
            return Ok(Made::Ends(another_one(&kernel_name(trial), name)));
        }
        let kernel = match self.build(step, cancelled) {
            Ok(kernel) => kernel,
            Err(BuildError::Interrupted { .. }) => return Err(LaunchError::Cancelled { left: Vec::new() }),
            Err(error) if error.is_of_the_revision() => {
                return Ok(Made::Cannot(cannot_be_built(&error)));
            }
            Err(error) => return Ok(ended_by(&error)),
        };
        self.built.insert(step, kernel);
        if let Err(error) = self.ends_differ() {
            return Ok(Made::Ends(failure(&error)));
        }
        let wanted = self.trial(step, trial.clone());
        let ready = launcher.expect(&wanted).and_then(|()| launcher.check(&self.place));
        Ok(ready.map_or_else(Made::Lacks, |()| Made::Ready))
    }

    fn trial(&self, step: usize, mut request: Request) -> Request {
        if let (Some(kernel), Some(setup)) = (self.built.get(&step), &mut request.target.setup) {
            setup.settings.guest.kernel = Some(kernel.image.clone());
            setup.settings.guest.facts = kernel.facts.clone();
        }
        request
    }
}

/// What a kernel to be built is called where it is another one.
fn kernel_name(trial: &Request) -> String {
    let build = trial.target.setup.as_ref().map(|setup| &setup.settings.guest.build);
    build.and_then(|build| build.revision.clone()).unwrap_or_default()
}

/// The first fact in which a kernel differs from what was booted earlier.
fn differing<'k>(kernel: &'k [(String, String)], earlier: &HostFacts) -> Option<&'k (String, String)> {
    let differs = |(name, value): &&(String, String)| earlier.get(name).is_some_and(|before| before != value);
    kernel.iter().find(differs)
}

fn another_one(kernel: &str, fact: &str) -> Failure {
    Failure::request(format!(
        "the kernel of {kernel} is another one now: its {fact} differs from that of the earlier rounds"
    ))
    .hint("bring source, patch, compiler or image of that time back, or run it anew")
}

/// Later rounds must be of the kernels of the earlier ones; of those that are built this is known before.
fn as_before(prepared: &Prepared) -> Result<(), Failure> {
    let run = &prepared.run;
    let guests = prepared.surroundings.targets.iter().filter_map(|target| target.setup.as_ref());
    let has_image = guests.flat_map(|setup| &setup.settings.guest.facts).any(|(name, _)| name == IMAGE);
    let goes_on = run.trials.iter().any(|trial| trial.facts.is_some());
    let modules = if has_image && goes_on { modules_now(prepared)? } else { Vec::new() };
    for (cell, target) in prepared.surroundings.targets.iter().enumerate() {
        let kernels = &prepared.kernels;
        let to_build = kernels.builds.as_ref().zip(kernels.cells.get(cell).copied().flatten());
        let now = match (to_build, &target.setup) {
            (Some((builds, kernel)), _) => builds.identity(kernel),
            (None, Some(setup)) => {
                let modules = modules.get(cell).and_then(Option::as_deref);
                with_modules(&setup.settings.guest.facts, modules)
            }
            (None, None) => Vec::new(),
        };
        let earlier =
            run.trials.iter().filter(|trial| trial.cell as usize == cell).filter_map(|trial| trial.facts);
        let mut earlier = earlier.filter_map(|facts| run.facts.get(facts as usize));
        let other = earlier.find_map(|facts| differing(&now, facts));
        if let Some((name, _)) = other {
            return Err(another_one(&prepared.plan.cells[cell].label, name));
        }
    }
    Ok(())
}

/// The kernel that a cell boots; `None`: it boots none that is built.
fn asked(cell: &CellSpec) -> Result<Option<Wanted>, Failure> {
    let guest = &cell.target.guest;
    let Some(source) = &guest.build.source else { return Ok(None) };
    let base = match &guest.kernel {
        None => None,
        Some(path) => {
            let opened = opened_kernel(path).map_err(unready)?;
            let modules = opened.modules.ok_or_else(|| {
                Failure::request(format!(
                    "there are no modules of {}, which the patch could be built into",
                    path.display()
                ))
                .hint("without kernel= a whole kernel is built from the source")
            })?;
            let beside = path.parent().map(PathBuf::from);
            let mut places: Vec<PathBuf> = beside.into_iter().chain(opened.packages).collect();
            places.dedup();
            Some(Base {
                release: opened.release,
                image: opened.image,
                modules,
                config: opened.config,
                places,
            })
        }
    };
    let options = if base.is_some() { Default::default() } else { options_for(cell) };
    Ok(Some(Wanted {
        source: source.clone(),
        revision: guest.build.revision.clone(),
        patches: guest.build.patches.iter().map(|path| file_of(path)).collect::<Result<_, Failure>>()?,
        config: guest.build.config.clone(),
        base,
        options,
    }))
}

/// What a whole kernel must have for a cell's target and job.
fn options_for(cell: &CellSpec) -> BTreeSet<String> {
    let jobs = cell.workload.iter().flat_map(|workload| &workload.jobs);
    let of_jobs = jobs.filter_map(|job| job.method.kernel_option()).map(str::to_owned);
    kernel_options(&cell.target).into_iter().chain(of_jobs).collect()
}

/// The file of a patch; one that is part of the program is written into the cache.
fn file_of(patch: &Path) -> Result<PathBuf, Failure> {
    let called = patch.to_string_lossy();
    let Some(text) = own_patch(&called) else { return Ok(patch.to_owned()) };
    directory("patches").map_err(|error| Failure::tool(&error)).and_then(|place| {
        let path = place.join(format!("{}.patch", called.trim_start_matches(OWN_PATCH)));
        let temporary = tempfile::NamedTempFile::new_in(&place)
            .and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file))
            .and_then(|file| file.persist(&path).map_err(|error| error.error));
        temporary.map_err(|error| Failure::tool(format!("cannot write {}: {error}", path.display())))?;
        Ok(path)
    })
}

pub(super) fn unready(Unready { reason, hint }: Unready) -> Failure {
    Failure::request(reason).hint(hint)
}

/// What is said of a step of which no kernel can be made.
pub(super) fn cannot_be_built(error: &BuildError) -> String {
    format!("it cannot be built: {error}")
}

pub(super) fn failure(error: &BuildError) -> Failure {
    let failure = match error {
        BuildError::Interrupted { .. } => Failure::interrupted(error),
        _ if error.is_of_the_request() => Failure::request(error),
        _ => Failure::tool(error),
    };
    failure.hint(error.hint())
}

/// The same for a search that has begun: what the machine lacks, it may have later.
pub(in crate::cli) fn ended_by(error: &BuildError) -> Made {
    // The search was begun with that kernel, and goes on with no other.
    if matches!(error, BuildError::NotAModule { .. }) {
        return Made::Ends(failure(error));
    }
    Made::Lacks(Unready { reason: error.to_string(), hint: error.hint() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_other_modules_is_another_one() {
        let image = vec![(IMAGE.to_owned(), "1".to_owned())];
        let mut earlier = HostFacts::default();
        earlier.set(IMAGE, "1");
        let other = |modules: Option<&str>, earlier: &HostFacts| {
            differing(&with_modules(&image, modules), earlier).map(|(name, _)| name.clone())
        };
        assert_eq!(other(Some("a"), &earlier), None, "earlier assays kept none");
        earlier.set(MODULES, "a");
        assert_eq!(other(Some("a"), &earlier), None);
        assert_eq!(other(Some("b"), &earlier).as_deref(), Some(MODULES));
        assert_eq!(other(None, &earlier).as_deref(), Some(MODULES), "they are gone");
        assert!(with_modules(&[], Some("a")).is_empty(), "what is built is known by what it is built of");
    }
}
