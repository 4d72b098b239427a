//! The modules a guest needs, with all they depend on; what depmod would find out, from the modules themselves.
//!
//! Enters: a kernel, names of drivers. Leaves: a [`ModuleSet`]: files in an order in which each can be loaded, and names by which the
//! kernel asks for them.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use twox_hash::XxHash64;

use super::decompressed::{self, MOST_BYTES};
use super::elf;
use super::error::GuestError;
use super::kernel_image::{KernelImage, built_tree};
use super::module_files::{self, MOST_LIST, Unlisted, name_of, plain};
use crate::sys::cache;
use crate::sys::regular_file;

/// Most modules of a guest, and most bytes of them: a filesystem with all its drivers has dozens.
const MOST_MODULES: usize = 500;
const MOST_MODULES_BYTES: usize = 256 << 20;

/// How a missing driver is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// The guest is of no use without it.
    Must,
    /// Some kernels have no such thing.
    May,
    /// An I/O scheduler, which must be there: its module is called like it (`bfq`) or has a tail (`kyber-iosched`).
    Scheduler,
}

/// One module, ready to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Module {
    /// Below `/lib/modules/RELEASE`, without a suffix of compression.
    pub(super) path: String,
    /// The module itself, not compressed.
    pub(super) bytes: Vec<u8>,
    /// Names of the modules it uses.
    pub(super) uses: Vec<String>,
    /// Other names it answers to.
    aliases: Vec<String>,
}

/// Modules with all they depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ModuleSet {
    /// By name, in an order in which each can be loaded.
    pub(super) modules: Vec<(String, Module)>,
}

impl ModuleSet {
    /// Finds the drivers among the kernel's modules; what is built in is left out.
    ///
    /// # Errors
    /// One that is needed is neither built in nor there; a file cannot be read.
    pub(super) fn of(kernel: &KernelImage, wanted: &[(String, Need)]) -> Result<ModuleSet, GuestError> {
        let Some(root) = &kernel.modules else { return Ok(ModuleSet::default()) };
        let is_built_here = built_tree(&kernel.image).as_deref() == Some(root);
        let files = if is_built_here { module_files::built(root) } else { module_files::installed(root) };
        let built_in = regular_file::read_text(&root.join("modules.builtin"), MOST_LIST).unwrap_or_default();
        let mut finder = Finder {
            root,
            has_no_list: is_built_here && files.is_empty(),
            files,
            unlisted: is_built_here.then(OnceCell::new),
            is_needed: false,
            built_in: built_in.lines().map(name_of).collect(),
            found: ModuleSet::default(),
            visited: BTreeSet::new(),
            bytes: 0,
        };
        for (name, need) in wanted {
            finder.is_needed = *need != Need::May;
            let mut there = finder.visit(&plain(name))?;
            if !there && *need == Need::Scheduler {
                there = finder.visit(&format!("{}_iosched", plain(name)))? || finder.built_in.is_empty();
            }
            if !there && *need != Need::May {
                if let Some(file) = finder.stray(name) {
                    return Err(GuestError::NotListed { file, tree: root.clone() });
                }
                let is_scheduler = *need == Need::Scheduler;
                return Err(GuestError::NoModule {
                    module: format!("{}{name}", if is_scheduler { "scheduler " } else { "" }),
                    release: kernel.release.clone(),
                    place: kernel.modules_place(),
                });
            }
        }
        Ok(finder.found)
    }

    /// XXH64 of names and contents, in 16 hexadecimal digits; `None`: there are none.
    pub(super) fn digest(&self) -> Option<String> {
        let mut hasher = XxHash64::with_seed(0);
        for (name, module) in &self.modules {
            hasher.write(name.as_bytes());
            hasher.write(&module.bytes);
        }
        (!self.modules.is_empty()).then(|| cache::digits(&hasher))
    }

    /// The lines of `modules.dep` (modules.dep(5)): each with what it uses, that to be loaded first last.
    pub(super) fn dependencies(&self) -> String {
        let path = |name: &String| self.modules.iter().find(|(known, _)| known == name).map(|(_, m)| &m.path);
        let line = |(name, module): &(String, Module)| {
            let uses: Vec<&str> =
                self.all_uses(name).iter().rev().filter_map(path).map(String::as_str).collect();
            format!("{}: {}\n", module.path, uses.join(" "))
        };
        self.modules.iter().map(line).collect()
    }

