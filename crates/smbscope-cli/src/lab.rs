//! `smbscope lab`: private Samba servers from the command line.

use crate::CommandEnded;
use crate::arguments::{
    DownArguments, LabArguments, LabFormat, LabVerb, RunArguments, StateArguments, StatusArguments, UpArguments,
};
use crate::entry::PROGRAM;
use crate::output::Output;
use anyhow::{Context, bail};
use serde_json::Value;
use signal_hook::consts::SIGINT;
use smbscope_lab::{LabServer, Launcher, LinkEmulation, ServerRecord, StateFolder, command_for};
use smbscope_report::{clean, json, listed, quoted};
use smbscope_run::{LabCapture, PASSWORD_VARIABLE, SambaReader, one_line};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Arguments with which this program runs as a keeper.
const KEEP: [&str; 2] = ["lab", "keep"];
/// Arguments with which this program reads the figures of Samba for a process that may not start smbstatus.
const READ_SAMBA: [&str; 2] = ["lab", "read-samba"];

pub(crate) fn run(arguments: &LabArguments) -> anyhow::Result<()> {
    match &arguments.verb {
        LabVerb::Up(arguments) => up(arguments),
        LabVerb::Down(arguments) => down(arguments),
        LabVerb::Status(arguments) => status(arguments),
        LabVerb::Run(arguments) => run_with_server(arguments),
        LabVerb::Keep => Ok(smbscope_lab::keep()?),
        LabVerb::ReadSamba => Ok(smbscope_run::read_samba()?),
    }
}

/// Returns a launcher with a keeper process and the default state folder.
pub(crate) fn kept() -> anyhow::Result<Launcher> {
    let (program, first) = program().context("cannot find this program to take care of the server")?;
    Ok(Launcher::new().kept_by(program, first.into_iter().chain(KEEP.map(OsString::from))))
}

/// Starts a process that reads the figures of this machine's Samba. Returns `None` without Samba.
pub(crate) fn samba_reader() -> anyhow::Result<Option<SambaReader>> {
    let (program, first) = program().context("cannot find this program to read Samba's figures")?;
    let mut command = command_for(program);
    // Ctrl-C concerns the program that shows them.
    command.args(first).args(READ_SAMBA).process_group(0);
    SambaReader::start(command).context("cannot read Samba's figures")
}

/// Returns the command that starts this program, and its initial arguments.
fn program() -> std::io::Result<(PathBuf, Vec<OsString>)> {
    match PROGRAM.get().map(Vec::as_slice) {
        Some([program, first @ ..]) => Ok((program.into(), first.to_vec())),
        _ => Ok((std::env::current_exe()?, Vec::new())),
    }
}

fn launcher(state: &StateArguments) -> anyhow::Result<Launcher> {
    Ok(kept()?.state(state_folder(state)?))
}

fn state_folder(arguments: &StateArguments) -> anyhow::Result<StateFolder> {
    Ok(arguments.folder.as_deref().map(StateFolder::new).transpose()?.unwrap_or_default())
}

fn up(arguments: &UpArguments) -> anyhow::Result<()> {
    let record = launcher(&arguments.state)?.name(&arguments.name).detach(&arguments.server.settings())?;
    let text = match arguments.format {
        // Only on a terminal: redirected output may be readable by others.
        LabFormat::Text if std::io::stdout().is_terminal() => introduction(&record, password(&record)?.as_deref()),
        LabFormat::Text => introduction(&record, None),
        LabFormat::Json => json::line(&document(&record)) + "\n",
    };
    write(&text)
}

fn password(record: &ServerRecord) -> anyhow::Result<Option<String>> {
    let file = record.password_file();
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text.lines().next().map(str::to_owned))
}

/// Formats the facts needed to use a server. The password is shown only here.
fn introduction(record: &ServerRecord, password: Option<&str>) -> String {
    let mut text = format!("{}: Samba, SMB {}\n", clean(&record.name), dialects(record));
    let settings = record.settings.to_string();
    let others = record.users.iter().skip(1).map(|user| user.name.as_str()).collect::<Vec<_>>().join(", ");
    let state = if record.folder.parent() == Some(StateFolder::default().path()) {
        String::new()
    } else {
        format!(" --state {}", record.folder.parent().unwrap_or(&record.folder).display())
    };
    let file = record.password_file();
    let password = match password {
        Some(password) => format!("{password} (not shown again; also in {})", file.display()),
        None => format!("in {}", file.display()),
    };
    let network = match &record.link {
        Some(LinkEmulation::Network { interface, .. }) => {
            format!("interface {interface}, where a capture shows it as network")
        }
        Some(link @ LinkEmulation::Proxy { .. }) => {
            link.caveat().map(|caveat| format!("note: {caveat}")).unwrap_or_default()
        }
        None => String::new(),
    };
    let account = record.accessed_as.as_deref().unwrap_or("unprivileged accounts");
    let accessed =
        record.settings.share_folder.as_ref().map(|_| format!(", accessed as {account}")).unwrap_or_default();
    for (label, value) in [
        ("target", record.url()),
        ("encrypted", record.encrypted_url()),
        ("password", password),
        ("more users", others),
        ("files", format!("{}{accessed}", record.share_folder.display())),
        ("settings", settings),
        ("network", network),
        ("to stop it", format!("smbscope lab down {}{state}", record.name)),
    ] {
        if !value.is_empty() {
            text += &format!("  {label:<10}  {}\n", clean(&value));
        }
    }
    text
}

