//! Which trials belong together: boots, hosts, sessions, days. Trials of one boot are more alike than trials of two, so that
//! they are no independent values.
//!
//! Enters: observations with what their files call boot, host and so on, or their time stamps; what the reader asked for.
//! Leaves: the fact [`crate::record::HostFacts::cluster`] of each trial, and a note that says what was taken for clusters and how it is
//! switched off. How clusters are judged is for others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::boot_numbers::{self, Numbered};
use super::error::Problem;
use super::observation::{Batch, Observation};
use super::time_stamps::{Sessions, sessions};

/// What makes the clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clusters {
    /// What the names of columns and gaps between time stamps tell.
    #[default]
    Automatic,
    /// Nothing: every trial stands for itself.
    Never,
    /// This column of a table, or this key of a `key: value` line.
    By(String),
}

impl Clusters {
    /// Reads `--cluster`: `none`, or a column.
    #[must_use]
    pub fn parse(text: &str) -> Clusters {
        if text == "none" { Clusters::Never } else { Clusters::By(text.to_owned()) }
    }

    /// Whether a column is to be read for this, used as a row or not.
    pub(super) fn wants(&self, column: &str, is_row: bool) -> bool {
        match self {
            Clusters::Never => false,
            Clusters::By(name) => name == column,
            // A verdict a host has a meaning, the host will be there tomorrow; a boot never comes again.
            Clusters::Automatic => known(column).is_some_and(|name| name.passes || !is_row),
        }
    }
}

/// The mark that tells runs of assay apart. No column has this name: `run` in a table may count the repeats.
pub(super) const OWN_RUN: &str = "run of assay";

/// A name that tells what a column is.
struct Name {
    column: &'static str,
    /// What one of them is called.
    kind: &'static str,
    /// It never comes again, as a boot; a host does.
    passes: bool,
}

const fn name(column: &'static str, kind: &'static str, passes: bool) -> Name {
    Name { column, kind, passes }
}

/// The first that is there wins; hosts are added to it, since boot 1 of one host is not boot 1 of another.
const NAMES: [Name; 18] = [
    name("boot", "boot", true),
    name("boot_id", "boot", true),
    name("bootid", "boot", true),
    name("boot_no", "boot", true),
    name("boot_nr", "boot", true),
    name("boot_number", "boot", true),
    name("reboot", "boot", true),
    name("reboots", "boot", true),
    name("session", "session", true),
    name("session_id", "session", true),
    name("cluster", "cluster", true),
    name("day", "day", true),
    name("date", "day", true),
    name("host", "host", false),
    name("hostname", "host", false),
    name("host_name", "host", false),
    name("machine", "machine", false),
    name("machine_id", "machine", false),
];

fn known(column: &str) -> Option<&'static Name> {
    let plain = column.trim().to_ascii_lowercase().replace(['-', ' ', '.'], "_");
    NAMES.iter().find(|name| name.column == plain)
}

/// Whether a column of this name is taken for clusters that never come again: as a row it would compare one boot with another.
pub(super) fn passes(column: &str) -> bool {
    known(column).is_some_and(|name| name.passes)
}

/// Sets the cluster of every observation. `arm_of` tells its arm; `own` says that assay's own runs are among the inputs,
/// whose pauses are no sessions.
pub(super) fn settle(
    batch: &mut Batch,
    asked: &Clusters,
    arm_of: impl Fn(&Observation) -> String,
    own: bool,
) -> Result<(), Problem> {
    let groups = groups(batch, arm_of);
    match asked {
        Clusters::Never => {
            batch.facts.iter_mut().for_each(crate::record::HostFacts::drop_cluster);
            Ok(())
        }
        Clusters::By(column) => {
            let mut labels = labels(batch, column);
            if own && column == "run" {
                for (label, own) in labels.iter_mut().zip(self::labels(batch, OWN_RUN)) {
                    *label = own.or(label.take());
                }
            }
            if labels.iter().all(Option::is_none) {
                return Err(Problem::NoCluster { name: column.clone() });
            }
            let own_kind = if own && column == "run" { "run" } else { "cluster" };
            let kind = known(column).map_or(own_kind, |name| name.kind);
            number_by_arm(batch, &groups, kind, &mut labels);
            set(batch, kind, &labels);
            batch.note(format!("trials are judged by {kind}s, which --cluster takes from '{column}'"));
            Ok(())
        }
        Clusters::Automatic => {
            let known = by_name(batch, &groups) || own && by_run(batch, &groups);
            if !known && !own {
                by_time(batch, &groups);
            }
            Ok(())
        }
    }
}

