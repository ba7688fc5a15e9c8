//! What an episode looks like, from what it touches.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Programs, documents and settings that are remembered of an episode, those opened most.
const NAMES_MAX: usize = 16;
/// Files that a copy without much data has at least, each of them opened once or so.
const COPY_FILES: u64 = 100;
/// Files of a profile that a logon loads, at least.
const PROFILE_FILES: u64 = 30;
/// Bytes that a copy has at least.
const COPY_BYTES: u64 = 10_000_000;
/// Libraries that a program opens as it starts, at least.
const LIBRARIES: u64 = 3;
/// Directory listings that are a search, at least.
const SEARCH_LISTS: u64 = 20;

/// What an episode looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A profile is loaded: its registry hive (NTUSER.DAT) with other files of it.
    Logon,
    /// A program and its libraries are opened.
    Launch,
    /// A document is opened.
    Document,
    /// Settings are read, from the same file again and again.
    Settings,
    /// Much data, or many files, in one direction.
    Copy,
    /// Directories are listed.
    Search,
    /// Something else.
    Other,
}

/// What the names of opened files tell.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Touched {
    /// Directory listings.
    pub(super) lists: u64,
    profile: u64,
    libraries: u64,
    /// Opens of programs, documents and settings.
    programs: Names,
    documents: Names,
    settings: Names,
}

/// Names with how often each was opened; of too many, those that come first by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
struct Names(BTreeMap<Arc<str>, u64>);

impl Names {
    fn add(&mut self, path: &Arc<str>, times: u64) {
        *self.0.entry(Arc::clone(path)).or_default() += times;
        if self.0.len() > NAMES_MAX {
            self.0.pop_last();
        }
    }

    fn merge(&mut self, other: &Names) {
        other.0.iter().for_each(|(path, times)| self.add(path, *times));
    }

    /// The one that was opened most, with how often.
    fn most(&self) -> Option<(&Arc<str>, u64)> {
        self.0.iter().max_by_key(|(path, times)| (**times, std::cmp::Reverse(*path))).map(|(path, n)| (path, *n))
    }
}

impl Touched {
    pub(super) fn open(&mut self, path: &Arc<str>) {
        let name = path.rsplit('\\').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let is = |known: &[&str]| known.iter().any(|known| extension.eq_ignore_ascii_case(known));
        if name.eq_ignore_ascii_case("ntuser.dat") || name.eq_ignore_ascii_case("ntuser.ini") {
            self.profile += 1;
        } else if is(&["dll", "so", "dylib", "drv", "ocx"]) {
            self.libraries += 1;
        } else if is(&["exe", "msi", "jar", "app"]) {
            self.programs.add(path, 1);
        } else if is(&["docx", "doc", "docm", "xlsx", "xls", "xlsm", "pptx", "ppt", "odt", "ods", "pdf", "dwg", "vsdx"])
        {
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
    }

    /// What it is, and what it is about.
    pub(super) fn name(
        &self,
        commands: u64,
        opens: u64,
        files: u64,
        read: u64,
        written: u64,
    ) -> (Kind, Option<Arc<str>>) {
        let named = |names: &Names| names.most().map(|(path, _)| Arc::clone(path));
        let again = self.settings.most().filter(|(_, times)| *times >= 20 && *times * 2 >= opens);
        if self.profile > 0 && files >= PROFILE_FILES {
            (Kind::Logon, None)
        } else if let Some((path, _)) = again {
            (Kind::Settings, Some(Arc::clone(path)))
        } else if self.libraries >= LIBRARIES && (!self.programs.0.is_empty() || self.libraries * 4 >= files) {
            (Kind::Launch, named(&self.programs))
        } else if self.is_copy(opens, files, read, written) {
            (Kind::Copy, None)
        } else if let Some(document) = named(&self.documents) {
            (Kind::Document, Some(document))
        } else if self.lists >= SEARCH_LISTS && self.lists * 4 >= commands {
            (Kind::Search, None)
        } else {
            (Kind::Other, None)
        }
    }

    /// Much data or many files, nearly all of it in one direction.
    fn is_copy(&self, opens: u64, files: u64, read: u64, written: u64) -> bool {
        let (more, less) = (read.max(written), read.min(written));
        (more >= COPY_BYTES || files >= COPY_FILES && opens <= files * 2 && more > 0) && less <= more / 10
    }
}
