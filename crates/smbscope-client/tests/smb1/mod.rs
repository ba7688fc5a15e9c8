//! The SMB1 client against servers: Samba, where it is installed, and one that answers by a script.

mod directories;
mod files;
mod scripted;
mod sessions;
mod support;
mod waits;
mod wire;
