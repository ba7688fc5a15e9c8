//! The file that proves that a directory is smbscope's, and that records its content.

use crate::workload::{CreatedPaths, FileSet};
use serde::{Deserialize, Serialize};

pub(super) const NAME: &str = "smbscope-bench.toml";
/// Name while the marker is being written. An interrupted preparation leaves it behind.
pub(super) const NEW_NAME: &str = "smbscope-bench.toml.new";
/// Size limit in bytes. A larger file is not a marker.
pub(super) const LARGEST: u32 = 16 << 20;

const KIND: &str = "smbscope.bench-directory/1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    made_by: String,
    pub(super) workload: String,
    /// Number of users that have all their files. Written once they do.
    pub(super) users: u32,
    /// Names that workloads create in the users' directories, apart from numbered ones.
    #[serde(default)]
    names: Vec<String>,
    pub(super) files: FileSet,
}

impl Marker {
    pub(super) fn new(workload: &str, users: u32, files: &FileSet, made: &CreatedPaths) -> Marker {
        let names = made.names().map(str::to_owned).collect();
        Marker { made_by: KIND.to_owned(), workload: workload.to_owned(), users, names, files: files.clone() }
    }

    pub(super) fn made(&self) -> CreatedPaths {
        CreatedPaths::new(self.names.iter().map(String::as_str))
    }

    pub(super) fn is_name(name: &str) -> bool {
        name.eq_ignore_ascii_case(NAME) || name.eq_ignore_ascii_case(NEW_NAME)
    }

    pub(super) fn to_text(&self) -> String {
        let about =
            "# This directory belongs to `smbscope bench`, which removes what it made in it: put nothing here.\n";
        // Numbers, strings and lists of them always serialise to TOML.
        format!("{about}{}", toml::to_string(self).unwrap_or_default())
    }

    pub(super) fn parse(text: &[u8]) -> Option<Marker> {
        let marker: Marker = toml::from_str(str::from_utf8(text).ok()?).ok()?;
        (marker.made_by == KIND).then_some(marker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::SizeDistribution;

    #[test]
    fn a_marker_is_read_as_it_was_written() {
        let sizes = [
            SizeDistribution::Fixed(4096),
            SizeDistribution::Uniform(1, 9),
            SizeDistribution::Weighted(vec![(1, 2), (u64::from(u32::MAX) + 1, 4)]),
        ];
        for sizes in sizes {
            let files =
                FileSet { own_directories: true, shared: false, directories: 2, nested: 0, files: 3, sizes, seed: 4 };
            let made = CreatedPaths::new(["a\"b\\c"].into_iter());
            let marker = Marker::new("a \"name\"", 5, &files, &made);
            assert_eq!(marker.made(), made);
            assert_eq!(Marker::parse(marker.to_text().as_bytes()), Some(marker));
        }
    }

    #[test]
    fn another_file_of_the_same_name_is_no_marker() {
        assert_eq!(Marker::parse(b""), None);
        assert_eq!(Marker::parse(b"\xff\xfe"), None);
        let other =
            Marker { made_by: "x".to_owned(), ..Marker::new("w", 0, &FileSet::none(), &CreatedPaths::default()) };
        assert_eq!(Marker::parse(other.to_text().as_bytes()), None);
    }
}