fn down(arguments: &DownArguments) -> anyhow::Result<()> {
    let state = state_folder(&arguments.state)?;
    let swept = state.sweep()?;
    let servers: Vec<String> =
        state.servers()?.into_iter().filter(|server| server.detached).map(|server| server.name).collect();
    let names = match arguments.names.as_slice() {
        [] if arguments.all || servers.len() == 1 => servers,
        // Servers without an owner have just been removed.
        [] if servers.is_empty() && !swept.is_empty() => Vec::new(),
        [] if servers.is_empty() => bail!("no server runs in {}", state.path().display()),
        [] => bail!("several servers run: name one of {}, or stop them all with --all", servers.join(", ")),
        names => names.iter().filter(|name| !swept.contains(name)).cloned().collect(),
    };
    for name in &names {
        state.stop(name)?;
        write(&format!("{}: stopped\n", clean(name)))?;
    }
    for name in swept {
        write(&format!("{}: its owner has ended; removed\n", clean(&name)))?;
    }
    Ok(())
}

fn write(text: &str) -> anyhow::Result<()> {
    Output::stdout()?.print(text)
}

fn status(arguments: &StatusArguments) -> anyhow::Result<()> {
    let state = state_folder(&arguments.state)?;
    state.sweep()?;
    let servers = state.servers()?;
    write(&match arguments.format {
        LabFormat::Json => json::line(&Value::from_iter(servers.iter().map(document))) + "\n",
        LabFormat::Text if servers.is_empty() => format!("no server runs in {}\n", state.path().display()),
        LabFormat::Text => table(&servers),
    })
}

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

fn dialects(server: &ServerRecord) -> String {
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

fn document(server: &ServerRecord) -> Value {
    serde_json::json!({
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

fn run_with_server(arguments: &RunArguments) -> anyhow::Result<()> {
    let Some((program, rest)) = arguments.command.split_first() else { bail!("there is no command to run") };
    let mut settings = arguments.server.settings();
    // The command may log no keys, but the server does, into its private folder.
    settings.extra.extend(arguments.capture.map(|_| "debug encryption = yes".to_owned()));
    let mut server = launcher(&arguments.state)?.start(&settings)?;
    if let Some(caveat) = server.record().link.as_ref().and_then(smbscope_lab::LinkEmulation::caveat) {
        crate::terminal::say(&format!("note: {caveat}"));
    }
    // The command also gets Ctrl-C from the terminal and decides how to react.
    let _ = signal_hook::flag::register(SIGINT, Arc::default());
    let capture = arguments.capture.zip(arguments.output.as_deref());
    let capture = capture.map(|(points, directory)| LabCapture::begin(server.record(), points, directory));
    let capture = capture.transpose()?;
    let mut command = Command::new(program);
    command.args(rest);
    tell(&mut command, &server);
    let mut child = command.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    // Without the server the command is useless.
    server.takes_along(child.id())?;
    let status = child.wait().with_context(|| format!("cannot wait for {}", program.display()))?;
    let captured = capture.map_or(Ok(()), |capture| capture.end().map(|files| introduce(files, settings.encrypt)));
    server.stop()?;
    match captured {
        // The command's own failure is the more important one.
        Err(error) if !status.success() => crate::terminal::say(&format!("warning: {}", one_line(&error))),
        captured => captured?,
    }
    if status.success() { Ok(()) } else { Err(CommandEnded(status).into()) }
}

/// Names the captures and the command that reads them.
fn introduce((files, keys): (Vec<PathBuf>, Option<PathBuf>), is_encrypted: bool) {
    let name = |path: &PathBuf| quoted(&path.display().to_string());
    let keys = keys.filter(|_| is_encrypted).map(|file| format!("--keys {} ", name(&file))).unwrap_or_default();
    let files: Vec<String> = files.iter().map(name).collect();
    crate::terminal::say(&format!("captured; to read it: smbscope analyze {keys}{}", files.join(" ")));
}

fn tell(command: &mut Command, server: &LabServer) {
    let record = server.record();
    command.env("SMBSCOPE_LAB_URL", record.url());
    command.env("SMBSCOPE_LAB_ENCRYPTED_URL", record.encrypted_url());
    command.env("SMBSCOPE_LAB_HOST", server.address().ip().to_string());
    command.env("SMBSCOPE_LAB_PORT", server.port().to_string());
    command.env("SMBSCOPE_LAB_USER", server.user());
    command.env("SMBSCOPE_LAB_INTERFACE", record.interface());
    command.env(PASSWORD_VARIABLE, server.password());
    command.env("SMBSCOPE_LAB_PASSWORD_FILE", record.password_file());
    command.env("SMBSCOPE_LAB_FOLDER", server.folder());
    command.env("SMBSCOPE_LAB_SHARE_FOLDER", server.share_folder());
    command.env("SMBSCOPE_LAB_CONF", server.folder().join("smb.conf"));
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
