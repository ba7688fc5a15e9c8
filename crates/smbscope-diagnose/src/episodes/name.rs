//! Classification of an episode by the files it touches, and how many they are.

use crate::classify::{has_extension, is_close};
use serde::{Deserialize, Serialize};
use smbscope_model::{Command, CommandGroup, Exchange, FileId, FlowId, Subcommand};
use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb2;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Files of a kind that can name an episode.
const NAMES_MAX: usize = 16;
/// Minimum number of files in a copy of little data; each is opened about once.
const COPY_FILES: u64 = 10;
/// Minimum number of written documents in an upload; fewer are a save.
const UPLOAD_DOCUMENTS: usize = 3;
/// Renames of open files followed at once.
const RENAMES_MAX: usize = 16;
const PROFILE_FILES: u64 = 30;
const COPY_BYTES: u64 = 10_000_000;
const LIBRARIES: u64 = 3;
const SEARCH_LISTS: u64 = 20;

/// Kind of work in an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EpisodeKind {
    /// Read of a user profile: its registry hive (NTUSER.DAT) and other files.
    Logon,
    /// Write of a user profile.
    Logoff,
    /// Open of a program and its libraries.
    Launch,
    /// Open of a document.
    Document,
    /// Save of a document: written, or replaced by a renamed file.
    Save,
    /// Repeated reads of one settings file.
    Settings,
    /// Read of much data or many files.
    Download,
    /// Write of much data or many files.
    Upload,
    /// Listing of directories.
    Search,
    /// Other work.
    Other,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Touched {
    pub(super) lists: u64,
    profile: u64,
    libraries: u64,
    programs: OpensByPath,
    documents: OpensByPath,
    settings: OpensByPath,
    saved: OpensByPath,
    /// Renamed files that are still open: their CLOSE shows the new name.
    renamed: Vec<(FlowId, FileId)>,
}

/// Open counts by path. If there are too many, the first in alphabetical order stay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct OpensByPath(BTreeMap<Arc<str>, u64>);

impl OpensByPath {
    fn add(&mut self, path: &Arc<str>, times: u64) {
        *self.0.entry(Arc::clone(path)).or_default() += times;
        if self.0.len() > NAMES_MAX {
            self.0.pop_last();
        }
    }

    fn merge(&mut self, other: &OpensByPath) {
        other.0.iter().for_each(|(path, times)| self.add(path, *times));
    }

    fn most(&self) -> Option<(&Arc<str>, u64)> {
        self.0.iter().max_by_key(|(path, times)| (**times, std::cmp::Reverse(*path))).map(|(path, n)| (path, *n))
    }
}

impl Touched {
    pub(super) fn open(&mut self, path: &Arc<str>) {
        let name = file_name(path);
        let is = |known: &[&str]| has_extension(name, known);
        if name.eq_ignore_ascii_case("ntuser.dat") || name.eq_ignore_ascii_case("ntuser.ini") {
            self.profile += 1;
        } else if is(&["dll", "so", "dylib", "drv", "ocx"]) {
            self.libraries += 1;
        } else if is(&["exe", "msi", "jar", "app"]) {
            self.programs.add(path, 1);
        } else if is_document(name) {
            self.documents.add(path, 1);
        } else if is(&["ini", "cfg", "conf", "xml", "json", "reg"]) {
            self.settings.add(path, 1);
        }
    }

    pub(super) fn merge(&mut self, other: &Touched) {
        self.lists += other.lists;
        self.profile += other.profile;
        self.libraries += other.libraries;
        self.programs.merge(&other.programs);
        self.documents.merge(&other.documents);
        self.settings.merge(&other.settings);
        self.saved.merge(&other.saved);
        self.renamed.extend(other.renamed.iter().copied());
        self.renamed.truncate(RENAMES_MAX);
    }

    pub(super) fn outcome(&mut self, exchange: &Exchange) {
        if exchange.status.is_none_or(|status| status.is_error()) {
            return;
        }
        let key = exchange.file_id.map(|file| (exchange.flow, file));
        let is_saved = match exchange.group {
            CommandGroup::Write => exchange.length.is_some_and(|length| length > 0),
            CommandGroup::Directory => {
                let renamed = key.filter(|_| renames(exchange) && self.renamed.len() < RENAMES_MAX);
                self.renamed.extend(renamed);
                false
            }
            CommandGroup::OpenClose if !self.renamed.is_empty() && is_close(exchange) => {
                let at = self.renamed.iter().position(|one| Some(*one) == key);
                at.map(|at| self.renamed.swap_remove(at)).is_some()
            }
            _ => false,
        };
        let path = exchange.path.as_ref().filter(|_| is_saved);
        if let Some(path) = path.filter(|path| is_document(file_name(path))) {
            self.saved.add(path, 1);
        }
    }

