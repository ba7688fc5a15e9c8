//! Server settings, and parsers for their notation on the command line: `100mbit`, `5ms`, `64M`.

use crate::LabError;
use serde::{Deserialize, Serialize};
use smbscope_model::{named, units};
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub(crate) const SHARE: &str = "share";
pub(crate) const ENCRYPTED_SHARE: &str = "enc";

/// Server settings. Defaults are Samba's: every dialect, signing at the client's request, leases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabServerSettings {
    pub min_dialect: LabDialect,
    pub max_dialect: LabDialect,
    pub signing: ServerSigningPolicy,
    pub encrypt: bool,
    pub leases: bool,
    pub read_only: bool,
    pub users: u16,
    /// Admits all users of this machine without a password. Excludes `share_folder`.
    pub guests: bool,
    pub port: Option<u16>,
    /// Existing folder to share, which is kept. Otherwise an empty one is created.
    pub share_folder: Option<PathBuf>,
    /// Size in bytes of a private disk below the share. Requires root.
    pub disk: Option<u64>,
    pub storage: Storage,
    pub antivirus: Option<Antivirus>,
    pub cpu_load: Option<u8>,
    /// Factor of the server's time for each command, from 1. A proxy in front of the server holds its responses back.
    pub server_time: Option<f64>,
    /// Bandwidth of the link in bits per second, in each direction.
    pub bandwidth: Option<u64>,
    pub delay: Option<Duration>,
    /// Delay towards the client, if it differs from `delay`.
    pub delay_to_client: Option<Duration>,
    /// Fraction of packets lost in each direction. Requires root.
    pub loss: Option<f64>,
    /// Only direction with loss and limited bandwidth.
    pub impaired_towards: Option<LinkDirection>,
    /// Lines of smb.conf, `name = value`. A prefix of `[share]` or `[enc]` applies a line to that share only.
    pub extra: Vec<String>,
}

impl Default for LabServerSettings {
    fn default() -> LabServerSettings {
        LabServerSettings {
            min_dialect: LabDialect::Nt1,
            max_dialect: LabDialect::Smb311,
            signing: ServerSigningPolicy::default(),
            encrypt: false,
            leases: true,
            read_only: false,
            users: 1,
            guests: false,
            port: None,
            share_folder: None,
            disk: None,
            storage: Storage::default(),
            antivirus: None,
            cpu_load: None,
            server_time: None,
            bandwidth: None,
            delay: None,
            delay_to_client: None,
            loss: None,
            impaired_towards: None,
            extra: Vec::new(),
        }
    }
}

impl LabServerSettings {
    pub(crate) fn check(&self) -> Result<(), LabError> {
        if self.min_dialect > self.max_dialect {
            let (min, max) = (self.min_dialect, self.max_dialect);
            return Err(LabError::Settings(format!("the oldest dialect, {min}, is newer than the newest one, {max}")));
        }
        if self.encrypt && self.max_dialect < LabDialect::Smb300 {
            let max = self.max_dialect;
            return Err(LabError::Settings(format!("encryption needs 3.0 or newer, and the newest dialect is {max}")));
        }
        if self.users == 0 {
            return Err(LabError::Settings("a server needs at least one user".to_owned()));
        }
        if self.loss.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err(LabError::Settings("packet loss must be from 0 to 1".to_owned()));
        }
        if self.impaired_towards.is_some() && self.loss.is_none() && self.bandwidth.is_none() {
            let text = "impairing one direction needs packet loss or a bandwidth limit: add --loss or --bandwidth";
            return Err(LabError::Settings(text.to_owned()));
        }
        if self.cpu_load.is_some_and(|percent| percent > 100) {
            return Err(LabError::Settings("processor load must be 0 to 100 percent of every core".to_owned()));
        }
        if self.server_time.is_some_and(|factor| !SERVER_TIMES.contains(&factor)) {
            return Err(LabError::Settings("the factor of the server's time must be 1 to 1000".to_owned()));
        }
        if self.guests && self.share_folder.is_some() {
            let text = "guests and a shared folder exclude each other: any user of this machine would have access";
            return Err(LabError::Settings(text.to_owned()));
        }
        if self.disk.is_some() && self.share_folder.is_some() {
            let text = "a disk of its own and a shared folder exclude each other: omit one of them";
            return Err(LabError::Settings(text.to_owned()));
        }
        self.extra.iter().try_for_each(|line| ExtraLine::parse(line).map(drop))
    }
}

