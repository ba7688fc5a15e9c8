//! Files that are written for the user: whole or not at all, and never over what the same command reads.

mod replacement;
mod sources;

pub use replacement::{Destination, Replacement, abandon_all, is_left_over, write_file};
pub use sources::Sources;
