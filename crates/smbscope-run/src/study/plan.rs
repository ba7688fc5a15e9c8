//! The variants of a study, which combine the settings of all axes, and the order of the runs.

use super::{Axis, Setting, Study, VariantOptions};
use sha2::{Digest, Sha256};
use smbscope_report::quoted;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedVariant {
    pub name: String,
    pub folder: String,
    /// Index of the variant to compare with. Its own index if it is a baseline.
    pub baseline: usize,
    pub settings: Vec<(String, String)>,
    pub options: VariantOptions,
    pub before: Vec<String>,
    /// Shell commands after each run, in reverse order of the axes.
    pub after: Vec<String>,
}

impl PlannedVariant {
    pub(super) fn has_private_server(&self) -> bool {
        self.options.target().is_none() && (!self.options.is_launch() || self.options.is_at_server())
    }

    /// Returns where the files are: the target, a private server, or this machine.
    pub(super) fn place(&self) -> String {
        match self.options.target() {
            Some(target) => target.to_owned(),
            None if self.has_private_server() => "private server".to_owned(),
            None => "this machine".to_owned(),
        }
    }

    pub fn command(&self) -> String {
        let run = format!("smbscope{}", words(&self.options.words()));
        match (self.options.target(), words(&self.options.lab_words())) {
            (None, lab) if !lab.is_empty() => format!("{run} (lab{lab})"),
            _ => run,
        }
    }
}

fn words(arguments: &[String]) -> String {
    let parts = arguments.iter().flat_map(|argument| match argument.split_once('=') {
        Some((name, value)) if name.starts_with("--") => vec![name, value],
        _ => vec![argument.as_str()],
    });
    parts.map(|word| format!(" {}", quoted(word))).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariantRepetition {
    /// From 1.
    pub repetition: u32,
    pub variant: usize,
}

impl Study {
    /// Combines the settings of all axes. The first variant is the baseline.
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

    fn baseline(&self, variant: usize) -> usize {
        let Some(along) = &self.compare_along else { return 0 };
        let axes = self.axes.iter().rev();
        // The last axis varies fastest.
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

    /// Returns the runs in order: each repetition runs every variant once in random order, which spreads drift evenly
    /// over the variants.
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

fn named(axis: &Axis, setting: &Setting) -> String {
    if axis.is_option { format!("{} {}", axis.name, setting.name) } else { setting.name.clone() }
}

/// Returns the sort key that shuffles the runs. The same seed gives the same order.
fn lot(seed: u64, turn: VariantRepetition) -> Vec<u8> {
    let numbers = [seed, turn.repetition.into(), turn.variant as u64];
    Sha256::digest(numbers.map(u64::to_le_bytes).concat()).to_vec()
}

/// Bytes of a variant's name in its folder's name. File systems limit names to 255.
const FOLDER_NAME_MAX: usize = 80;

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
