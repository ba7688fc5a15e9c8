//! Runs every fuzz target on its seeds and previous finds, with the stable toolchain.

use smbscope_fuzz::TARGETS;
use smbscope_fuzz::mutate::{cross, mutate};
use smbscope_fuzz::pipeline::pipeline;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Returns the files in a directory, sorted; none if it does not exist.
fn files(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    found.sort();
    found
}

fn names(directory: &str) -> Vec<String> {
    let stem = |path: &PathBuf| path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    files(&fuzz().join(directory)).iter().map(stem).collect()
}

#[test]
fn every_kept_input_passes() {
    let mut failed = Vec::new();
    for target in TARGETS {
        for directory in ["corpus", "finds"] {
            for path in files(&fuzz().join(directory).join(target.name)) {
                let bytes = fs::read(&path).expect("it can be read");
                if catch_unwind(AssertUnwindSafe(|| (target.body)(&bytes))).is_err() {
                    failed.push(path);
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_target_has_a_wrapper_a_corpus_and_a_line_in_the_documentation() {
    let mut expected: Vec<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    expected.sort();
    assert_eq!(names("fuzz_targets"), expected);
    assert_eq!(names("corpus"), expected);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("it can be read");
    let documentation = fs::read_to_string(fuzz().join("../docs/fuzzing.md")).expect("it can be read");
    for name in expected {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in fuzz/Cargo.toml");
        assert!(documentation.contains(&format!("`{name}`")), "{name} is not in docs/fuzzing.md");
    }
}

/// Returns the seeds of the target with its own mutator.
fn captures() -> Vec<Vec<u8>> {
    let paths = files(&fuzz().join("corpus/pipeline"));
    paths.iter().map(|path| fs::read(path).expect("it can be read")).collect()
}

#[test]
fn damaged_captures_are_analysed_and_keep_within_their_room() {
    for (index, capture) in captures().iter().enumerate() {
        for seed in 0..20 {
            let room = if seed % 5 == 0 { capture.len() } else { capture.len() + 2000 };
            let mut data = capture.clone();
            data.resize(room, 0);
            // Replaces the fuzzer's mutator: inverts the first byte.
            let flip = |bytes: &mut [u8], size: usize, _: usize| {
                bytes.first_mut().into_iter().for_each(|byte| *byte = !*byte);
                size
            };
            let size = mutate(&mut data, capture.len(), room, 1000 * index as u32 + seed, flip);
            assert!(size <= room);
            pipeline(&data[..size]);
        }
    }
}

#[test]
fn damage_changes_captures_and_the_same_seed_does_the_same() {
    let capture = captures().into_iter().find(|bytes| bytes.starts_with(&0xa1b2_3c4d_u32.to_le_bytes()));
    let capture = capture.expect("there is a plain file");
    let damaged = |seed| {
        let mut data = capture.clone();
        data.resize(capture.len() + 4000, 0);
        let size = mutate(&mut data, capture.len(), capture.len() + 4000, seed, |_, size, _| size);
        data.truncate(size);
        data
    };
    let changed = (0..50).filter(|seed| damaged(*seed) != capture).count();
    assert!(changed > 35, "{changed} of 50");
    assert_eq!(damaged(7), damaged(7));
}

#[test]
fn crossed_captures_hold_packets_of_both() {
    let all = captures();
    let mut out = vec![0; 100_000];
    for seed in 0..20 {
        let size = cross(&all[1], &all[2], &mut out, seed);
        pipeline(&out[..size]);
    }
}