/// Puts the arm before labels that each arm has counted for itself.
fn number_by_arm(batch: &mut Batch, groups: &Groups, kind: &str, labels: &mut [Option<String>]) {
    let trials: Vec<Numbered> = labels
        .iter()
        .zip(&batch.observations)
        .zip(&groups.arm_and_row)
        .map(|((label, observation), (arm, _))| Numbered {
            label: label.as_deref().unwrap_or(""),
            arm: *arm,
            side: observation.side,
            started_unix_ns: observation.started_unix_ns,
        })
        .collect();
    let mut arms: HashMap<&str, u32> = HashMap::new();
    let shared = trials.iter().any(|trial| *arms.entry(trial.label).or_insert(trial.arm) != trial.arm);
    if !shared || !boot_numbers::are_own(kind, batch.factor.as_deref(), &trials) {
        return;
    }
    for (label, (arm, _)) in labels.iter_mut().zip(&groups.arm_and_row) {
        let own = label.as_deref().unwrap_or("");
        *label = Some(format!("{}/{own}", groups.arms[*arm as usize]));
    }
    batch
        .note(format!("{kind}s of different arms that bear the same number are taken for different {kind}s"));
}

/// The arm and the row of each observation as a number.
struct Groups {
    arms: Vec<String>,
    arm_and_row: Vec<(u32, u32)>,
}

fn groups(batch: &Batch, arm_of: impl Fn(&Observation) -> String) -> Groups {
    let mut arms: HashMap<String, u32> = HashMap::new();
    let mut rows: HashMap<&[(String, String)], u32> = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    let arm_and_row = batch.observations.iter().map(|observation| {
        let next = arms.len() as u32;
        let arm = *arms.entry(arm_of(observation)).or_insert_with_key(|name| {
            names.push(name.clone());
            next
        });
        let next = rows.len() as u32;
        (arm, *rows.entry(&observation.rows).or_insert(next))
    });
    let arm_and_row = arm_and_row.collect();
    Groups { arms: names, arm_and_row }
}

/// What each observation is called by that column or key.
fn labels(batch: &Batch, column: &str) -> Vec<Option<String>> {
    let of = |observation: &Observation| {
        let mark =
            observation.marks.iter().find(|(name, _)| &**name == column).map(|(_, label)| label.as_str());
        let facts = observation.facts.map(|at| &batch.facts[at as usize]);
        mark.or_else(|| facts.and_then(|facts| facts.get(column))).map(str::to_owned)
    };
    batch.observations.iter().map(of).collect()
}

/// Takes clusters from columns with common names, where they tell anything.
fn by_name(batch: &mut Batch, groups: &Groups) -> bool {
    let mut columns: BTreeMap<usize, String> = BTreeMap::new();
    let marks = batch.observations.iter().flat_map(|observation| &observation.marks).map(|(name, _)| &**name);
    let keys = batch.facts.iter().flat_map(crate::record::HostFacts::names);
    let mut met: HashSet<&str> = HashSet::new();
    for column in marks.chain(keys).filter(|column| met.insert(column)) {
        if let Some(at) = NAMES.iter().position(|name| known(column).is_some_and(|k| k.column == name.column))
        {
            columns.entry(at).or_insert_with(|| column.to_owned());
        }
    }
    let useful = |(at, column): (usize, String)| {
        let labels = labels(batch, &column);
        tells(&labels, groups).then_some((&NAMES[at], column, labels))
    };
    let found: Vec<(&Name, String, Vec<Option<String>>)> = columns.into_iter().filter_map(useful).collect();
    let first = found.iter().find(|(name, ..)| name.passes).or(found.first());
    let Some((kind, column, labels)) = first else { return false };
    let mut labels = labels.clone();
    let mut columns = vec![format!("'{column}'")];
    // What a host is called precedes, unless it is what was chosen already.
    for (_, host, others) in found.iter().filter(|(name, other, _)| !name.passes && other != column) {
        columns.push(format!("'{host}'"));
        for (label, other) in labels.iter_mut().zip(others) {
            *label = Some(format!("{}/{}", other.as_deref().unwrap_or(""), label.as_deref().unwrap_or("")));
        }
    }
    let kind = kind.kind;
    number_by_arm(batch, groups, kind, &mut labels);
    set(batch, kind, &labels);
    batch.note(format!(
        "trials are judged by {kind}s, recognised by the name of {} {}: what differs between {kind}s is not taken for \
         a difference of the arms; --cluster none takes every trial for itself",
        if columns.len() == 1 { "column" } else { "columns" },
        columns.join(" and ")
    ));
    true
}

/// Whether clusters change anything: several are known, and some have several trials of a row or both arms. Where one alone is known, what
/// does not say its own (fio's results name no machine) may well be of it.
fn tells(labels: &[Option<String>], groups: &Groups) -> bool {
    let mut clusters: HashSet<&String> = HashSet::new();
    let mut seen: HashMap<(u32, &Option<String>), u32> = HashMap::new();
    let mut shared = false;
    for (label, (arm, row)) in labels.iter().zip(&groups.arm_and_row) {
        clusters.extend(label);
        shared |= seen.insert((*row, label), *arm).is_some();
    }
    clusters.len() > 1 && shared
}

