//! Patches of the kernel that are part of the program, for the recipes: a level calls one `assay:NAME`.
//!
//! Enters: a name. Leaves: the patch's text. The files are those of patches/, each with a header for newcomers.

/// What stands in front of the name of such a patch, where else a file is named.
pub const OWN_PATCH: &str = "assay:";

macro_rules! patches {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../patches/", $name, ".patch")))),*]
    };
}

static PATCHES: &[(&str, &str)] = patches! {
    "bdev-mix" "dax-write" "dio-append" "dio-scaling-lookup" "dio-scaling-write" "journal-flush"
};

/// The text of the patch that is called `assay:NAME`; `None`: it is none of these.
#[must_use]
pub fn own_patch(called: &str) -> Option<&'static str> {
    let name = called.strip_prefix(OWN_PATCH)?;
    PATCHES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of all of them, as a level calls them.
pub fn own_patches() -> impl Iterator<Item = String> {
    PATCHES.iter().map(|(name, _)| format!("{OWN_PATCH}{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_explains_itself_and_says_its_licence() {
        assert_eq!(
            own_patches().count(),
            std::fs::read_dir("patches").unwrap().count(),
            "one of patches/ is not listed"
        );
        for called in own_patches() {
            let text = own_patch(&called).unwrap();
            let header = text.split("\n--- ").next().unwrap();
            assert!(header.contains("SPDX-License-Identifier: GPL-2.0"), "{called}");
            assert!(header.contains("For newcomers."), "{called}");
        }
        assert_eq!(own_patch("dio-append"), None, "a file's name");
    }
}
