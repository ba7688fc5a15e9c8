//! The files that must exist before measurement starts. Path, size and content follow from a file's number, so a set is
//! neither listed nor stored and may be large.

use super::draw::SizeDistribution;
use super::paths::own_directory;
use serde::{Deserialize, Serialize};
use smbscope_stats::Random;
use std::fmt::Write;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSet {
    pub own_directories: bool,
    /// One set for all users instead of one each.
    pub shared: bool,
    /// Number of directories that the files are spread over; at least one if there are files.
    pub directories: u32,
    /// Subdirectories per directory in a tree with a single root; 0 if all directories are siblings.
    #[serde(default)]
    pub nested: u32,
    pub files: u32,
    pub sizes: SizeDistribution,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSetOwner {
    All,
    User(u32),
}

impl FileSet {
    /// Returns an empty set: users only share the working directory.
    pub fn none() -> FileSet {
        FileSet {
            own_directories: false,
            shared: false,
            directories: 0,
            nested: 0,
            files: 0,
            sizes: SizeDistribution::Fixed(0),
            seed: 0,
        }
    }

    pub fn owner(&self, user: u32) -> FileSetOwner {
        if self.shared { FileSetOwner::All } else { FileSetOwner::User(user) }
    }

    /// Size of a file in bytes, the same in every user's set.
    pub fn size(&self, file: u32) -> u64 {
        self.sizes.draw(&mut SizeDistribution::of_file(self.seed, file))
    }

    pub fn bytes(&self) -> u64 {
        (0..self.files).map(|file| self.size(file)).sum()
    }

    /// Appends the root directory of a set, which is inside the working directory of all users.
    pub fn root(&self, path: &mut String, directory: &str, owner: FileSetOwner) {
        match owner {
            FileSetOwner::All => {
                path.push_str(directory);
                path.push_str("\\shared");
            }
            FileSetOwner::User(number) => {
                path.push_str(&own_directory(directory, number));
                path.push_str("\\files");
            }
        }
    }

    pub fn directory_name(&self, path: &mut String, number: u32) {
        if let Some(parent) = number.checked_sub(1).and_then(|before| before.checked_div(self.nested)) {
            self.directory_name(path, parent);
            path.push('\\');
        }
        let _ = write!(path, "dir{number:04}");
    }

    pub fn directory_of(&self, file: u32) -> u32 {
        file % self.directories.max(1)
    }

    pub fn file_name(&self, path: &mut String, file: u32) {
        self.directory_name(path, self.directory_of(file));
        let _ = write!(path, "\\file{file:06}.dat");
    }

    pub(crate) fn content(&self, owner: FileSetOwner, file: u32) -> Random {
        let owner = match owner {
            FileSetOwner::All => 0,
            FileSetOwner::User(number) => u64::from(number) + 1,
        };
        Random::new(&[self.seed, owner, u64::from(file), 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_spread_over_the_directories_with_sizes_that_do_not_change() {
        let set = FileSet {
            own_directories: true,
            shared: false,
            directories: 3,
            nested: 0,
            files: 10,
            sizes: SizeDistribution::Uniform(1, 100),
            seed: 5,
        };
        let name = |file| {
            let mut path = String::new();
            set.root(&mut path, "bench", FileSetOwner::User(0));
            path.push('\\');
            set.file_name(&mut path, file);
            path
        };
        assert_eq!(name(0), r"bench\user00001\files\dir0000\file000000.dat");
        assert_eq!(name(4), r"bench\user00001\files\dir0001\file000004.dat");
        let nested = FileSet { nested: 2, directories: 7, ..set.clone() };
        let mut path = String::new();
        nested.file_name(&mut path, 12);
        assert_eq!(path, r"dir0000\dir0002\dir0005\file000012.dat");
        assert_eq!(set.size(4), set.clone().size(4));
        assert_eq!(set.bytes(), (0..10).map(|file| set.size(file)).sum::<u64>());
    }
}
