//! Negotiation: offers of both sides by feature, with the outcome and its reason.

use crate::Report;
use crate::format::{counted, visible_percent};
use serde::{Deserialize, Serialize};
use smbscope_model::offers::{capabilities, cipher_name, compression_name, signing_algorithm_name};
use smbscope_model::{ClientOffer, ConnectionSummary, Dialect, Offers, Protocol, ServerOffer, SigningOffer};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

const SMB_2_0_2: Dialect = Dialect::Smb2(0x0202);
const SMB_2_1: Dialect = Dialect::Smb2(0x0210);
const SMB_3_0: Dialect = Dialect::Smb2(0x0300);
const SMB_3_1_1: Dialect = Dialect::Smb2(0x0311);

const NOT_CAPTURED: &str = "not captured";
const AVAILABLE: &str = "available";

#[derive(Debug)]
pub(crate) struct Negotiation<'r> {
    pub(crate) offers: &'r Offers,
    pub(crate) connections: u64,
    pub(crate) clients: BTreeSet<IpAddr>,
    pub(crate) servers: BTreeSet<SocketAddr>,
    used: Used,
}

#[derive(Debug, Default, Clone, Copy)]
struct Used {
    signed: u64,
    messages: u64,
    encrypting: u64,
    compressing: u64,
}

/// Outcome of a feature, with the reason if it is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Feature {
    pub(crate) feature: Cow<'static, str>,
    /// Client's position.
    pub(crate) client: String,
    /// Server's position.
    pub(crate) server: String,
    pub(crate) outcome: String,
}

impl Feature {
    /// Returns true if both sides have the capability, and `None` if the negotiation was not captured completely.
    pub(crate) fn is_available(&self) -> Option<bool> {
        match self.outcome.as_str() {
            AVAILABLE => Some(true),
            outcome if outcome.starts_with("not available") || outcome.starts_with("not possible") => Some(false),
            _ => None,
        }
    }
}

pub(crate) fn negotiations(report: &Report) -> Vec<Negotiation<'_>> {
    let mut found: BTreeMap<&Offers, Negotiation<'_>> = BTreeMap::new();
    for connection in &report.connections {
        let negotiation = found.entry(&connection.offers).or_insert_with(|| Negotiation {
            offers: &connection.offers,
            connections: 0,
            clients: BTreeSet::new(),
            servers: BTreeSet::new(),
            used: Used::default(),
        });
        negotiation.add(connection);
    }
    let mut found: Vec<Negotiation<'_>> = found.into_values().collect();
    found.sort_by_key(|negotiation| std::cmp::Reverse(negotiation.connections));
    found
}

