//! A measurement that a busy machine can spoil is taken again, a few times; what it can only be by a fault never is.

use std::time::Duration;

use assay::record::Note;

/// Takes it until it is as expected, each time after a longer pause; fails with the last complaint when it never is.
pub(crate) fn unless_spoiled(mut measurement: impl FnMut() -> Result<(), String>) {
    const TRIES: u32 = 8;
    const PAUSE: Duration = Duration::from_millis(250);
    let mut last = String::new();
    for tried in 0..TRIES {
        std::thread::sleep(PAUSE * tried);
        match measurement() {
            Ok(()) => return,
            Err(complaint) => {
                println!("taken again: {complaint}");
                last = complaint;
            }
        }
    }
    panic!("{TRIES} times, at last: {last}");
}

/// `Err` with these words unless it holds.
pub(crate) fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// The words of a trial's notes.
pub(crate) fn texts(notes: &[Note]) -> Vec<&str> {
    notes.iter().map(|note| note.text.as_str()).collect()
}

/// Notes of a trial but for what others did to its device.
pub(crate) fn own(notes: &[Note]) -> Vec<&str> {
    let by_others = |note: &&str| note.contains("did not come to rest before the trial");
    texts(notes).into_iter().filter(|note| !by_others(note)).collect()
}
