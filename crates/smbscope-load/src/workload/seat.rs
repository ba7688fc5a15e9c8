//! A user's number, and the place on the share where that user works.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSeat {
    /// Counted from 0.
    pub number: u32,
    pub of: u32,
    /// Seed of the run. A user's random draws depend only on it, the number and the workload.
    pub seed: u64,
    /// Working directory of all users on the share, without a leading or trailing backslash; never the root.
    pub directory: String,
}

impl UserSeat {
    pub fn own_directory(&self) -> String {
        own_directory(&self.directory, self.number)
    }
}

pub(crate) fn own_directory(directory: &str, number: u32) -> String {
    format!("{directory}\\user{:05}", u64::from(number) + 1)
}
