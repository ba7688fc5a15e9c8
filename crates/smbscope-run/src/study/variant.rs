//! The variants of a study and the order of its runs.

use super::definition::{Axis, Setting, Study};
use super::options::VariantOptions;
use sha2::{Digest, Sha256};
use smbscope_report::quoted;

/// One setting of each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedVariant {
    /// What it is called: the names of its settings.
    pub name: String,
    /// Where its runs are kept, below the directory of the study.
    pub folder: String,
    /// Index of the variant that it is compared with; its own for one that others are compared with.
    pub baseline: usize,
    /// Axis and setting, in the order of the axes.
    pub settings: Vec<(String, String)>,
    /// What its runs are made from.
    pub options: VariantOptions,
    /// Commands for the shell, before each run.
    pub before: Vec<String>,
    /// Commands for the shell, after each run: those of the last axis first.
    pub after: Vec<String>,
}

impl PlannedVariant {
    /// The command line that does what one of its runs does.
    pub fn command(&self) -> String {
        let run = format!("smbscope{}", words(&self.options.arguments()));
        match (self.options.target(), words(&self.options.lab_arguments())) {
            (None, lab) if !lab.is_empty() => format!("{run} (lab{lab})"),
            _ => run,
        }
    }
}

/// Arguments as a person writes them, each behind a blank.
fn words(arguments: &[String]) -> String {
    let parts = arguments.iter().flat_map(|argument| match argument.split_once('=') {
        Some((name, value)) if name.starts_with("--") => vec![name, value],
        _ => vec![argument.as_str()],
    });
    parts.map(|word| format!(" {}", quoted(word))).collect()
}

/// A run of a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantRepetition {
    /// From 1.
    pub repetition: u32,
    /// Index into the variants.
    pub variant: usize,
}

impl Study {
    /// Every setting of every axis with every one of the others; the first one is the baseline.
    pub fn variants(&self) -> Vec<PlannedVariant> {
        let mut combinations: Vec<Vec<(&Axis, &Setting)>> = vec![Vec::new()];
        for axis in &self.axes {
            let longer = |chosen: Vec<_>| {
                axis.settings.iter().map(move |setting| {
                    let mut longer = chosen.clone();
                    longer.push((axis, setting));
                    longer
                })
            };
            combinations = combinations.into_iter().flat_map(longer).collect();
        }
        let digits = combinations.len().to_string().len().max(2);
        let variant = |(at, chosen): (usize, Vec<(&Axis, &Setting)>)| {
            let names: Vec<String> = chosen.iter().map(|(axis, setting)| named(axis, setting)).collect();
            let name = if names.is_empty() { self.name.clone() } else { names.join(", ") };
            PlannedVariant {
                folder: format!("{:0digits$}-{}", at + 1, folder(&name)),
                name,
                baseline: self.baseline(at),
                settings: chosen.iter().map(|(axis, setting)| (axis.name.clone(), setting.name.clone())).collect(),
                options: chosen.iter().fold(self.common.clone(), |all, (_, setting)| all.with(&setting.options)),
                before: chosen.iter().flat_map(|(_, setting)| setting.before.clone()).collect(),
                after: chosen.iter().rev().flat_map(|(_, setting)| setting.after.clone()).collect(),
            }
        };
        combinations.into_iter().enumerate().map(variant).collect()
    }

    /// What the variant of this index is compared with.
    fn baseline(&self, variant: usize) -> usize {
        let Some(along) = &self.compare_along else { return 0 };
        let axes = self.axes.iter().rev();
        // The last axis changes with each variant, the one before it when that is through, and so on.
        let mut stride = 1;
        for axis in axes {
            let settings = axis.settings.len();
            if axis.name == *along {
                return variant - variant / stride % settings * stride;
            }
            stride *= settings;
        }
        0
    }

    /// The runs in their order: each repetition has every variant once, in an order of its own, so that what drifts in the
    /// meantime hits all variants alike.
    pub fn turns(&self, variants: usize) -> Vec<VariantRepetition> {
        let block = |repetition: u32| {
            let mut block: Vec<VariantRepetition> =
                (0..variants).map(|variant| VariantRepetition { repetition, variant }).collect();
            block.sort_by_key(|turn| lot(self.seed, *turn));
            block
        };
        (1..=self.repetitions).flat_map(block).collect()
    }
}

/// What a setting is called in the name of a variant.
fn named(axis: &Axis, setting: &Setting) -> String {
    if axis.is_option { format!("{} {}", axis.name, setting.name) } else { setting.name.clone() }
}

/// What decides about the order: as good as drawn at random, and the same for the same seed.
fn lot(seed: u64, turn: VariantRepetition) -> Vec<u8> {
    let numbers = [seed, turn.repetition.into(), turn.variant as u64];
    Sha256::digest(numbers.map(u64::to_le_bytes).concat()).to_vec()
}

/// Bytes of a name that its folder has: names of files are 255 at most.
const FOLDER_NAME_MAX: usize = 80;

/// A name that every file system takes.
fn folder(name: &str) -> String {
    let mut folder = String::new();
    for c in name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }) {
        if c != '-' || !folder.ends_with('-') {
            folder.push(c);
        }
    }
    folder.truncate(FOLDER_NAME_MAX);
    folder.trim_matches(['-', '.']).to_owned()
}
