//! The recipes and their parts: files of `recipes/`, embedded.

/// An experiment file that is part of the program.
#[derive(Debug)]
pub(in crate::cli) struct Part {
    /// What `assay run` calls it: the recipe's name, and behind a slash its own where there are several.
    pub(in crate::cli) name: &'static str,
    /// The file.
    pub(in crate::cli) text: &'static str,
}

/// One recipe: runs one after the other.
#[derive(Debug)]
pub(in crate::cli) struct Recipe {
    /// What `assay run` calls it.
    pub(in crate::cli) name: &'static str,
    /// Its runs, in their order.
    pub(in crate::cli) parts: &'static [Part],
}

/// All, in the order of the list. A recipe of several runs has a directory of its own in `recipes/`.
pub(in crate::cli) const RECIPES: [Recipe; 5] = [
    Recipe {
        name: "dax-write",
        parts: &[Part { name: "dax-write", text: include_str!("../../../recipes/dax-write.toml") }],
    },
    Recipe {
        name: "journal-flush",
        parts: &[
            Part {
                name: "journal-flush/dbench",
                text: include_str!("../../../recipes/journal-flush/dbench.toml"),
            },
            Part {
                name: "journal-flush/fs_mark",
                text: include_str!("../../../recipes/journal-flush/fs_mark.toml"),
            },
        ],
    },
    Recipe {
        name: "dio-append",
        parts: &[Part { name: "dio-append", text: include_str!("../../../recipes/dio-append.toml") }],
    },
    Recipe {
        name: "bdev-mix",
        parts: &[Part { name: "bdev-mix", text: include_str!("../../../recipes/bdev-mix.toml") }],
    },
    Recipe {
        name: "dio-scaling",
        parts: &[Part { name: "dio-scaling", text: include_str!("../../../recipes/dio-scaling.toml") }],
    },
];

/// The names of all recipes.
pub(in crate::cli) fn names() -> impl Iterator<Item = &'static str> {
    RECIPES.iter().map(|recipe| recipe.name)
}

/// The parts that a name means: all of a recipe, or the one named; none where there is no such recipe.
pub(in crate::cli) fn parts(name: &str) -> Vec<&'static Part> {
    static SHIPPED: [Recipe; RECIPES.len()] = RECIPES;
    let named = |recipe: &'static Recipe| {
        recipe.parts.iter().filter(move |part| recipe.name == name || part.name == name)
    };
    SHIPPED.iter().flat_map(named).collect()
}
