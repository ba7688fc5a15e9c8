//! Modules of the analyser have no circular dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Collects the `use` lines of each file by module path, such as `smb1::raw`.
fn uses(directory: &Path, module: &str, found: &mut BTreeMap<String, Vec<String>>) {
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("can be listed").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("names are ASCII").to_owned();
        if path.is_dir() {
            uses(&path, &format!("{module}{name}::"), found);
            continue;
        }
        let itself = if name == "mod" { module.trim_end_matches("::").to_owned() } else { format!("{module}{name}") };
        let source = fs::read_to_string(&path).expect("a source can be read");
        // Only lines without indentation: unit tests may use what they test.
        let named = source.lines().filter_map(|line| line.strip_prefix("use ")).map(|used| {
            let used = used.strip_prefix("super::").map_or(used.to_owned(), |used| format!("{module}{used}"));
            match used.strip_prefix("crate::") {
                Some(used) => used.to_owned(),
                None if name == "mod" && !used.starts_with(module) => format!("{module}{used}"),
                None => used,
            }
        });
        found.insert(itself, named.collect());
    }
}

#[test]
fn no_file_uses_one_that_uses_it() {
    let mut found = BTreeMap::new();
    uses(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut found);
    let modules: Vec<String> = found.keys().filter(|name| *name != "lib").cloned().collect();
    let module_of = |used: &String| {
        let holds = |module: &&String| {
            used.strip_prefix(module.as_str()).is_some_and(|rest| rest.starts_with("::") || rest.starts_with(';'))
        };
        modules.iter().filter(holds).max_by_key(|module| module.len()).cloned()
    };
    let mut edges: BTreeMap<String, BTreeSet<String>> = modules
        .iter()
        .map(|module| {
            (module.clone(), found[module].iter().filter_map(module_of).filter(|used| used != module).collect())
        })
        .collect();
    assert!(edges["connection"].contains("smb1") && edges["smb1"].contains("smb1::raw"), "{edges:?}");
    assert!(edges["smb1::raw"].contains("smb1::requests"), "{edges:?}");
    // A module that uses no other is in no circle. Remove it, and repeat.
    while let Some(last) = edges.iter().find(|(_, used)| used.is_empty()).map(|(module, _)| module.clone()) {
        edges.remove(&last);
        for used in edges.values_mut() {
            used.remove(&last);
        }
    }
    assert!(edges.is_empty(), "in a circle, or using one: {edges:?}");
}
