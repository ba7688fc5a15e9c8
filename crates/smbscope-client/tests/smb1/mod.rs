//! The SMB1 client against Samba, if it is installed, and against a scripted server.

mod directories;
mod files;
mod scripted;
mod sessions;
mod support;
mod waits;
mod wire;
