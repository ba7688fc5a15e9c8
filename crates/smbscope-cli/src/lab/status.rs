//! `smbscope lab status`: lists running servers.

use super::{state_folder, write};
use crate::arguments::{LabFormat, StatusArguments};
use serde_json::{Value, json};
use smbscope_lab::ServerRecord;
use smbscope_report::json::line;
use smbscope_report::listed;
use std::time::Duration;

pub(super) fn run(arguments: &StatusArguments) -> anyhow::Result<()> {
    let state = state_folder(&arguments.state)?;
    state.sweep()?;
    let servers = state.servers()?;
    write(&match arguments.format {
        LabFormat::Json => line(&Value::from_iter(servers.iter().map(document))) + "\n",
        LabFormat::Text if servers.is_empty() => format!("no server runs in {}\n", state.path().display()),
        LabFormat::Text => table(&servers),
    })
}

/// Formats one line per server with aligned columns.
fn table(servers: &[ServerRecord]) -> String {
    let heading = ["NAME", "DIALECTS", "PORT", "PID", "SESSIONS", "UPTIME", "STATE", "SETTINGS"].map(str::to_owned);
    let row = |server: &ServerRecord| {
        let pid = server.smbd.map_or("-".to_owned(), |smbd| smbd.pid.to_string());
        [
            server.name.clone(),
            dialects(server),
            server.port.to_string(),
            pid,
            server.sessions().to_string(),
            uptime(server.uptime()),
            state(server),
            server.settings.to_string(),
        ]
    };
    listed(&std::iter::once(heading).chain(servers.iter().map(row)).collect::<Vec<_>>())
}

/// Returns the range of dialects.
pub(super) fn dialects(server: &ServerRecord) -> String {
    let (min, max) = (server.settings.min_dialect, server.settings.max_dialect);
    if min == max { min.to_string() } else { format!("{min} to {max}") }
}

fn state(server: &ServerRecord) -> String {
    match server.smbd {
        None => "starting".to_owned(),
        Some(smbd) if !smbd.lives() => "Samba has ended".to_owned(),
        Some(_) if server.detached => "up".to_owned(),
        Some(_) => format!("up, of process {}", server.owner.pid),
    }
}

fn uptime(time: Duration) -> String {
    let (minutes, seconds) = (time.as_secs() / 60, time.as_secs() % 60);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m {seconds:02}s"),
        (hours, minutes) => format!("{hours}h {minutes:02}m"),
    }
}

/// Returns the JSON form of a server.
pub(super) fn document(server: &ServerRecord) -> Value {
    json!({
        "name": server.name,
        "state": state(server),
        "url": server.url(),
        "encrypted_url": server.encrypted_url(),
        "host": server.address().ip(),
        "port": server.port,
        "user": server.user(),
        "users": server.users,
        "password_file": server.password_file(),
        "folder": server.folder,
        "share_folder": server.share_folder,
        "pid": server.smbd.map(|smbd| smbd.pid),
        "pids": server.pids(),
        "owner": server.owner.pid,
        "detached": server.detached,
        "link": server.link,
        "interface": server.interface(),
        "sessions": server.sessions(),
        "uptime_seconds": server.uptime().as_secs(),
        "cpu_seconds": server.cpu_time().as_secs_f64(),
        "settings": server.settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptime_has_two_units_at_most() {
        let said = [5, 65, 3 * 3600 + 61].map(|seconds| uptime(Duration::from_secs(seconds)));
        assert_eq!(said, ["5s", "1m 05s", "3h 01m"]);
    }
}
