//! docs/SAFETY.md says which test holds each line of its table: they exist, and no class of attacks is missing from it.

use std::path::Path;

#[test]
fn every_test_that_the_page_of_safety_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/SAFETY.md")).unwrap();
    let table = page.split("## Threats").nth(1).unwrap();
    let mut modules = std::collections::BTreeSet::new();
    let named = table.split('`').filter_map(|word| word.split_once("::"));
    for (module, test) in named {
        // A class of attacks, or a test beside those of the feature it attacks.
        let source = ["attacks/", ""]
            .into_iter()
            .find_map(|room| std::fs::read_to_string(root.join(format!("tests/it/{room}{module}.rs"))).ok());
        let source = source.unwrap_or_else(|| panic!("there are no tests {module}"));
        assert!(source.contains(&format!("#[test]\nfn {test}()")), "{module}::{test}");
        modules.insert(module.to_owned());
    }
    for entry in std::fs::read_dir(root.join("tests/it/attacks")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        let no_class = ["mod", "page", "victims"].contains(&&*name);
        assert!(no_class || modules.contains(&name), "{name} is not in the table");
    }
}
