//! The rules, one a file.
//!
//! Enters: a compared pair, and the causes that rules before it have found. Leaves: causes. A rule looks at values only through the pair,
//! and says nothing where what it needs was not measured. Rules that name places and parts of the kernel stand before those that tell what
//! is left of a part.

mod commit_wait;
mod copying;
mod device_bytes;
mod flush_wait;
mod lock_wait;
mod machine;
mod more_flushes;
mod owner_changes;
mod page_cache;
mod processor_time;
mod queue_depth;
mod rule;
mod sleep_place;
mod slower_device;
mod smaller_requests;
mod storage_wait;
mod subsystem;
mod user_function;
mod waiting_to_run;
mod worker_threads;

use rule::Rule;
pub(super) use rule::rest;
pub(super) use storage_wait::storage;
pub(super) use subsystem::smaller;

/// All rules in the order in which they are asked.
pub(super) const ALL: &[Rule] = &[
    copying::RULE,
    subsystem::RULE,
    user_function::RULE,
    lock_wait::RULE,
    flush_wait::RULE,
    commit_wait::RULE,
    sleep_place::RULE,
    processor_time::RULE,
    waiting_to_run::RULE,
    storage_wait::RULE,
    page_cache::RULE,
    more_flushes::RULE,
    device_bytes::RULE,
    smaller_requests::RULE,
    owner_changes::RULE,
    queue_depth::RULE,
    worker_threads::RULE,
    slower_device::RULE,
    machine::RULE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own() {
        let mut names: Vec<&str> = ALL.iter().map(|rule| rule.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        let page = include_str!("../../../../docs/why.md");
        for rule in ALL {
            assert!(
                page.contains(&format!("`{}`", rule.name)),
                "docs/why.md has no line about {}",
                rule.name
            );
        }
    }
}