impl fmt::Display for LabServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if self.signing != ServerSigningPolicy::On {
            words.push(format!("signing {}", self.signing.name()));
        }
        for (is_set, word) in [(self.encrypt, "encrypted"), (!self.leases, "no leases"), (self.read_only, "read-only")]
        {
            words.extend(is_set.then(|| word.to_owned()));
        }
        words.extend((self.users != 1).then(|| format!("{} users", self.users)));
        words.extend(self.guests.then(|| "guests".to_owned()));
        words.extend(self.share_folder.iter().map(|folder| format!("shares {}", folder.display())));
        words.extend(self.disk.map(|bytes| format!("disk {}", units::exact_size(bytes))));
        words.extend(self.storage.is_slow().then(|| self.storage.to_string()));
        words.extend(self.antivirus.iter().map(|scanner| format!("antivirus {}", scanner.name())));
        words.extend(self.cpu_load.map(|percent| format!("CPU load {percent}%")));
        words.extend(self.server_time.map(|factor| format!("{factor} times the server's time")));
        words.extend(self.bandwidth.map(units::exact_bit_rate));
        words.extend(self.delay.map(|delay| format!("delay {delay:?}")));
        words.extend(self.delay_to_client.map(|delay| format!("delay towards the client {delay:?}")));
        words.extend(self.loss.map(|share| format!("loss {}%", (share * 1e4).round() / 100.0)));
        words.extend(self.impaired_towards.map(|direction| match direction {
            LinkDirection::ToServer => "only towards the server".to_owned(),
            LinkDirection::ToClient => "only towards the client".to_owned(),
        }));
        words.extend(self.extra.iter().cloned());
        f.write_str(&words.join(", "))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkDirection {
    ToServer,
    ToClient,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkEmulation {
    /// Network that delays or drops packets: a capture attributes the delay to the network.
    Network {
        /// Interface of this machine, where a client's packets can be captured.
        interface: String,
        client: Ipv4Addr,
        server: Ipv4Addr,
    },
    /// Proxy that terminates TCP: a capture at the client attributes the delay to the server.
    Proxy { why: String },
}

impl LinkEmulation {
    pub fn caveat(&self) -> Option<String> {
        match self {
            LinkEmulation::Network { .. } => None,
            LinkEmulation::Proxy { why } => Some(format!(
                "the lab's delay and bandwidth come from a proxy that ends TCP ({why}): a capture at the client shows them as the server's time, not as the network's"
            )),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Storage {
    pub latency: Option<Duration>,
    pub iops: Option<u32>,
    pub bandwidth: Option<u64>,
}

impl Storage {
    pub fn is_slow(&self) -> bool {
        *self != Storage::default()
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latency = self.latency.map(|latency| format!("{latency:?} latency"));
        let limits = [self.iops.map(|iops| format!("{iops} IOPS")), self.bandwidth.map(units::exact_byte_rate)];
        let words: Vec<String> = latency.into_iter().chain(limits.into_iter().flatten()).collect();
        write!(f, "storage with {}", words.join(" and "))
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum LabDialect {
        #[serde(rename = "nt1")]
        Nt1 = "nt1",
        #[serde(rename = "2.0.2")]
        Smb202 = "2.0.2",
        #[serde(rename = "2.1")]
        Smb210 = "2.1",
        #[serde(rename = "3.0")]
        Smb300 = "3.0",
        #[serde(rename = "3.0.2")]
        Smb302 = "3.0.2",
        #[serde(rename = "3.1.1")]
        Smb311 = "3.1.1",
    }
}

impl LabDialect {
    pub fn samba_name(self) -> &'static str {
        match self {
            LabDialect::Nt1 => "NT1",
            LabDialect::Smb202 => "SMB2_02",
            LabDialect::Smb210 => "SMB2_10",
            LabDialect::Smb300 => "SMB3_00",
            LabDialect::Smb302 => "SMB3_02",
            LabDialect::Smb311 => "SMB3_11",
        }
    }
}

impl FromStr for LabDialect {
    type Err = String;

    fn from_str(text: &str) -> Result<LabDialect, String> {
        let found = LabDialect::ALL.into_iter().find(|dialect| dialect.name() == text);
        found.ok_or_else(|| "expected nt1, 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1".to_owned())
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ServerSigningPolicy {
        /// SMB1 is never signed. SMB2 and later are signed if the client requires it, as the protocol demands.
        Off = "off",
        #[default]
        On = "on",
        Required = "required",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Antivirus {
    /// ClamAV with the EICAR signature, or with a folder of signatures such as `/var/lib/clamav`.
    ClamAv(Option<PathBuf>),
}

impl Antivirus {
    pub fn name(&self) -> &'static str {
        match self {
            Antivirus::ClamAv(_) => "clamav",
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ExtraLine<'a> {
    pub(crate) share: Option<&'static str>,
    pub(crate) line: &'a str,
}

impl<'a> ExtraLine<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<ExtraLine<'a>, LabError> {
        let wrong = |why: &str| Err(LabError::Settings(format!("the setting {text:?} {why}")));
        if text.contains(['\n', '\r']) || text.trim_end().ends_with('\\') {
            return wrong("is more than one line");
        }
        let line = text.trim();
        let (share, line) = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((SHARE, rest)) => (Some(SHARE), rest.trim()),
            Some((ENCRYPTED_SHARE, rest)) => (Some(ENCRYPTED_SHARE), rest.trim()),
            Some(("global", rest)) => (None, rest.trim()),
            Some(_) => return wrong("names an unknown section: use [global], [share] or [enc]"),
            None => (None, line),
        };
        match line.split_once('=') {
            Some((name, _)) if !name.trim().is_empty() && !name.starts_with(['#', ';', '[']) => {
                Ok(ExtraLine { share, line })
            }
            _ => wrong("is not of the form NAME = VALUE"),
        }
    }
}

/// Upper limit for packet loss: beyond it TCP makes no progress.
const LOSS_MAX: f64 = 0.5;
/// The longest is about a tenth of a second for each command of Samba.
const SERVER_TIMES: RangeInclusive<f64> = 1.0..=1000.0;
const DELAY_MAX: Duration = Duration::from_secs(60);
const BANDWIDTHS: RangeInclusive<u64> = 8_000..=1_000_000_000_000;
const DISKS: RangeInclusive<u64> = 64 << 10..=1_000_000_000_000_000;

/// Upper limit for the added latency of one storage request, slower than a tape.
const STORAGE_LATENCY_MAX: Duration = Duration::from_secs(10);
const STORAGE_IOPS: RangeInclusive<f64> = 1.0..=10_000_000.0;
const STORAGE_BANDWIDTHS: RangeInclusive<u64> = 1_000..=1_000_000_000_000;

/// Parses bits per second in the notation of tc(8): `100mbit`, `1gbit`, `512kbit`.
pub fn parse_bandwidth(text: &str) -> Result<u64, String> {
    let bits = units::bit_rate(text).ok().filter(|bits| BANDWIDTHS.contains(bits));
    bits.ok_or_else(|| "expected 8kbit to 1000gbit, such as 100mbit".to_owned())
}

/// Parses a factor of the server's time: `2x`.
pub fn parse_server_time(text: &str) -> Result<f64, String> {
    let factor = units::factor(text)?;
    match SERVER_TIMES.contains(&factor) {
        true => Ok(factor),
        false => Err("expected 1x to 1000x: nothing can make a server faster".to_owned()),
    }
}

pub fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = units::time(text)?;
    if delay <= DELAY_MAX { Ok(delay) } else { Err("expected 0us to 60s, such as 5ms".to_owned()) }
}

/// Parses a percentage of packets as a fraction: `1%`, `0.5%`.
pub fn parse_loss(text: &str) -> Result<f64, String> {
    let share = units::percentage(text).ok().filter(|share| *share <= LOSS_MAX);
    share.ok_or_else(|| "expected 0% to 50%, such as 0.5%".to_owned())
}

pub fn parse_size(text: &str) -> Result<u64, String> {
    let bytes = units::size(text).ok().filter(|bytes| DISKS.contains(bytes));
    bytes.ok_or_else(|| "expected 64K or more, such as 64M or 2G".to_owned())
}

pub fn parse_storage_latency(text: &str) -> Result<Duration, String> {
    let latency = units::time(text)?;
    if latency <= STORAGE_LATENCY_MAX { Ok(latency) } else { Err("expected 0us to 10s, such as 8ms".to_owned()) }
}

pub fn parse_iops(text: &str) -> Result<u32, String> {
    let iops = units::rate(text).ok().filter(|iops| iops.fract() == 0.0 && STORAGE_IOPS.contains(iops));
    iops.map(|iops| iops as u32).ok_or_else(|| "expected 1 to 10000000, such as 120".to_owned())
}

pub fn parse_storage_bandwidth(text: &str) -> Result<u64, String> {
    let bytes = units::byte_rate(text).ok().filter(|bytes| STORAGE_BANDWIDTHS.contains(bytes));
    bytes.ok_or_else(|| "expected 1kB/s to 1000GB/s, such as 150MB/s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_would_add_more_than_itself_is_refused() {
        for text in ["a = b\n[evil]", "a = \\", "nonsense", "= x", "# a = b", "[homes] path = /"] {
            assert!(ExtraLine::parse(text).is_err(), "{text:?}");
        }
        let line = ExtraLine::parse(" [share]  strict sync=yes ").expect("it is well-formed");
        assert_eq!(line, ExtraLine { share: Some("share"), line: "strict sync=yes" });
    }

    #[test]
    fn what_a_lab_can_not_be_is_refused() {
        assert!(parse_bandwidth("7kbit").is_err() && parse_bandwidth("100").is_err());
        assert!(parse_delay("61s").is_err() && parse_delay("-5ms").is_err() && parse_delay("2min").is_err());
        assert!(
            parse_server_time("0.5x").is_err() && parse_server_time("2").is_err() && parse_server_time("2x") == Ok(2.0)
        );
        assert!(parse_loss("51%").is_err() && parse_loss("1").is_err());
        assert!(parse_size("63K").is_err());
        assert!(parse_storage_latency("11s").is_err() && parse_storage_latency("8").is_err());
        assert!(["0", "1.5", "10000001", "-1", "many"].iter().all(|text| parse_iops(text).is_err()));
        assert!(parse_storage_bandwidth("150M").is_err() && parse_storage_bandwidth("1B/s").is_err());
        assert_eq!((parse_iops("120"), parse_storage_bandwidth("150MB/s")), (Ok(120), Ok(150_000_000)));
        assert_eq!(parse_delay("1min"), Ok(DELAY_MAX));
    }
}
