//! A measurement that a busy machine can spoil is taken again, a few times; what it can only be by a fault never is.

use std::time::Duration;

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

/// Notes of a trial but for what others did to its device.
pub(crate) fn own(notes: &[String]) -> Vec<&str> {
    let by_others = |note: &&str| note.contains("did not come to rest before the trial");
    notes.iter().map(String::as_str).filter(|note| !by_others(note)).collect()
}
