//! Anonymises link, IP, TCP and tunnel headers.

use super::names::NameAnonymizer;
use smbscope_capture::Packet;
use smbscope_capture::decode::Outline;

const IPV4_CHECKSUM: usize = 10;

/// Returns the headers of `packet`, its first `length` bytes. If names are replaced, keeps only the fields that the
/// decoder reads, with replaced addresses. TCP and UDP checksums are dropped, because they cover addresses and would
/// help to guess them.
pub(super) fn copy(packet: &Packet<'_>, length: usize, names: &mut NameAnonymizer) -> Vec<u8> {
    if !names.are_replaced() {
        return packet.data[..length].to_vec();
    }
    let mut headers = Outline::understood(packet, length);
    headers.addresses.into_iter().for_each(|place| names.address(&mut headers.bytes[place]));
    for place in headers.ipv4_headers {
        let header = &mut headers.bytes[place];
        let checksum = checksum(header);
        header[IPV4_CHECKSUM..IPV4_CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    headers.bytes
}

/// Computes the IPv4 header checksum; the checksum field must be 0 (RFC 1071).
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_header_fits_its_new_addresses() {
        // Example from the Wikipedia page on IPv4 header checksums: 45 00 00 73 … has the checksum b861.
        let header = [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(checksum(&header), 0xb861);
    }
}
