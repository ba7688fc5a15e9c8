//! Emulation of a slow link to the server: for root a [`network`] that delays or drops packets, otherwise a TCP proxy
//! that delays and throttles.
//!
//! The same proxy makes a server slower, by holding its responses back ([`pace`]).
//!
//! The proxy terminates TCP: a client, and a capture at its side, see a nearby server that answers late. A byte leaves
//! when the link has carried all earlier bytes of the same direction, on any connection, and arrives one delay later.
//! The TCP handshake takes no extra time, and no window has to fill first.

mod lane;
mod network;
mod pace;

use crate::LabError;
use lane::Relay;
pub(crate) use lane::{LinkImpairments, StopPipe};
pub(crate) use network::{EmulatedNetwork, in_network_of, remove};
use pace::ServerPace;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Interface at the server's end of a network, in a namespace of its own.
pub(crate) const SERVER_INTERFACE: &str = "eth0";

const STACK: usize = 128 << 10;

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
        server_time: Option<f64>,
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
                        let pace = server_time.map(ServerPace::new);
                        let relay = Relay::new([client, server], link.delay, carriers, pace);
                        let _ = relay.and_then(|relay| relay.run(&stop));
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
