//! Offers of both sides, and SMB1 in use, in the JSON report.

use crate::Report;
use crate::offers::{Negotiation, negotiations};
use crate::smb1::{self, Smb1InUse};
use serde::Serialize;
use smbscope_model::offers::{AlgorithmOffer, cipher_name, compression_name, signing_algorithm_name};
use smbscope_model::{Capabilities, ClientOffer, Dialect, Offers, ServerOffer};
use std::collections::HashMap;

/// Addresses that are listed of each side of a negotiation.
const LISTED: usize = 100;

/// SMB1 in use: by whom, on which shares. At most 100 of each.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Smb1Usage {
    /// Connections that speak it; 0 where only commands without their connection's beginning show it.
    connections: u64,
    clients: Vec<String>,
    servers: Vec<String>,
    users: Vec<String>,
    shares: Vec<String>,
    /// All of it in a sentence.
    sentence: String,
}

impl Smb1Usage {
    pub(super) fn from_report(report: &Report) -> Option<Smb1Usage> {
        let found = Smb1InUse::from_report(report)?;
        let texts = |names: &mut dyn Iterator<Item = String>| names.take(smb1::LISTED).collect::<Vec<_>>();
        Some(Smb1Usage {
            connections: found.connections,
            clients: texts(&mut found.clients.iter().map(ToString::to_string)),
            servers: texts(&mut found.servers.iter().map(ToString::to_string)),
            users: texts(&mut found.users.iter().map(ToString::to_string)),
            shares: texts(&mut found.shares.iter().map(ToString::to_string)),
            sentence: found.sentence().replace('\u{a0}', " "),
        })
    }
}

/// What both sides of some connections offered.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Negotiation"))]
pub(super) struct NegotiationEntry {
    /// Connections on which both sides offered just this.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    connections: u64,
    /// IP addresses, at most 100.
    clients: Vec<String>,
    /// IP addresses with ports, at most 100.
    servers: Vec<String>,
    /// Null where its request was not captured.
    client: Option<ClientEntry>,
    /// Null where its response was not captured.
    server: Option<ServerEntry>,
    /// A feature each, with what came of it; none where neither side was captured.
    features: Vec<FeatureEntry>,
}

/// What a client offers.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ClientOffer"))]
struct ClientEntry {
    /// In the order of the message; `2.x` stands for any dialect of SMB2, still to be negotiated.
    dialects: Vec<String>,
    /// Its first message was an SMB1 NEGOTIATE.
    began_with_smb1: bool,
    /// `unknown`, `disabled`, `enabled` or `required`.
    signing: &'static str,
    /// Null of clients that do not say: those without SMB 3.
    capabilities: Option<Vec<&'static str>>,
    #[serde(flatten)]
    algorithms: AlgorithmsEntry,
}

/// What a server answers.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ServerOffer"))]
struct ServerEntry {
    /// Null where it accepted none.
    dialect: Option<String>,
    /// `unknown`, `disabled`, `enabled` or `required`.
    signing: &'static str,
    /// Null in SMB1.
    capabilities: Option<Vec<&'static str>>,
    /// Largest READ in bytes; null in SMB1.
    max_read: Option<u32>,
    /// Largest WRITE in bytes; null in SMB1.
    max_write: Option<u32>,
    #[serde(flatten)]
    algorithms: AlgorithmsEntry,
}

/// The algorithms that a side lists, the best first; of a server those that it chose. Null where the capture does not hold
/// them; empty where the side lists none, or its dialect has none.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Algorithms"))]
struct AlgorithmsEntry {
    ciphers: Option<Vec<String>>,
    signing_algorithms: Option<Vec<String>>,
    compression_algorithms: Option<Vec<String>>,
}

/// What came of a feature, and why it was no more.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Feature"))]
struct FeatureEntry {
    feature: &'static str,
    /// What the client says of it.
    client: String,
    /// What the server says of it.
    server: String,
    outcome: String,
}

/// All negotiations, and where that of a connection is among them.
pub(super) struct NegotiationIndex<'r> {
    pub(super) entries: Vec<NegotiationEntry>,
    places: HashMap<&'r Offers, usize>,
}

impl<'r> NegotiationIndex<'r> {
    pub(super) fn new(report: &'r Report) -> NegotiationIndex<'r> {
        let found = negotiations(report);
        NegotiationIndex {
            places: found.iter().enumerate().map(|(at, negotiation)| (negotiation.offers, at)).collect(),
            entries: found.iter().map(NegotiationEntry::new).collect(),
        }
    }

    /// The place of a connection's.
    pub(super) fn place(&self, offers: &Offers) -> Option<usize> {
        self.places.get(offers).copied()
    }
}

impl NegotiationEntry {
    fn new(negotiation: &Negotiation<'_>) -> NegotiationEntry {
        let Offers { client, server } = negotiation.offers;
        let features = negotiation.features().into_iter().map(|feature| FeatureEntry {
            feature: feature.feature,
            client: feature.client,
            server: feature.server,
            outcome: feature.outcome,
        });
        NegotiationEntry {
            connections: negotiation.connections,
            clients: negotiation.clients.iter().take(LISTED).map(ToString::to_string).collect(),
            servers: negotiation.servers.iter().take(LISTED).map(ToString::to_string).collect(),
            client: client.as_deref().map(ClientEntry::new),
            server: server.as_deref().map(ServerEntry::new),
            features: features.collect(),
        }
    }
}

impl ClientEntry {
    fn new(offer: &ClientOffer) -> ClientEntry {
        ClientEntry {
            dialects: offer.dialects.iter().map(Dialect::to_string).collect(),
            began_with_smb1: offer.began_with_smb1,
            signing: offer.signing.name(),
            capabilities: names(offer.capabilities),
            algorithms: AlgorithmsEntry::new(&offer.algorithms),
        }
    }
}

impl ServerEntry {
    fn new(offer: &ServerOffer) -> ServerEntry {
        ServerEntry {
            dialect: offer.dialect.as_ref().map(Dialect::to_string),
            signing: offer.signing.name(),
            capabilities: names(offer.capabilities),
            max_read: offer.max_read_write.map(|(read, _)| read),
            max_write: offer.max_read_write.map(|(_, write)| write),
            algorithms: AlgorithmsEntry::new(&offer.algorithms),
        }
    }
}

impl AlgorithmsEntry {
    fn new(algorithms: &AlgorithmOffer) -> AlgorithmsEntry {
        let listed = |ids: &Option<Vec<u16>>, name: fn(u16) -> Option<&'static str>| {
            let shown = |id: &u16| name(*id).map_or_else(|| format!("0x{id:04x}"), str::to_owned);
            ids.as_ref().map(|ids| ids.iter().map(shown).collect())
        };
        AlgorithmsEntry {
            ciphers: listed(&algorithms.ciphers, cipher_name),
            signing_algorithms: listed(&algorithms.signing, signing_algorithm_name),
            compression_algorithms: listed(&algorithms.compression, compression_name),
        }
    }
}

fn names(capabilities: Option<Capabilities>) -> Option<Vec<&'static str>> {
    capabilities.map(|capabilities| capabilities.names().collect())
}