    /// What a module uses, directly and not, in loading order.
    fn all_uses(&self, name: &str) -> Vec<String> {
        let mut used: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            let module = self.modules.iter().find(|(known, _)| known == name);
            for next in module.iter().flat_map(|(_, module)| &module.uses) {
                if used.insert(next) {
                    open.push(next);
                }
            }
        }
        let ordered = self.modules.iter().map(|(known, _)| known);
        ordered.filter(|known| used.contains(known.as_str())).cloned().collect()
    }

    /// The lines of `modules.alias` that need no pattern.
    pub(super) fn aliases(&self) -> String {
        let lines = self.modules.iter().flat_map(|(name, module)| {
            module.aliases.iter().map(move |alias| format!("alias {alias} {name}\n"))
        });
        lines.collect()
    }
}

struct Finder<'f> {
    root: &'f Path,
    files: BTreeMap<String, PathBuf>,
    /// Of a tree: its modules whatever its list says, once one was looked for that the list lacks.
    unlisted: Option<OnceCell<BTreeMap<String, Unlisted>>>,
    /// The tree has no list at all.
    has_no_list: bool,
    /// What is looked for must be there: what a list lacks may be of an earlier build.
    is_needed: bool,
    built_in: BTreeSet<String>,
    found: ModuleSet,
    visited: BTreeSet<String>,
    /// Of all modules so far.
    bytes: usize,
}

impl Finder<'_> {
    /// A module that the tree's own list lacks.
    fn unlisted(&self, name: &str) -> Option<&Unlisted> {
        let all = self.unlisted.as_ref().filter(|_| self.is_needed || self.has_no_list)?;
        all.get_or_init(|| module_files::unlisted(self.root)).get(name)
    }

    /// The file of a module that is there, and that no list has.
    fn stray(&self, name: &str) -> Option<PathBuf> {
        let names = [plain(name), format!("{}_iosched", plain(name))];
        names.iter().find_map(|name| self.unlisted(name)).map(|found| found.file.clone())
    }

    /// Adds a module behind those it uses; false: there is none of that name.
    fn visit(&mut self, name: &str) -> Result<bool, GuestError> {
        // Its file may be what an earlier build has left.
        if self.built_in.contains(name) {
            return Ok(true);
        }
        let of_directory =
            || self.unlisted(name).filter(|found| found.is_known).map(|found| found.file.clone());
        let Some(file) = self.files.get(name).cloned().or_else(of_directory) else { return Ok(false) };
        if !self.visited.insert(name.to_owned()) {
            return Ok(true);
        }
        let bytes = unpacked(&file)?;
        self.bytes += bytes.len();
        if self.visited.len() > MOST_MODULES || self.bytes > MOST_MODULES_BYTES {
            let what = format!("the modules of {} are too many for a guest's memory", self.root.display());
            let hint =
                "without their debugging symbols they are small: make modules_install INSTALL_MOD_STRIP=1"
                    .to_owned();
            return Err(GuestError::NoRoom { what, hint });
        }
        let information = elf::modinfo(&bytes);
        let values = |key: &'static str| {
            information.iter().filter(move |(known, _)| known == key).map(|(_, value)| value.as_str())
        };
        let uses: Vec<String> =
            values("depends").flat_map(|list| list.split(',')).filter(|n| !n.is_empty()).map(plain).collect();
        for other in &uses {
            self.visit(other)?;
        }
        // Modules that are only asked for by name while this one starts.
        let soft: Vec<String> = values("softdep")
            .filter_map(|text| text.strip_prefix("pre: "))
            .flat_map(|list| list.split_whitespace().take_while(|word| !word.ends_with(':')))
            .map(plain)
            .collect();
        for other in &soft {
            self.visit(other)?;
        }
        let aliases = values("alias").filter(|alias| !alias.contains(['*', '?', '['])).map(plain).collect();
        let below = file.strip_prefix(self.root).unwrap_or(&file).to_string_lossy().into_owned();
        let path = below.split_once(".ko").map_or(below.clone(), |(start, _)| format!("{start}.ko"));
        self.found.modules.push((name.to_owned(), Module { path, bytes, uses, aliases }));
        Ok(true)
    }
}

