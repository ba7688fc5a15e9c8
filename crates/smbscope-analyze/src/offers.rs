//! Negotiated offers of client and server in either protocol. Each distinct offer is stored once.

use crate::content::dialect_named;
use ahash::RandomState;
use smbscope_model::offers::AlgorithmOffer;
use smbscope_model::{Capabilities, ClientOffer, Dialect, ServerOffer, SigningOffer};
use smbscope_wire::smb2::messages::negotiate::security_mode;
use smbscope_wire::{smb1, smb2};
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// Distinct offers of a shard: `evicted_names`. Clients and servers each; real traffic has a few.
const MAX_OFFERS: usize = 256;
/// Dialects named per client.
const MAX_OFFERED_DIALECTS: usize = 24;

#[derive(Debug, Clone, Default)]
pub(crate) struct OfferPool {
    clients: HashSet<Arc<ClientOffer>, RandomState>,
    servers: HashSet<Arc<ServerOffer>, RandomState>,
}

impl OfferPool {
    pub(crate) fn client(&mut self, offer: ClientOffer) -> Option<Arc<ClientOffer>> {
        share(&mut self.clients, offer)
    }

    pub(crate) fn server(&mut self, offer: ServerOffer) -> Option<Arc<ServerOffer>> {
        share(&mut self.servers, offer)
    }
}

fn share<T: Hash + Eq>(known: &mut HashSet<Arc<T>, RandomState>, offer: T) -> Option<Arc<T>> {
    if let Some(known) = known.get(&offer) {
        return Some(Arc::clone(known));
    }
    if known.len() >= MAX_OFFERS {
        return None;
    }
    let offer = Arc::new(offer);
    known.insert(Arc::clone(&offer));
    Some(offer)
}

/// Converts an SMB1 NEGOTIATE. The signing flags of its header are ignored: Windows sets them regardless of its policy.
pub(crate) fn smb1_client(names: &[String]) -> ClientOffer {
    let mut dialects = Vec::new();
    names.iter().for_each(|name| add(&mut dialects, dialect_named(name)));
    let none = || Some(Vec::new());
    let algorithms = AlgorithmOffer { ciphers: none(), signing: none(), compression: none() };
    ClientOffer { dialects, began_with_smb1: true, algorithms, ..ClientOffer::default() }
}

pub(crate) fn smb1_server(answer: &smb1::Smb1NegotiateResult, dialect: Option<Dialect>) -> ServerOffer {
    use smb1::messages::security_mode::{SIGNATURES_ENABLED, SIGNATURES_REQUIRED};
    let signing = answer.policy.map_or(SigningOffer::Unknown, |(mode, _)| {
        SigningOffer::from_bits(mode & SIGNATURES_ENABLED != 0, mode & SIGNATURES_REQUIRED != 0)
    });
    let none = || Some(Vec::new());
    let algorithms = AlgorithmOffer { ciphers: none(), signing: none(), compression: none() };
    ServerOffer { dialect, signing, algorithms, ..ServerOffer::default() }
}

pub(crate) fn smb2_client(offer: &smb2::Smb2ClientOffer, before: Option<&ClientOffer>) -> ClientOffer {
    let before = before.filter(|before| before.began_with_smb1);
    let mut dialects = Vec::new();
    let of_smb1 = before.into_iter().flat_map(|before| before.dialects.iter().copied());
    let of_smb1 = of_smb1.filter(|dialect| *dialect != Dialect::SMB2_WILDCARD);
    of_smb1.chain(offer.dialects.iter().map(|code| Dialect::Smb2(*code))).for_each(|one| add(&mut dialects, one));
    // MS-SMB2 §2.2.3: the field is reserved if the client does not support SMB 3.
    let speaks_smb3 = offer.dialects.iter().any(|code| (0x0300..0x0400).contains(code));
    ClientOffer {
        dialects,
        began_with_smb1: before.is_some(),
        signing: signing(offer.security_mode),
        capabilities: speaks_smb3.then_some(Capabilities(offer.capabilities)),
        algorithms: algorithms(&offer.algorithms),
    }
}

pub(crate) fn smb2_server(answer: &smb2::Smb2ServerOffer) -> ServerOffer {
    ServerOffer {
        dialect: Some(Dialect::Smb2(answer.dialect)),
        signing: signing(answer.security_mode),
        capabilities: Some(Capabilities(answer.capabilities)),
        max_read_write: Some((answer.max_read_size, answer.max_write_size)),
        algorithms: algorithms(&answer.algorithms),
    }
}

fn add(dialects: &mut Vec<Dialect>, dialect: Dialect) {
    if dialects.len() < MAX_OFFERED_DIALECTS && !dialects.contains(&dialect) {
        dialects.push(dialect);
    }
}

fn signing(mode: u16) -> SigningOffer {
    SigningOffer::from_bits(mode & security_mode::SIGNING_ENABLED != 0, mode & security_mode::SIGNING_REQUIRED != 0)
}

fn algorithms(listed: &smb2::Smb2AlgorithmIds) -> AlgorithmOffer {
    let smb2::Smb2AlgorithmIds { ciphers, signing, compression } = listed.clone();
    AlgorithmOffer { ciphers, signing, compression }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_offers_are_kept_once_and_too_many_different_ones_not_at_all() {
        let mut pool = OfferPool::default();
        let offer = |code| ClientOffer { dialects: vec![Dialect::Smb2(code)], ..ClientOffer::default() };
        let first = pool.client(offer(0)).expect("there is room");
        assert!(Arc::ptr_eq(&first, &pool.client(offer(0)).expect("it is known")));
        let kept = (0..1000).filter(|code| pool.client(offer(*code)).is_some()).count();
        assert_eq!(kept, MAX_OFFERS);
        assert!(pool.client(offer(0)).is_some(), "what is known stays");
    }
}
