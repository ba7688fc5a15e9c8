//! Tunnels over UDP by name, and the ports that a user declares for them.

use crate::named;
use std::str::FromStr;

named! {
    /// Tunnel over UDP.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum TunnelKind {
        Vxlan = "vxlan",
        VxlanGeneric = "vxlan-gpe",
        Geneve = "geneve",
        Gue = "gue",
        GtpUser = "gtp-u",
        Gre = "gre-in-udp",
        Mpls = "mpls-in-udp",
        L2tp = "l2tp",
        Capwap = "capwap",
        Teredo = "teredo",
        Lisp = "lisp",
        Tzsp = "tzsp",
        /// An IP packet without a header of the tunnel.
        Ip = "ip",
        /// An Ethernet frame without a header of the tunnel.
        Ethernet = "ethernet",
    }
}

impl TunnelKind {
    /// Returns the name used in specifications and reports.
    pub fn title(self) -> &'static str {
        match self {
            TunnelKind::Vxlan => "VXLAN",
            TunnelKind::VxlanGeneric => "VXLAN-GPE",
            TunnelKind::Geneve => "GENEVE",
            TunnelKind::Gue => "GUE",
            TunnelKind::GtpUser => "GTP-U",
            TunnelKind::Gre => "GRE in UDP",
            TunnelKind::Mpls => "MPLS in UDP",
            TunnelKind::L2tp => "L2TP",
            TunnelKind::Capwap => "CAPWAP",
            TunnelKind::Teredo => "Teredo",
            TunnelKind::Lisp => "LISP",
            TunnelKind::Tzsp => "TZSP",
            TunnelKind::Ip => "IP in UDP",
            TunnelKind::Ethernet => "Ethernet in UDP",
        }
    }

    fn named(name: &str) -> Option<TunnelKind> {
        TunnelKind::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// Tunnel on a UDP port: `4790=vxlan`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelPort {
    pub port: u16,
    pub kind: TunnelKind,
}

impl FromStr for TunnelPort {
    type Err = String;

    fn from_str(text: &str) -> Result<TunnelPort, String> {
        let (port, kind) = text.split_once('=').ok_or("expected PORT=KIND, such as 4790=vxlan")?;
        let number = port.trim().parse().ok().filter(|port| *port != 0);
        let port = number.ok_or_else(|| format!("{port} is not a port (1 to 65535)"))?;
        let kind = TunnelKind::named(kind.trim()).ok_or_else(|| {
            let known: Vec<&str> = TunnelKind::ALL.iter().map(|kind| kind.name()).collect();
            format!("{kind} is not a tunnel: use {}", known.join(", "))
        })?;
        Ok(TunnelPort { port, kind })
    }
}

/// Ports that a user declared, looked up by packets of UDP. The last declaration of a port counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TunnelPorts(Vec<TunnelPort>);

impl TunnelPorts {
    pub fn new(ports: &[TunnelPort]) -> TunnelPorts {
        TunnelPorts(ports.to_vec())
    }

    pub const fn none() -> TunnelPorts {
        TunnelPorts(Vec::new())
    }

    pub fn kind(&self, port: u16) -> Option<TunnelKind> {
        self.0.iter().rev().find(|declared| declared.port == port).map(|declared| declared.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_port_names_one_of_the_known_tunnels() {
        let declared: TunnelPort = "4790=VXLAN".parse().expect("a port and a tunnel");
        assert_eq!(declared, TunnelPort { port: 4790, kind: TunnelKind::Vxlan });
        for wrong in ["4790", "=vxlan", "0=vxlan", "65536=vxlan", "4790=", "4790=vlan"] {
            assert!(wrong.parse::<TunnelPort>().is_err(), "{wrong}");
        }
        let again = TunnelPorts::new(&[declared, TunnelPort { kind: TunnelKind::Gue, ..declared }]);
        assert_eq!((again.kind(4790), again.kind(4789)), (Some(TunnelKind::Gue), None));
    }
}
