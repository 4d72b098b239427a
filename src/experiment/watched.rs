//! The experiment that explains another one: each of its cells once as it was, and once watched.
//!
//! Enters: an [`Experiment`], observers, a number of rounds. Leaves: an experiment with one more factor, whose unwatched level tells what
//! watching costs; and how observers are written as the level of a factor. It must not know stores, nor what can be watched here.
//! An observer that is dear beside others has a level of its own, so that the times which the others see are not those of a slower trial.

use super::assemble::shown;
use super::described::{Assignment, Experiment, Factor, Level, Namespace};
use crate::catalog::{OR_A_TRACEPOINT, StopRule, in_order, is_observer, observers_listed, server_of};

/// The key whose levels say which observers watch a trial.
pub const OBSERVE_KEY: &str = "observe";
/// The level without observers.
const NONE: &str = "none";
/// Each request of the device and each call is several events: dear where these are fast.
const DEAR: [&str; 2] = ["calls", "blocks"];
/// Names of the factor that says whether a trial is watched, the first that no factor of the experiment has.
const NAMES: [&str; 2] = ["watched", "watched by assay"];

/// Observers as the level of a factor: `none`, or names with `+` or commas between; each once, in the order of the catalog.
///
/// # Errors
/// A clause that names what there is.
pub fn observers(level: &str) -> Result<Vec<String>, String> {
    let names: Vec<&str> = level.split(['+', ',']).map(str::trim).filter(|name| *name != NONE).collect();
    if let Some(unknown) = names.iter().find(|name| !is_observer(name)) {
        let known = observers_listed();
        return Err(format!(
            "no observer '{unknown}'; write {NONE}, or some of {known} with + between, or {OR_A_TRACEPOINT}"
        ));
    }
    Ok(in_order(names.into_iter()))
}

