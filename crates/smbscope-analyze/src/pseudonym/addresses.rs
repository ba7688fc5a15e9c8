//! Pseudonyms of addresses: a one-to-one mapping that preserves common prefixes.

use super::{Disguise, PseudonymKey};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const REMEMBERED_ADDRESSES_MAX: usize = 64 << 10;

impl Disguise {
    /// Returns the pseudonym of an address. Addresses with a fixed meaning are unchanged.
    pub fn address(&mut self, address: IpAddr) -> IpAddr {
        if let Some(known) = self.addresses.get(&address) {
            return *known;
        }
        let disguised = match address {
            IpAddr::V4(address) => IpAddr::V4(ipv4(self.key(), address)),
            IpAddr::V6(address) => IpAddr::V6(ipv6(self.key(), address)),
        };
        if self.addresses.len() >= REMEMBERED_ADDRESSES_MAX {
            self.addresses.clear();
        }
        self.addresses.insert(address, disguised);
        disguised
    }
}

/// Length of the prefix that marks an IPv4 multicast address (RFC 5771).
const IPV4_MULTICAST: u32 = 4;
/// Length of an IPv6 multicast prefix with flags and scope (RFC 4291 §2.7), and of the prefix before the host part of a
/// solicited-node address (§2.7.1).
const IPV6_MULTICAST: u32 = 16;
const SOLICITED_NODE: u32 = 104;
const LINK_LOCAL: u32 = 64;

fn ipv4(key: &PseudonymKey, address: Ipv4Addr) -> Ipv4Addr {
    // Assigned groups (224.0.0.0/24 and 224.0.1.0/24, RFC 5771) identify a protocol, not a host.
    let is_common = |address: Ipv4Addr| {
        let is_assigned = matches!(address.octets(), [224, 0, 0 | 1, _]);
        address.is_unspecified() || address.is_loopback() || is_assigned || address.is_broadcast()
    };
    if is_common(address) {
        return address;
    }
    let from = if address.is_multicast() { IPV4_MULTICAST } else { 0 };
    let disguise = |address: Ipv4Addr| {
        let bits = bits(key, u128::from(address.to_bits()) << 96, from, 32);
        Ipv4Addr::from_bits((bits >> 96) as u32)
    };
    let is_alike = |other: Ipv4Addr| !is_common(other) && other.is_multicast() == address.is_multicast();
    let mut disguised = disguise(address);
    // Cycle walking: repeat until the result is of the same kind, which keeps the mapping one-to-one.
    while !is_alike(disguised) {
        disguised = disguise(disguised);
    }
    disguised
}

fn ipv6(key: &PseudonymKey, address: Ipv6Addr) -> Ipv6Addr {
    let from = kept_bits(address);
    if from == 128 {
        return address;
    }
    let mut disguised = Ipv6Addr::from_bits(bits(key, address.to_bits(), from, 128));
    while kept_bits(disguised) != from {
        disguised = Ipv6Addr::from_bits(bits(key, disguised.to_bits(), from, 128));
    }
    disguised
}

/// Returns the length of the prefix that describes the kind of address and not its owner.
fn kept_bits(address: Ipv6Addr) -> u32 {
    match address.segments() {
        _ if address.is_unspecified() || address.is_loopback() => 128,
        [0xff02, 0, 0, 0, 0, 1, 0xff00..=0xffff, _] => SOLICITED_NODE,
        // Permanently assigned groups: flags are 0, and the group is a small number.
        [0xff00..=0xff0f, 0, 0, 0, 0, 0, 0 | 1, _] => 128,
        [0xff00..=0xffff, ..] => IPV6_MULTICAST,
        _ if address.is_unicast_link_local() => LINK_LOCAL,
        _ => 0,
    }
}

/// Flips each bit depending on a hash of the bits before it, so that two addresses share a prefix of the same length as
/// before (J. Fan, J. Xu, M. Ammar, S. Moon: Prefix-preserving IP address anonymization, 2004).
fn bits(key: &PseudonymKey, address: u128, from: u32, until: u32) -> u128 {
    let family = [until as u8];
    (from..until).fold(address, |disguised, bit| {
        let prefix = if bit == 0 { 0 } else { address >> (128 - bit) };
        let hash = key.digest(&[b"address", &family, &[bit as u8], &prefix.to_le_bytes()]);
        disguised ^ u128::from(hash[0] & 1) << (127 - bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disguise() -> Disguise {
        Disguise::new(PseudonymKey::new([7; 32]), true, true)
    }

    #[test]
    fn addresses_of_a_network_stay_together_and_no_two_become_one() {
        let mut names = disguise();
        let network: Vec<IpAddr> = (0..=255).map(|host| names.address(IpAddr::from([10, 1, 2, host]))).collect();
        let prefix = |address: &IpAddr| match address {
            IpAddr::V4(address) => address.octets()[..3].to_vec(),
            IpAddr::V6(_) => Vec::new(),
        };
        assert!(network.iter().all(|address| prefix(address) == prefix(&network[0])));
        let distinct: std::collections::BTreeSet<&IpAddr> = network.iter().collect();
        assert_eq!(distinct.len(), 256);
        assert_ne!(prefix(&network[0]), [10, 1, 2]);
    }

    #[test]
    fn multicast_addresses_that_hold_those_of_hosts_or_sites_are_hidden() {
        let mut names = disguise();
        // Solicited node (RFC 4291 §2.7.1), by a prefix of unicast addresses (RFC 3306), by an AS number (RFC 3180), of
        // an organisation (RFC 2365), and one of 240.0.0.0/4, which some sites use.
        for (address, kept) in [
            ("ff02::1:ff0a:b0c1", "ff02::1:ff"),
            ("ff3e:30:2001:db8:77::1", "ff3e:"),
            ("233.252.18.77", ""),
            ("239.18.77.3", ""),
            ("241.18.77.3", ""),
        ] {
            let address: IpAddr = address.parse().unwrap();
            let disguised = names.address(address);
            assert_ne!(disguised, address);
            assert_eq!(disguised.is_multicast(), address.is_multicast(), "{disguised}");
            assert!(disguised.to_string().starts_with(kept), "{disguised}");
        }
    }

    #[test]
    fn what_is_the_same_everywhere_stays() {
        let mut names = disguise();
        for address in ["127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.251", "::1", "ff02::fb"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(names.address(address), address);
        }
        let local: IpAddr = "fe80::1".parse().unwrap();
        let IpAddr::V6(disguised) = names.address(local) else { panic!() };
        assert!(disguised.is_unicast_link_local() && IpAddr::V6(disguised) != local);
    }
}
