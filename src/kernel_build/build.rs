//! One kernel of a run: its key in the cache, what it is called, and how it gets there.
//!
//! Enters: a [`Wanted`] kernel with its source, patches and compiler. Leaves: an image with its modules in the cache, with its facts.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::compiled::{Compiled, MadeOf};
use super::config::Configuration;
use super::entries::{self, Entry, Kept};
use super::error::BuildError;
use super::headers::Headers;
use super::make::Watch;
use super::patch::Patch;
use super::progress::{Meter, Step, Whole};
use super::size::Size;
use super::source::{self, Source};
use super::tools::{self, Compiler};
use super::touched::Module;
use super::wanted::{Base, Wanted};
use super::{digests, logs, modules, room, tree, whole};

/// Changes whenever kernels are built in another way.
const VERSION: &str = "assay kernel 2";
/// The same of modules alone, so that whole kernels are not built again.
const MODULES_VERSION: &str = "modules, stripped";

/// The directory of a kernel in the cache that has the text of its patches.
const PATCHES: &str = "patches";
/// Larger ones are not kept there.
const MOST_PATCH: usize = 1 << 20;
/// Letters of their names.
const LONGEST_NAME: usize = 80;

/// A kernel that was built.
#[derive(Debug)]
pub struct BuiltKernel {
    /// What is booted; its modules lie in `../lib/modules/RELEASE`.
    pub image: PathBuf,
    /// What tells it from others: source, patch, compiler.
    pub facts: Vec<(String, String)>,
    held: Entry,
}

impl BuiltKernel {
    /// The files that it was made of; `None`: that is not known.
    pub(super) fn compiled(&self) -> Option<Compiled> {
        Compiled::kept(&self.held.path)
    }

    /// What these were made of; `None`: that is not known of each.
    #[must_use]
    pub fn made_of(kernels: &[BuiltKernel]) -> Option<MadeOf> {
        kernels.iter().map(BuiltKernel::compiled).collect::<Option<_>>().map(MadeOf::of)
    }
}

/// One kernel, looked at.
pub(super) struct Build {
    pub(super) wanted: Wanted,
    pub(super) source: Source,
    pub(super) patches: Vec<Patch>,
    pub(super) compiler: Compiler,
    pub(super) kind: Kind,
}

/// The key of a kernel in the cache, and the modules that are built for it.
pub(super) type Resolved = (String, BTreeSet<Module>);

pub(super) enum Kind {
    Modules(Base, Headers),
    Whole(Configuration),
}

impl Kind {
    /// What is built, and with what.
    pub(super) fn of(wanted: &Wanted, all_wanted: &[Wanted]) -> Result<(Kind, Compiler), BuildError> {
        if let Some(base) = &wanted.base {
            let headers = Headers::find(&base.release, &base.places)?;
            let asked = headers.compiler(&base.release)?;
            return Ok((Kind::Modules(base.clone(), headers), tools::compiler(None, asked.as_deref())?));
        }
        // All arms with this configuration have the same one.
        let same = all_wanted.iter().filter(|other| other.base.is_none() && other.config == wanted.config);
        let options: BTreeSet<String> = same.flat_map(|other| other.options.iter().cloned()).collect();
        let configuration = Configuration::read(wanted.config.as_deref(), &options)?;
        let compiler = tools::compiler(Some(&configuration), None)?;
        Ok((Kind::Whole(configuration), compiler))
    }
}

impl Build {
    /// Whether two are one kernel under different names.
    pub(super) fn is_the_same_as(&self, other: &Build) -> bool {
        self.differs_in_source_alone(other) && self.source.all_digest() == other.source.all_digest()
    }

    /// Whether both are made of their sources in the same way, with the same patches in the same order.
    pub(super) fn differs_in_source_alone(&self, other: &Build) -> bool {
        let digests = |build: &Build| -> Vec<String> {
            build.patches.iter().map(|patch| patch.digest.clone()).collect()
        };
        let alike = match (&self.kind, &other.kind) {
            (Kind::Whole(one), Kind::Whole(other)) => one.digest == other.digest,
            (Kind::Modules(one, _), Kind::Modules(other, _)) => one == other,
            _ => false,
        };
        alike && digests(self) == digests(other)
    }

