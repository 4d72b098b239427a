//! Every importer on arbitrary bytes, to the end: recognised, read twice, assembled into a run, its export read back.
//! Nothing may panic. The last byte chooses what the columns of a table are said to be.
#![no_main]

use assay::import::{Columns, ValueColumn, read_bytes_twice};
use libfuzzer_sys::fuzz_target;

fn columns(choice: u8) -> Columns {
    let values = |specs: &[&str]| {
        specs.iter().filter_map(|spec| ValueColumn::parse_spec(spec).ok()).collect::<Vec<_>>()
    };
    match choice % 4 {
        0 => Columns::default(),
        1 => Columns {
            arm: Some("variant".to_owned()),
            rows: vec!["io_size".to_owned()],
            values: values(&["kb_s:higher"]),
            ..Columns::default()
        },
        2 => Columns {
            rows: vec!["clients".to_owned()],
            arm_columns: vec![values(&["vanilla", "patched:lower"])],
            ..Columns::default()
        },
        _ => Columns { values: values(&["a", "b:ms"]), rows: vec!["row".to_owned()], ..Columns::default() },
    }
}

fuzz_target!(|bytes: &[u8]| {
    let choice = bytes.last().copied().unwrap_or(0);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = ValueColumn::parse_spec(text);
    }
    for end in [bytes.len(), bytes.len().saturating_sub(1)] {
        if let Ok(run) = read_bytes_twice(&bytes[..end], &columns(choice))
            && let Ok(export) = serde_json::to_vec(&run)
        {
            // What was built must be a record that the reader of exports accepts.
            read_bytes_twice(&export, &Columns::default()).map(|_| ()).unwrap_or_else(|error| {
                assert!(error.to_string().contains("no value"), "own export refused: {error}");
            });
        }
    }
});
