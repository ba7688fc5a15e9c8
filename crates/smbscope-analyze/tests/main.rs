//! Tests of the analysis on built and bundled captures.

mod caching;
mod clocks;
mod common;
mod damage;
mod decrypted;
mod encrypted;
mod encrypted_losses;
mod flows;
mod foreign_bytes;
mod found;
mod framing;
mod hostile;
mod missed;
mod modules;
mod names;
mod pipeline;
mod properties;
mod raw;
mod slim;
mod slim_layers;
mod smb1;
mod smb2;
mod summaries;
