//! Options of the commands: an option is declared once, as a field of a structure with its help text, parser and
//! default, for the command line, study files and Python.

mod bench;
mod connect;
mod given;
mod shared;

pub use bench::{BenchFormat, BenchOptions, OptionsError, Think};
pub use connect::{ConnectOptions, DIALECTS, ENCRYPTION, SIGNING};
pub(crate) use given::word;
pub use given::{CommandOptions, GivenOptions};
pub use shared::{ClusterOptions, ColorChoice, PossibleValueTable, StorageOptions, dimension, named, one_of};