    pub(super) fn name(
        &self,
        commands: u64,
        opens: u64,
        files: u64,
        read: u64,
        written: u64,
    ) -> (EpisodeKind, Option<Arc<str>>) {
        let named = |names: &OpensByPath| names.most().map(|(path, _)| Arc::clone(path));
        let again = self.settings.most().filter(|(_, times)| *times >= 20 && *times * 2 >= opens);
        let in_one_direction = read.min(written) <= read.max(written) / 10;
        if self.profile > 0 && files >= PROFILE_FILES {
            (if written > read { EpisodeKind::Logoff } else { EpisodeKind::Logon }, None)
        } else if let Some((path, _)) = again {
            (EpisodeKind::Settings, Some(Arc::clone(path)))
        } else if self.libraries >= LIBRARIES && (!self.programs.0.is_empty() || self.libraries * 4 >= files) {
            (EpisodeKind::Launch, named(&self.programs))
        } else if self.saved.0.len() >= UPLOAD_DOCUMENTS && written > read && in_one_direction {
            (EpisodeKind::Upload, None)
        } else if let Some(saved) = named(&self.saved) {
            (EpisodeKind::Save, Some(saved))
        } else if in_one_direction && is_copy(opens, files, read.max(written)) {
            (if written > read { EpisodeKind::Upload } else { EpisodeKind::Download }, None)
        } else if let Some(document) = named(&self.documents) {
            (EpisodeKind::Document, Some(document))
        } else if self.lists >= SEARCH_LISTS && self.lists * 4 >= commands {
            (EpisodeKind::Search, None)
        } else {
            (EpisodeKind::Other, None)
        }
    }
}

fn is_copy(opens: u64, files: u64, bytes: u64) -> bool {
    bytes >= COPY_BYTES || files >= COPY_FILES && opens <= files * 2 && bytes > 0
}

/// FileRenameInformation and FileRenameInformationEx (MS-FSCC 2.4.42).
fn renames(exchange: &Exchange) -> bool {
    exchange.command == Command::Smb2(smb2::Smb2Command::SET_INFO)
        && matches!(exchange.subcommand, Some(Subcommand::Info(InfoLevel::File(10 | 65))))
}

fn file_name(path: &str) -> &str {
    path.rsplit('\\').next().unwrap_or(path)
}

fn is_document(name: &str) -> bool {
    const EXTENSIONS: [&str; 13] =
        ["docx", "doc", "docm", "xlsx", "xls", "xlsm", "pptx", "ppt", "odt", "ods", "pdf", "dwg", "vsdx"];
    !name.starts_with("~$") && has_extension(name, &EXTENSIONS)
}

/// Number of hashes kept by [`Distinct`]. Fewer names are counted exactly.
const EXACT: usize = 64;

/// Number of distinct names: exact if there are few, an estimate otherwise.
///
/// Keeps the smallest hashes; their density gives the estimate (k minimum values; Bar-Yossef et al., "Counting
/// distinct elements in a data stream", RANDOM 2002). The standard error is 1/√(k − 2): 13%.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Distinct(Vec<u64>);

impl Distinct {
    pub(super) fn add(&mut self, name: &str) {
        self.add_hash(hash(name));
    }

    fn add_hash(&mut self, hash: u64) {
        let Err(at) = self.0.binary_search(&hash) else { return };
        if at < EXACT {
            self.0.insert(at, hash);
            self.0.truncate(EXACT);
        }
    }

    pub(super) fn merge(&mut self, other: &Distinct) {
        other.0.iter().for_each(|hash| self.add_hash(*hash));
    }

    pub(super) fn count(&self) -> u64 {
        match self.0.last() {
            Some(largest) if self.0.len() == EXACT => {
                let density = *largest as f64 / u64::MAX as f64;
                ((EXACT - 1) as f64 / density).round().max(EXACT as f64) as u64
            }
            _ => self.0.len() as u64,
        }
    }
}

/// Fractional parts of the golden ratio and of the square root of 3: odd numbers without a pattern.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const SEED: u64 = 0xbb67_ae85_84ca_a73b;

/// Returns the same hash on every processor, unlike ahash, so that estimates are the same everywhere. Mixes words as
/// wyhash does, by folded multiplication.
pub(crate) fn hash(name: &str) -> u64 {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let mix = |state: u64, word: u64| {
        let product = u128::from(state ^ word) * u128::from(MULTIPLIER);
        (product >> 64) as u64 ^ product as u64
    };
    let words = name.as_bytes().chunks_exact(8);
    let last = word(words.remainder());
    let whole = words.map(word).fold(SEED ^ name.len() as u64, mix);
    mix(mix(whole, last), SEED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_names_are_exact_and_many_are_near() {
        let of = |n: usize| {
            let mut distinct = Distinct::default();
            (0..2 * n).for_each(|i| distinct.add(&format!("dir\\file{}", i % n)));
            distinct.count()
        };
        assert_eq!((of(0), of(1), of(63)), (0, 1, 63));
        let many = of(18_460) as f64;
        assert!((many / 18_460.0 - 1.0).abs() < 0.4, "{many}");
    }

    #[test]
    fn hashes_are_spread_evenly() {
        // Of 4,096 hashes of similar names, each sixteenth of the range gets 256 on average; the standard deviation is 15.
        let mut counts = [0; 16];
        (0..4_096).for_each(|n| counts[(hash(&format!("share\\file{n}.txt")) >> 60) as usize] += 1);
        assert!(counts.iter().all(|count| (190..320).contains(count)), "{counts:?}");
    }

    #[test]
    fn parts_merge_to_the_whole() {
        let (mut whole, mut left, mut right) = (Distinct::default(), Distinct::default(), Distinct::default());
        for n in 0..1_000 {
            let name = format!("{n}");
            whole.add(&name);
            if n % 3 == 0 { left.add(&name) } else { right.add(&name) }
        }
        left.merge(&right);
        assert_eq!(left, whole);
    }
}