impl Negotiation<'_> {
    fn add(&mut self, connection: &ConnectionSummary) {
        self.connections += 1;
        self.clients.insert(connection.endpoints.client.ip());
        self.servers.insert(connection.endpoints.server);
        let used = &mut self.used;
        used.signed += connection.signed_messages;
        used.messages += connection.messages;
        used.encrypting += u64::from(connection.encrypted_frames > 0);
        used.compressing += u64::from(connection.compressed_frames > 0);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.offers.client.is_some() || self.offers.server.is_some()
    }

    pub(crate) fn features(&self) -> Vec<Feature> {
        if !self.is_known() {
            return Vec::new();
        }
        let offers = self.offers;
        let (client, server) = (offers.client.as_deref(), offers.server.as_deref());
        let mut features = vec![
            Feature {
                feature: "Dialect".into(),
                client: client.map_or_else(not_captured, dialects),
                server: server.map_or_else(not_captured, |server| match server.dialect {
                    Some(dialect) => dialect.to_string(),
                    None => "none of them".to_owned(),
                }),
                outcome: dialect_outcome(offers),
            },
            Feature {
                feature: "Signing".into(),
                client: client.map_or_else(not_captured, |client| signing(client.signing)),
                server: server.map_or_else(not_captured, |server| signing(server.signing)),
                outcome: self.signing_outcome(),
            },
        ];
        if server.is_some_and(ServerOffer::is_smb1) {
            return features;
        }
        features.push(Feature {
            feature: "Encryption".into(),
            client: client.map_or_else(not_captured, |client| listed(&client.algorithms.ciphers, cipher_name)),
            server: server.map_or_else(not_captured, |server| listed(&server.algorithms.ciphers, cipher_name)),
            outcome: self.encryption_outcome(),
        });
        if offers.chosen() == Some(SMB_3_1_1) {
            features.push(Feature {
                feature: "Signing algorithm".into(),
                client: client
                    .map_or_else(not_captured, |client| listed(&client.algorithms.signing, signing_algorithm_name)),
                server: server
                    .map_or_else(not_captured, |server| listed(&server.algorithms.signing, signing_algorithm_name)),
                outcome: signing_algorithm(offers),
            });
            features.push(Feature {
                feature: "Compression".into(),
                client: client
                    .map_or_else(not_captured, |client| listed(&client.algorithms.compression, compression_name)),
                server: server
                    .map_or_else(not_captured, |server| listed(&server.algorithms.compression, compression_name)),
                outcome: self.compression_outcome(),
            });
        }
        let flags = [
            ("Large MTU", capabilities::LARGE_MTU, SMB_2_1),
            ("Leasing", capabilities::LEASING, SMB_2_1),
            ("Directory leasing", capabilities::DIRECTORY_LEASING, SMB_3_0),
            ("Multichannel", capabilities::MULTI_CHANNEL, SMB_3_0),
            ("Persistent handles", capabilities::PERSISTENT_HANDLES, SMB_3_0),
        ];
        features.extend(flags.map(|(name, bit, since)| capability(offers, name, bit, since)));
        features
    }

    fn signing_outcome(&self) -> String {
        let side = |signing: Option<SigningOffer>| signing.unwrap_or_default();
        let client = side(self.offers.client.as_ref().map(|client| client.signing));
        let server = side(self.offers.server.as_ref().map(|server| server.signing));
        let rule = match (client, server) {
            (SigningOffer::Required, SigningOffer::Required) => "both sides require it",
            (SigningOffer::Required, _) => "the client requires it",
            (_, SigningOffer::Required) => "the server requires it",
            (SigningOffer::Unknown, _) => "the server does not require it",
            (_, SigningOffer::Unknown) => "the client does not require it",
            _ => "neither side requires it",
        };
        let rule = if (client, server) == (SigningOffer::Unknown, SigningOffer::Unknown) { NOT_CAPTURED } else { rule };
        match (self.used.signed, self.used.messages) {
            (0, _) => format!("{rule}; no message is signed"),
            (signed, all) if signed == all => format!("{rule}; every message is signed"),
            (signed, all) => format!("{rule}; {}% of messages are signed", visible_percent(signed, all)),
        }
    }

    fn encryption_outcome(&self) -> String {
        let Offers { client, server } = self.offers;
        let used = match self.used.encrypting {
            0 => ", and not used: neither a share nor a session asks for it".to_owned(),
            count if count == self.connections => ", and used".to_owned(),
            count => format!(", and used on {}", on(count, self.connections)),
        };
        let offered = client.as_ref().and_then(|client| client.algorithms.ciphers.as_deref());
        let chosen = server.as_ref().and_then(|server| server.algorithms.ciphers.as_deref());
        match self.offers.chosen() {
            None => NOT_CAPTURED.to_owned(),
            Some(dialect) if dialect < SMB_3_0 => {
                format!("not possible: {dialect} does not encrypt, SMB 3.0 and later do")
            }
            Some(SMB_3_1_1) => match (offered, chosen) {
                (_, Some([id])) if *id != 0 => format!("agreed on {}{used}", name_of(*id, cipher_name)),
                (Some([]), _) => "not possible: the client offers no cipher".to_owned(),
                (_, Some(_)) => {
                    "not possible: the server has no cipher in common with the client, or its encryption is switched off"
                        .to_owned()
                }
                (_, None) => NOT_CAPTURED.to_owned(),
            },
            Some(_) => match self.offers.have(capabilities::ENCRYPTION) {
                Some(true) => format!("agreed on AES-128-CCM{used}"),
                Some(false) => format!("not possible: {}", lacking(self.offers, capabilities::ENCRYPTION)),
                None => NOT_CAPTURED.to_owned(),
            },
        }
    }

    fn compression_outcome(&self) -> String {
        let Offers { client, server } = self.offers;
        let offered = client.as_ref().and_then(|client| client.algorithms.compression.as_deref());
        let chosen = server.as_ref().and_then(|server| server.algorithms.compression.as_deref());
        let used = match self.used.compressing {
            0 => ", and not used".to_owned(),
            count => format!(", and used on {}", on(count, self.connections)),
        };
        match (offered, chosen) {
            (_, Some(ids)) if ids.iter().any(|id| *id != 0) => {
                format!("agreed on {}{used}", names(ids, compression_name))
            }
            (Some([]), _) => "not possible: the client offers none".to_owned(),
            (_, Some(_)) => "not possible: the server chose none".to_owned(),
            (_, None) => NOT_CAPTURED.to_owned(),
        }
    }
}

