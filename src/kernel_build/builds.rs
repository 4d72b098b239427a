//! Everything that a run needs built: looked at before anything is begun, built one after the other, each once.
//!
//! Enters: [`Wanted`] kernels. Leaves: for each an image with its modules in the cache, and the facts that tell it from others.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use super::build::{Build, BuiltKernel, Kind, Resolved};
use super::error::BuildError;
use super::overlay::Overlay;
use super::patch::Patch;
use super::progress::{self, Step};
use super::source::{Files, Source};
use super::touched::{self, Module};
use super::wanted::{Base, Wanted};
use super::{compiled, entries, room};

/// What a room takes in addition where it has nearly all objects.
const CHANGES_MIB: u64 = 200;
/// Some modules with what debuggers want, the headers, and the kernel's own files where they cannot be shared.
const MODULES_MIB: u64 = 500;
/// Finished kernels.
const FINISHED_MIB: u64 = 100;

/// All kernels of a run, in the order they were asked for.
pub struct Builds {
    all: Vec<Build>,
    /// Looked for once: that may mean reading many revisions.
    modules: OnceCell<Vec<(Base, BTreeSet<Module>)>>,
    /// What was seen when their patches were tried.
    doubts: RefCell<BTreeSet<String>>,
}

impl Builds {
    /// Looks at everything that can be seen without unpacking or building.
    ///
    /// # Errors
    /// A source, patch or configuration that is none, programs that are missing.
    pub fn look(all_wanted: &[Wanted]) -> Result<Builds, BuildError> {
        let mut sources: BTreeMap<(PathBuf, Option<String>), Source> = BTreeMap::new();
        let mut all: Vec<Build> = Vec::new();
        for wanted in all_wanted {
            let key = (wanted.source.clone(), wanted.revision.clone());
            let source = match sources.get(&key) {
                Some(source) => source.clone(),
                None => sources
                    .entry(key)
                    .or_insert(Source::open(&wanted.source, wanted.revision.as_deref())?)
                    .clone(),
            };
            let patches =
                wanted.patches.iter().map(|path| Patch::read(path)).collect::<Result<Vec<_>, _>>()?;
            let (kind, compiler) = Kind::of(wanted, all_wanted)?;
            all.push(Build { wanted: wanted.clone(), source, patches, compiler, kind });
        }
        let builds = Builds::of(all);
        builds.no_idle_modules()?;
        Ok(builds)
    }

    fn of(all: Vec<Build>) -> Builds {
        Builds { all, modules: OnceCell::new(), doubts: RefCell::default() }
    }

    /// Whether each kernel is built whole, and none from patched modules alone.
    #[must_use]
    pub fn are_whole(&self) -> bool {
        self.all.iter().all(|build| matches!(build.kind, Kind::Whole(_)))
    }

    /// Modules are chosen by patches, and by what revisions differ in: there must be one, or two of the other.
    fn no_idle_modules(&self) -> Result<(), BuildError> {
        let is_idle = |build: &&Build| {
            let Kind::Modules(base, _) = &build.kind else { return false };
            let alike = |other: &&Build| {
                other.patches.is_empty() && other.source.all_digest() == build.source.all_digest()
            };
            self.of_base(base).all(|other| alike(&other))
        };
        if self.all.iter().any(|build| is_idle(&build)) { Err(BuildError::NothingToBuild) } else { Ok(()) }
    }

    /// The kernels that are one with other modules.
    fn of_base<'b>(&'b self, base: &'b Base) -> impl Iterator<Item = &'b Build> {
        self.all.iter().filter(move |build| build.wanted.base.as_ref() == Some(base))
    }

    /// The modules that are built for each of the kernels that have modules replaced: the same ones in all levels of one kernel.
    fn modules(&self) -> Result<&[(Base, BTreeSet<Module>)], BuildError> {
        if let Some(known) = self.modules.get() {
            return Ok(known);
        }
        let mut all: Vec<(Base, BTreeSet<Module>)> = Vec::new();
        for build in &self.all {
            if let Kind::Modules(base, _) = &build.kind
                && !all.iter().any(|(known, _)| known == base)
            {
                all.push((base.clone(), self.modules_of(base)?));
            }
        }
        Ok(self.modules.get_or_init(|| all))
    }

