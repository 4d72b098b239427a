//! Where a run takes place: on what its experiment names, or on what a recipe has for machines without that.
//!
//! Enters: options and source. Leaves: a [`Prepared`] that nothing stands in the way of; where there was a choice it is said,
//! noted in the run and kept in its facts. What the command line itself names is never replaced.

use std::collections::BTreeSet;
use std::io::Write;

use super::args::Args;
use super::prepare::Prepared;
use super::source::Source;
use super::{early, overwrite};
use crate::cli::Failure;
use crate::cli::recipes::{hanging, missing};
use crate::experiment::RecipeTable;

/// Plans the run of `source` and looks for what stands in its way.
///
/// # Errors
/// A [`Failure`] with exit code 2; nothing was touched.
pub(super) fn prepared(args: &Args, source: &Source) -> Result<Prepared, Failure> {
    let Some(recipe) = source.recipe()? else {
        let mut prepared = checked(args, Prepared::new(args, args.experiment(source, &[])?)?)?;
        early::directions(&mut prepared, args.quiet);
        return Ok(prepared);
    };
    let mut prepared = chosen(args, source, &recipe)?;
    let name = source.recipe_name().unwrap_or(&prepared.run.name);
    let quick = if args.asked.quick { " --quick" } else { "" };
    prepared.facts.push(("recipe", format!("{name}{quick}")));
    let asks = recipe.asks.iter().map(|question| format!("asked: {question}").into());
    prepared.run.notes.splice(0..0, asks);
    if args.asked.quick {
        prepared.run.notes.push("--quick: a look at it, smaller and shorter than the whole".into());
    }
    Ok(prepared)
}

/// What may not be overwritten, and mistakes that can be seen already.
fn checked(args: &Args, mut prepared: Prepared) -> Result<Prepared, Failure> {
    early::levels(&mut prepared, args.quiet)?;
    early::filesystems(&prepared)?;
    overwrite::check(&prepared)?;
    early::machine(&prepared)?;
    Ok(prepared)
}

fn chosen(args: &Args, source: &Source, recipe: &RecipeTable) -> Result<Prepared, Failure> {
    let choices = choices(recipe, args.names_a_device() || args.names_the_place(), args.names_a_kernel());
    let mut refused: Vec<Failure> = Vec::new();
    for target in &choices {
        // A mistake in the request is one on every target.
        let experiment = args.experiment(source, target)?;
        let ready = missing(&experiment).and_then(|()| Prepared::new(args, experiment));
        match ready.and_then(|prepared| checked(args, prepared)) {
            Err(failure) => refused.push(failure),
            Ok(mut prepared) => {
                if choices.len() > 1 {
                    tell(args, &mut prepared, &refused);
                }
                return Ok(prepared);
            }
        }
    }
    // A mistake in the request is the same everywhere, and told once.
    refused.dedup_by_key(|failure| failure.to_string());
    Err(match refused.len() {
        1 => refused.remove(0),
        _ => {
            let reasons: Vec<String> = refused.iter().map(|failure| format!("\n- {failure}")).collect();
            let failure = Failure::request(format!(
                "none of its targets is possible on this machine:{}",
                reasons.concat()
            ));
            match refused.iter().rev().find_map(Failure::hinted) {
                Some(hint) => failure.helped(hint.clone()),
                None => failure,
            }
        }
    })
}

/// What a recipe is tried on, in this order, below what the command line names. A kernel that is named boots in a guest: there its devices
/// for guests come first, as a device of the host is a part of the guest's memory.
fn choices(recipe: &RecipeTable, device: bool, kernel: bool) -> Vec<Vec<String>> {
    let is_kernel = |setting: &String| setting.starts_with("kernel=");
    let own = vec![Vec::new()];
    match (device, kernel) {
        (true, _) => own,
        (false, false) => own.into_iter().chain(recipe.otherwise.iter().cloned()).collect(),
        (false, true) => {
            let of_guests = recipe.otherwise.iter().filter(|settings| settings.iter().any(is_kernel));
            let devices =
                of_guests.map(|settings| settings.iter().filter(|one| !is_kernel(one)).cloned().collect());
            let mut all: Vec<Vec<String>> = devices.chain(own).collect();
            all.dedup();
            all
        }
    }
}

/// Says what was chosen, and why not what comes before it.
fn tell(args: &Args, prepared: &mut Prepared, refused: &[Failure]) {
    let target = prepared.plan.cells.first().map(|cell| &cell.target);
    let kernels = prepared.plan.cells.iter().filter_map(|cell| cell.target.guest.kernel.as_ref());
    let names: BTreeSet<_> =
        kernels.map(|path| path.file_name().unwrap_or_default().to_string_lossy()).collect();
    let names: Vec<_> = names.into_iter().collect();
    let machine = match names.as_slice() {
        [] => "this machine".to_owned(),
        [kernel] => format!("a guest of {kernel}"),
        several => format!("guests of {}", several.join(" and ")),
    };
    let device = target.and_then(|target| target.device.as_ref());
    let device = device.map(|device| format!(", {device}")).unwrap_or_default();
    let reasons: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let because =
        if reasons.is_empty() { String::new() } else { format!(", because {}", reasons.join("; and ")) };
    let line = format!("runs on {machine}{device}{because}");
    if !args.quiet {
        let said = hanging(&format!("{}: ", prepared.run.name), &line).join("\n");
        let _ = writeln!(crate::sys::terminal::err(), "{said}");
    }
    prepared.facts.push(("recipe.place", format!("{machine}{device}")));
    prepared.run.notes.push(line.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_is_named_is_tried_with_a_guests_own_device_first() {
        let texts = |all: &[&[&str]]| -> Vec<Vec<String>> {
            all.iter().map(|one| one.iter().map(|text| (*text).to_owned()).collect()).collect()
        };
        let otherwise = texts(&[&["zram:1g"], &["kernel=newest", "virtio_blk:4g"]]);
        let recipe = RecipeTable { otherwise, ..RecipeTable::default() };
        assert_eq!(choices(&recipe, true, true), texts(&[&[]]));
        assert_eq!(choices(&recipe, false, true), texts(&[&["virtio_blk:4g"], &[]]));
        let anything = texts(&[&[], &["zram:1g"], &["kernel=newest", "virtio_blk:4g"]]);
        assert_eq!(choices(&recipe, false, false), anything);
        let bare = RecipeTable { otherwise: texts(&[&["kernel=newest"]]), ..RecipeTable::default() };
        assert_eq!(choices(&bare, false, true), texts(&[&[]]));
    }
}