/// Describes the negotiated dialect, and why it is not a newer one.
pub(crate) fn dialect_outcome(Offers { client, server }: &Offers) -> String {
    let best = client.as_deref().and_then(ClientOffer::best);
    let Some(server) = server else { return "the answer was not captured".to_owned() };
    let Some(chosen) = server.dialect else { return "no dialect in common".to_owned() };
    if chosen == Dialect::SMB2_WILDCARD {
        return "the second negotiation was not captured".to_owned();
    }
    let shown = |dialect: Dialect| match dialect.protocol() {
        Protocol::Smb1 => format!("SMB1 ({dialect})"),
        Protocol::Smb2 => dialect.to_string(),
    };
    match best {
        None => "what the client offers was not captured".to_owned(),
        Some(_) if chosen == SMB_3_1_1 => "the newest there is".to_owned(),
        Some(best) if chosen >= best && best == Dialect::SMB2_WILDCARD => "the client offers SMB2".to_owned(),
        Some(best) if chosen >= best => {
            format!("the newest that the client offers; the server may speak a newer one than {}", shown(chosen))
        }
        Some(best) => {
            let kept = if chosen.protocol() == Protocol::Smb1 { "SMB1" } else { "an older one" };
            format!(
                "the client offers up to {}: the server speaks no newer one than {}, or its settings keep it to {kept}",
                shown(best),
                shown(chosen)
            )
        }
    }
}

/// Describes briefly why the dialect is older than the client's best. None if it isn't.
pub(crate) fn held_back_by(offers: &Offers) -> Option<String> {
    let best = offers.client.as_deref()?.best()?;
    let chosen = offers.chosen()?;
    (chosen < best).then(|| format!("the client offers up to {best}, it is the server that does not speak a newer one"))
}

fn capability(offers: &Offers, name: &'static str, bit: u32, since: Dialect) -> Feature {
    let side = |known: Option<bool>| match known {
        Some(true) => "yes".to_owned(),
        Some(false) => "no".to_owned(),
        None => NOT_CAPTURED.to_owned(),
    };
    let client = offers.client.as_ref().map(|client| client.capabilities.map(|known| known.has(bit)));
    let server = offers.server.as_ref().and_then(|server| server.capabilities).map(|known| known.has(bit));
    let outcome = match offers.chosen() {
        None => NOT_CAPTURED.to_owned(),
        Some(dialect) if dialect < since => format!("not possible: {since} and later have it"),
        // Before SMB 3.0, clients don't send capabilities (MS-SMB2 2.2.3).
        Some(dialect) => match (client.flatten(), server) {
            (_, None) => NOT_CAPTURED.to_owned(),
            (Some(true), Some(true)) => AVAILABLE.to_owned(),
            (None, Some(true)) if dialect < SMB_3_0 => AVAILABLE.to_owned(),
            (None, Some(true)) => "the server offers it; what the client offers was not captured".to_owned(),
            _ => format!("not available: {}", lacking(offers, bit)),
        },
    };
    let client = match client {
        Some(None) => "does not say".to_owned(),
        known => side(known.flatten()),
    };
    Feature { feature: name.into(), client, server: side(server), outcome }
}

