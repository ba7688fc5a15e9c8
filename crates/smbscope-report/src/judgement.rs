//! The result of one `--fail-if`, for `analyze` and `compare` alike: a line on standard error and a test in JUnit XML.

/// The result of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The condition, as it was given.
    pub condition: String,
    /// The capture or side that it is about.
    pub name: String,
    /// Whether it holds.
    pub judged: Judged,
    /// The figure that was found, and how it relates to the condition, in one line.
    pub text: String,
}

/// Whether a condition of `--fail-if` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// It holds: exit status 3.
    Holds,
    /// The figure is missing, or the data does not show that the condition holds: a warning.
    Undecided,
    /// It does not hold.
    DoesNotHold,
}
