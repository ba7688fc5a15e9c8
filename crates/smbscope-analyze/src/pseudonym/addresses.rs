//! Addresses in the place of addresses: one for one, and those of a network stay in a network.

use super::{Disguise, Key};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that are remembered; when there are more, all are forgotten.
const REMEMBERED_ADDRESSES_MAX: usize = 64 << 10;

impl Disguise {
    /// The address in the place of another one. Addresses that are the same everywhere stay.
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

fn ipv4(key: &Key, address: Ipv4Addr) -> Ipv4Addr {
    let is_common = |address: Ipv4Addr| {
        address.is_unspecified() || address.is_loopback() || address.is_multicast() || address.octets()[0] >= 240
    };
    if is_common(address) {
        return address;
    }
    let disguise = |address: Ipv4Addr| {
        let bits = bits(key, u128::from(address.to_bits()) << 96, 0, 32);
        Ipv4Addr::from_bits((bits >> 96) as u32)
    };
    let mut disguised = disguise(address);
    // What falls among those that stay goes on: that way each address has one of its own.
    while is_common(disguised) {
        disguised = disguise(disguised);
    }
    disguised
}

fn ipv6(key: &Key, address: Ipv6Addr) -> Ipv6Addr {
    if is_common(address) {
        return address;
    }
    // The prefix of link-local addresses stays.
    let from = if address.is_unicast_link_local() { 64 } else { 0 };
    let is_alike = |disguised: Ipv6Addr| {
        !is_common(disguised) && disguised.is_unicast_link_local() == address.is_unicast_link_local()
    };
    let mut disguised = Ipv6Addr::from_bits(bits(key, address.to_bits(), from, 128));
    while !is_alike(disguised) {
        disguised = Ipv6Addr::from_bits(bits(key, disguised.to_bits(), from, 128));
    }
    disguised
}

fn is_common(address: Ipv6Addr) -> bool {
    address.is_unspecified() || address.is_loopback() || address.is_multicast()
}

/// Flips each bit, or not, by a hash of the bits in front of it: two addresses agree up to the same bit as before
/// (J. Fan, J. Xu, M. Ammar, S. Moon: Prefix-preserving IP address anonymization, 2004).
fn bits(key: &Key, address: u128, from: u32, until: u32) -> u128 {
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
        Disguise::new(Key::new([7; 32]), true, true)
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
