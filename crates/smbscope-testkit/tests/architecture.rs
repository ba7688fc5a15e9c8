//! Checks what ARCHITECTURE.md promises: the direction of imports, modules without circles, and inner crates without
//! I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates available to a program, i.e. the command line or a package for another language.
const LIBRARIES: &[&str] = &[
    "smbscope-wire",
    "smbscope-crypto",
    "smbscope-model",
    "smbscope-capture",
    "smbscope-analyze",
    "smbscope-stats",
    "smbscope-diagnose",
    "smbscope-lab",
    "smbscope-client",
    "smbscope-load",
    "smbscope-report",
    "smbscope-explain",
    "smbscope-run",
];

/// The Python package includes the command line, so that one file installs both.
const PACKAGE: &[&str] = &["smbscope-run", "smbscope-cli", "smbscope-model", "smbscope-report"];

/// Allowed dependencies of each crate, from the inside out.
const MAY_USE: &[(&str, &[&str])] = &[
    ("smbscope-wire", &[]),
    ("smbscope-crypto", &["smbscope-wire"]),
    ("smbscope-model", &["smbscope-wire"]),
    ("smbscope-capture", &["smbscope-model"]),
    ("smbscope-analyze", &["smbscope-wire", "smbscope-crypto", "smbscope-model", "smbscope-capture"]),
    ("smbscope-stats", &["smbscope-model"]),
    ("smbscope-diagnose", &["smbscope-wire", "smbscope-model", "smbscope-stats"]),
    ("smbscope-lab", &["smbscope-wire", "smbscope-model"]),
    ("smbscope-client", &["smbscope-wire", "smbscope-crypto", "smbscope-model"]),
    ("smbscope-load", &["smbscope-client", "smbscope-wire", "smbscope-model", "smbscope-stats"]),
    ("smbscope-report", &["smbscope-model", "smbscope-stats", "smbscope-diagnose"]),
    (
        "smbscope-explain",
        &[
            "smbscope-wire",
            "smbscope-crypto",
            "smbscope-model",
            "smbscope-capture",
            "smbscope-analyze",
            "smbscope-stats",
            "smbscope-diagnose",
            "smbscope-report",
        ],
    ),
    (
        "smbscope-run",
        &[
            "smbscope-wire",
            "smbscope-crypto",
            "smbscope-model",
            "smbscope-capture",
            "smbscope-analyze",
            "smbscope-stats",
            "smbscope-diagnose",
            "smbscope-lab",
            "smbscope-client",
            "smbscope-load",
            "smbscope-report",
            "smbscope-explain",
        ],
    ),
    (
        "smbscope-page",
        &["smbscope-crypto", "smbscope-capture", "smbscope-analyze", "smbscope-report", "smbscope-explain"],
    ),
    ("smbscope-cli", LIBRARIES),
    ("smbscope-py", PACKAGE),
    ("smbscope-testkit", &["smbscope-wire", "smbscope-crypto", "smbscope-model", "smbscope-capture"]),
    (
        "smbscope-fuzz",
        &[
            "smbscope-wire",
            "smbscope-crypto",
            "smbscope-model",
            "smbscope-capture",
            "smbscope-analyze",
            "smbscope-stats",
            "smbscope-diagnose",
            "smbscope-report",
            "smbscope-testkit",
        ],
    ),
];

/// Additional dependencies allowed in tests: the test kit with its own dependencies, and servers.
const TESTS_MAY_USE: &[&str] =
    &["smbscope-testkit", "smbscope-wire", "smbscope-crypto", "smbscope-model", "smbscope-capture", "smbscope-lab"];

/// Crates that take time as an argument and use no files, sockets, processes or threads of their own.
const NO_IO: &[&str] =
    &["smbscope-wire", "smbscope-crypto", "smbscope-model", "smbscope-analyze", "smbscope-stats", "smbscope-diagnose"];

/// Names that a crate without I/O must not use. `std::net` is missing here because an address is a value.
const IO_NAMES: &[&str] = &[
    "SystemTime",
    "Instant",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "std::fs",
    "std::os",
    "std::env",
    "std::process",
];

/// Macros for the command line only: libraries return values or emit `tracing` events.
const PRINT_MACROS: &[&str] = &["print!", "println!", "eprint!", "eprintln!", "dbg!"];

/// Crates that print: the command line, and test tools.
const MAY_PRINT: &[&str] = &["smbscope-cli", "smbscope-testkit", "smbscope-fuzz"];

