//! From capture files, compressed files and pipes to packets, and on to TCP stream events.
//!
//! `live` takes packets from an interface, [`reader`] turns inputs into packets in time order, [`decode`] strips link, IP
//! and TCP headers, and [`tcp`] reassembles each flow and reports what the capture is missing.

pub mod batch;
pub mod decode;
#[cfg(not(target_family = "wasm"))]
pub mod live;
pub mod piece;
mod prefetch;
pub mod private;
pub mod reader;
pub mod segment;
pub mod tcp;
pub mod writer;

pub use segment::{CapturedProcess, OriginId, Packet, TcpFlags, TcpSegment, WindowScale};
