//! Where a run takes place: on what its experiment names, or on what a recipe has for machines without that.
//!
//! Enters: options and source. Leaves: a [`Prepared`] that nothing stands in the way of; where there was a choice it is said,
//! noted in the run and kept in its facts. What the command line itself names is never replaced.

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
        let mut prepared = checked(args, Prepared::new(args, source, args.experiment(source, &[])?)?)?;
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
    let choices: &[Vec<String>] = if args.names_a_target() { &[] } else { &recipe.otherwise };
    let none = Vec::new();
    let mut refused: Vec<Failure> = Vec::new();
    for target in std::iter::once(&none).chain(choices) {
        // A mistake in the request is one on every target.
        let experiment = args.experiment(source, target)?;
        let ready = missing(&experiment).and_then(|()| Prepared::new(args, source, experiment));
        match ready.and_then(|prepared| checked(args, prepared)) {
            Err(failure) => refused.push(failure),
            Ok(mut prepared) => {
                if !choices.is_empty() {
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

/// Says what was chosen, and why not what comes before it.
fn tell(args: &Args, prepared: &mut Prepared, refused: &[Failure]) {
    let target = prepared.plan.cells.first().map(|cell| &cell.target);
    let machine = match target.and_then(|target| target.guest.kernel.as_ref()) {
        Some(kernel) => {
            format!("a guest of {}", kernel.file_name().unwrap_or_default().to_string_lossy())
        }
        None => "this machine".to_owned(),
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
