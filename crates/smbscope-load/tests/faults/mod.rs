//! Servers that fail: the client says what happened, in time, and loses nothing that it measured.

mod hostile;
mod lost;
mod malformed;
mod parse;
mod random;
mod refusals;
mod support;
mod unusual;
