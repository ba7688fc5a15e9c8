//! Faulty servers: the client reports what happened, in time, and loses no measurement.

mod hostile;
mod lost;
mod malformed;
mod parse;
mod random;
mod refusals;
mod support;
mod unusual;
