//! Reads inputs and returns their packets in time order.
//!
//! Formats are pcap, pcapng and snoop, plain or compressed, from files or a pipe; several inputs form one capture.
//! Plain files are mapped, surveyed once and read in place. Disorder is repaired by merging ascending runs or by a
//! bounded window. Start with [`CaptureSet`], which merges lanes; a lane is a source with or without a window, a source
//! walks records, and the format parsers are pure functions over bytes.

mod capture;
mod clock;
mod compression;
mod format;
mod info;
mod lane;
mod look;
mod map;
mod pcap;
mod pcapng;
mod record;
mod runs;
mod set;
mod sides;
mod snoop;
mod source;
mod stream;
mod survey;
mod warm;

pub use capture::Backing;
pub use info::{CaptureError, CaptureInput};
pub use set::CaptureSet;

#[cfg(test)]
mod tests;
