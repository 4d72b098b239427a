//! What a Makefile of the kernel says of its modules: which object is part of which.
//!
//! Enters: the text of one Makefile. Leaves: the modules an object is in. Only lists are read (`obj-… += a.o`, `a-y := b.o c.o`,
//! `$(addprefix DIR/, …)`), which is how the kernel's own write them (Documentation/kbuild/makefiles.rst); conditions count as fulfilled.

use std::collections::{BTreeMap, BTreeSet};

/// The lists of a Makefile.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// Objects of `obj-…`, without `.o`.
    modules: BTreeSet<String>,
    /// Parts of each composite object.
    parts: BTreeMap<String, BTreeSet<String>>,
    /// Objects that are always part of the kernel itself (`obj-y`, `lib-y`).
    always: BTreeSet<String>,
    /// Those that an option makes part of it, or a module (`obj-$(CONFIG_X)`), behind that option.
    optional: BTreeSet<(String, String)>,
}

impl Lists {
    pub(super) fn of(makefile: &str) -> Lists {
        let mut lists = Lists::default();
        for line in makefile.replace("\\\n", " ").lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((name, option, values)) = assignment(line) else { continue };
            let objects = objects(values);
            if matches!(name, "obj-y" | "lib-y") {
                lists.always.extend(objects.iter().cloned());
            }
            if let (Some(option), "obj-") = (option, name) {
                let named = objects.iter().map(|object| (option.to_owned(), object.clone()));
                lists.optional.extend(named);
            }
            match name.rsplit_once('-') {
                Some(("obj", _)) => lists.modules.extend(objects),
                Some((composite, _)) => lists.parts.entry(composite.to_owned()).or_default().extend(objects),
                None => {}
            }
        }
        lists
    }

    /// Modules that an object (`libxfs/xfs_bmap`, without `.o`) is in.
    pub(super) fn modules_of(&self, object: &str) -> BTreeSet<String> {
        let has = |module: &&String| {
            module.as_str() == object
                || self.parts.get(module.as_str()).is_some_and(|parts| parts.contains(object))
        };
        self.modules.iter().filter(has).cloned().collect()
    }

    /// Objects that are part of the kernel itself, where `is_on` says of an option and its object that it is.
    pub(super) fn built_in(&self, is_on: &dyn Fn(&str, &str) -> bool) -> BTreeSet<&str> {
        let chosen = self.optional.iter().filter(|(option, object)| is_on(option, object));
        chosen.map(|(_, object)| object).chain(&self.always).map(String::as_str).collect()
    }

    /// What an object is made of: its parts, or itself.
    pub(super) fn parts_of<'l>(&'l self, object: &'l str) -> Vec<&'l str> {
        let parts = self.parts.get(object).into_iter().flatten().map(String::as_str);
        parts.chain([object]).collect()
    }

    /// All of them.
    pub(super) fn modules(&self) -> &BTreeSet<String> {
        &self.modules
    }
}

/// Name, option and values of `NAME += VALUES`: of `xfs-$(CONFIG_XFS_RT)` the name is `xfs-` and the option `XFS_RT`.
fn assignment(line: &str) -> Option<(&str, Option<&str>, &str)> {
    let at = line.find('=')?;
    let name = line[..at].trim_end_matches(['+', ':', '?']).trim();
    let option = name.split_once("-$(CONFIG_").and_then(|(_, option)| option.strip_suffix(')'));
    let name = name.split("$(").next().map_or(name, |start| if start.ends_with('-') { start } else { name });
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, option, &line[at + 1..]))
}

fn objects(values: &str) -> Vec<String> {
    let (mut found, mut prefix) = (Vec::new(), String::new());
    let mut words = values.split_whitespace();
    while let Some(word) = words.next() {
        if word == "$(addprefix" {
            prefix = words.next().unwrap_or_default().trim_end_matches(',').to_owned();
            continue;
        }
        let closes = word.ends_with(')');
        if let Some(object) = word.trim_end_matches(')').strip_suffix(".o") {
            found.push(format!("{prefix}{object}"));
        }
        if closes {
            prefix.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(makefile: &str, object: &str) -> Vec<String> {
        Lists::of(makefile).modules_of(object).into_iter().collect()
    }

    #[test]
    fn objects_are_found_in_their_modules() {
        let xfs = "obj-$(CONFIG_XFS_FS)\t\t+= xfs.o\nxfs-y += xfs_trace.o\n\
                   xfs-y\t\t\t\t+= $(addprefix libxfs/, \\\n\t\t\t\t   xfs_ag.o \\\n\t\t\t\t   xfs_bmap.o \\\n\t\t\t\t   )\n\
                   xfs-$(CONFIG_XFS_RT)\t\t+= $(addprefix libxfs/, xfs_rtbitmap.o)\nxfs-y += xfs_file.o # x.o\n";
        for object in ["libxfs/xfs_bmap", "libxfs/xfs_rtbitmap", "xfs_file", "xfs_trace"] {
            assert_eq!(of(xfs, object), ["xfs"], "{object}");
        }
        assert_eq!(of(xfs, "libxfs/xfs_file"), Vec::<String>::new());
        assert_eq!(of(xfs, "x"), Vec::<String>::new());
        let nvdimm = "obj-$(CONFIG_LIBNVDIMM) += libnvdimm.o\nobj-$(CONFIG_BLK_DEV_PMEM) += nd_pmem.o\nnd_pmem-y := pmem.o\n\
                      libnvdimm-objs := core.o\n";
        assert_eq!(of(nvdimm, "pmem"), ["nd_pmem"]);
        assert_eq!(of(nvdimm, "core"), ["libnvdimm"]);
        let fs = "obj-y :=\topen.o read_write.o\nobj-$(CONFIG_BINFMT_MISC) += binfmt_misc.o\nobj-$(CONFIG_FS_DAX) += dax.o\n";
        assert_eq!(of(fs, "binfmt_misc"), ["binfmt_misc"]);
        assert_eq!(of(fs, "dax"), ["dax"], "whether it is one of a kernel, that kernel knows");
    }

    #[test]
    fn what_is_part_of_the_kernel_itself_is_known() {
        let block = Lists::of(
            "obj-y := bdev.o sub/\nobj-$(CONFIG_IOSCHED_BFQ) += bfq.o\nbfq-y := bfq-iosched.o\nlib-y += a.o\n",
        );
        let built_in = |on: &str| {
            let all = block.built_in(&|option, object| option == on || object == on);
            all.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(built_in(""), ["a", "bdev"]);
        assert_eq!(built_in("IOSCHED_BFQ"), ["a", "bdev", "bfq"]);
        assert_eq!(built_in("bfq"), ["a", "bdev", "bfq"]);
        assert_eq!(block.parts_of("bfq"), ["bfq-iosched", "bfq"]);
    }
}
