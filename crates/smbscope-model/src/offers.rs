//! Negotiation of a connection: what client and server offered, and the result (MS-SMB2 2.2.3, 2.2.4; MS-CIFS
//! 2.2.4.52, MS-SMB 2.2.4.5).
//!
//! Values that were not captured are absent: a connection older than the capture has no offers, a message truncated by
//! the snap length no algorithms. Connections with equal offers share them.

use crate::groups::{Dialect, Protocol};
use crate::named;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub use smbscope_wire::smb2::messages::negotiate::capabilities;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Offers {
    pub client: Option<Arc<ClientOffer>>,
    pub server: Option<Arc<ServerOffer>>,
}

/// Offer of a client. Combines an SMB1 NEGOTIATE with the SMB2 NEGOTIATE it led to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ClientOffer {
    /// Dialects in message order. The SMB1 wildcard (`SMB 2.???`) is 0x02ff.
    pub dialects: Vec<Dialect>,
    /// True if the first NEGOTIATE was SMB1: the client still speaks SMB1, or probes for a server that does.
    pub began_with_smb1: bool,
    pub signing: SigningOffer,
    /// SMB2 capabilities. Absent in SMB1, and for clients below SMB 3, whose field is reserved.
    pub capabilities: Option<Capabilities>,
    pub algorithms: AlgorithmOffer,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct ServerOffer {
    /// Chosen dialect. Absent if the server accepted none.
    pub dialect: Option<Dialect>,
    pub signing: SigningOffer,
    /// SMB2 capabilities. Absent in SMB1.
    pub capabilities: Option<Capabilities>,
    /// Maximum READ and WRITE size in bytes. Absent in SMB1.
    pub max_read_write: Option<(u32, u32)>,
    pub algorithms: AlgorithmOffer,
}

/// Ids of the algorithms of one side, preferred first (MS-SMB2 2.2.3.1.2, 2.2.3.1.7, 2.2.3.1.3). Absent if unknown;
/// empty if the side sent none or its dialect has none.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct AlgorithmOffer {
    pub ciphers: Option<Vec<u16>>,
    pub signing: Option<Vec<u16>>,
    pub compression: Option<Vec<u16>>,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum SigningOffer {
        #[default]
        Unknown = "unknown",
        Disabled = "disabled",
        Enabled = "enabled",
        Required = "required",
    }
}

impl SigningOffer {
    /// Combines the two SecurityMode bits, which both protocols have.
    pub fn from_bits(enabled: bool, required: bool) -> SigningOffer {
        match (required, enabled) {
            (true, _) => SigningOffer::Required,
            (_, true) => SigningOffer::Enabled,
            _ => SigningOffer::Disabled,
        }
    }
}

/// Bit mask of SMB2 capabilities (MS-SMB2 2.2.3, 2.2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Capabilities(pub u32);

impl Capabilities {
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

    pub fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Capabilities::KNOWN.into_iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| name)
    }
}

impl ClientOffer {
    /// Returns the newest numbered dialect. The wildcard says only that there are newer ones.
    pub fn best(&self) -> Option<Dialect> {
        let numbered = self.dialects.iter().filter(|dialect| **dialect != Dialect::SMB2_WILDCARD);
        numbered.max().or(self.dialects.first()).copied()
    }
}

impl ServerOffer {
    pub fn is_smb1(&self) -> bool {
        self.dialect.is_some_and(|dialect| dialect.protocol() == Protocol::Smb1)
    }
}

impl Offers {
    /// Returns true if both sides have a capability, false if one is known to lack it, and `None` if unknown.
    pub fn have(&self, bit: u32) -> Option<bool> {
        let client = self.client.as_ref().and_then(|offer| offer.capabilities).map(|known| known.has(bit));
        let server = self.server.as_ref().and_then(|offer| offer.capabilities).map(|known| known.has(bit));
        match (client, server) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }

    /// Returns the id of the algorithm for signatures in SMB 3.1.1: the server's choice, or AES-CMAC without one (MS-SMB2
    /// 3.2.5.2). `None` if it was not captured.
    pub fn signing_algorithm(&self) -> Option<u16> {
        let offered = self.client.as_ref().and_then(|client| client.algorithms.signing.as_deref());
        let chosen = self.server.as_ref().and_then(|server| server.algorithms.signing.as_deref());
        match (offered, chosen) {
            (_, Some([id])) => Some(*id),
            (Some([]), _) | (_, Some(_)) => Some(AES_CMAC),
            _ => None,
        }
    }

    /// Returns the final dialect. A wildcard is not final: it asks for another NEGOTIATE.
    pub fn chosen(&self) -> Option<Dialect> {
        self.server.as_ref()?.dialect.filter(|dialect| *dialect != Dialect::SMB2_WILDCARD)
    }
}

/// Ids of algorithms for signatures (MS-SMB2 2.2.3.1.7).
pub const HMAC_SHA256: u16 = 0;
pub const AES_CMAC: u16 = 1;
pub const AES_GMAC: u16 = 2;

pub fn cipher_name(id: u16) -> Option<&'static str> {
    ["AES-128-CCM", "AES-128-GCM", "AES-256-CCM", "AES-256-GCM"].get(usize::from(id).checked_sub(1)?).copied()
}

pub fn signing_algorithm_name(id: u16) -> Option<&'static str> {
    ["HMAC-SHA256", "AES-CMAC", "AES-GMAC"].get(usize::from(id)).copied()
}

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
    fn without_a_choice_messages_are_signed_with_aes_cmac() {
        let algorithms = |ids: &[u16]| AlgorithmOffer { signing: Some(ids.to_vec()), ..AlgorithmOffer::default() };
        let client =
            |ids: &[u16]| Some(Arc::new(ClientOffer { algorithms: algorithms(ids), ..ClientOffer::default() }));
        let server =
            |ids: &[u16]| Some(Arc::new(ServerOffer { algorithms: algorithms(ids), ..ServerOffer::default() }));
        let agreed = |client, server| Offers { client, server }.signing_algorithm();
        assert_eq!(agreed(client(&[AES_GMAC, AES_CMAC]), server(&[AES_GMAC])), Some(AES_GMAC));
        assert_eq!(agreed(client(&[AES_GMAC]), server(&[])), Some(AES_CMAC));
        assert_eq!([agreed(client(&[]), None), agreed(None, server(&[]))], [Some(AES_CMAC); 2]);
        assert_eq!([agreed(client(&[AES_GMAC]), None), agreed(None, None)], [None; 2]);
    }

    #[test]
    fn ids_have_the_names_of_the_specification() {
        // MS-SMB2 2.2.3.1.2, 2.2.3.1.7, 2.2.3.1.3.
        assert_eq!([0, 1, 4, 5].map(cipher_name), [None, Some("AES-128-CCM"), Some("AES-256-GCM"), None]);
        assert_eq!([0, 2, 3].map(signing_algorithm_name), [Some("HMAC-SHA256"), Some("AES-GMAC"), None]);
        assert_eq!([0, 1, 4, 5].map(compression_name), [None, Some("LZNT1"), Some("Pattern_V1"), Some("LZ4")]);
    }
}