    fn modules_of(&self, base: &Base) -> Result<BTreeSet<Module>, BuildError> {
        let mut modules = BTreeSet::new();
        for build in self.of_base(base) {
            let patches: Vec<&Patch> = build.patches.iter().collect();
            modules.extend(touched::changed(&patches, &build.source, base)?);
        }
        let revisions: Vec<&Source> = self.of_base(base).map(|build| &build.source).collect();
        let (Some(first), Some(last)) = (revisions.first(), revisions.last()) else { return Ok(modules) };
        let mut touched = BTreeSet::new();
        for revision in &revisions {
            touched.extend(first.differs(revision)?);
        }
        let by = PathBuf::from(format!("what differs between {} and {}", first.name(), last.name()));
        let (before, after): (Files<'_>, Files<'_>) = (&|name| first.file(name), &|name| last.file(name));
        modules.extend(touched::of_files(touched.iter().map(String::as_str), &[before, after], base, &by)?);
        if modules.is_empty() { Err(BuildError::NothingToBuild) } else { Ok(modules) }
    }

    /// One kernel as it will be built; its source can be read.
    fn resolved_one(&self, build: &Build) -> Result<Resolved, BuildError> {
        let modules = match &build.kind {
            Kind::Whole(_) => BTreeSet::new(),
            Kind::Modules(base, _) => {
                let of_base = self.modules()?.iter().find(|(known, _)| known == base);
                of_base.map(|(_, modules)| modules.clone()).unwrap_or_default()
            }
        };
        Ok((build.key(&modules)?, modules))
    }

    /// Kernels as they will be built: the key of each, with the modules that its arms need; `None`: its source has to be unpacked
    /// before that is known.
    fn resolved(&self) -> Result<Option<Vec<Resolved>>, BuildError> {
        if !self.all.iter().all(|build| build.source.is_readable()) {
            return Ok(None);
        }
        self.all.iter().map(|build| self.resolved_one(build)).collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// What would be done, in lines for people, and what cannot be: nothing is unpacked or built.
    ///
    /// # Errors
    /// A patch that does not apply, where that can be seen already; not enough space.
    pub fn plan(&self) -> Result<Vec<String>, BuildError> {
        let resolved = self.resolved()?;
        self.check(resolved.is_some())?;
        let mut lines: Vec<String> = Vec::new();
        let mut seconds = 0.0;
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let mut rooms: BTreeMap<String, &str> = BTreeMap::new();
        let mut at_most = "";
        if resolved.is_none() {
            lines.push("unpacks the source first: about half a minute, 1.6 GB in the cache".to_owned());
            seconds += 30.0;
        }
        for at in self.order() {
            let build = &self.all[at];
            let known = resolved.as_ref().map(|all| &all[at]);
            if known.is_some_and(|(key, _)| !seen.insert(key.clone())) {
                continue;
            }
            let what = build.described(known.map(|(_, modules)| modules));
            if known.is_some_and(|(key, _)| entries::is_there(entries::BUILT, key)) {
                lines.push(format!("{what}: is in the cache"));
                continue;
            }
            let before = rooms.insert(build.shares_objects_of(), build.source.digest.as_str());
            let (limit, time) = expected(build, before);
            if !limit.is_empty() {
                at_most = limit;
            }
            seconds += time;
            lines.push(format!("{what}: {limit}{}", progress::about(time)));
        }
        if seconds > 0.0 {
            lines.push(format!("together {at_most}{}", progress::about(seconds)));
        }
        lines.extend(self.notes());
        Ok(lines)
    }

    /// What a reader of the results should know of the sources.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = Vec::new();
        for (at, build) in self.all.iter().enumerate() {
            let uncommitted = build.source.uncommitted.as_ref().map(|patch| {
                format!(
                    "{} has uncommitted changes in {} files (digest {}), which are built, too",
                    build.source.path.display(),
                    patch.touched.len(),
                    patch.digest
                )
            });
            let twin = self.all[..at].iter().find(|other| other.is_the_same_as(build)).map(|other| {
                let [one, other] = [other, build].map(|build| build.described(None));
                format!("{one} and {other} have the same content: a kernel is compared with itself")
            });
            notes.extend(uncommitted.filter(|note| !notes.contains(note)).into_iter().chain(twin));
        }
        notes.extend(self.doubts.borrow().iter().cloned());
        notes
    }