fn lacking(offers: &Offers, bit: u32) -> &'static str {
    let client = offers.client.as_ref().and_then(|client| client.capabilities).map(|known| known.has(bit));
    let server = offers.server.as_ref().and_then(|server| server.capabilities).map(|known| known.has(bit));
    match (client, server) {
        (Some(false), Some(false)) => "neither side offers it",
        (Some(false), _) => "the client does not offer it",
        _ => "the server does not offer it",
    }
}

fn signing_algorithm(offers: &Offers) -> String {
    let Some(agreed) = offers.signing_algorithm() else { return NOT_CAPTURED.to_owned() };
    let name = name_of(agreed, signing_algorithm_name);
    let offered = offers.client.as_ref().and_then(|client| client.algorithms.signing.as_deref());
    let chosen = offers.server.as_ref().and_then(|server| server.algorithms.signing.as_deref());
    match (offered, chosen) {
        (_, Some([_])) => format!("agreed on {name}"),
        (Some([]), _) => format!("{name}: the client offers no choice"),
        _ => format!("{name}: the server makes no choice"),
    }
}

fn dialects(client: &ClientOffer) -> String {
    let names: Vec<String> = client.dialects.iter().map(Dialect::to_string).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        // All dialects of SMB2 and 3, shortened to a range.
        _ if client.dialects == ALL_SMB2 => format!("{SMB_2_0_2} to {SMB_3_1_1}"),
        _ => names.join(", "),
    }
}

const ALL_SMB2: [Dialect; 5] = [SMB_2_0_2, SMB_2_1, SMB_3_0, Dialect::Smb2(0x0302), SMB_3_1_1];

fn signing(signing: SigningOffer) -> String {
    match signing {
        SigningOffer::Unknown => "does not say".to_owned(),
        SigningOffer::Enabled => "enabled, not required".to_owned(),
        known => known.name().to_owned(),
    }
}

fn listed(ids: &Option<Vec<u16>>, name: fn(u16) -> Option<&'static str>) -> String {
    match ids.as_deref() {
        None => NOT_CAPTURED.to_owned(),
        Some([] | [0]) if name(0).is_none() => "none".to_owned(),
        Some([]) => "none".to_owned(),
        Some(ids) => names(ids, name),
    }
}

fn names(ids: &[u16], name: fn(u16) -> Option<&'static str>) -> String {
    ids.iter().map(|id| name_of(*id, name)).collect::<Vec<_>>().join(", ")
}

fn name_of(id: u16, name: fn(u16) -> Option<&'static str>) -> String {
    name(id).map_or_else(|| format!("0x{id:04x}"), str::to_owned)
}

fn on(count: u64, all: u64) -> String {
    match (count, all) {
        (1, 1) => "the connection".to_owned(),
        _ => format!("{count} of {}", counted(all, "connection", "connections")),
    }
}

