//! Some levels of a stored run as an input: `7:ioengine=psync`.
//!
//! Enters: a run, and factors with the level that is wanted. Leaves: the run with the trials of those levels alone. It must not know where
//! runs are stored.

use crate::record::Run;

/// Keeps the trials at these levels, written `FACTOR=LEVEL,FACTOR=LEVEL`; each of those factors then has one level.
///
/// # Errors
/// What there is instead of a factor or a level that the run does not have.
pub fn choose(run: &mut Run, wanted: &str) -> Result<(), String> {
    for choice in wanted.split(',') {
        let (name, level) = choice.split_once('=').unwrap_or((choice, ""));
        let factors = &run.design.factors;
        let Some(at) = factors.iter().position(|factor| factor.name == name) else {
            let all: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
            return Err(format!("no factor is called '{name}'; there are {}", all.join(", ")));
        };
        let levels = &factors[at].levels;
        let Some(chosen) = levels.iter().position(|known| known == level) else {
            return Err(format!("{name} has no level '{level}'; there are {}", levels.join(", ")));
        };
        let is_chosen: Vec<bool> = run.cells.iter().map(|cell| cell.levels[at] as usize == chosen).collect();
        run.trials.retain(|trial| is_chosen[trial.cell as usize]);
        run.lead_ins.retain(|lead_in| is_chosen[lead_in.cell as usize]);
        run.design.factors[at].levels = vec![level.to_owned()];
        // Those that are left out have no trial, whatever they are called.
        run.cells.iter_mut().for_each(|cell| cell.levels[at] = 0);
    }
    Ok(())
}
