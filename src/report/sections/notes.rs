//! What must be known of the whole: footnotes, an unfinished run, caveats of all rows, notes of run and trials, the noise floor.
//!
//! Enters: a run and its analysis. Leaves: sentences. Nothing is judged here.

use super::material::Material;
use super::noise_words::noise;
use super::trial_notes::trial_notes;
use crate::analyse::{Analysis, Caveat, Comparison, Role};
use crate::record::{Run, RunState, SoFar, Source};
use crate::report::comparisons::of_role;
use crate::report::counts::merged;
use crate::report::document::Document;
use crate::report::footnotes::{caveat_text, common_caveats, told_from};
use crate::report::format::Detail;
use crate::report::layout::printable;
use crate::report::section::{Block, GivesWay, Heading, List, Section};
use crate::report::words::Names;

/// Where a report is to fit one screen.
const WAY: GivesWay = GivesWay { turn: Some(2), called: "the notes", most: [8, 4], items: ["note", "notes"] };

/// The section.
pub(super) fn section(material: &mut Material<'_>) -> Section {
    let Material { run, analysis, options, names, primary, .. } = material;
    let notes = notes(run, analysis, &common_caveats(primary), options.detail, names);
    let all = notes.into_iter().chain(noise(run, analysis));
    let blocks = vec![
        Block::Footnotes,
        Block::List(List::of(all)),
        Block::Raw { name: "notes", json },
        Block::Raw { name: "noise_floor", json: noise_json },
        Block::Column { head: "caveats", cell: caveats },
    ];
    Section::new("notes", Heading::shown("notes"), blocks).gives_way(WAY)
}

fn json(document: &Document<'_>) -> String {
    let Document { run, analysis, options, .. } = document;
    let primary: Vec<&Comparison> = of_role(analysis, Role::Primary).collect();
    let notes = notes(run, analysis, &common_caveats(&primary), options.detail, &document.names());
    crate::report::json::sentences(&notes)
}

fn noise_json(document: &Document<'_>) -> String {
    crate::report::json::written(&noise(document.run, document.analysis).map(|text| printable(&text)))
}

/// The caveats of one comparison, in one cell.
fn caveats(document: &Document<'_>, c: &Comparison) -> String {
    let names = document.names();
    let so_far =
        c.so_far().map(|s| format!("so far, {} of {} rounds: no verdict before the last", s.rounds, s.of));
    let caveats = c.caveats.iter().map(|caveat| caveat_text(caveat, Some(c), &names));
    let caveats: Vec<String> = so_far.into_iter().chain(caveats).collect();
    printable(&caveats.join("; "))
}

fn notes(
    run: &Run,
    analysis: &Analysis,
    common: &[&Caveat],
    detail: Detail,
    names: &Names<'_>,
) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(unfinished(run, analysis));
    if run.was_partly_emulated() {
        notes.push(
            "some trials ran in guests with an emulated processor (qemu's tcg) and some did not: a difference between them \
             is that of two machines"
                .to_owned(),
        );
    } else if run.was_emulated() {
        notes.push(
            "guests were run in an emulated processor (qemu's tcg, as KVM does not run here): they compare with each \
             other, but no time is a measurement of this hardware"
                .to_owned(),
        );
    }
    if run.aa {
        notes.push(
            "an A/A run compares the baseline with itself: a claimed difference would be false".to_owned(),
        );
    }
    let caveats = analysis.caveats.iter().chain(common.iter().copied());
    // Said behind the verdict.
    let caveats = caveats.filter(|caveat| told_from(caveat) <= detail && **caveat != Caveat::Sequential);
    notes.extend(caveats.map(|caveat| caveat_text(caveat, None, names)));
    notes.extend(merged(run.notes.iter().map(|note| note.text.as_str())));
    notes.extend(trial_notes(run, names));
    let mut seen: Vec<String> = Vec::new();
    notes.retain(|note| {
        !seen.contains(note) && {
            seen.push(note.clone());
            true
        }
    });
    notes
}

/// That the run is not all there, and what that does to its verdict.
fn unfinished(run: &Run, analysis: &Analysis) -> Option<String> {
    let what = match run.state {
        RunState::Finished => "this run has ended without all its rounds",
        RunState::Running => "this run has not ended",
        RunState::Interrupted => "this run was interrupted",
        RunState::Failed => "this run ended with an error",
    };
    let Some(SoFar { rounds, of }) = analysis.so_far() else {
        return (run.state != RunState::Finished).then(|| format!("{what}: the verdict so far"));
    };
    let on = run.id.map_or_else(String::new, |id| format!("; `assay run --resume {id}` goes on with it"));
    // Of runs that are compared with each other each says this of itself.
    (run.source == Source::Measured).then(|| {
        format!(
            "{what}: {rounds} of {of} rounds so far. A fixed number of rounds is judged once, with all of them: looking \
             earlier and stopping there would make more claims false{on}"
        )
    })
}
