//! What both sides of a connection offered when they negotiated, and what came of it (MS-SMB2 2.2.3, 2.2.4; MS-CIFS
//! 2.2.4.52, MS-SMB 2.2.4.5).
//!
//! What the capture does not hold is absent: a connection that began before it has no offers, and a message that the snap
//! length cut has no algorithms. Connections with the same offer share it.

use crate::command::{Dialect, Protocol};
use crate::named;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use smbscope_wire::smb2::messages::negotiate::capabilities;

/// Both sides of a negotiation, as far as the capture holds them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Offers {
    /// What the client offered.
    pub client: Option<Arc<ClientOffer>>,
    /// What the server answered.
    pub server: Option<Arc<ServerOffer>>,
}

/// What a client offered: of an SMB1 NEGOTIATE that led to an SMB2 one, that of both together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ClientOffer {
    /// The dialects, in the order of the message. A wildcard of SMB1 (`SMB 2.???`) is 0x02ff.
    pub dialects: Vec<Dialect>,
    /// Whether it began with SMB1, as a client does that still speaks it or looks for a server that does.
    pub began_with_smb1: bool,
    /// Signing.
    pub signing: SigningOffer,
    /// SMB2 capabilities; absent in SMB1, and of clients that speak no SMB 3, whose field is reserved.
    pub capabilities: Option<Capabilities>,
    /// The algorithms of 3.1.1.
    pub algorithms: AlgorithmOffer,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ServerOffer {
    /// The dialect that it chose; absent where none of those offered was acceptable.
    pub dialect: Option<Dialect>,
    /// Signing.
    pub signing: SigningOffer,
    /// SMB2 capabilities; absent in SMB1.
    pub capabilities: Option<Capabilities>,
    /// Largest READ and WRITE in bytes; absent in SMB1.
    pub max_read_write: Option<(u32, u32)>,
    /// What it chose of the algorithms of 3.1.1.
    pub algorithms: AlgorithmOffer,
}

/// The algorithms that a side lists by their ids, the best first. Absent where they are not known; empty where the side
/// sent none, or its dialect has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct AlgorithmOffer {
    /// Encryption (MS-SMB2 2.2.3.1.2).
    pub ciphers: Option<Vec<u16>>,
    /// Signing (2.2.3.1.7).
    pub signing: Option<Vec<u16>>,
    /// Compression (2.2.3.1.3).
    pub compression: Option<Vec<u16>>,
}

named! {
    /// What a side says of signatures.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum SigningOffer {
        /// The capture does not hold it.
        #[default]
        Unknown = "unknown",
        /// It does not sign.
        Disabled = "disabled",
        /// It can sign.
        Enabled = "enabled",
        /// It insists on signatures.
        Required = "required",
    }
}

impl SigningOffer {
    /// From the two bits of either protocol.
    pub fn from_bits(enabled: bool, required: bool) -> SigningOffer {
        match (required, enabled) {
            (true, _) => SigningOffer::Required,
            (_, true) => SigningOffer::Enabled,
            _ => SigningOffer::Disabled,
        }
    }
}

/// The capabilities of SMB2 (MS-SMB2 2.2.3, 2.2.4), a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// Those that have a name, by their bits.
    pub const KNOWN: [(u32, &'static str); 8] = [
        (capabilities::DFS, "DFS"),
        (capabilities::LEASING, "leasing"),
        (capabilities::LARGE_MTU, "large MTU"),
        (capabilities::MULTI_CHANNEL, "multichannel"),
        (capabilities::PERSISTENT_HANDLES, "persistent handles"),
        (capabilities::DIRECTORY_LEASING, "directory leasing"),
        (capabilities::ENCRYPTION, "encryption"),
        (0x0000_0080, "notifications"),
    ];

    /// Whether a bit is set.
    pub fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    /// The names of those that are set, in the order of their bits.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Capabilities::KNOWN.into_iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| name)
    }
}

