//! A slow link before the server: a TCP proxy that delays and throttles.
//!
//! Bytes keep their order. A byte leaves when the link has carried it and those before it (of all connections: they
//! share the link, each direction for itself), and arrives a delay later. The TCP handshake itself is the machine's own
//! and takes no time; so is the window of the far side, which a real link would have to fill first.

mod lane;
mod relay;

use crate::Error;
pub(crate) use lane::Rate;
use relay::{Relay, Stop};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What a thread for a connection needs; the buffers are elsewhere.
const STACK: usize = 128 << 10;

/// What the link is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// From one end to the other, each way.
    pub(crate) delay: Duration,
    /// What it carries in each direction.
    pub(crate) rate: Option<Rate>,
}

/// A proxy that runs; it ends with the value, and its connections with it.
#[derive(Debug)]
pub(crate) struct Proxy {
    /// Threads wait for the other end of this pipe, and end when it is gone.
    _running: io::PipeWriter,
}

impl Proxy {
    /// Takes connections from the listeners over the link to the server.
    pub(crate) fn start(listeners: Vec<TcpListener>, server: SocketAddr, link: Link) -> Result<Proxy, Error> {
        let failed = |error: io::Error| Error::Unavailable(format!("cannot start the proxy of a slow link: {error}"));
        let (stop, running) = io::pipe().map_err(failed)?;
        let stop = Stop::new(stop);
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
                        let _ended =
                            Relay::new([client, server], link.delay, carriers).and_then(|relay| relay.run(&stop));
                    };
                    // Without a thread the connection closes.
                    let _refused = thread::Builder::new().name("lab-link".to_owned()).stack_size(STACK).spawn(relay);
                }
            };
            thread::Builder::new().name("lab-accept".to_owned()).stack_size(STACK).spawn(accept).map_err(failed)?;
        }
        Ok(Proxy { _running: running })
    }
}

#[cfg(test)]
mod tests;