fn not_captured() -> String {
    NOT_CAPTURED.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_model::Capabilities;
    use smbscope_model::offers::AlgorithmOffer;
    use std::sync::Arc;

    fn client(dialects: &[u16], capabilities: Option<u32>) -> ClientOffer {
        ClientOffer {
            dialects: dialects.iter().map(|code| Dialect::Smb2(*code)).collect(),
            signing: SigningOffer::Enabled,
            capabilities: capabilities.map(Capabilities),
            algorithms: AlgorithmOffer { ciphers: Some(vec![2, 1]), signing: Some(vec![]), compression: Some(vec![]) },
            ..ClientOffer::default()
        }
    }

    fn server(dialect: u16, capabilities: u32, ciphers: &[u16]) -> ServerOffer {
        ServerOffer {
            dialect: Some(Dialect::Smb2(dialect)),
            signing: SigningOffer::Enabled,
            capabilities: Some(Capabilities(capabilities)),
            max_read_write: Some((1 << 20, 1 << 20)),
            algorithms: AlgorithmOffer {
                ciphers: Some(ciphers.to_vec()),
                signing: Some(vec![]),
                compression: Some(vec![]),
            },
        }
    }

    fn both(client: ClientOffer, server: ServerOffer) -> Offers {
        Offers { client: Some(Arc::new(client)), server: Some(Arc::new(server)) }
    }

    fn outcomes(offers: &Offers) -> BTreeMap<Cow<'static, str>, String> {
        let negotiation = Negotiation {
            offers,
            connections: 1,
            clients: BTreeSet::new(),
            servers: BTreeSet::new(),
            used: Used { messages: 10, ..Used::default() },
        };
        negotiation.features().into_iter().map(|feature| (feature.feature, feature.outcome)).collect()
    }

    const ALL: [u16; 5] = [0x0202, 0x0210, 0x0300, 0x0302, 0x0311];

    #[test]
    fn a_server_that_speaks_no_newer_dialect_is_why_an_old_one_was_chosen() {
        let offers = both(client(&ALL, Some(0x7f)), server(0x0210, 0x07, &[]));
        let outcomes = outcomes(&offers);
        let expected = "the client offers up to 3.1.1: the server speaks no newer one than 2.1, or its settings keep it to an \
                        older one";
        assert_eq!(outcomes["Dialect"], expected);
        assert_eq!(outcomes["Encryption"], "not possible: 2.1 does not encrypt, SMB 3.0 and later do");
        assert_eq!(outcomes["Large MTU"], "available");
        assert_eq!(outcomes["Multichannel"], "not possible: 3.0 and later have it");
        assert_eq!(outcomes["Signing"], "neither side requires it; no message is signed");
        assert!(held_back_by(&offers).is_some());
    }

    #[test]
    fn the_reason_names_the_side_that_lacks_something() {
        let offers = both(client(&ALL, Some(capabilities::LARGE_MTU)), server(0x0311, capabilities::LEASING, &[0]));
        let outcomes = outcomes(&offers);
        assert_eq!(outcomes["Dialect"], "the newest there is");
        let no_cipher =
            "not possible: the server has no cipher in common with the client, or its encryption is switched off";
        assert_eq!(outcomes["Encryption"], no_cipher);
        assert_eq!(outcomes["Large MTU"], "not available: the server does not offer it");
        assert_eq!(outcomes["Leasing"], "not available: the client does not offer it");
        assert_eq!(outcomes["Multichannel"], "not available: neither side offers it");
        assert_eq!(outcomes["Compression"], "not possible: the client offers none");
        assert_eq!(held_back_by(&offers), None);
    }

    #[test]
    fn a_cipher_that_nobody_asks_for_is_not_used() {
        let offers = both(client(&ALL, Some(0x7f)), server(0x0311, 0x7f, &[2]));
        let expected = "agreed on AES-128-GCM, and not used: neither a share nor a session asks for it";
        assert_eq!(outcomes(&offers)["Encryption"], expected);
    }

    #[test]
    fn what_was_not_captured_is_said_and_not_guessed() {
        let mut cut = client(&ALL, Some(0x7f));
        cut.algorithms = AlgorithmOffer::default();
        let no_answer = Offers { client: Some(Arc::new(cut)), server: None };
        let outcomes = outcomes(&no_answer);
        assert_eq!(outcomes["Dialect"], "the answer was not captured");
        assert_eq!([&outcomes["Encryption"], &outcomes["Large MTU"]], [NOT_CAPTURED; 2]);
        let no_request = Offers { client: None, server: Some(Arc::new(server(0x0302, 0x7f, &[]))) };
        let outcomes = super::tests::outcomes(&no_request);
        assert_eq!(outcomes["Dialect"], "what the client offers was not captured");
        assert_eq!(outcomes["Multichannel"], "the server offers it; what the client offers was not captured");
        let nothing = Offers::default();
        assert!(super::tests::outcomes(&nothing).is_empty());
    }
}
