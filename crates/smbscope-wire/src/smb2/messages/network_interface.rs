//! FSCTL_QUERY_NETWORK_INTERFACE_INFO (MS-SMB2 2.2.32.5): addresses at which a server can be reached, for multichannel.

use crate::bytes::{array_at, u16_at, u32_at, u64_at};
use std::net::IpAddr;

const FAMILY_IPV4: u16 = 0x0002;
const FAMILY_IPV6: u16 = 0x0017;

/// NETWORK_INTERFACE_INFO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkInterfaceInfo {
    pub index: u32,
    /// 1 receive side scaling, 2 RDMA.
    pub capability: u32,
    /// Bits per second.
    pub link_speed: u64,
    pub address: IpAddr,
}

/// Iterates over the IOCTL output, skipping addresses that are neither IPv4 nor IPv6.
pub fn interfaces(output: &[u8]) -> impl Iterator<Item = NetworkInterfaceInfo> {
    let mut rest = Some(output);
    std::iter::from_fn(move || {
        let entry = rest.filter(|entry| !entry.is_empty())?;
        let next = u32_at(entry, 0)? as usize;
        rest = (next != 0).then(|| entry.get(next..)).flatten();
        Some(parse(entry))
    })
    .flatten()
}

fn parse(entry: &[u8]) -> Option<NetworkInterfaceInfo> {
    // SOCKADDR_STORAGE: family, port, and the address at an offset that depends on the family.
    let address = match u16_at(entry, 24)? {
        FAMILY_IPV4 => IpAddr::from(array_at::<4>(entry, 28)?),
        FAMILY_IPV6 => IpAddr::from(array_at::<16>(entry, 32)?),
        _ => return None,
    };
    Some(NetworkInterfaceInfo {
        index: u32_at(entry, 4)?,
        capability: u32_at(entry, 8)?,
        link_speed: u64_at(entry, 16)?,
        address,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_are_read() {
        let mut output = vec![0; 304];
        output[0] = 152;
        output[4] = 2;
        output[16..24].copy_from_slice(&1_000_000_000u64.to_le_bytes());
        output[24] = 2;
        output[28..32].copy_from_slice(&[10, 0, 0, 1]);
        output[152 + 24] = 0x17;
        output[152 + 47] = 1;
        let read: Vec<NetworkInterfaceInfo> = interfaces(&output).collect();
        assert_eq!(read[0].address, IpAddr::from([10, 0, 0, 1]));
        assert_eq!((read[0].index, read[0].link_speed), (2, 1_000_000_000));
        assert_eq!(read[1].address, "::1".parse::<IpAddr>().unwrap());
        assert_eq!(interfaces(&output[..170]).count(), 1, "the second is cut off");
    }
}
