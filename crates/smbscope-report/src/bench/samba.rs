//! Time of operations inside Samba compared with the clients' response time. The difference was spent in the network,
//! in socket queues and in the client.

use super::BenchRun;
use smbscope_model::Nanos;

#[derive(Debug, Clone, PartialEq)]
pub struct InsideSamba {
    /// Name of Samba's counter, in words: `create`, `query info`.
    pub operation: String,
    pub per_second: f64,
    /// Mean time inside smbd.
    pub inside: Nanos,
    /// Mean response time in the client. None if it had no such command.
    pub response_time: Option<Nanos>,
}

/// Samba's operations, and prefixes of the names of their commands (MS-SMB2 2.2.1.2, MS-CIFS 2.2.2.1).
const COMMANDS: [(&str, &[&str]); 10] = [
    ("create", &["CREATE", "SMB_COM_NT_CREATE", "SMB_COM_OPEN", "SMB_COM_CREATE", "NT_TRANSACT_CREATE"]),
    ("close", &["CLOSE", "SMB_COM_CLOSE"]),
    ("read", &["READ", "SMB_COM_READ"]),
    ("write", &["WRITE", "SMB_COM_WRITE"]),
    ("flush", &["FLUSH", "SMB_COM_FLUSH"]),
    ("query_info", &["QUERY_INFO", "TRANS2_QUERY_"]),
    ("set_info", &["SET_INFO", "TRANS2_SET_", "SMB_COM_RENAME", "SMB_COM_DELETE"]),
    ("query_directory", &["QUERY_DIRECTORY", "TRANS2_FIND_"]),
    ("lock", &["LOCK", "SMB_COM_LOCKING_ANDX"]),
    ("ioctl", &["IOCTL", "NT_TRANSACT_IOCTL"]),
];

impl BenchRun {
    /// Returns Samba's figures by operation, in the order of a file's life.
    pub fn inside_samba(&self) -> Vec<InsideSamba> {
        let Some(server) = &self.server else { return Vec::new() };
        let of = |(operation, commands): &(&str, &[&str])| {
            let mean = |suffix: &str| Some(server.metric(&format!("samba_{operation}{suffix}"))?.mean);
            let (per_second, inside) = (mean("")?, mean("_time")?);
            let response_time = self.mean_of(commands);
            let inside = Nanos(inside.round() as i64);
            Some(InsideSamba { operation: operation.replace('_', " "), per_second, inside, response_time })
        };
        COMMANDS.iter().filter_map(of).collect()
    }

    /// Returns the mean response time of commands whose names start with one of these prefixes.
    fn mean_of(&self, beginnings: &[&str]) -> Option<Nanos> {
        let is_one = |name: &str| beginnings.iter().any(|beginning| name.starts_with(beginning));
        let times =
            self.commands.iter().filter(|command| is_one(&command.command)).map(|command| &command.times.client);
        let (sum, count) = times.fold((0i128, 0i128), |(sum, count), figures| {
            let mean = figures.mean.map_or(0, |mean| i128::from(mean.0));
            (sum + mean * i128::from(figures.count), count + i128::from(figures.count))
        });
        (count > 0).then(|| Nanos::saturating(sum / count))
    }
}
