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
}

impl Lists {
    pub(super) fn of(makefile: &str) -> Lists {
        let mut lists = Lists::default();
        for line in makefile.replace("\\\n", " ").lines() {
            let line = line.split('#').next().unwrap_or_default();
            let Some((name, values)) = assignment(line) else { continue };
            let objects = objects(values);
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

    /// All of them.
    pub(super) fn modules(&self) -> &BTreeSet<String> {
        &self.modules
    }
}

/// Name and values of `NAME += VALUES`; `CONFIG_X` in a name is left as it is: `xfs-$(CONFIG_XFS_RT)`.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let at = line.find('=')?;
    let name = line[..at].trim_end_matches(['+', ':', '?']).trim();
    let name = name.split("$(").next().map_or(name, |start| if start.ends_with('-') { start } else { name });
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, &line[at + 1..]))
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
}
