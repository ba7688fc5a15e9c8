//! Output files: written completely or not at all, and never over an input of the same command.

mod private;
mod replacement;
mod sources;

pub use private::{create_private, create_private_directory, new_private_directory};
pub use replacement::{Destination, Replacement, abandon_all, is_left_over, write_file};
pub use sources::Sources;
