//! Free ports on the loopback interface, the same for IPv4 and IPv6.

use crate::LabError;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Returns the loopback addresses of this machine.
pub(crate) fn loopbacks() -> Vec<std::net::IpAddr> {
    let mut addresses = vec![Ipv4Addr::LOCALHOST.into()];
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        addresses.push(Ipv6Addr::LOCALHOST.into());
    }
    addresses
}

/// Listens on every loopback address, on this port or on the same free one.
pub(crate) fn listen(port: Option<u16>) -> Result<Vec<TcpListener>, LabError> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    // A port that is free for IPv4 may be taken for IPv6.
    for _ in 0..if port.is_some() { 1 } else { 50 } {
        match try_listen(port.unwrap_or(0)) {
            Ok(listeners) => return Ok(listeners),
            Err(error) => last = error,
        }
    }
    Err(unusable(port, &last))
}

fn try_listen(port: u16) -> io::Result<Vec<TcpListener>> {
    let mut listeners: Vec<TcpListener> = Vec::new();
    for address in loopbacks() {
        let port = listeners.first().map_or(Ok(port), |first| first.local_addr().map(|address| address.port()))?;
        listeners.push(TcpListener::bind(SocketAddr::new(address, port))?);
    }
    Ok(listeners)
}

/// Returns a port that is free at this moment.
pub(crate) fn free(port: Option<u16>) -> Result<u16, LabError> {
    let listeners = listen(port)?;
    let address = listeners.first().map(TcpListener::local_addr);
    address
        .and_then(Result::ok)
        .map(|address| address.port())
        .ok_or_else(|| unusable(port, &io::ErrorKind::Other.into()))
}

pub(crate) fn bound(listeners: &[TcpListener]) -> Result<u16, LabError> {
    let address = listeners.first().map(TcpListener::local_addr).unwrap_or(Err(io::ErrorKind::NotFound.into()));
    address.map(|address| address.port()).map_err(|error| unusable(None, &error))
}

fn unusable(port: Option<u16>, error: &io::Error) -> LabError {
    let Some(port) = port else {
        return LabError::Unavailable(format!("no free port on the loopback interface: {error}"));
    };
    LabError::Unavailable(match error.kind() {
        io::ErrorKind::AddrInUse => format!("port {port} is taken: choose another one, or none for any free one"),
        io::ErrorKind::PermissionDenied => format!("port {port} needs root: choose one from 1024 up"),
        _ => format!("cannot listen on port {port}: {error}"),
    })
}
