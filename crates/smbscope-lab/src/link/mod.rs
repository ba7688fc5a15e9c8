//! Emulation of a slow link to the server: for root a [`network`] that delays or drops packets, otherwise a TCP proxy
//! that delays and throttles.
//!
//! The proxy terminates TCP: a client, and a capture at its side, see a nearby server that answers late. A byte leaves
//! when the link has carried all earlier bytes of the same direction, on any connection, and arrives one delay later.
//! The TCP handshake takes no extra time, and no window has to fill first.

mod lane;
#[cfg(target_os = "linux")]
mod network;

use crate::LabError;
use lane::Relay;
pub(crate) use lane::{LinkImpairments, StopPipe};
#[cfg(target_os = "linux")]
pub(crate) use network::{EmulatedNetwork, in_network_of, remove};

use serde::{Deserialize, Serialize};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Interface at the server's end of a network, in a namespace of its own.
pub(crate) const SERVER_INTERFACE: &str = "eth0";

const STACK: usize = 128 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkEmulation {
    /// Network that delays or drops packets: a capture attributes the delay to the network.
    Network {
        /// Interface of this machine, where a client's packets can be captured.
        interface: String,
        client: Ipv4Addr,
        server: Ipv4Addr,
    },
    /// Proxy that terminates TCP: a capture at the client attributes the delay to the server.
    Proxy { why: String },
}

impl LinkEmulation {
    pub fn caveat(&self) -> Option<String> {
        match self {
            LinkEmulation::Network { .. } => None,
            LinkEmulation::Proxy { why } => Some(format!(
                "the lab's delay and bandwidth come from a proxy that ends TCP ({why}): a capture at the client shows them as the server's time, not as the network's"
            )),
        }
    }
}

#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(crate) struct EmulatedNetwork {
    pub(crate) interface: String,
    pub(crate) client: Ipv4Addr,
    pub(crate) server: Ipv4Addr,
}

#[cfg(not(target_os = "linux"))]
impl EmulatedNetwork {
    pub(crate) fn make(_folder: &std::path::Path, _shape: LinkImpairments) -> Result<EmulatedNetwork, String> {
        Err("a network that delays packets needs Linux".to_owned())
    }

    pub(crate) fn at_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        Ok(work())
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn in_network_of<T: Send>(_pid: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    Ok(work())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn remove(_interface: &str) {}

#[derive(Debug)]
pub(crate) struct Proxy {
    /// Threads poll the other end of this pipe and end when it closes.
    _running: io::PipeWriter,
}

impl Proxy {
    pub(crate) fn start(
        listeners: Vec<TcpListener>,
        server: SocketAddr,
        link: LinkImpairments,
    ) -> Result<Proxy, LabError> {
        let failed =
            |error: io::Error| LabError::Unavailable(format!("cannot start the proxy of a slow link: {error}"));
        let (stop, running) = io::pipe().map_err(failed)?;
        let stop = StopPipe::new(stop);
        let carrier = |direction| link.rate_of(direction).map(|rate| Arc::new(Mutex::new(lane::Carrier::new(rate))));
        let carriers = [0, 1].map(carrier);
        for listener in listeners {
            listener.set_nonblocking(true).map_err(failed)?;
            let (stop, carriers) = (stop.clone(), carriers.clone());
            let accept = move || {
                while stop.or_readable(&listener) {
                    let Ok((client, _)) = listener.accept() else { continue };
                    let (stop, carriers) = (stop.clone(), carriers.clone());
                    let relay = move || {
                        let Ok(server) = TcpStream::connect(server) else { return };
                        // An error on one side has ended both.
                        let _ = Relay::new([client, server], link.delay, carriers).and_then(|relay| relay.run(&stop));
                    };
                    let _ = thread::Builder::new().name("lab-link".to_owned()).stack_size(STACK).spawn(relay);
                }
            };
            thread::Builder::new().name("lab-accept".to_owned()).stack_size(STACK).spawn(accept).map_err(failed)?;
        }
        Ok(Proxy { _running: running })
    }
}

#[cfg(test)]
mod tests;