    /// Builds all of them; what is in the cache is not built again.
    ///
    /// # Errors
    /// The first thing that went wrong; nothing half built is left.
    pub fn carry_out(
        &self,
        say: &mut dyn FnMut(&Step<'_>),
        cancelled: &AtomicBool,
    ) -> Result<Vec<BuiltKernel>, BuildError> {
        self.room_for(&self.all)?;
        // None of them is removed while another one is unpacked or built.
        let unpacked = self.all.iter().map(|build| build.unpacked(say, cancelled));
        let _kept = unpacked.collect::<Result<Vec<_>, _>>()?;
        let Some(resolved) = self.resolved()? else {
            let found = "cannot be read after it was unpacked".to_owned();
            let path = self.all.first().map(|build| build.source.path.clone()).unwrap_or_default();
            return Err(BuildError::NoSource { path, found });
        };
        self.check(true)?;
        self.configure(&resolved, say, cancelled)?;
        let mut built: BTreeMap<usize, BuiltKernel> = BTreeMap::new();
        for at in self.order() {
            built.insert(at, self.all[at].built(&resolved[at], say, cancelled)?);
        }
        let built: Vec<BuiltKernel> = built.into_values().collect();
        for at in 0..built.len() {
            (0..at).try_for_each(|other| self.are_two_kernels((other, &built[other]), (at, &built[at])))?;
        }
        Ok(built)
    }

    /// Unpacks the sources, after which all that is not compiled is known of them.
    ///
    /// # Errors
    /// Not enough space; an archive that is none.
    pub fn unpack(&self, say: &mut dyn FnMut(&Step<'_>), cancelled: &AtomicBool) -> Result<(), BuildError> {
        self.room_for(&self.all)?;
        self.all.iter().try_for_each(|build| build.unpacked(say, cancelled).map(drop))
    }

    /// The order in which they are built: those with patches first, because most mistakes are in these, and all together take as long.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.all.len()).collect();
        order.sort_by_key(|at| self.all[*at].patches.is_empty());
        order
    }

    /// Has the kernel's own tools look at each configuration, and at the options that patches bring, before anything is compiled. The first
    /// kernel is built next, which looks at its own; revisions of one source are not laid out for it.
    fn configure(
        &self,
        resolved: &[Resolved],
        say: &mut dyn FnMut(&Step<'_>),
        cancelled: &AtomicBool,
    ) -> Result<(), BuildError> {
        let mut seen: BTreeSet<(String, Vec<&str>)> = BTreeSet::new();
        let order = self.order().into_iter();
        for at in order.filter(|at| !entries::is_there(entries::BUILT, &resolved[*at].0)) {
            let build = &self.all[at];
            let Some(room) = build.room_key() else { continue };
            let is_first = seen.is_empty();
            let of_options = build.patches.iter().filter(|patch| patch.changes_options());
            let is_new = seen.insert((room, of_options.map(|patch| patch.digest.as_str()).collect()));
            if is_new && !is_first {
                build.configured(say, cancelled)?;
            }
        }
        Ok(())
    }

    /// What tells one of them from others, as far as that is known before it is built.
    #[must_use]
    pub fn identity(&self, at: usize) -> Vec<(String, String)> {
        self.all[at].identity()
    }

    /// The names of the modules that are built for one of them; `None`: it is a whole kernel, or its source is not unpacked yet.
    ///
    /// # Errors
    /// A patch of something that is in no module; the source cannot be read.
    pub fn modules_to_build(&self, at: usize) -> Result<Option<Vec<String>>, BuildError> {
        let build = &self.all[at];
        if matches!(build.kind, Kind::Whole(_)) || !build.source.is_readable() {
            return Ok(None);
        }
        let (_, modules) = self.resolved_one(build)?;
        Ok(Some(modules.into_iter().map(|module| module.name).collect()))
    }

    /// The files that the patches of modules change whose source is not unpacked yet, so that nobody knows the modules.
    #[must_use]
    pub fn files_of_modules(&self, at: usize) -> BTreeSet<&str> {
        let build = &self.all[at];
        let is_known = matches!(build.kind, Kind::Whole(_)) || build.source.is_readable();
        let patches = build.patches.iter().filter(|_| !is_known);
        patches.flat_map(|patch| patch.touched.iter().map(String::as_str)).collect()
    }

    /// The files that the patches of a whole kernel change; empty: it has none, or modules alone are built.
    #[must_use]
    pub fn patched_files(&self, at: usize) -> BTreeSet<&str> {
        let build = &self.all[at];
        let patches = build.patches.iter().filter(|_| matches!(build.kind, Kind::Whole(_)));
        patches.flat_map(|patch| patch.touched.iter().map(String::as_str)).collect()
    }

    /// Refuses two kernels of which neither is made of anything in which their sources differ: nothing is compared with itself
    /// unasked. Sources of the same content are another thing ([`Builds::notes`]).
    ///
    /// # Errors
    /// [`BuildError::OneKernel`]; the sources cannot be compared.
    pub fn are_two_kernels(
        &self,
        (one, first): (usize, &BuiltKernel),
        (other, second): (usize, &BuiltKernel),
    ) -> Result<(), BuildError> {
        let [one, other] = [&self.all[one], &self.all[other]];
        let sources = [&one.source, &other.source];
        if one.source.all_digest() == other.source.all_digest() || !one.differs_in_source_alone(other) {
            return Ok(());
        }
        let (Some(first), Some(second)) = (first.compiled(), second.compiled()) else { return Ok(()) };
        let differing = differing(sources)?;
        one_kernel(sources, compiled::left_out(differing.iter().map(String::as_str), &[&first, &second]))
    }

    /// Refuses two kernels whose sources differ in what no kernel is made of, which needs no build to be known.
    fn differ_in_more_than_words(&self) -> Result<(), BuildError> {
        for (at, one) in self.all.iter().enumerate() {
            let others = self.all[..at].iter().filter(|other| {
                one.source.all_digest() != other.source.all_digest() && one.differs_in_source_alone(other)
            });
            for other in others {
                let sources = [&other.source, &one.source];
                let differing = differing(sources)?;
                one_kernel(sources, compiled::all_apart(differing.iter().map(String::as_str)))?;
            }
        }
        Ok(())
    }

    /// Builds one of them, the others being built some other time or never. It is of a source that needs no unpacking.
    ///
    /// # Errors
    /// What went wrong; nothing half built is left.
    pub fn carry_out_one(
        &self,
        at: usize,
        say: &mut dyn FnMut(&Step<'_>),
        cancelled: &AtomicBool,
    ) -> Result<BuiltKernel, BuildError> {
        let build = &self.all[at];
        self.room_for(std::slice::from_ref(build))?;
        let patches: Vec<&Patch> = build.patches.iter().collect();
        Overlay::of(&build.source, &patches)?;
        build.has_keys()?;
        build.built(&self.resolved_one(build)?, say, cancelled)
    }

    /// The same of one kernel as [`Builds::plan`] says of all.
    ///
    /// # Errors
    /// A patch that does not apply; not enough space.
    pub fn plan_one(&self, at: usize) -> Result<String, BuildError> {
        let build = &self.all[at];
        self.room_for(std::slice::from_ref(build))?;
        let (key, modules) = self.resolved_one(build)?;
        let what = build.described(Some(&modules));
        if entries::is_there(entries::BUILT, &key) {
            return Ok(format!("{what}: is in the cache"));
        }
        let (limit, time) = expected(build, None);
        Ok(format!("{what}: {limit}{}", progress::about(time)))
    }

    /// What can be wrong without a compiler.
    fn check(&self, readable: bool) -> Result<(), BuildError> {
        for build in self.all.iter().filter(|_| readable) {
            let patches: Vec<&Patch> = build.patches.iter().collect();
            self.doubts.borrow_mut().extend(Overlay::of(&build.source, &patches)?.note());
            build.has_keys()?;
        }
        self.differ_in_more_than_words()?;
        self.room_for(&self.all)
    }

    /// Whether a kernel is in the cache, so that nothing is built.
    fn is_there(&self, build: &Build) -> bool {
        build.source.is_readable()
            && self.resolved_one(build).is_ok_and(|(key, _)| entries::is_there(entries::BUILT, &key))
    }

    /// Whether there is space for those of these that are not there.
    fn room_for(&self, builds: &[Build]) -> Result<(), BuildError> {
        let missing: Vec<&Build> = builds.iter().filter(|build| !self.is_there(build)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let mut sources: BTreeMap<&str, u64> = BTreeMap::new();
        for build in builds {
            sources.insert(&build.source.digest, build.source.needed_mib());
        }
        let mut rooms: BTreeMap<String, u64> = BTreeMap::new();
        for build in missing {
            let Some(whole) = build.whole() else {
                rooms.insert(build.shares_objects_of(), MODULES_MIB);
                continue;
            };
            let objects_mib = (whole.size.mib as f64 * progress::lacking(&whole)) as u64;
            let tree_mib = if room::is_filled(&whole.room) { 0 } else { build.source.tree_mib() };
            rooms.insert(whole.room, (objects_mib + tree_mib).max(CHANGES_MIB));
        }
        let needed_mib = sources.values().sum::<u64>() + rooms.values().sum::<u64>() + FINISHED_MIB;
        let place = crate::sys::cache::directory(entries::BUILT)?;
        let found = rustix::fs::statvfs(&place)
            .map_err(|error| BuildError::io("cannot look at", &place)(error.into()))?;
        let free_mib = (found.f_bavail * found.f_frsize) >> 20;
        if free_mib < needed_mib { Err(BuildError::NoSpace { place, needed_mib, free_mib }) } else { Ok(()) }
    }
}

/// The files in which two sources differ, with what is not committed in either.
fn differing(sources: [&Source; 2]) -> Result<BTreeSet<String>, BuildError> {
    let mut differing: BTreeSet<String> = sources[0].differs(sources[1])?.into_iter().collect();
    let uncommitted = sources.into_iter().filter_map(|source| source.uncommitted.as_ref());
    differing.extend(uncommitted.flat_map(|patch| patch.touched.iter().cloned()));
    Ok(differing)
}

/// Refuses two sources that are one kernel, as one of the files in which they differ shows.
fn one_kernel(sources: [&Source; 2], file: Option<&str>) -> Result<(), BuildError> {
    let Some(file) = file else { return Ok(()) };
    let [one, other] = sources.map(Source::name);
    Err(BuildError::OneKernel { one, other, file: file.to_owned() })
}

/// About how long a kernel takes, in seconds, and the word before that where it is a limit. `before` is the digest of the source that was built
/// before it in the same room; without it, what an earlier run has left there counts.
fn expected(build: &Build, before: Option<&str>) -> (&'static str, f64) {
    let (whole, source) = (build.whole(), build.source.digest.as_str());
    let left_there = whole.as_ref().and_then(|whole| room::source_in(&whole.room));
    // How much two revisions have in common, only make knows.
    if before.or(left_there.as_deref()).is_some_and(|other| other != source) {
        return ("at most ", progress::at_most_s(whole.as_ref()));
    }
    ("", progress::expected_s(whole.as_ref(), before.is_some()))
}

#[cfg(test)]
mod tests;