impl Experiment {
    /// The experiment that runs the cells of this one so many rounds, unwatched and watched, with the name of the factor that says which.
    /// A baseline that is compared with itself becomes two levels that set nothing: its trials are the same.
    ///
    /// # Errors
    /// A clause: a factor of this experiment varies what is watched.
    pub fn watched(&self, observe: &[String], rounds: u32) -> Result<(Experiment, String), String> {
        let sets = |factor: &Factor| {
            factor.levels.iter().flat_map(|level| &level.set).any(|set| set.key == OBSERVE_KEY)
        };
        if let Some(factor) = self.factors.iter().find(|factor| sets(factor)) {
            return Err(format!("its factor {} varies itself what is watched", factor.name));
        }
        let mut explaining = self.clone();
        if self.aa {
            explaining.factors.iter_mut().for_each(|factor| factor.levels.truncate(1));
            let same = |label: &str| Level { label: label.to_owned(), set: Vec::new() };
            explaining.compare = explaining.factors.len();
            let levels = vec![same("A"), same("A'")];
            explaining.factors.push(Factor { name: "a/a".to_owned(), levels });
            explaining.aa = false;
        }
        let taken = |name: &&str| explaining.factors.iter().any(|factor| factor.name == **name);
        let name = NAMES.into_iter().find(|name| !taken(name)).unwrap_or(NAMES[0]).to_owned();
        let level = |label: &str, value: String| {
            let set = Assignment { namespace: Namespace::Target, key: OBSERVE_KEY.to_owned(), value };
            Level { label: label.to_owned(), set: vec![set] }
        };
        // Whose work is counted stays the same in all of them.
        let server = self.observe.iter().find(|name| server_of(name).is_some());
        let with_server = |names: &[&str]| {
            let all: Vec<&str> =
                server.map(String::as_str).into_iter().chain(names.iter().copied()).collect();
            if all.is_empty() { NONE.to_owned() } else { all.join("+") }
        };
        let mut levels = vec![level("no", with_server(&[]))];
        let (dear, others): (Vec<&str>, Vec<&str>) =
            observe.iter().map(String::as_str).partition(|name| DEAR.contains(name));
        if dear.is_empty() || others.is_empty() {
            levels.push(level("yes", with_server(&[others, dear].concat())));
        } else {
            levels.extend([others, dear].map(|names| level(&names.join("+"), with_server(&names))));
        }
        explaining.factors.push(Factor { name: name.clone(), levels });
        explaining.show = shown(explaining.show, observe, self.engine);
        explaining.observe = Vec::new();
        explaining.stop =
            StopRule { rounds: Some(rounds), time_budget_s: None, anytime: false, exact: false, ..self.stop };
        Ok((explaining, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::CommandLine;
    use std::path::Path;

    fn experiment(line: &CommandLine) -> Experiment {
        Experiment::from_job("[w]\nrw=write\nsize=4k\n", "j.fio", Path::new("/"), line).unwrap()
    }

    fn varying(vary: &[&str]) -> CommandLine {
        CommandLine { vary: vary.iter().map(|text| (*text).to_owned()).collect(), ..CommandLine::default() }
    }

    #[test]
    fn levels_of_observers_are_read_in_one_order() {
        assert_eq!(observers("none"), Ok(Vec::new()));
        assert_eq!(observers("waits+cpu"), observers("cpu, waits"));
        assert_eq!(observers("waits+locks").unwrap(), ["locks", "waits"]);
        assert_eq!(observers("block:block_plug+fs").unwrap(), ["fs", "block:block_plug"]);
        let said = observers("cpu+lock").unwrap_err();
        assert!(said.contains("no observer 'lock'") && said.contains("locks, waits"), "{said}");
    }

    #[test]
    fn traces_are_kept_where_a_level_watches_blocks() {
        let keeping = |vary: &str| CommandLine { keep_traces: true, ..varying(&[vary]) };
        assert!(experiment(&keeping("observe=none,blocks+waits")).keep_traces);
        let of = |vary: &str| {
            Experiment::from_job("[w]\nrw=write\nsize=4k\n", "j.fio", Path::new("/"), &keeping(vary))
        };
        let said = of("observe=none,waits").unwrap_err().to_string();
        assert!(said.contains("add --observe blocks"), "{said}");
    }

    #[test]
    fn one_more_factor_says_whether_a_trial_is_watched() {
        let line =
            CommandLine { time_budget: Some("10m".to_owned()), ..varying(&["direct=0,1", "bs=4k,8k"]) };
        let plain = experiment(&line);
        let watch = ["cpu".to_owned(), "locks".to_owned()];
        let (watched, name) = plain.watched(&watch, 4).unwrap();
        assert_eq!((name.as_str(), watched.compare, watched.factors.len()), ("watched", 0, 3));
        let levels: Vec<(&str, &str)> = watched.factors[2]
            .levels
            .iter()
            .map(|level| (level.label.as_str(), level.set[0].value.as_str()))
            .collect();
        assert_eq!(levels, [("no", "none"), ("yes", "cpu+locks")]);
        let three = plain.watched(&["cpu", "blocks", "fs"].map(str::to_owned), 4).unwrap().0;
        let labels: Vec<&str> = three.factors[2].levels.iter().map(|level| level.label.as_str()).collect();
        assert_eq!(labels, ["no", "cpu+fs", "blocks"], "what is dear is watched by itself");
        assert_eq!((watched.stop.rounds, watched.stop.time_budget_s), (Some(4), None));
        assert!(watched.show.iter().any(|metric| metric.starts_with("locks.")), "{:?}", watched.show);
    }

    #[test]
    fn a_server_works_in_watched_trials_and_in_others() {
        let line = CommandLine { observe: vec!["server=postgres".to_owned()], ..varying(&["mode=a,b"]) };
        let plain = Experiment::from_command(&["pgbench".to_owned(), "${mode}".to_owned()], &line).unwrap();
        let watched = plain.watched(&["cpu".to_owned(), "waits".to_owned()], 4).unwrap().0;
        let values: Vec<&str> =
            watched.factors[1].levels.iter().map(|level| level.set[0].value.as_str()).collect();
        assert_eq!(values, ["server=postgres", "server=postgres+cpu+waits"]);
        let said = Experiment::from_job(
            "[w]\nrw=write\nsize=4k\n",
            "j.fio",
            Path::new("/"),
            &CommandLine { vary: vec!["bs=4k,8k".to_owned()], ..line },
        );
        let said = said.unwrap_err().to_string();
        assert!(said.contains("--observe: server=postgres: only a command"), "{said}");
    }

    #[test]
    fn a_baseline_against_itself_is_two_levels_that_set_nothing() {
        let plain = experiment(&CommandLine { aa: true, ..varying(&["direct=0,1"]) });
        let (watched, _) = plain.watched(&["cpu".to_owned()], 4).unwrap();
        let names: Vec<(&str, usize)> =
            watched.factors.iter().map(|factor| (factor.name.as_str(), factor.levels.len())).collect();
        assert_eq!(names, [("direct", 1), ("a/a", 2), ("watched", 2)]);
        assert_eq!((watched.aa, watched.compare), (false, 1));
    }

    #[test]
    fn a_name_that_is_taken_and_a_factor_that_watches_are_seen() {
        let variable = "[w]\nrw=write\nsize=${watched}\n";
        let taken =
            Experiment::from_job(variable, "j.fio", Path::new("/"), &varying(&["watched=4k,8k"])).unwrap();
        assert_eq!(taken.watched(&["cpu".to_owned()], 4).unwrap().1, "watched by assay");
        let own = experiment(&varying(&["observe=none,cpu"]));
        let said = own.watched(&["cpu".to_owned()], 4).unwrap_err();
        assert_eq!(said, "its factor observe varies itself what is watched");
    }
}