/// The module in a file that may be compressed.
fn unpacked(file: &Path) -> Result<Vec<u8>, GuestError> {
    let program = match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return regular_file::read(file, MOST_BYTES).map_err(GuestError::unfit("cannot read", file)),
    };
    let packed = regular_file::open(file).map_err(GuestError::unfit("cannot read", file))?;
    let command = format!("{program} -dc {}", file.display());
    match decompressed::output(Command::new(program).arg("-dcq").stdin(Stdio::from(packed))) {
        Ok((bytes, _, status)) if status.success() => Ok(bytes),
        Ok((_, output, _)) => Err(GuestError::Failed { command, output }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(GuestError::NoProgram {
            program: program.to_owned(),
            purpose: format!("unpack {}", file.display()),
            hint: format!("install {}", if program == "xz" { "xz-utils" } else { program }),
        }),
        Err(error) => Err(GuestError::Failed { command, output: error.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A relocatable file with this `.modinfo` and nothing else.
    fn module(modinfo: &str) -> Vec<u8> {
        let names = b"\0.modinfo\0.shstrtab\0";
        let mut bytes = vec![0_u8; 64];
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let information = bytes.len();
        bytes.extend(modinfo.replace('|', "\0").bytes());
        let texts = bytes.len();
        bytes.extend(names);
        let table = bytes.len();
        bytes[0x28..0x30].copy_from_slice(&(table as u64).to_le_bytes());
        bytes[0x3a..0x3c].copy_from_slice(&64_u16.to_le_bytes());
        bytes[0x3c..0x3e].copy_from_slice(&3_u16.to_le_bytes());
        bytes[0x3e..0x40].copy_from_slice(&2_u16.to_le_bytes());
        // SHT_NULL, SHT_PROGBITS, SHT_STRTAB.
        for (kind, name, start, length) in
            [(0, 0, 0, 0), (1, 1, information, modinfo.len()), (3, 10, texts, names.len())]
        {
            let mut header = [0_u8; 64];
            header[..4].copy_from_slice(&u32::to_le_bytes(name));
            header[4..8].copy_from_slice(&u32::to_le_bytes(kind));
            header[0x18..0x20].copy_from_slice(&(start as u64).to_le_bytes());
            header[0x20..0x28].copy_from_slice(&(length as u64).to_le_bytes());
            bytes.extend(header);
        }
        bytes
    }

    #[test]
    fn what_an_earlier_build_has_left_in_a_tree_is_not_loaded() {
        let tree = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = tree.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        put("arch/x86/boot/bzImage", b"image");
        put(".config", b"CONFIG_MODULES=y\n");
        put("fs/xfs/xfs.ko", &module("license=new|depends=libcrc32c|"));
        // Built in by now, off by now, and a copy for a package.
        for name in ["lib/libcrc32c.ko", "fs/f2fs/f2fs.ko", "debian/x/lib/modules/6.1/kernel/fs/xfs/xfs.ko"] {
            put(name, &module("license=old|depends=|"));
        }
        put("modules.order", b"fs/xfs/xfs.o\nlib/libcrc32c.o\n");
        put("modules.builtin", b"kernel/lib/libcrc32c.ko\n");
        let kernel = KernelImage {
            image: tree.path().join("arch/x86/boot/bzImage"),
            release: "6.1".to_owned(),
            modules: Some(tree.path().canonicalize().unwrap()),
            config: None,
            doubt: None,
        };
        let wanted = [("xfs".to_owned(), Need::Must), ("f2fs".to_owned(), Need::May)];
        let set = ModuleSet::of(&kernel, &wanted).unwrap();
        let names: Vec<&str> = set.modules.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            (names, &set.modules[0].1.bytes),
            (vec!["xfs"], &module("license=new|depends=libcrc32c|"))
        );
    }

    #[test]
    fn a_tree_without_its_list_has_those_of_its_directories() {
        let tree = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| {
            let path = tree.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        put("arch/x86/boot/bzImage", b"image");
        put(".config", b"CONFIG_MODULES=y\n");
        put("fs/xfs/xfs.ko", &module("license=new|depends=libcrc32c|"));
        put("lib/libcrc32c.ko", &module("license=new|depends=|"));
        put("fs/xfs/modules.order", b"fs/xfs/xfs.o\n");
        put("lib/modules.order", b"lib/libcrc32c.o\n");
        let kernel = KernelImage {
            image: tree.path().join("arch/x86/boot/bzImage"),
            release: "6.1".to_owned(),
            modules: Some(tree.path().canonicalize().unwrap()),
            config: None,
            doubt: None,
        };
        let of = |name: &str| ModuleSet::of(&kernel, &[(name.to_owned(), Need::Must)]);
        for order in [None, Some("fs/xfs/xfs.o\n")] {
            order.into_iter().for_each(|order| put("modules.order", order.as_bytes()));
            let set = of("xfs").unwrap();
            let names: Vec<&str> = set.modules.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["libcrc32c", "xfs"], "{order:?}");
        }
        put("fs/ext4/ext4.ko", &module("license=old|depends=|"));
        let error = of("ext4").unwrap_err().to_string();
        assert!(error.contains("modules.order of ") && error.ends_with(" is missing or cut"), "{error}");
        assert!(matches!(of("f2fs"), Err(GuestError::NoModule { .. })));
    }

    #[test]
    fn modules_come_behind_what_they_use() {
        let root = tempfile::tempdir().unwrap();
        let kernel_directory = root.path().join("kernel/fs");
        std::fs::create_dir_all(&kernel_directory).unwrap();
        for (name, modinfo) in [
            (
                "xfs.ko",
                "license=GPL|alias=fs-xfs|depends=libcrc32c,exportfs|softdep=pre: helper-soft post: other|",
            ),
            ("libcrc32c.ko", "depends=|"),
            ("helper-soft.ko", "depends=libcrc32c|alias=crypto-crc32c|alias=pci:v*|"),
            ("other.ko", "depends=|"),
            ("kyber-iosched.ko", "depends=|"),
        ] {
            std::fs::write(kernel_directory.join(name), module(modinfo)).unwrap();
        }
        let built_in = "kernel/fs/exportfs/exportfs.ko\nkernel/block/mq-deadline.ko\n";
        std::fs::write(root.path().join("modules.builtin"), built_in).unwrap();
        let kernel = KernelImage {
            image: "/none".into(),
            release: "6.1".to_owned(),
            modules: Some(root.path().to_owned()),
            config: None,
            doubt: None,
        };
        let of = |wanted: &[(&str, Need)]| {
            let wanted: Vec<_> = wanted.iter().map(|(name, need)| ((*name).to_owned(), *need)).collect();
            ModuleSet::of(&kernel, &wanted)
        };
        let set = of(&[("xfs", Need::Must), ("exportfs", Need::Must), ("nosuch", Need::May)]).unwrap();
        let names: Vec<&str> = set.modules.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["libcrc32c", "helper_soft", "xfs"]);
        assert!(set.dependencies().ends_with("kernel/fs/xfs.ko: kernel/fs/libcrc32c.ko\n"));
        assert_eq!(set.aliases(), "alias crypto_crc32c helper_soft\nalias fs_xfs xfs\n");
        assert!(set.digest().is_some() && of(&[("exportfs", Need::Must)]).unwrap().digest().is_none());
        assert_ne!(set.digest(), of(&[("other", Need::Must)]).unwrap().digest());
        let missing = of(&[("f2fs", Need::Must)]).unwrap_err().to_string();
        assert!(missing.starts_with("kernel 6.1 has no f2fs: it is neither built in nor in "), "{missing}");
        assert!(of(&[("other", Need::Scheduler), ("mq-deadline", Need::Scheduler)]).is_ok());
        assert_eq!(of(&[("kyber", Need::Scheduler)]).unwrap().modules[0].0, "kyber_iosched");
        let missing = of(&[("nonsense", Need::Scheduler)]).unwrap_err().to_string();
        assert!(missing.starts_with("kernel 6.1 has no scheduler nonsense: it is neither "), "{missing}");
    }
}
