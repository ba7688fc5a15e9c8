//! Replacement of names and addresses by pseudonyms of the same length.

use crate::pseudonym::{Disguise, PseudonymKind};
use smbscope_wire::kept::NameOf;
use std::net::IpAddr;

pub(super) enum NameAnonymizer {
    Kept,
    Replaced(Box<Disguise>),
}

impl NameAnonymizer {
    pub(super) fn replace(&mut self, of: NameOf, unicode: bool, name: &mut [u8]) {
        let NameAnonymizer::Replaced(disguise) = self else { return };
        let mut units: Vec<u16> = match unicode {
            true => name.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect(),
            false => name.iter().map(|byte| u16::from(*byte)).collect(),
        };
        match of {
            NameOf::Path => disguise.path(&mut units),
            NameOf::Unc => disguise.unc(&mut units),
            NameOf::User => disguise.name(PseudonymKind::User, &mut units),
            NameOf::Domain => disguise.name(PseudonymKind::Domain, &mut units),
            NameOf::Host => disguise.name(PseudonymKind::Host, &mut units),
        }
        // An incomplete UTF-16 unit at the end becomes 0.
        name.fill(0);
        match unicode {
            true => name.chunks_exact_mut(2).zip(units).for_each(|(place, unit)| {
                place.copy_from_slice(&unit.to_le_bytes());
            }),
            false => name.iter_mut().zip(units).for_each(|(place, unit)| *place = unit.to_le_bytes()[0]),
        }
    }

    pub(super) fn address(&mut self, address: &mut [u8]) {
        let NameAnonymizer::Replaced(disguise) = self else { return };
        if let Ok(bytes) = <[u8; 4]>::try_from(&*address) {
            if let IpAddr::V4(other) = disguise.address(IpAddr::from(bytes)) {
                address.copy_from_slice(&other.octets());
            }
        } else if let Ok(bytes) = <[u8; 16]>::try_from(&*address) {
            if let IpAddr::V6(other) = disguise.address(IpAddr::from(bytes)) {
                address.copy_from_slice(&other.octets());
            }
        } else {
            // A truncated address would reveal the network.
            address.fill(0);
        }
    }

    pub(super) fn are_replaced(&self) -> bool {
        matches!(self, NameAnonymizer::Replaced(_))
    }
}
