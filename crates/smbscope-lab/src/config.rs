//! Generates smb.conf(5).

use crate::link::EmulatedNetwork;
use crate::settings::{ENCRYPTED_SHARE, ExtraLine, LabServerSettings, SHARE, ServerSigningPolicy};
use std::fmt::Write;
use std::path::Path;

pub(crate) const FOLDERS: [&str; 7] = ["private", "lock", "state", "cache", "pid", "log", "ncalrpc"];
/// Samba's log, in the server's folder.
pub(crate) const LOG_FILE: &str = "log/log.smbd";

#[derive(Debug)]
pub(crate) struct SambaShareConfig<'a> {
    pub(crate) folder: &'a Path,
    /// Account that all users access the files as. Absent if each uses its own.
    pub(crate) accessed_as: Option<&'a str>,
    pub(crate) guest: &'a str,
    pub(crate) has_smb3_unix_extensions: bool,
    pub(crate) network: Option<&'a EmulatedNetwork>,
}

/// Known to newer versions of Samba only: older ones print a warning at every start of a program.
pub(crate) const SMB3_UNIX_EXTENSIONS: &str = "smb3 unix extensions";

pub(crate) fn text(settings: &LabServerSettings, folder: &Path, files: &SambaShareConfig<'_>) -> String {
    let share_folder = files.folder.display();
    let at = folder.display();
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{line}");
    };
    let extra: Vec<ExtraLine<'_>> = settings.extra.iter().filter_map(|line| ExtraLine::parse(line).ok()).collect();
    let of = |share: Option<&str>| -> Vec<&str> {
        extra.iter().filter(|extra| extra.share == share).map(|extra| extra.line).collect()
    };

    line(format_args!("[global]"));
    for name in ["private", "state", "cache", "pid", "lock"] {
        let option = if name == "private" { "private dir".to_owned() } else { format!("{name} directory") };
        line(format_args!("    {option} = {at}/{name}"));
    }
    line(format_args!("    ncalrpc dir = {at}/ncalrpc"));
    line(format_args!("    log file = {at}/{LOG_FILE}"));
    line(format_args!("    passdb backend = tdbsam:{at}/private/passdb.tdb"));
    line(format_args!("    username map = {at}/username.map"));
    line(format_args!("    usershare path ="));
    line(format_args!("    log level = 0"));
    line(format_args!("    workgroup = LAB"));
    line(format_args!("    server role = standalone server"));
    match files.network {
        None => line(format_args!("    interfaces = 127.0.0.1/8 ::1/128")),
        Some(network) => {
            match settings.server_time {
                // A proxy has the other address.
                Some(_) => line(format_args!("    interfaces = 127.0.0.1/8")),
                None => line(format_args!("    interfaces = {}/30 127.0.0.1/8", network.server)),
            }
            // This machine may forward packets of others.
            line(format_args!("    hosts allow = {} 127.0.0.1", network.client));
        }
    }
    line(format_args!("    bind interfaces only = yes"));
    line(format_args!("    disable netbios = yes"));
    line(format_args!("    load printers = no"));
    line(format_args!("    printing = bsd"));
    line(format_args!("    printcap name = /dev/null"));
    line(format_args!("    disable spoolss = yes"));
    // Operation times inside smbd, shown for the load points of bench.
    line(format_args!("    smbd profiling level = on"));
    line(format_args!("    max smbd processes = 0"));
    line(format_args!("    server min protocol = {}", settings.min_dialect.samba_name()));
    line(format_args!("    server max protocol = {}", settings.max_dialect.samba_name()));
    // Lets smbclient use every dialect with this file.
    line(format_args!("    client min protocol = NT1"));
    // Old SMB1 clients need NTLMv1; NTLMv2 still works.
    line(format_args!("    ntlm auth = ntlmv1-permitted"));
    // Loopback is not a security boundary: every user of this machine can reach the port.
    line(format_args!("    map to guest = {}", if settings.guests { "Bad User" } else { "Never" }));
    line(format_args!("    guest account = {}", files.guest));
    // These would let a client create links out of the share, special files, and set-user-id programs.
    line(format_args!("    unix extensions = no"));
    if files.has_smb3_unix_extensions {
        line(format_args!("    {SMB3_UNIX_EXTENSIONS} = no"));
    }
    line(format_args!("    wide links = no"));
    // Strips set-user-id and set-group-id bits from new files.
    line(format_args!("    create mask = 0744"));
    line(format_args!("    directory mask = 0755"));
    line(format_args!("    server signing = {}", settings.signing.samba_name()));
    if settings.encrypt {
        line(format_args!("    server smb encrypt = required"));
    }
    let yes_or_no = |yes: bool| if yes { "yes" } else { "no" };
    line(format_args!("    smb2 leases = {}", yes_or_no(settings.leases)));
    line(format_args!("    oplocks = {}", yes_or_no(settings.leases)));
    line(format_args!("    level2 oplocks = {}", yes_or_no(settings.leases)));
    line(format_args!("    kernel oplocks = no"));
    line(format_args!("    read only = {}", yes_or_no(settings.read_only)));
    if let Some(account) = files.accessed_as {
        line(format_args!("    force user = {account}"));
    }
    for scanner in crate::antivirus::samba_lines(settings, folder) {
        line(format_args!("    {scanner}"));
    }
    for extra in of(None) {
        line(format_args!("    {extra}"));
    }
    line(format_args!("[{SHARE}]"));
    line(format_args!("    path = {share_folder}"));
    line(format_args!("    guest ok = {}", yes_or_no(settings.guests)));
    for extra in of(Some(SHARE)) {
        line(format_args!("    {extra}"));
    }
    line(format_args!("[{ENCRYPTED_SHARE}]"));
    line(format_args!("    path = {share_folder}"));
    line(format_args!("    server smb encrypt = required"));
    for extra in of(Some(ENCRYPTED_SHARE)) {
        line(format_args!("    {extra}"));
    }
    text
}

pub(crate) fn complaint(said: &str) -> Option<&str> {
    let matters = ["Unknown parameter", "Ignoring unknown parameter", "Ignoring invalid value", "ERROR:"];
    said.lines().map(str::trim).find(|line| matters.iter().any(|start| line.contains(start)))
}

impl ServerSigningPolicy {
    fn samba_name(self) -> &'static str {
        match self {
            ServerSigningPolicy::Off => "disabled",
            ServerSigningPolicy::On => "auto",
            ServerSigningPolicy::Required => "mandatory",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_goes_to_the_section_that_it_names() {
        let settings = LabServerSettings {
            extra: vec!["strict sync = no".to_owned(), "[enc] read only = yes".to_owned()],
            ..LabServerSettings::default()
        };
        let files = SambaShareConfig {
            folder: Path::new("/s"),
            accessed_as: Some("ann"),
            guest: "ann",
            has_smb3_unix_extensions: true,
            network: None,
        };
        let text = text(&settings, Path::new("/d"), &files);
        let (global, shares) = text.split_once("[share]\n").expect("there is a share");
        let (share, enc) = shares.split_once("[enc]\n").expect("there is an encrypted share");
        assert!(global.ends_with("    strict sync = no\n"), "{global}");
        assert!(!share.contains("read only") && enc.ends_with("    read only = yes\n"), "{shares}");
    }
}
