//! Some levels of a stored run as an input: `7:ioengine=psync`.
//!
//! Enters: a run, and factors with the level that is wanted. Leaves: the run with the trials of those levels alone. It must not know where
//! runs are stored.

use crate::record::{Cell, Run};

/// Keeps the cells at these levels, written `FACTOR=LEVEL,FACTOR=LEVEL`, with their trials; each of those factors then has one level.
///
/// # Errors
/// What there is instead of a factor or a level that the run does not have.
pub fn choose(run: &mut Run, wanted: &str) -> Result<(), String> {
    for choice in choices(wanted) {
        let (name, level) = choice.split_once('=').unwrap_or((&choice, ""));
        let factors = &run.design.factors;
        let Some(at) = factors.iter().position(|factor| factor.name == name) else {
            let all: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
            return Err(format!("no factor is called '{name}'; there are {}", all.join(", ")));
        };
        let levels = &factors[at].levels;
        let Some(chosen) = levels.iter().position(|known| known == level) else {
            return Err(format!("{name} has no level '{level}'; there are {}", levels.join(", ")));
        };
        // What a cell without trials would say is that the run has not come to its end.
        let mut next = 0;
        let number = |cell: &Cell| {
            (cell.levels[at] as usize == chosen).then(|| {
                next += 1;
                next - 1
            })
        };
        let new: Vec<Option<u32>> = run.cells.iter().map(number).collect();
        run.trials.retain_mut(|trial| renumbered(&mut trial.cell, &new));
        run.lead_ins.retain_mut(|lead_in| renumbered(&mut lead_in.cell, &new));
        run.cells.retain(|cell| cell.levels[at] as usize == chosen);
        run.cells.iter_mut().for_each(|cell| cell.levels[at] = 0);
        run.design.factors[at].levels = vec![level.to_owned()];
    }
    Ok(())
}

/// Gives a cell its new number; false: it is left out.
fn renumbered(cell: &mut u32, new: &[Option<u32>]) -> bool {
    let number = new.get(*cell as usize).copied().flatten();
    *cell = number.unwrap_or(*cell);
    number.is_some()
}

/// `mount=noatime,nodiratime,bs=4k` is two: a part without `=` belongs to the level before it.
fn choices(wanted: &str) -> Vec<String> {
    let mut choices: Vec<String> = Vec::new();
    for part in wanted.split(',') {
        match choices.last_mut().filter(|_| !part.contains('=')) {
            Some(choice) => choice.push_str(&format!(",{part}")),
            None => choices.push(part.to_owned()),
        }
    }
    choices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_may_have_a_comma() {
        assert_eq!(choices("mount=noatime,nodiratime,bs=4k"), ["mount=noatime,nodiratime", "bs=4k"]);
    }
}
