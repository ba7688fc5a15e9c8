//! TCP stream events → SMB exchanges.
//!
//! [`Analyzer`] is the sink of [`smbscope_capture::tcp::FlowTable`]: bytes in order become frames (`framer`, and
//! `resync` if the framing is lost), frames become messages (`content`), and messages become exchanges (`smb1`, `smb2`,
//! `encrypted`). [`pipeline`] runs analyzers on several threads; start reading there or in `flow`.

#![forbid(unsafe_code)]

mod analyzer;
mod bounded;
mod channels;
mod connection;
mod content;
mod decryption;
mod encrypted;
mod flow;
mod foreign;
mod frame;
mod framer;
mod gathered;
mod ledger;
mod names;
mod offers;
mod partial;
mod pending;
pub mod pipeline;
pub mod pseudonym;
mod rereads;
mod resync;
pub mod slim;
mod smb1;
mod smb2;
mod unseen;

pub use analyzer::{Analyzer, AnalyzerOptions, AnalyzerOutcome};
pub use flow::FlowState;
pub use partial::{Partial, coupled};
pub use pending::ExchangeSink;
