//! Which of the users someone is, and where on the share that user works.

/// Which of the users someone is, and where on the share that user works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserSeat {
    /// From 0.
    pub number: u32,
    /// How many users there are.
    pub of: u32,
    /// Of the run; what a user draws depends on it, on the number and on the workload, and on nothing else.
    pub seed: u64,
    /// The directory on the share that all users work below, without a backslash at either end; never the root.
    pub directory: String,
}

impl UserSeat {
    /// The user's own directory.
    pub fn own_directory(&self) -> String {
        own_directory(&self.directory, self.number)
    }
}

/// The own directory of a user by number, below the directory that all users work in.
pub(crate) fn own_directory(directory: &str, number: u32) -> String {
    format!("{directory}\\user{:05}", u64::from(number) + 1)
}
