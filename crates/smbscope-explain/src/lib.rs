//! From captures to a report: [`analysis`] composes reader, decoder, matching, statistics and diagnosis, with the
//! [`options`] of `smbscope analyze`. The command line, Python and the page in the browser share it.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

pub mod analysis;
pub mod keys;
pub mod options;
