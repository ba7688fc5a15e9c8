//! Negotiation offers and SMB1 usage in the JSON report.

use crate::Report;
use crate::offers::{Feature, Negotiation, negotiations};
use crate::totals::{SMB1_LISTED, Smb1InUse};
use serde::{Deserialize, Serialize};
use smbscope_model::offers::{AlgorithmOffer, cipher_name, compression_name, signing_algorithm_name};
use smbscope_model::{Capabilities, ClientOffer, Dialect, Offers, ServerOffer};
use std::collections::HashMap;

const LISTED: usize = 100;

/// Usage of SMB1. At most 100 entries per list.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Smb1Usage {
    /// Connections that use SMB1. 0 if there are only commands of connections whose start was not captured.
    connections: u64,
    clients: Vec<String>,
    servers: Vec<String>,
    users: Vec<String>,
    shares: Vec<String>,
    /// Summary in one sentence.
    sentence: String,
}

impl Smb1Usage {
    pub(super) fn from_report(report: &Report) -> Option<Smb1Usage> {
        let found = Smb1InUse::from_report(report)?;
        let texts = |names: &mut dyn Iterator<Item = String>| names.take(SMB1_LISTED).collect::<Vec<_>>();
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

/// Offers of both sides on some connections.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Negotiation"))]
pub(crate) struct NegotiationEntry {
    /// Connections with exactly these offers.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    connections: u64,
    /// IP addresses, at most 100.
    clients: Vec<String>,
    /// IP addresses with ports, at most 100.
    servers: Vec<String>,
    /// Client's offer. Null if the request was not captured.
    #[serde(skip_deserializing)]
    client: Option<ClientEntry>,
    /// Server's answer. Null if the response was not captured.
    pub(crate) server: Option<ServerEntry>,
    /// Features with their outcome. Empty if neither side was captured.
    pub(crate) features: Vec<Feature>,
}

/// Client's offer.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ClientOffer"))]
struct ClientEntry {
    /// Dialects in the order of the message. `2.x` stands for any SMB2 dialect, negotiated in a second step.
    dialects: Vec<String>,
    /// The first message was an SMB1 NEGOTIATE.
    began_with_smb1: bool,
    /// `unknown`, `disabled`, `enabled` or `required`.
    signing: &'static str,
    /// Capabilities. Null for clients without SMB 3, which don't send any.
    capabilities: Option<Vec<&'static str>>,
    #[serde(flatten)]
    algorithms: AlgorithmsEntry,
}

/// Server's answer.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "ServerOffer"))]
pub(crate) struct ServerEntry {
    /// Selected dialect. Null if the server accepted none.
    dialect: Option<String>,
    /// `unknown`, `disabled`, `enabled` or `required`.
    #[serde(skip_deserializing)]
    signing: &'static str,
    /// Capabilities. Null in SMB1.
    #[serde(skip_deserializing)]
    capabilities: Option<Vec<&'static str>>,
    /// Largest READ in bytes. Null in SMB1.
    pub(crate) max_read: Option<u32>,
    /// Largest WRITE in bytes. Null in SMB1.
    pub(crate) max_write: Option<u32>,
    #[serde(flatten)]
    pub(crate) algorithms: AlgorithmsEntry,
}

/// Algorithms offered by the client, preferred first, or selected by the server. Null if not captured. Empty if none is
/// offered, or the dialect has none.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Algorithms"))]
pub(crate) struct AlgorithmsEntry {
    pub(crate) ciphers: Option<Vec<String>>,
    pub(crate) signing_algorithms: Option<Vec<String>>,
    pub(crate) compression_algorithms: Option<Vec<String>>,
}

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

    pub(super) fn place(&self, offers: &Offers) -> Option<usize> {
        self.places.get(offers).copied()
    }
}

impl NegotiationEntry {
    fn new(negotiation: &Negotiation<'_>) -> NegotiationEntry {
        let Offers { client, server } = negotiation.offers;
        NegotiationEntry {
            connections: negotiation.connections,
            clients: negotiation.clients.iter().take(LISTED).map(ToString::to_string).collect(),
            servers: negotiation.servers.iter().take(LISTED).map(ToString::to_string).collect(),
            client: client.as_deref().map(ClientEntry::new),
            server: server.as_deref().map(ServerEntry::new),
            features: negotiation.features(),
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
