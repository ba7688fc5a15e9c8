//! Result of a `--fail-if` condition of `analyze` or `compare`: a line on standard error and a test in JUnit XML.

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub condition: String,
    /// Name of the capture or column.
    pub name: String,
    pub judged: Judged,
    /// Value found and its relation to the limit, on one line.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// The condition holds: exit status 3.
    Holds,
    /// The value is missing, or the data does not prove that the condition holds: a warning.
    Undecided,
    DoesNotHold,
}
