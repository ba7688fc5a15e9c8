//! The time that operations took inside Samba beside what their clients waited: what is between the two passed in the network,
//! in queues of the sockets and in the client.

use super::BenchRun;
use smbscope_model::Nanos;

/// An operation at a load point, as Samba and the client saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct InsideSamba {
    /// As Samba's counters name it, in words: `create`, `query info`.
    pub operation: String,
    /// Those that Samba counted, a second.
    pub per_second: f64,
    /// How long one took inside smbd, on average.
    pub inside: Nanos,
    /// What the client waited for one, on average; unknown where it had no such command.
    pub response_time: Option<Nanos>,
}

/// Names of commands (MS-SMB2 2.2.1.2, MS-CIFS 2.2.2.1) that begin so are this operation of Samba's.
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
    /// What Samba counted of each operation, in the order of its life.
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

    /// The mean response time of commands whose names begin so.
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
