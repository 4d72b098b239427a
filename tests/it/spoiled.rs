//! A measurement that a busy machine can spoil is taken again, a few times; what it can only be by a fault never is.

use std::time::Duration;

use assay::record::Note;

/// Takes it until it is as expected, each time after a longer pause; fails with the last complaint when it never is. What was not so most
/// of the time has to be so twice: that is rather a fault than a busy machine.
pub(crate) fn unless_spoiled(mut measurement: impl FnMut() -> Result<(), String>) {
    const TRIES: u32 = 8;
    const BY_CHANCE: usize = 4;
    const PAUSE: Duration = Duration::from_millis(250);
    let (mut complaints, mut good): (Vec<String>, u32) = (Vec::new(), 0);
    for tried in 0..TRIES {
        std::thread::sleep(PAUSE * tried);
        match measurement() {
            Ok(()) => good += 1,
            Err(complaint) => {
                println!("taken again: {complaint}");
                complaints.push(complaint);
            }
        }
        let needed = if complaints.len() > BY_CHANCE { 2 } else { 1 };
        if good >= needed {
            if needed > 1 {
                crate::tools::often_spoiled(&complaints);
            }
            return;
        }
    }
    panic!(
        "{} of {TRIES} times, at last: {}",
        complaints.len(),
        complaints.last().map_or("", String::as_str)
    );
}

/// `Err` with these words unless it holds.
pub(crate) fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// The words of a trial's notes.
pub(crate) fn texts(notes: &[Note]) -> Vec<&str> {
    notes.iter().map(|note| note.text.as_str()).collect()
}

/// Notes of a trial but for what others did to its device and the hypervisor to its processors.
pub(crate) fn own(notes: &[Note]) -> Vec<&str> {
    let by_others = |note: &&str| {
        note.contains("did not come to rest before the trial") || note.starts_with("it counts, although")
    };
    texts(notes).into_iter().filter(|note| !by_others(note)).collect()
}