/// Takes runs of assay for clusters, where most rows have several of each arm: runs of one machine differ by more than the trials in each.
fn by_run(batch: &mut Batch, groups: &Groups) -> bool {
    let labels = labels(batch, OWN_RUN);
    let mut of_group: HashMap<(u32, u32), BTreeSet<&str>> = HashMap::new();
    for (label, group) in labels.iter().zip(&groups.arm_and_row) {
        of_group.entry(*group).or_default().extend(label.as_deref());
    }
    // An arm that is one run says nothing of what runs differ in.
    let mut fewest: HashMap<u32, usize> = HashMap::new();
    for ((_, row), runs) in &of_group {
        let least = fewest.entry(*row).or_insert(usize::MAX);
        *least = runs.len().min(*least);
    }
    let several = fewest.values().filter(|least| **least > 1).count();
    if several == 0 || 2 * several < fewest.len() {
        return false;
    }
    set(batch, "run", &labels);
    batch.note(
        "trials are judged by runs: what differs from run to run is not taken for a difference of the arms; --cluster none takes every \
         trial for itself"
            .to_owned(),
    );
    true
}

/// Takes sessions from gaps between time stamps, where most rows have several of an arm.
fn by_time(batch: &mut Batch, groups: &Groups) {
    let times: Vec<(u64, f64)> =
        batch.observations.iter().map(|o| (o.started_unix_ns, o.elapsed_s)).collect();
    let Some(Sessions { of, count, gap_s }) = sessions(&times) else { return };
    let mut of_group: HashMap<(u32, u32), BTreeSet<u32>> = HashMap::new();
    for (session, group) in of.iter().zip(&groups.arm_and_row) {
        of_group.entry(*group).or_default().insert(*session);
    }
    let several = of_group.values().filter(|sessions| sessions.len() > 1).count();
    // One arm after the other, or one row after the other, is no cluster: nothing shows what sessions differ in.
    if 2 * several < of_group.len() {
        return;
    }
    let labels: Vec<Option<String>> = of.iter().map(|session| Some((session + 1).to_string())).collect();
    set(batch, "session", &labels);
    batch.note(format!(
        "trials are judged by sessions: time stamps have gaps of {gap_s:.0} s and more, which make {count} of them; \
         --cluster none takes every trial for itself"
    ));
}

