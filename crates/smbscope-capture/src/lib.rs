//! Capture files, compressed files and pipes → packets → TCP stream events.
//!
//! [`reader`] turns inputs into packets in time order, [`decode`] peels link, IP and TCP headers off a packet, and
//! [`tcp`] puts the segments of every flow in order and says what the capture is missing.

pub mod batch;
pub mod decode;
pub mod piece;
mod prefetch;
pub mod reader;
pub mod segment;
pub mod tcp;
pub mod writer;

pub use segment::{Packet, TcpFlags, TcpSegment, WindowScale};
