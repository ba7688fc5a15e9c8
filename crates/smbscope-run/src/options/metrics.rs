//! Options for metrics: of smbscope, which a command serves, and of the server, which it reads.

use crate::metrics::{Exporter, NamedQuery, PrometheusUrl};
use clap::Args;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
pub struct MetricsOptions {
    /// Serve metrics for Prometheus while the command runs, on a port of 127.0.0.1 or of another address: 9445,
    /// 192.0.2.7:9445.
    ///
    /// docs/metrics.md lists them. Anyone who can reach the address can read them, with names of servers and shares,
    /// unless --metrics-config sets passwords.
    #[arg(hide_short_help = true, long, value_name = "[ADDRESS:]PORT", value_parser = listen_address, help_heading = "Results")]
    pub metrics: Option<SocketAddr>,

    /// Serve metrics by HTTPS and with passwords, as this YAML file says: the web configuration of Prometheus exporters.
    ///
    /// Supported are `tls_server_config` with `cert_file` and `key_file`, and `basic_auth_users`. File names are relative
    /// to the file. The files are read again when they change.
    #[arg(hide_short_help = true, long, value_name = "FILE", requires = "metrics", help_heading = "Results")]
    pub metrics_config: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct ServerMetricsOptions {
    /// Read the server's CPU, memory, disk and network metrics from this node_exporter or windows_exporter.
    ///
    /// Without it, `bench` uses metrics of this machine if it is the server.
    #[arg(long, value_name = "URL", help_heading = "Results")]
    pub server_metrics: Option<Exporter>,
}

#[derive(Debug, Clone, Default, Args)]
pub struct QueryOptions {
    /// Send the queries of --also to this Prometheus: http://prometheus:9090.
    #[arg(hide_short_help = true, long, value_name = "URL", requires = "also", help_heading = "Results")]
    pub prometheus: Option<PrometheusUrl>,

    /// Report the value of this PromQL query in each minute, under this name: `latency=max(array_latency_seconds)`.
    ///
    /// The option can be repeated. A query must return one number; it is evaluated every ten seconds.
    #[arg(hide_short_help = true, long, value_name = "NAME=QUERY", requires = "prometheus", help_heading = "Results")]
    pub also: Vec<NamedQuery>,
}

/// Parses a port, with or without colon, on 127.0.0.1, or an address with a port.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    match port.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => {
            text.parse().map_err(|_| "expected a port or an address with a port: 9445, 192.0.2.7:9445".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_not_reachable_from_other_machines() {
        let loopback = Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 9_445)));
        assert_eq!([listen_address("9445"), listen_address(":9445")], [loopback.clone(), loopback]);
        assert_eq!(listen_address("[::]:9445"), Ok("[::]:9445".parse().unwrap()));
        assert!(["", "65536", "host", "192.0.2.7", "*:9445"].into_iter().all(|text| listen_address(text).is_err()));
    }
}
