//! The file that proves that a directory is smbscope's, and says what is in it.

use crate::workload::FileSet;
use serde::{Deserialize, Serialize};

/// Its name.
pub(super) const NAME: &str = "smbscope-bench.toml";
/// More is no marker.
pub(super) const LARGEST: u32 = 64 * 1024;

const KIND: &str = "smbscope.bench-directory/1";

/// What it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    made_by: String,
    /// The workload that was prepared last.
    pub(super) workload: String,
    /// How many users have all their files: written when they do.
    pub(super) users: u32,
    /// The rule that the files follow.
    pub(super) files: FileSet,
}

impl Marker {
    pub(super) fn new(workload: &str, users: u32, files: &FileSet) -> Marker {
        Marker { made_by: KIND.to_owned(), workload: workload.to_owned(), users, files: files.clone() }
    }

    pub(super) fn to_text(&self) -> String {
        let about = "# This directory belongs to `smbscope bench`, which removes it with all that is in it: put nothing here.\n";
        // Numbers, texts and lists of them have a form in TOML.
        format!("{about}{}", toml::to_string(self).unwrap_or_default())
    }

    /// `None` where it is no marker of ours.
    pub(super) fn parse(text: &[u8]) -> Option<Marker> {
        let marker: Marker = toml::from_str(str::from_utf8(text).ok()?).ok()?;
        (marker.made_by == KIND).then_some(marker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Sizes;

    #[test]
    fn a_marker_is_read_as_it_was_written() {
        let sizes =
            [Sizes::Fixed(4096), Sizes::Uniform(1, 9), Sizes::Weighted(vec![(1, 2), (u64::from(u32::MAX) + 1, 4)])];
        for sizes in sizes {
            let files = FileSet { own_directories: true, shared: false, directories: 2, files: 3, sizes, seed: 4 };
            let marker = Marker::new("a \"name\"", 5, &files);
            assert_eq!(Marker::parse(marker.to_text().as_bytes()), Some(marker));
        }
    }

    #[test]
    fn another_file_of_the_same_name_is_no_marker() {
        assert_eq!(Marker::parse(b""), None);
        assert_eq!(Marker::parse(b"\xff\xfe"), None);
        let other = Marker { made_by: "x".to_owned(), ..Marker::new("w", 0, &FileSet::none()) };
        assert_eq!(Marker::parse(other.to_text().as_bytes()), None);
    }
}
