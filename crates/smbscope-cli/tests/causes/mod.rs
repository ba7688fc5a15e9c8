//! Each detector on two captures: one in which its pattern was provoked, and one of a similar load that is healthy. A real
//! Samba and a real client make them wherever they can; elsewhere the capture is built packet by packet. `known` judges whole
//! answers on captures whose cause is known.

mod built;
mod client;
mod files;
mod ini;
mod known;
mod network;
mod scene;
mod server;
