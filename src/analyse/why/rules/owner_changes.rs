//! Files that lie between each other: along the device the owner changes more often.
//!
//! Needs: `--observe extents`. Concludes: the worse arm's device changes from file to file more often for each MiB. Extents a file stand
//! beside it. Silent where it does not, or nobody looked.

use super::super::cause::{Cause, Grade, What};
use super::super::pair::Pair;
use super::rule::Rule;
use crate::record::Unit;

pub(super) const RULE: Rule = Rule { name: "owner_changes", find };

fn find(pair: &Pair<'_>, _: &[Cause]) -> Vec<Cause> {
    let source = |name: &str, unit: Unit| {
        let watched = pair.watched.as_ref().and_then(|watched| watched.source.plain(name, unit.clone()));
        pair.own.plain(name, unit.clone()).or(watched)
    };
    let changes = source("extents.owner_changes_per_mib", Unit::Other("/MiB".to_owned()));
    let Some(changes) = changes.filter(|changes| pair.costs(changes)) else { return Vec::new() };
    let pieces = source("extents.per_file", Unit::Count).filter(|pieces| pair.costs(pieces));
    let evidence = [Some(changes), pieces].into_iter().flatten().collect();
    vec![Cause::new(RULE.name, Grade::GoesWith, What::OwnerChanges, evidence)]
}

#[cfg(test)]
mod tests {
    use super::super::super::made_pair::found;

    #[test]
    fn files_in_each_others_way_go_with_the_worse_arm() {
        let seen = [("extents.owner_changes_per_mib", 0.01, 12.0), ("extents.per_file", 1.0, 900.0)];
        let causes = found(&seen, "owner_changes");
        assert_eq!((causes.len(), causes[0].evidence.len()), (1, 2), "{causes:?}");
    }

    #[test]
    fn fewer_changes_or_as_many_are_silent() {
        assert_eq!(found(&[("extents.owner_changes_per_mib", 12.0, 0.1)], "owner_changes"), []);
        assert_eq!(found(&[("extents.owner_changes_per_mib", 1.0, 1.0)], "owner_changes"), []);
        assert_eq!(found(&[], "owner_changes"), []);
    }
}
