//! Results of reading captures other than the exchanges, the errors of an analysis, and its report. If captures hold no
//! SMB, says in one line what they contain instead, and what to do.

use super::{AggregatedExchanges, AnalysisOptions, CaptureSetAnalysis};
use crate::keys::KeysError;
use smbscope_analyze::pipeline::{self, RerunReason};
use smbscope_capture::reader::CaptureError;
use smbscope_diagnose::CatalogueError;
use smbscope_model::travel::TravelError;
use smbscope_model::{
    CaptureInfo, ClockStep, Endpoints, ForeignProtocol, Nanos, Quality, Role, SeenTwice, SkippedPackets,
    SkippedProtocol,
};
use smbscope_report::{Explanation, Report, counted};
use smbscope_stats::filter::{Filter, FilterError};
use smbscope_stats::{Aggregate, BINS_MAX, beside};
use std::cmp::Reverse;
use std::io;
use std::path::PathBuf;

pub const WITHOUT_THREADS: &str =
    "the system refused to start a thread (ulimit -u?): one thread did all the work, which takes longer";

#[derive(Debug)]
pub struct AnalyzedCaptures {
    pub captures: Vec<CaptureInfo>,
    /// Inputs that could not be read, with the reason, one per line. No statistics include them.
    pub unread: Vec<String>,
    pub analysis: pipeline::CaptureFindings,
    pub interrupted: bool,
}

impl AnalyzedCaptures {
    pub fn truncations(&self) -> impl Iterator<Item = String> {
        self.captures.iter().filter_map(|info| info.truncated.clone())
    }

