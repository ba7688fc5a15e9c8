//! The analysis for the page in the browser, into which captures are dropped. `make page` compiles this crate to
//! WebAssembly, and `web/src/drop` is the page around it.
//!
//! A [`PageSession`] holds the dropped files. Everything it needs from the page, and all that it returns, passes through
//! `abi`: it reads files in slices and writes exports in chunks, so neither has to fit in memory.

#[cfg(target_family = "wasm")]
mod abi;
mod session;

pub use session::{ExportFormat, PageSession, ReadProgress};
