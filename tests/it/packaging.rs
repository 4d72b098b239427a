//! What the Debian package holds: each file is there, or is made by the command that `make man` has for it.

use std::path::Path;

use toml::{Table, Value};

use crate::sandbox::Sandbox;

#[test]
fn every_file_of_the_package_can_be_had() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest: Table = std::fs::read_to_string(root.join("Cargo.toml")).unwrap().parse().unwrap();
    let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
    let shells = makefile.lines().find(|line| line.contains("for shell in ")).unwrap();
    let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
    let sandbox = Sandbox::new();
    let mut generated = 0;
    for source in assets.iter().map(|asset| asset[0].as_str().unwrap()) {
        let Some(name) = source.strip_prefix("target/generated/assay.") else {
            // The program itself is built first.
            assert!(source == "target/release/assay" || root.join(source).is_file(), "{source}");
            continue;
        };
        let what = if name == "1" { "man" } else { name };
        assert!(what == "man" || shells.contains(&format!(" {what}")), "make man does not make {source}");
        let file = format!("assay.{name}");
        sandbox.succeed(&["generate", what, "-o", &file]);
        let text = std::fs::read_to_string(sandbox.path().join(&file)).unwrap();
        assert!(text.contains("assay") && text.contains("bisect"), "{source}: {text}");
        generated += 1;
    }
    assert!(generated >= 4, "a man page and three shells' completions: {assets:?}");
    let depends = |key: &str| manifest["package"]["metadata"]["deb"].get(key).and_then(Value::as_str);
    assert_eq!(depends("depends"), Some("$auto"), "what the program is linked with");
}