    /// Returns the warnings to show above the results, one per line.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.analysis.without_threads.then(|| WITHOUT_THREADS.to_owned()));
        if self.interrupted {
            notes.push("interrupted: these are the results so far".to_owned());
        }
        let encrypted = self.analysis.quality.encrypted_frames;
        if encrypted > 0 {
            let frames = counted(encrypted, "frame is", "frames are");
            notes.push(format!(
                "{frames} encrypted: only the frames can be timed, not the commands in them; --keys or --password-file \
                 decrypts them"
            ));
        }
        notes
    }

    /// Fails with a description of the traffic if there was neither SMB nor an attempt to connect to its ports.
    pub fn refuse_without_smb(&self, options: &AnalysisOptions) -> Result<(), AnalysisError> {
        if !self.analysis.connections.is_empty() || !self.analysis.connect_attempts.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.captures.iter().map(|info| info.name.as_str()).collect();
        let names = names.join(", ");
        if self.interrupted {
            return Err(AnalysisError::Interrupted(format!("{names}: interrupted before any SMB was read")));
        }
        let seen = match self.analysis.quality {
            Quality { packets: 0, .. } => "no packets in the capture; check its interface and its filter".to_owned(),
            Quality { tcp_packets: 0, .. } => self.without_tcp(),
            _ => self.without_smb(&options.reading.ports),
        };
        Err(AnalysisError::NoSmb(format!("{names}: {seen}")))
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    #[error(transparent)]
    Capture(#[from] CaptureError),

    /// The inputs contain no SMB. The text describes the traffic they have instead.
    #[error("{0}")]
    NoSmb(String),

    #[error(transparent)]
    Keys(#[from] KeysError),

    #[error("{0}")]
    Interrupted(String),

    #[error("cannot read {}: {error}", path.display())]
    ThresholdsFile {
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("{}: {error}", path.display())]
    Thresholds {
        path: PathBuf,
        #[source]
        error: CatalogueError,
    },

    #[error("{0}")]
    Episode(String),

    #[error("{0}")]
    Sides(String),

    #[error("{0}")]
    Stretch(String),

    #[error("--filter with --from or --to: {0}")]
    StretchFilter(#[source] FilterError),

    #[error("--episode {number}: {error}")]
    EpisodeFilter {
        number: u32,
        #[source]
        error: FilterError,
    },

    #[error("{}: {error}", path.display())]
    Piece {
        path: PathBuf,
        #[source]
        error: io::Error,
    },

    #[error("cannot write the exchanges: {0}")]
    Table(#[source] io::Error),

    #[error("{what}: {error}")]
    Received {
        what: String,
        #[source]
        error: TravelError,
    },

    #[error("the system refused to start a thread (ulimit -u?): {0}")]
    Thread(#[source] io::Error),

    /// The options don't work in parts. The text says what to do instead.
    #[error("{0}")]
    InParts(&'static str),

    /// A bug: the most conservative pass failed as well.
    #[error("the analysis failed: {0:?}")]
    Failed(RerunReason),
}

impl CaptureSetAnalysis {
    /// `options` must be the ones that the analysis used.
    pub fn into_report(self, options: &AnalysisOptions) -> Result<Report, AnalysisError> {
        let CaptureSetAnalysis { found, recorded, catalogue, sides } = self;
        let mut aggregate = recorded.aggregator.finish();
        if let Some(least) = CaptureInfo::least_time(&found.captures) {
            aggregate.forget_below(least);
        }
        let warnings = warnings(options, &found, &recorded, &aggregate);
        let AnalyzedCaptures { captures, analysis, .. } = found;
        let (waterfall, sample) = recorded.waterfall();
        let AggregatedExchanges { filtered, aggregator, collector, .. } = recorded;
        let mut report = Report {
            title: options.title.clone(),
            captures,
            quality: analysis.quality,
            skipped: analysis.skipped,
            encapsulations: analysis.encapsulations,
            connections: analysis.connections,
            connect_attempts: analysis.connect_attempts,
            aggregate,
            first: analysis.first,
            last: analysis.last,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            warnings,
            filter: filtered,
            interval: options.interval,
            slow: options.slow.clone(),
            sides,
            explanation: Explanation { waterfall, sample, ..Explanation::default() },
        };
        // Freeing large tables takes as long as the diagnosis, so both run in parallel.
        let explain =
            || collector.as_ref().map(|collector| (report.diagnosed(collector, &catalogue), collector.episodes()));
        let ((), explained) = beside(|| drop(aggregator), explain);
        if let Some((answer, episodes)) = explained {
            report.explanation.answer = answer;
            report.explanation.episodes = episodes;
        }
        Ok(report)
    }
}

fn warnings(
    options: &AnalysisOptions,
    found: &AnalyzedCaptures,
    recorded: &AggregatedExchanges,
    aggregate: &Aggregate,
) -> Vec<String> {
    let analysis = &found.analysis;
    let mut warnings = Vec::new();
    if found.interrupted {
        warnings.push("interrupted: the report covers the packets read so far".to_owned());
    }
    warnings.extend(found.unread.iter().cloned());
    warnings.extend(analysis.decryption.problems());
    if analysis.connections_left_out > 0 {
        let count = analysis.connections_left_out;
        warnings.push(format!("{count} connections are not listed because the list was full; their commands count"));
    }
    warnings.extend(analysis.clock_steps.iter().map(|step| clock_step(step, &found.captures)));
    warnings.extend(analysis.seen_twice.iter().filter_map(|seen| twice(seen, options.beside)));
    let foreign = analysis.foreign_replies.iter();
    warnings
        .extend(foreign.map(|reply| format!("{} is not an SMB server: it answered {}", reply.server, reply.protocol)));
    let takes_wildcards = options.filter.as_ref().is_some_and(Filter::compares_wildcards);
    if takes_wildcards && recorded.filtered.as_ref().is_some_and(|filtered| filtered.matched == 0) {
        warnings.push("nothing matched: == takes * and ? literally; use ~ for wildcards".to_owned());
    }
    if let Some(asked) = options.interval.filter(|asked| *asked < aggregate.timeline.width) {
        let (width, most) = (aggregate.timeline.width, BINS_MAX);
        warnings
            .push(format!("the bins of the time line are {width} wide: of {asked} there would be more than {most}"));
    }
    warnings
}

fn twice(seen: &SeenTwice, beside: Option<Role>) -> Option<String> {
    Some(match seen {
        SeenTwice::Routed(_) if beside.is_some() => return None,
        SeenTwice::Routed(Endpoints { client, server }) => format!(
            "{client} to {server} was captured on both sides of a router: each packet counts where it passed first; \
             --beside client or --beside server times all at one place"
        ),
        SeenTwice::Translated(one, other) => {
            let (field, address) = match one.client.ip() == other.client.ip() {
                false => ("client", other.client.ip()),
                true => ("server", other.server.ip()),
            };
            format!(
                "{} to {} and {} to {} are the same connection, captured on both sides of an address translation: its \
                 commands count twice; --filter '{field} != {address}' takes one side",
                one.client, one.server, other.client, other.server
            )
        }
    })
}

fn clock_step(step: &ClockStep, captures: &[CaptureInfo]) -> String {
    let name = captures.get(usize::from(step.after.packet.capture().0)).map_or("", |info| info.name.as_str());
    let (number, by) = (step.after.packet.number(), step.by());
    match by.0 < 0 {
        true => format!(
            "{name}: the clock stepped back by {} at packet {number}; later times are moved forward",
            Nanos(-by.0)
        ),
        false => {
            format!("{name}: the clock stepped forward by {by} at packet {number}, or the capture was stopped there")
        }
    }
}

/// Protocols named in a message.
const NAMED: usize = 4;

const CAPTURING: &str = "`smbscope help capturing` shows how to capture SMB";
const NFS: &str = "smbscope reads only SMB; NFS: tshark -q -z rpc,srt,100003,4 -r FILE";
const BLOCKS: &str = "it carries disk blocks, not files; capture between the clients and the file server";
const RDMA: &str =
    "SMB Direct (RDMA) is not read; Disable-NetAdapterRdma at the client makes it use TCP, then capture again";
const QUIC: &str = "SMB over QUIC is encrypted; connect with New-SmbMapping -TransportType TCP and capture port 445";
const ENCRYPTED: &str = "it is encrypted; capture on the client or server, inside the tunnel";

/// Ports of protocols that serve files and blocks, for connections whose first bytes were not captured.
const PORTS: [(u16, ForeignProtocol); 5] = [
    (548, ForeignProtocol::Afp),
    (2049, ForeignProtocol::Nfs),
    (3260, ForeignProtocol::Iscsi),
    (4420, ForeignProtocol::NvmeTcp),
    (5445, ForeignProtocol::Iwarp),
];

/// Traffic that the capture has instead of SMB.
struct OtherTraffic {
    name: String,
    packets: u64,
    advice: Option<&'static str>,
}

impl AnalyzedCaptures {
    fn without_tcp(&self) -> String {
        let packets = self.analysis.quality.packets;
        let seen = counted(packets, "packet", "packets");
        let skipped = &self.analysis.skipped;
        let cut = self.analysis.quality.headers_not_captured;
        if cut > skipped.iter().map(|skipped| skipped.packets).sum() {
            let cut = counted(cut, "packet", "packets");
            return format!(
                "no SMB: the snap length cut {cut} of {packets} off inside IP or TCP headers, use one of 256"
            );
        }
        let is_link = |skipped: &&SkippedPackets| matches!(skipped.protocol, SkippedProtocol::LinkType(_));
        if let Some(link) = skipped.first().filter(is_link) {
            let advice = advice_for_packets(link.protocol).unwrap_or("capture on an Ethernet or IP interface");
            return format!("{} is not supported; {advice}", link.protocol);
        }
        let named = |skipped: &SkippedPackets| {
            format!("{} ({})", skipped.protocol, counted(skipped.packets, "packet", "packets"))
        };
        let seen_instead: Vec<String> = skipped.iter().take(NAMED).map(named).collect();
        let advice = skipped.iter().take(NAMED).find_map(|skipped| advice_for_packets(skipped.protocol));
        let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
        match seen_instead.is_empty() {
            true => format!("no SMB: {seen}, none of them TCP; {CAPTURING}"),
            false => format!("no SMB: {seen}, none of them TCP, but {}{advice}", seen_instead.join(", ")),
        }
    }

    fn without_smb(&self, ports: &[u16]) -> String {
        let Quality { packets, tcp_packets, snapped_packets, .. } = self.analysis.quality;
        let busy = self.analysis.busiest_ports.iter();
        let busy: Vec<String> =
            busy.map(|(port, packets)| format!("{port} ({})", counted(*packets, "packet", "packets"))).collect();
        let busiest = match busy.as_slice() {
            [only] => format!("the busiest port is {only}"),
            _ => format!("the busiest ports are {}", busy.join(", ")),
        };
        let seen = counted(tcp_packets, "TCP packet", "TCP packets");
        if !ports.is_empty() {
            let wanted: Vec<String> = ports.iter().map(u16::to_string).collect();
            let wanted = wanted.join(", ");
            return format!("no SMB on port {wanted} in {seen}; {busiest}; without --port every port is inspected");
        }
        let others = self.others();
        if !others.is_empty() {
            let named: Vec<&str> = others.iter().take(NAMED).map(|other| other.name.as_str()).collect();
            let advice = others.iter().find_map(|other| other.advice);
            let advice = advice.map_or_else(String::new, |advice| format!("; {advice}"));
            let seen = counted(packets, "packet", "packets");
            return format!("no SMB in {seen}, but {}{advice}", named.join(", "));
        }
        // The headers of Ethernet, IP and TCP alone take up to 74 bytes.
        let advice = match snapped_packets {
            0 => CAPTURING.to_owned(),
            n => format!("the snap length cut {} short, use one of 128 or more", counted(n, "packet", "packets")),
        };
        format!("no SMB: {seen}, none of them SMB; {busiest}; {advice}")
    }

    /// Returns recognised traffic: most packets first, and ports last, which only suggest a protocol.
    fn others(&self) -> Vec<OtherTraffic> {
        let analysis = &self.analysis;
        let spoken = analysis.foreign_traffic.iter().map(|traffic| OtherTraffic {
            name: format!(
                "{} on port {} ({}, {})",
                traffic.protocol,
                traffic.port,
                counted(traffic.connections, "connection", "connections"),
                counted(traffic.packets, "packet", "packets")
            ),
            packets: traffic.packets,
            advice: advice_for_connections(traffic.protocol),
        });
        let skipped = analysis.skipped.iter().filter_map(|skipped| {
            let advice = advice_for_packets(skipped.protocol)?;
            let name = format!("{} ({})", skipped.protocol, counted(skipped.packets, "packet", "packets"));
            Some(OtherTraffic { name, packets: skipped.packets, advice: Some(advice) })
        });
        let mut others: Vec<OtherTraffic> = spoken.chain(skipped).collect();
        others.sort_by_key(|other| Reverse(other.packets));
        let is_spoken = |port: u16| analysis.foreign_traffic.iter().any(|traffic| traffic.port == port);
        let by_port = analysis.busiest_ports.iter().filter(|(port, _)| !is_spoken(*port));
        others.extend(by_port.filter_map(|(port, packets)| {
            let (_, protocol) = PORTS.iter().find(|(known, _)| known == port)?;
            let packets_seen = counted(*packets, "packet", "packets");
            Some(OtherTraffic {
                name: format!("port {port}, usually {protocol} ({packets_seen})"),
                packets: *packets,
                advice: advice_for_connections(*protocol),
            })
        }));
        others
    }
}

fn advice_for_connections(protocol: ForeignProtocol) -> Option<&'static str> {
    Some(match protocol {
        ForeignProtocol::Nfs | ForeignProtocol::OncRpc => NFS,
        ForeignProtocol::Iscsi | ForeignProtocol::NvmeTcp => BLOCKS,
        ForeignProtocol::Afp => "smbscope reads only SMB; AFP: tshark -q -z afp,srt -r FILE",
        ForeignProtocol::WebDav => "files over WebDAV are HTTP; mount the share by SMB and capture port 445",
        ForeignProtocol::Iwarp => RDMA,
        ForeignProtocol::Tls => "if a proxy or VPN carries SMB in TLS, capture behind it",
        ForeignProtocol::Socks => "if the proxy passes SMB on, capture between the proxy and the server",
        ForeignProtocol::Http
        | ForeignProtocol::Ssh
        | ForeignProtocol::Vnc
        | ForeignProtocol::FtpOrSmtp
        | ForeignProtocol::Imap
        | ForeignProtocol::DceRpc => return None,
    })
}

fn advice_for_packets(protocol: SkippedProtocol) -> Option<&'static str> {
    Some(match protocol {
        SkippedProtocol::QuicPort(_) | SkippedProtocol::UdpPort(443) => QUIC,
        SkippedProtocol::UdpPort(4791) | SkippedProtocol::EtherType(0x8915) | SkippedProtocol::LinkType(247) => RDMA,
        SkippedProtocol::UdpPort(2049) => NFS,
        SkippedProtocol::EtherType(0x88a2 | 0x8906) => BLOCKS,
        SkippedProtocol::UdpPort(1194 | 4500 | 51820)
        | SkippedProtocol::IpProtocol(50)
        | SkippedProtocol::EtherType(0x88e5) => ENCRYPTED,
        _ => return None,
    })
}