    /// Everything that makes another kernel of it.
    pub(super) fn key(&self, modules: &BTreeSet<Module>) -> Result<String, BuildError> {
        let mut pieces = vec![
            VERSION.to_owned(),
            self.source.all_digest(),
            std::env::consts::ARCH.to_owned(),
            self.compiler.version.clone(),
            tools::version("ld"),
        ];
        pieces.extend(self.patches.iter().map(|patch| patch.digest.clone()));
        match &self.kind {
            Kind::Modules(base, headers) => {
                pieces.extend([
                    MODULES_VERSION.to_owned(),
                    base.release.clone(),
                    digests::of_file(&base.image)?,
                    tree::listing(&base.modules)?,
                    headers.digest()?,
                ]);
                pieces.extend(modules.iter().map(|module| format!("{}/{}", module.directory, module.name)));
            }
            Kind::Whole(configuration) => pieces.extend(["whole".to_owned(), configuration.digest.clone()]),
        }
        Ok(digests::of_texts(pieces.iter().map(String::as_str)))
    }

    /// The room a whole kernel is built in: kernels of the same source and configuration share their objects, and so do revisions of
    /// the same repository.
    pub(super) fn room_key(&self) -> Option<String> {
        match &self.kind {
            Kind::Whole(configuration) => Some(whole::room_key(&self.source, configuration, &self.compiler)),
            Kind::Modules(..) => None,
        }
    }

    /// The room that a whole kernel is built in, and about how much there is to build.
    pub(super) fn whole(&self) -> Option<Whole> {
        let Kind::Whole(configuration) = &self.kind else { return None };
        Some(Whole { room: self.room_key()?, size: Size::of(configuration) })
    }

    /// What this has in common with others that compile nothing twice.
    pub(super) fn shares_objects_of(&self) -> String {
        let [kind, of] = room::source_key(&self.source);
        let of_modules = |base: &Base| format!("modules of {} of {kind} {of}", base.release);
        match &self.kind {
            Kind::Modules(base, _) => of_modules(base),
            Kind::Whole(_) => self.room_key().unwrap_or_default(),
        }
    }

    pub(super) fn described(&self, modules: Option<&BTreeSet<Module>>) -> String {
        let patches: Vec<String> = self.patches.iter().map(Patch::name).collect();
        let with =
            if patches.is_empty() { String::new() } else { format!(" with {}", patches.join(" and ")) };
        let what = match (&self.kind, modules) {
            (Kind::Modules(base, _), Some(modules)) => {
                let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
                format!("{} of {}", names.join(", "), base.release)
            }
            (Kind::Modules(base, _), None) => format!("modules of {}", base.release),
            (Kind::Whole(configuration), _) => format!("a kernel ({})", configuration.name),
        };
        format!("{what} from {}{with}", self.source.name())
    }

    /// What tells it from others, and the commit that people know it by: the same files may have been committed twice.
    fn facts(&self) -> Vec<(String, String)> {
        let mut facts = self.identity();
        if let source::Kind::Git(commit) = &self.source.kind {
            let more = if self.source.uncommitted.is_some() { "-dirty" } else { "" };
            let names = commit.names(&self.source.path).into_iter();
            facts.extend(names.map(|(name, value)| (name.to_owned(), format!("{value}{more}"))));
        }
        facts
    }