#[test]
fn every_crate_uses_only_what_the_architecture_allows() {
    let mut wrong = Vec::new();
    for (name, directory) in crates() {
        let allowed =
            MAY_USE.iter().find(|(of, _)| *of == name).unwrap_or_else(|| panic!("{name} has no row in MAY_USE")).1;
        for (section, dependency) in own_dependencies(&read(&directory.join("Cargo.toml"))) {
            let for_tests = section.ends_with("dev-dependencies");
            let fine = allowed.contains(&dependency.as_str())
                || (for_tests && TESTS_MAY_USE.contains(&dependency.as_str()))
                // A crate may depend on itself in tests, to enable features that no program uses.
                || (for_tests && name == dependency)
                // The test kit is the outermost crate, so its own tests may use all others.
                || (for_tests && name == "smbscope-testkit");
            if !fine {
                wrong.push(format!("{name} uses {dependency} in [{section}]"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// "all above", "all but run, cli", "wire, model" or "–".
#[test]
fn the_table_of_crates_says_what_the_manifest_allows() {
    let page = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `smbscope-")).filter_map(|row| {
        let (name, rest) = row.split_once("` |")?;
        let (_, allowed) = rest.trim_end_matches(" |").rsplit_once(" | ")?;
        (!name.contains('/')).then(|| (name.to_owned(), allowed.to_owned()))
    });
    let rows: Vec<(String, String)> = rows.collect();
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    let manifest: Vec<&str> = MAY_USE.iter().map(|(name, _)| name.trim_start_matches("smbscope-")).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), manifest.iter().collect(), "crates of the table");
    for (at, (name, allowed)) in rows.iter().enumerate() {
        let listed = |text: &str| text.split(", ").map(str::to_owned).collect::<BTreeSet<_>>();
        let said = match (allowed.as_str(), allowed.strip_prefix("all but ")) {
            ("–", _) => BTreeSet::new(),
            ("all above", _) => names[..at].iter().map(|name| (*name).to_owned()).collect(),
            (_, Some(excluded)) => {
                let excluded = listed(excluded);
                let others = names.iter().filter(|other| *other != name && !excluded.contains(**other));
                others.map(|name| (*name).to_owned()).collect()
            }
            (some, None) => listed(some),
        };
        let (_, may_use) = MAY_USE.iter().find(|(crate_name, _)| crate_name.ends_with(name)).expect("a row");
        let held = may_use.iter().map(|name| name.trim_start_matches("smbscope-").to_owned()).collect();
        assert_eq!(said, held, "{name} in ARCHITECTURE.md, and in MAY_USE");
    }
}

#[test]
fn inner_crates_do_no_io_and_read_no_clock() {
    let mut wrong = Vec::new();
    for (name, directory) in crates().into_iter().filter(|(name, _)| NO_IO.contains(&name.as_str())) {
        let sources = rust_files(&directory.join("src"));
        assert!(!sources.is_empty(), "{name} has no sources");
        for path in sources {
            for found in mentioned(&read(&path), IO_NAMES) {
                wrong.push(format!("{} mentions {found}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_of_a_crate_form_no_circle() {
    // The test kit builds captures with its own recordings of captures.
    for (name, directory) in crates().into_iter().filter(|(name, _)| name != "smbscope-testkit") {
        let mut imports = imports_between_modules(&directory.join("src"));
        // Modules whose imports are all gone are in no circle.
        while let Some(free) = imports.iter().find(|(_, others)| others.is_empty()).map(|(module, _)| module.clone()) {
            imports.remove(&free);
            imports.values_mut().for_each(|others| _ = others.remove(&free));
        }
        assert!(imports.is_empty(), "{name}: a circle of modules, or modules that import one: {imports:?}");
    }
}

#[test]
fn libraries_print_nothing() {
    let mut wrong = Vec::new();
    for (_, directory) in crates().into_iter().filter(|(name, _)| !MAY_PRINT.contains(&name.as_str())) {
        for path in rust_files(&directory.join("src")) {
            for found in mentioned(&read(&path), PRINT_MACROS) {
                wrong.push(format!("{} calls {found}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// If a crate builds its tests as one program, Cargo does not discover test files, and a forgotten one would never run.
#[test]
fn every_test_file_is_in_a_program() {
    for (name, directory) in crates() {
        let Ok(main) = fs::read_to_string(directory.join("tests/main.rs")) else { continue };
        let manifest = read(&directory.join("Cargo.toml"));
        for entry in fs::read_dir(directory.join("tests")).expect("a folder") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().and_then(|file| file.to_str()).expect("an ASCII name");
            let holds_code =
                path.is_dir() && !rust_files(&path).is_empty() || file.ends_with(".rs") && file != "main.rs";
            let is_module = main.contains(&format!("mod {};", file.trim_end_matches(".rs")));
            let is_program = manifest.contains(&format!("path = \"tests/{file}"));
            assert!(!holds_code || is_module || is_program, "{name}: tests/{file} is in no program of tests");
        }
    }
}

#[test]
fn dependencies_are_found_in_every_way_of_writing_them() {
    let manifest = r#"
        [package]
        name = "smbscope-x"
        [dependencies]
        smbscope-wire.workspace = true
        smbscope-model = { path = "../smbscope-model" }
        smbscope = "1"
        [target.'cfg(unix)'.dependencies]
        "smbscope-capture" = "1"
        [dev-dependencies.smbscope-stats]
        workspace = true
    "#;
    let expected = [
        ("dependencies", "smbscope-wire"),
        ("dependencies", "smbscope-model"),
        ("target.'cfg(unix)'.dependencies", "smbscope-capture"),
        ("dev-dependencies", "smbscope-stats"),
    ];
    assert_eq!(own_dependencies(manifest), expected.map(|(section, name)| (section.to_owned(), name.to_owned())));
}

#[test]
fn names_are_found_in_code_but_not_in_comments_or_tests() {
    let io = |source| mentioned(source, IO_NAMES);
    assert_eq!(io("use std::{fmt, fs::File};"), ["std::fs"]);
    assert_eq!(io("use std::time::{Duration, Instant};"), ["Instant"]);
    assert_eq!(io("// an Instant\nuse std::net::SocketAddr; // not SystemTime\nstruct InstantNoodles;"), [""; 0]);
    assert_eq!(io("fn f() {}\n#[cfg(test)]\nmod tests { use std::fs; }"), [""; 0]);
    assert_eq!(mentioned("fn f() { eprintln!(); }", PRINT_MACROS), ["eprintln!"]);
}

/// Returns every crate of the workspace by name.
fn crates() -> BTreeMap<String, PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in crates/");
    let found: BTreeMap<_, _> = fs::read_dir(all)
        .expect("crates/ can be listed")
        .map(|entry| entry.expect("crates/ can be listed").path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| (path.file_name().expect("a directory has a name").to_string_lossy().into_owned(), path))
        .collect();
    assert!(found.len() > 1, "no crates below {}", all.display());
    found
}

/// Returns section and name of each `smbscope-…` dependency in a manifest.
fn own_dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut section = String::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = header.trim_matches(['[', ']']).to_owned();
            // The long form: [dependencies.smbscope-wire].
            if let Some((table, name)) = section.rsplit_once('.')
                && table.ends_with("dependencies")
                && name.starts_with("smbscope-")
            {
                found.push((table.to_owned(), name.to_owned()));
            }
        } else if section.ends_with("dependencies") {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default().trim_matches('"');
            if name.starts_with("smbscope-") {
                found.push((section.clone(), name.to_owned()));
            }
        }
    }
    found
}

/// Returns the Rust files below a directory, without those that contain only tests.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("sources can be listed") {
        let path = entry.expect("sources can be listed").path();
        if path.is_dir() {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns the top-level modules of a crate, each with those that it imports. Functions that attributes name in strings,
/// which describe the schema, do not count as imports.
fn imports_between_modules(sources: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let module = |path: &Path| {
        let inside = path.strip_prefix(sources).expect("a file below the sources");
        let first = inside.components().next().expect("a name").as_os_str().to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    };
    let files = rust_files(sources);
    let modules: BTreeSet<String> = files.iter().map(|path| module(path)).filter(|name| name != "lib").collect();
    let mut imports: BTreeMap<String, BTreeSet<String>> =
        modules.iter().map(|name| (name.clone(), BTreeSet::new())).collect();
    for path in &files {
        let (own, code) = (module(path), code_before_tests(&read(path)).replace("\"crate::", "\""));
        let imported = imported_modules(&code).into_iter().filter(|other| *other != own && modules.contains(other));
        if let Some(known) = imports.get_mut(&own) {
            known.extend(imported);
        }
    }
    imports
}

/// Returns the first names after `crate::`, also those in braces.
fn imported_modules(code: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for (at, path) in code.match_indices("crate::") {
        let rest = &code[at + path.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let mut depth = 0_usize;
        let mut begins = true;
        for (place, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && !c.is_whitespace() => {
                    found.push(word(&group[place..]));
                    begins = false;
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn imports_are_found_in_paths_and_in_groups() {
    let code =
        "use crate::split::{a, b};\nuse crate::{\n    bins::{self, c},\n    row,\n};\nfn f() { crate::text::g() }";
    assert_eq!(imported_modules(code), ["split", "bins", "row", "text"]);
}

/// Returns the code before the tests, without comments.
fn code_before_tests(source: &str) -> String {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default().lines();
    code.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the names that the code before the tests mentions.
fn mentioned(source: &str, names: &[&'static str]) -> Vec<&'static str> {
    let code = code_before_tests(source);
    // `use std::{fmt, fs}` also mentions std::fs.
    let grouped: String = code
        .split("std::{")
        .skip(1)
        .flat_map(|rest| rest.split('}').next().unwrap_or_default().split(','))
        .map(|item| format!("std::{}\n", item.trim()))
        .collect();
    names.iter().copied().filter(|name| mentions(&code, name) || mentions(&grouped, name)).collect()
}

/// Returns true if the text contains the name as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(in_word) && !text[at + name.len()..].starts_with(in_word))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A child started in any other way inherits the user's password.
#[test]
fn every_child_is_started_without_the_password() {
    // `lab run` gives its command the password of its own server.
    let allowed = ["smbscope-lab/src/child.rs", "smbscope-cli/src/lab.rs"];
    for name in ["smbscope-run", "smbscope-cli", "smbscope-lab", "smbscope-load", "smbscope-py"] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        for path in rust_files(&sources) {
            let source = read(&path);
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            let is_allowed = allowed.iter().any(|allowed| path.ends_with(allowed.split_once('/').expect("a path").1));
            assert!(is_allowed || !code.contains("Command::new("), "{}: use command_for", path.display());
        }
    }
}
