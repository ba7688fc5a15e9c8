//! The scripted server follows its script, and third-party clients accept it.

mod clients;
mod faults;
mod smb1;
mod wire;