    /// What tells it from others, as far as that is known before it is built.
    pub(super) fn identity(&self) -> Vec<(String, String)> {
        let patch = match self.patches.as_slice() {
            [] => "none".to_owned(),
            [one] => one.digest.clone(),
            several => digests::of_texts(several.iter().map(|patch| patch.digest.as_str())),
        };
        let pairs = [
            ("kernel.source_digest", self.source.all_digest()),
            ("kernel.patch_digest", patch),
            ("kernel.compiler", self.compiler.version.clone()),
        ];
        // A file of the same name may ask for another kernel when a run goes on.
        let asked = match &self.kind {
            Kind::Whole(configuration) => Some(("kernel.build.config_digest", configuration.digest.clone())),
            Kind::Modules(..) => None,
        };
        pairs.into_iter().chain(asked).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Whether the source has the files of keys that the configuration names: it would only be told at the end.
    ///
    /// # Errors
    /// [`BuildError::Configuration`].
    pub(super) fn has_keys(&self) -> Result<(), BuildError> {
        let Kind::Whole(configuration) = &self.kind else { return Ok(()) };
        for (option, file) in configuration.keys() {
            let is_there = match Path::new(file).is_absolute() {
                true => Path::new(file).is_file(),
                false => {
                    let patches = self.patches.iter().chain(&self.source.uncommitted);
                    patches.into_iter().any(|patch| patch.touched.contains(file))
                        || self.source.file(file)?.is_some()
                }
            };
            if !is_there {
                return Err(BuildError::Configuration {
                    what: format!(
                        "{}: CONFIG_{option} names {file}, which the source does not have",
                        configuration.name
                    ),
                    hint: format!("set CONFIG_{option}=\"\": the keys are of whoever built that kernel"),
                });
            }
        }
        Ok(())
    }

    /// Has the kernel's own tools make its configuration, and looks at that; nothing is compiled.
    ///
    /// # Errors
    /// What is missing in it; what make said.
    pub(super) fn configured(
        &self,
        say: &mut dyn FnMut(&Step<'_>),
        cancelled: &AtomicBool,
    ) -> Result<(), BuildError> {
        let Kind::Whole(configuration) = &self.kind else { return Ok(()) };
        let what = self.described(None);
        let configuring = format!("configuring {what}");
        let step = Step { what: &configuring, objects: 0, of: 0, left_s: None, is_limit: false };
        say(&step);
        let log = logs::log(&format!("configure-{}", configuration.digest))?;
        let objects: &mut dyn FnMut(u64) = &mut |_| ();
        let mut watch = Watch {
            log: &log.path,
            doing: "configuring",
            what: &what,
            cancelled,
            objects,
            locks: Vec::new(),
        };
        let patches: Vec<&Patch> = self.patches.iter().collect();
        let (source, compiler) = (&self.source, &self.compiler);
        let building = whole::Building { source, patches: &patches, configuration, compiler };
        let room = building.room(&watch, &mut || say(&step))?;
        building.configure(&room, &mut watch)
    }

    pub(super) fn built(
        &self,
        (key, modules): &Resolved,
        say: &mut dyn FnMut(&Step<'_>),
        cancelled: &AtomicBool,
    ) -> Result<BuiltKernel, BuildError> {
        let entry = self.made(key, modules, say, cancelled)?;
        let image = image_in(&entry.path)?;
        Ok(BuiltKernel { image, facts: self.facts(), held: entry })
    }

    /// Its source where files can be read, which stays while this is held.
    pub(super) fn unpacked(
        &self,
        say: &mut dyn FnMut(&Step<'_>),
        cancelled: &AtomicBool,
    ) -> Result<Option<Kept>, BuildError> {
        if let source::Kind::Git(_) = self.source.kind {
            return Ok(None);
        }
        if let Some(kept) = self.source.kept() {
            return Ok(Some(kept));
        }
        let what = self.source.name();
        say(&Step { what: &format!("unpacking {what}"), objects: 0, of: 0, left_s: None, is_limit: false });
        let log = logs::log(&format!("unpack-{}", self.source.digest))?;
        let objects: &mut dyn FnMut(u64) = &mut |_| ();
        let mut watch =
            Watch { log: &log.path, doing: "unpacking", what: &what, cancelled, objects, locks: Vec::new() };
        self.source.unpacked(&mut watch)
    }

    fn made(
        &self,
        key: &str,
        modules: &BTreeSet<Module>,
        say: &mut dyn FnMut(&Step<'_>),
        cancelled: &AtomicBool,
    ) -> Result<Entry, BuildError> {
        if let Some(entry) = entries::found(entries::BUILT, key) {
            return Ok(entry);
        }
        let what = self.described(Some(modules));
        let log = logs::log(key)?;
        let whole = self.whole();
        let meter = Meter::new(format!("building {what}"), whole.as_ref());
        // Who waits for a room tells, too.
        let say = RefCell::new(say);
        let mut objects = |count| say.borrow_mut()(&meter.step(count));
        let mut watch = Watch {
            log: &log.path,
            doing: "building",
            what: &what,
            cancelled,
            objects: &mut objects,
            locks: Vec::new(),
        };
        let patches: Vec<&Patch> = self.patches.iter().collect();
        let building = self.building(&patches, modules);
        // What another assay builds in this room meanwhile is found afterwards, and not built again.
        let waits = format!("{what} waits for another assay, which builds in the same directory");
        let waits = Step { what: &waits, objects: 0, of: 0, left_s: None, is_limit: false };
        let room = building.room(&watch, &mut || say.borrow_mut()(&waits))?;
        meter.compiles(building.directories(&room));
        let entry = entries::made(entries::BUILT, key, &mut |into, lock| {
            let watch = &mut watch.holding(lock);
            building.build(&room, into, watch)?;
            // With what it was built of, for whoever looks into the cache.
            let _ = std::fs::copy(&log.path, into.join("build.log"));
            self.keep_patches(into)?;
            Ok(())
        })?;
        meter.finished(whole.as_ref());
        Ok(entry)
    }

    /// Keeps the text of its patches with it, those of a reasonable size, under names that trials can have files of.
    fn keep_patches(&self, into: &Path) -> Result<(), BuildError> {
        let all = self.source.uncommitted.iter().chain(&self.patches).enumerate();
        let place = into.join(PATCHES);
        for (number, patch) in all.filter(|(_, patch)| patch.bytes().len() <= MOST_PATCH) {
            std::fs::create_dir_all(&place).map_err(BuildError::io("cannot make", &place))?;
            let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
            let name: String = patch.name().chars().take(LONGEST_NAME).map(plain).collect();
            let path = place.join(format!("patch-{}-{name}", number + 1));
            std::fs::write(&path, patch.bytes()).map_err(BuildError::io("cannot write", &path))?;
        }
        Ok(())
    }

    fn building<'b>(&'b self, patches: &'b [&'b Patch], modules: &'b BTreeSet<Module>) -> Building<'b> {
        let (source, compiler) = (&self.source, &self.compiler);
        match &self.kind {
            Kind::Whole(configuration) => {
                Building::Whole(whole::Building { source, patches, configuration, compiler })
            }
            Kind::Modules(base, headers) => {
                Building::Modules(modules::Building { source, patches, base, headers, compiler, modules })
            }
        }
    }
}

/// What a build starts from.
enum Building<'b> {
    Whole(whole::Building<'b>),
    Modules(modules::Building<'b>),
}

impl Building<'_> {
    fn room(&self, watch: &Watch<'_>, waits: &mut dyn FnMut()) -> Result<Entry, BuildError> {
        match self {
            Building::Whole(building) => building.room(watch, waits),
            Building::Modules(building) => building.room(watch, waits),
        }
    }

    /// Directories whose sources become objects; of a whole kernel nobody knows which do.
    fn directories(&self, room: &Entry) -> Vec<PathBuf> {
        match self {
            Building::Whole(_) => Vec::new(),
            Building::Modules(building) => building.directories_in(room),
        }
    }

    fn build(&self, room: &Entry, into: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        match self {
            Building::Whole(building) => building.build(room, into, watch),
            Building::Modules(building) => building.build(room, into, watch),
        }
    }
}

/// The image of an entry.
fn image_in(entry: &Path) -> Result<PathBuf, BuildError> {
    let boot = entry.join("boot");
    let entries = std::fs::read_dir(&boot).map_err(BuildError::io("cannot read", &boot))?.flatten();
    let image = entries
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")));
    image.ok_or_else(|| BuildError::NoSource { path: boot, found: "has no kernel".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    #[test]
    fn what_another_assay_has_just_built_is_not_built_again() {
        let name = "what_another_assay_has_just_built_is_not_built_again";
        fake::alone(module_path!(), name, |place| {
            let (root, count) = (place.join("source"), place.join("count"));
            fake::kernel(&root, &format!("echo x >> '{}'; sleep 1\n", count.display()));
            let one = || {
                let build = fake::build(&root, Vec::new());
                let resolved = (build.key(&BTreeSet::new()).unwrap(), BTreeSet::new());
                build.built(&resolved, &mut |_| (), &AtomicBool::new(false)).unwrap().image
            };
            let images = std::thread::scope(|scope| {
                [scope.spawn(one), scope.spawn(one)].map(|one| one.join().unwrap())
            });
            assert_eq!(images[0], images[1]);
            assert_eq!(std::fs::read_to_string(&count).unwrap(), "x\n");
        });
    }
}