fn set(batch: &mut Batch, kind: &str, labels: &[Option<String>]) {
    let mut known: HashMap<(Option<u32>, &Option<String>), u32> = HashMap::new();
    let mut observations = std::mem::take(&mut batch.observations);
    let mut without = 0;
    for (observation, label) in observations.iter_mut().zip(labels) {
        without += u32::from(label.as_ref().is_none_or(String::is_empty));
        let at = *known.entry((observation.facts, label)).or_insert_with(|| {
            let facts = observation.facts.map(|at| batch.facts[at as usize].clone());
            let mut facts = facts.unwrap_or_default();
            facts.set_cluster(kind, label.as_deref().unwrap_or(""));
            batch.facts(facts)
        });
        observation.facts = Some(at);
    }
    batch.observations = observations;
    if without > 0 {
        batch.note(format!("{without} of the trials do not say their {kind}: they are taken as one {kind}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (arm, row, marks, start in s).
    type Trial<'t> = (&'t str, &'t str, &'t [(&'t str, &'t str)], u64);

    fn batch(trials: &[Trial<'_>]) -> Batch {
        let mut batch = Batch::default();
        for (arm, row, marks, start_s) in trials {
            let mut observation = Observation::new(0);
            observation.arm = Some((*arm).to_owned());
            observation.rows = vec![("bs".to_owned(), (*row).to_owned())];
            observation.marks =
                marks.iter().map(|(name, label)| ((*name).into(), (*label).to_owned())).collect();
            observation.started_unix_ns = start_s * 1_000_000_000;
            batch.observe(observation).unwrap();
        }
        batch
    }

    fn settled(mut batch: Batch, asked: &Clusters) -> (Vec<String>, Vec<String>) {
        settle(&mut batch, asked, |o| o.arm.clone().unwrap_or_default(), false).unwrap();
        let cluster = |observation: &Observation| {
            let facts = observation.facts.map(|at| &batch.facts[at as usize]);
            let cluster = facts.and_then(crate::record::HostFacts::cluster);
            cluster.map_or(String::new(), |(kind, label)| format!("{kind} {label}"))
        };
        (batch.observations.iter().map(cluster).collect(), batch.notes)
    }

    #[test]
    fn names_are_recognised_however_they_are_spelt() {
        for (column, kind) in [
            ("boot", "boot"),
            ("Boot-ID", "boot"),
            ("Hostname", "host"),
            ("day", "day"),
            ("session", "session"),
        ] {
            assert_eq!(known(column).unwrap().kind, kind, "{column}");
        }
        for column in ["run", "booted", "ghost", "rep", "bs", ""] {
            assert!(known(column).is_none(), "{column}");
        }
        assert_eq!(Clusters::parse("none"), Clusters::Never);
        let automatic = Clusters::Automatic;
        assert!(
            automatic.wants("boot", true) && automatic.wants("host", false) && !automatic.wants("host", true)
        );
        assert!(!Clusters::Never.wants("boot", false) && Clusters::parse("rack").wants("rack", true));
    }

    #[test]
    fn boots_are_named_after_their_host() {
        let marks: [&[(&str, &str)]; 3] = [
            &[("host", "x"), ("boot", "1")],
            &[("host", "x"), ("boot", "2")],
            &[("host", "y"), ("boot", "1")],
        ];
        let trials: Vec<_> = marks.iter().flat_map(|m| [("a", "4k", *m, 0), ("a", "4k", *m, 0)]).collect();
        let (clusters, notes) = settled(batch(&trials), &Clusters::Automatic);
        assert_eq!(clusters, ["boot x/1", "boot x/1", "boot x/2", "boot x/2", "boot y/1", "boot y/1"]);
        assert!(
            notes[0].contains("columns 'boot' and 'host'") && notes[0].contains("--cluster none"),
            "{notes:?}"
        );
        assert_eq!(settled(batch(&trials), &Clusters::By("host".to_owned())).0[5], "host y");
        assert!(settled(batch(&trials), &Clusters::Never).0.iter().all(String::is_empty));
    }

    #[test]
    fn a_constant_or_a_count_of_repeats_is_no_cluster() {
        let constant: &[(&str, &str)] = &[("host", "x")];
        let (clusters, notes) =
            settled(batch(&[("a", "4k", constant, 0), ("b", "4k", constant, 0)]), &Clusters::Automatic);
        assert!(clusters.iter().all(String::is_empty) && notes.is_empty(), "{notes:?}");
        let each: [&[(&str, &str)]; 4] =
            [&[("boot", "1")], &[("boot", "2")], &[("boot", "3")], &[("boot", "4")]];
        let trials: Vec<_> =
            each.iter().zip(["a", "a", "b", "b"]).map(|(m, arm)| (arm, "4k", *m, 0)).collect();
        assert!(settled(batch(&trials), &Clusters::Automatic).0.iter().all(String::is_empty));
        // The same four with both arms in each are pairs.
        let pairs: Vec<_> = each.iter().flat_map(|m| [("a", "4k", *m, 0), ("b", "4k", *m, 0)]).collect();
        assert_eq!(settled(batch(&pairs), &Clusters::Automatic).0[7], "boot 4");
    }

    #[test]
    fn what_is_asked_for_must_be_there() {
        let mut nothing = batch(&[("a", "4k", &[], 0)]);
        let asked = Clusters::By("rack".to_owned());
        assert!(settle(&mut nothing, &asked, |_| String::new(), false).is_err());
        let some: [&[(&str, &str)]; 2] = [&[("rack", "1")], &[]];
        let trials: Vec<_> = some.iter().map(|marks| ("a", "4k", *marks, 0)).collect();
        let (clusters, notes) = settled(batch(&trials), &asked);
        assert_eq!(clusters, ["cluster 1", "cluster "]);
        assert_eq!(notes[0], "1 of the trials do not say their cluster: they are taken as one cluster");
    }

    #[test]
    fn gaps_make_sessions_where_an_arm_has_several() {
        let start = |session: u64, trial: u64| 1_700_000_000 + session * 1_000 + trial * 60;
        let nested = |arm: fn(u64) -> &'static str, row: fn(u64) -> &'static str| {
            let trials: Vec<_> = (0..8_u64)
                .flat_map(|session| {
                    (0..4).map(move |trial| (arm(session), row(session), &[][..], start(session, trial)))
                })
                .collect();
            settled(batch(&trials), &Clusters::Automatic)
        };
        let (clusters, notes) = nested(|session| if session % 2 == 0 { "a" } else { "b" }, |_| "4k");
        assert_eq!((clusters[0].as_str(), clusters[31].as_str()), ("session 1", "session 8"));
        assert!(notes[0].contains("gaps of 820 s and more, which make 8 of them"), "{notes:?}");
        // A pause before each row is no session.
        let row = |session: u64| ["4k", "16k", "64k", "1m"][session as usize / 2];
        let (clusters, _) = nested(|session| if session % 2 == 0 { "a" } else { "b" }, row);
        assert!(clusters.iter().all(String::is_empty), "{clusters:?}");
    }
}
