//! The scripted server keeps to its script, and clients that others wrote take it for a server.

mod clients;
mod faults;
mod smb1;
mod wire;
