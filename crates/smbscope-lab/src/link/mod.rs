//! A slow link before the server: where root runs it, a [`network`] whose packets are late or lost; otherwise a TCP proxy
//! that delays and throttles.
//!
//! The proxy ends TCP: a client, and a capture at its side, see a server near by that answers late. Bytes keep their order. A byte leaves when the link has carried it and those before it (of all connections: they
//! share the link, each direction for itself), and arrives a delay later. The TCP handshake itself is the machine's own
//! and takes no time; so is the window of the far side, which a real link would have to fill first.

mod lane;
#[cfg(target_os = "linux")]
mod network;
mod relay;
mod shape;
#[cfg(target_os = "linux")]
mod wire;

use crate::LabError;
#[cfg(target_os = "linux")]
pub(crate) use network::{EmulatedNetwork, remove};
use relay::Relay;
pub(crate) use relay::StopPipe;
use serde::{Deserialize, Serialize};
pub(crate) use shape::LinkImpairments;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a thread for a connection needs; the buffers are elsewhere.
const STACK: usize = 128 << 10;

/// What makes the link to a server slow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkEmulation {
    /// A network whose packets are late or lost: a capture shows it as network.
    Network {
        /// This machine's end, where a client's capture is taken.
        interface: String,
        /// The address of that end.
        client: Ipv4Addr,
        /// The server's address.
        server: Ipv4Addr,
    },
    /// A proxy that ends TCP: a capture at the client shows its delay as the server's.
    Proxy {
        /// Why there is no network.
        why: String,
    },
}

impl LinkEmulation {
    /// What to say about figures that come by a proxy.
    pub fn caveat(&self) -> Option<String> {
        match self {
            LinkEmulation::Network { .. } => None,
            LinkEmulation::Proxy { why } => Some(format!(
                "the lab's delay and bandwidth come from a proxy that ends TCP ({why}): a capture at the client shows them as the server's time, not as the network's"
            )),
        }
    }
}

/// There are network namespaces on Linux only.
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
pub(crate) fn remove(_interface: &str) {}

/// A proxy that runs; it ends with the value, and its connections with it.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// Threads wait for the other end of this pipe, and end when it is gone.
    _running: io::PipeWriter,
}

impl Proxy {
    /// Takes connections from the listeners over the link to the server.
    pub(crate) fn start(
        listeners: Vec<TcpListener>,
        server: SocketAddr,
        link: LinkImpairments,
    ) -> Result<Proxy, LabError> {
        let failed =
            |error: io::Error| LabError::Unavailable(format!("cannot start the proxy of a slow link: {error}"));
        let (stop, running) = io::pipe().map_err(failed)?;
        let stop = StopPipe::new(stop);
        let carriers = [(); 2].map(|()| link.rate.map(|rate| Arc::new(Mutex::new(lane::Carrier::new(rate)))));
        for listener in listeners {
            listener.set_nonblocking(true).map_err(failed)?;
            let (stop, carriers) = (stop.clone(), carriers.clone());
            let accept = move || {
                while stop.or_readable(&listener) {
                    let Ok((client, _)) = listener.accept() else { continue };
                    let (stop, carriers) = (stop.clone(), carriers.clone());
                    let relay = move || {
                        // A server that is not there: the client's connection closes, as its own would not have opened.
                        let Ok(server) = TcpStream::connect(server) else { return };
                        // An error of either end has ended both.
                        let _ = Relay::new([client, server], link.delay, carriers).and_then(|relay| relay.run(&stop));
                    };
                    // Without a thread the connection closes.
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