impl ClientOffer {
    /// The best dialect that it offers by number: a wildcard says only that there are better ones.
    pub fn best(&self) -> Option<Dialect> {
        let numbered = self.dialects.iter().filter(|dialect| **dialect != Dialect::SMB2_WILDCARD);
        numbered.max().or(self.dialects.first()).copied()
    }
}

impl ServerOffer {
    /// Whether the server chose SMB1.
    pub fn is_smb1(&self) -> bool {
        self.dialect.is_some_and(|dialect| dialect.protocol() == Protocol::Smb1)
    }
}

impl Offers {
    /// A capability of both sides, of one that is known not to have it, or unknown.
    pub fn have(&self, bit: u32) -> Option<bool> {
        let client = self.client.as_ref().and_then(|offer| offer.capabilities).map(|known| known.has(bit));
        let server = self.server.as_ref().and_then(|offer| offer.capabilities).map(|known| known.has(bit));
        match (client, server) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }

    /// The dialect that the server chose in the end: a wildcard asks for another NEGOTIATE.
    pub fn chosen(&self) -> Option<Dialect> {
        self.server.as_ref()?.dialect.filter(|dialect| *dialect != Dialect::SMB2_WILDCARD)
    }
}

/// The usual name of an encryption algorithm.
pub fn cipher_name(id: u16) -> Option<&'static str> {
    ["AES-128-CCM", "AES-128-GCM", "AES-256-CCM", "AES-256-GCM"].get(usize::from(id).checked_sub(1)?).copied()
}

/// The usual name of a signing algorithm.
pub fn signing_algorithm_name(id: u16) -> Option<&'static str> {
    ["HMAC-SHA256", "AES-CMAC", "AES-GMAC"].get(usize::from(id)).copied()
}

/// The usual name of a compression algorithm; 0 stands for none.
pub fn compression_name(id: u16) -> Option<&'static str> {
    ["LZNT1", "LZ77", "LZ77+Huffman", "Pattern_V1", "LZ4"].get(usize::from(id).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_dialect_is_the_newest_with_a_number() {
        let offer = |dialects: &[Dialect]| ClientOffer { dialects: dialects.to_vec(), ..ClientOffer::default() }.best();
        let (v2_0_2, v3_1_1) = (Dialect::Smb2(0x0202), Dialect::Smb2(0x0311));
        assert_eq!(offer(&[Dialect::NtLm012, v2_0_2, Dialect::SMB2_WILDCARD]), Some(v2_0_2));
        assert_eq!(offer(&[v3_1_1, v2_0_2]), Some(v3_1_1));
        assert_eq!(offer(&[Dialect::SMB2_WILDCARD]), Some(Dialect::SMB2_WILDCARD));
        assert_eq!(offer(&[]), None);
    }

    #[test]
    fn a_capability_needs_both_sides_and_one_is_enough_to_refuse_it() {
        let side = |bits: Option<u32>| bits.map(Capabilities);
        let offers = |client: Option<u32>, server: Option<u32>| Offers {
            client: Some(Arc::new(ClientOffer { capabilities: side(client), ..ClientOffer::default() })),
            server: Some(Arc::new(ServerOffer { capabilities: side(server), ..ServerOffer::default() })),
        };
        let large = capabilities::LARGE_MTU;
        let have = |client, server| offers(client, server).have(large);
        assert_eq!([have(Some(large), Some(large)), have(Some(large), None)], [Some(true), None]);
        assert_eq!([have(Some(large), Some(0)), have(None, Some(0))], [Some(false); 2]);
        assert_eq!(Offers::default().have(large), None);
    }

    #[test]
    fn ids_have_the_names_of_the_specification() {
        // MS-SMB2 2.2.3.1.2, 2.2.3.1.7, 2.2.3.1.3.
        assert_eq!([0, 1, 4, 5].map(cipher_name), [None, Some("AES-128-CCM"), Some("AES-256-GCM"), None]);
        assert_eq!([0, 2, 3].map(signing_algorithm_name), [Some("HMAC-SHA256"), Some("AES-GMAC"), None]);
        assert_eq!([0, 1, 4, 5].map(compression_name), [None, Some("LZNT1"), Some("Pattern_V1"), Some("LZ4")]);
    }
}
