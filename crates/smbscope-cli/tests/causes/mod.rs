//! Tests each detector on two captures: one with its pattern provoked, and a healthy one with a similar load. A real
//! Samba server and client produce them where possible; the others are built packet by packet. `known` judges complete
//! answers on captures with a known cause.

mod built;
mod client;
mod files;
mod ini;
mod known;
mod network;
mod scene;
mod server;
