//! `[recipe]` of an experiment file: what it is for, in the words of people, and where it runs when it cannot run here.
//!
//! Enters: the table. Leaves: a [`RecipeTable`]. Nothing of it changes what is measured, except which factor is compared when
//! the command line adds one.

use super::described::Experiment;
use super::toml_reader::{Item, Reader};

const KEYS: &[&str] = &["asks", "time", "quick_time", "stand_in", "otherwise"];

/// What a recipe tells of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecipeTable {
    /// The questions it answers.
    pub asks: Vec<String>,
    /// How long it takes, roughly: `20m`.
    pub time: String,
    /// How long `--quick` takes.
    pub quick_time: String,
    /// A factor that is varied only as long as the command line varies nothing else.
    pub stand_in: Option<String>,
    /// Settings of the target, in the syntax of `--target`, for machines that do not have what `[target]` asks for; each
    /// list is tried in turn.
    pub otherwise: Vec<Vec<String>>,
}

pub(super) fn read(reader: &Reader<'_>, item: &Item<'_>) -> Option<RecipeTable> {
    let mut recipe = RecipeTable::default();
    for (key, at, item) in reader.entries(reader.table("recipe", item)?) {
        let text = || reader.scalar(key, item).map(|text| text.value).unwrap_or_default();
        match key {
            "asks" => recipe.asks = reader.texts(key, item).unwrap_or_default(),
            "time" => recipe.time = text(),
            "quick_time" => recipe.quick_time = text(),
            "stand_in" => recipe.stand_in = Some(text()),
            "otherwise" => {
                let lists = reader.list(key, item).unwrap_or_default();
                recipe.otherwise = lists.iter().filter_map(|list| reader.texts(key, list)).collect();
            }
            _ => reader.unknown_key(key, &at, "[recipe]", KEYS),
        }
    }
    Some(recipe)
}

impl Experiment {
    /// The settings of target and machine that its levels and itself ask for, each level by itself.
    #[must_use]
    pub fn targets_asked_for(&self) -> Vec<super::TargetSettings> {
        let mut all = vec![self.target.clone()];
        let here = std::path::absolute(".").unwrap_or_default();
        for level in self.factors.iter().flat_map(|factor| &factor.levels) {
            let mut target = self.target.clone();
            for set in level.set.iter().filter(|set| set.namespace != super::Namespace::Job) {
                // A key that is none of a target, or a wrong value, is told by the plan.
                let _ = target.set(&set.key, &set.value, &here);
            }
            all.push(target);
        }
        all
    }
}
