//! IOCTL, and the inputs and outputs of the control codes that the client uses.

/// IOCTL (MS-SMB2 2.2.31, 2.2.32).
pub mod ioctl {
    use crate::kept::RetainedRanges;
    use crate::names::Fsctl;
    use crate::smb2::messages::network_interface::{self, interfaces};
    use crate::smb2::view::{HEAD, reach};
    use crate::smb2::{FileReference, Smb2Header, Smb2Response};

    message! {
        request Request<'a>: IOCTL, 57 {
            code: Fsctl = 4,
            /// [`FileReference::NONE`] for codes without a file.
            file: FileReference = 8,
            max_output: u32 = 44,
            flags: u32 = 48,
        } with {
            input: &'a [u8] = [u32 @ 24, u32 @ 28, optional],
        }
        target Ioctl { file, code } within HEAD
        sends input
        expects max_output
    }

    impl<'a> Request<'a> {
        /// SMB2_0_IOCTL_IS_FSCTL.
        pub const IS_FSCTL: u32 = 1;

        pub fn new(code: Fsctl, file: FileReference, input: &'a [u8], max_output: u32) -> Request<'a> {
            Request { code, file, max_output, flags: Self::IS_FSCTL, input }
        }
    }

    message! {
        response Response<'a>: IOCTL, 49 {
            code: Fsctl = 4,
            file: FileReference = 8,
        } with {
            /// Empty for all codes used here.
            input: &'a [u8] = [u32 @ 24, u32 @ 28],
            output: &'a [u8] = [u32 @ 32, u32 @ 36],
        }
        impl {
            fn view(m: &[u8]) -> Option<Smb2Response> {
                let (start, length) = listed_interfaces(m)?;
                let output = &m[start.min(m.len())..start.saturating_add(length).min(m.len())];
                Some(Smb2Response::Interfaces(interfaces(output).collect()))
            }

            fn needed(prefix: &[u8]) -> usize {
                reach(listed_interfaces(prefix), Self::END)
            }

            fn retain(m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
                kept.field(Smb2Header::LENGTH..Self::END);
                network_interface::retain(listed_interfaces(m)?, m, kept)
            }
        }
    }

    /// Limit for a parsed list: 64 interfaces of 152 bytes (2.2.32.5.1).
    const MAX_INTERFACE_LIST: usize = 10 * 1024;

    /// Returns offset and length of the interface list in a response.
    fn listed_interfaces(message: &[u8]) -> Option<(usize, usize)> {
        if Response::code(message)? != Fsctl::QUERY_NETWORK_INTERFACE_INFO {
            return None;
        }
        Response::output(message).filter(|(start, length)| start.saturating_add(*length) <= MAX_INTERFACE_LIST)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::smb2::messages::tests::{request, response};
        use crate::smb2::{self, Smb2Command};

        #[test]
        fn a_code_without_a_file_has_all_ones() {
            let code = Fsctl::QUERY_NETWORK_INTERFACE_INFO;
            let message = request(&Request::new(code, FileReference::NONE, &[], 0x1_0000));
            assert_eq!(message[64..72], [57, 0, 0, 0, 0xfc, 1, 0x14, 0]);
            assert_eq!(message[72..88], [0xff; 16]);
            assert_eq!(message[108..116], [0, 0, 1, 0, 1, 0, 0, 0]);
            assert_eq!(message.len(), 64 + 57);
            let read = smb2::Smb2Request::parse(Smb2Command::IOCTL, &message);
            assert_eq!(read, smb2::Smb2Request::Ioctl { file: FileReference::NONE, code });
        }

        #[test]
        fn the_output_is_where_its_offset_says() {
            let mut message = response(Smb2Command::IOCTL);
            message.extend([49, 0, 0, 0, 4, 2, 0x14, 0]);
            message.extend([0xff; 16]);
            message.extend([112, 0, 0, 0, 0, 0, 0, 0, 112, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            message.extend(b"ok");
            let (code, file) = (Fsctl::VALIDATE_NEGOTIATE_INFO, FileReference::NONE);
            let expected = Response { code, file, input: b"", output: b"ok" };
            assert_eq!(Response::parse(&message), Some(expected));
            assert_eq!(Response::parse(&message[..113]), None);
        }
    }
}

/// FSCTL_VALIDATE_NEGOTIATE_INFO (MS-SMB2 2.2.31.4, 2.2.32.6): repeats the negotiation in a signed exchange to detect
/// tampering.
pub mod validate_negotiate {
    use crate::codec::{FixedSizeField, List, Put, counted, put_counted};

    /// Fields of the client's NEGOTIATE request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ValidateNegotiateRequest<'a> {
        pub capabilities: u32,
        pub guid: [u8; 16],
        pub security_mode: u16,
        pub dialects: List<'a, u16>,
    }

    impl<'a> ValidateNegotiateRequest<'a> {
        pub fn emit(&self, out: &mut Vec<u8>) {
            out.put(self.capabilities);
            out.put(self.guid);
            out.put(self.security_mode);
            put_counted(self.dialects, out);
        }

        pub fn parse(input: &'a [u8]) -> Option<ValidateNegotiateRequest<'a>> {
            Some(ValidateNegotiateRequest {
                capabilities: FixedSizeField::at(input, 0)?,
                guid: FixedSizeField::at(input, 4)?,
                security_mode: FixedSizeField::at(input, 20)?,
                dialects: counted(input, 22)?,
            })
        }
    }

    /// Fields of the server's NEGOTIATE response.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ValidateNegotiateResponse {
        pub capabilities: u32,
        pub guid: [u8; 16],
        pub security_mode: u16,
        pub dialect: u16,
    }

    impl ValidateNegotiateResponse {
        pub const LENGTH: u32 = 24;

        pub fn parse(output: &[u8]) -> Option<ValidateNegotiateResponse> {
            Some(ValidateNegotiateResponse {
                capabilities: FixedSizeField::at(output, 0)?,
                guid: FixedSizeField::at(output, 4)?,
                security_mode: FixedSizeField::at(output, 20)?,
                dialect: FixedSizeField::at(output, 22)?,
            })
        }

        pub fn emit(&self, out: &mut Vec<u8>) {
            out.put(self.capabilities);
            out.put(self.guid);
            out.put(self.security_mode);
            out.put(self.dialect);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn fields_are_where_the_specification_puts_them() {
            let mut out = Vec::new();
            ValidateNegotiateRequest {
                capabilities: 0x7f,
                guid: [1; 16],
                security_mode: 1,
                dialects: List::Values(&[0x0300]),
            }
            .emit(&mut out);
            assert_eq!(out[..4], [0x7f, 0, 0, 0]);
            assert_eq!(out[20..], [1, 0, 1, 0, 0, 3]);
            out.drain(22..24);
            let expected =
                ValidateNegotiateResponse { capabilities: 0x7f, guid: [1; 16], security_mode: 1, dialect: 0x0300 };
            assert_eq!(ValidateNegotiateResponse::parse(&out), Some(expected));
            assert_eq!(ValidateNegotiateResponse::parse(&out[..23]), None);
        }
    }
}

/// FSCTL_QUERY_NETWORK_INTERFACE_INFO (MS-SMB2 2.2.32.5): addresses at which a server can be reached, for multichannel.
pub mod network_interface {
    use crate::bytes::{array_at, u16_at, u32_at, u64_at};
    use crate::kept::{MAX_ENTRIES, RetainedRanges};
    use crate::smb2::NetworkInterfaceInfo;
    use std::net::IpAddr;

    const FAMILY_IPV4: u16 = 0x0002;
    const FAMILY_IPV6: u16 = 0x0017;
    /// Offsets of an address of either family in an entry.
    const IPV4: usize = 28;
    const IPV6: usize = 32;

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
            FAMILY_IPV4 => IpAddr::from(array_at::<4>(entry, IPV4)?),
            FAMILY_IPV6 => IpAddr::from(array_at::<16>(entry, IPV6)?),
            _ => return None,
        };
        Some(NetworkInterfaceInfo {
            index: u32_at(entry, 4)?,
            capability: u32_at(entry, 8)?,
            link_speed: u64_at(entry, 16)?,
            address,
        })
    }

    /// Retains the entries of a list at this offset and length, and marks their addresses.
    pub(super) fn retain((start, length): (usize, usize), m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
        let end = start.saturating_add(length).min(m.len());
        let mut at = start;
        for _ in 0..MAX_ENTRIES {
            let fields = at.checked_add(IPV4)?;
            kept.field(at..fields.min(end));
            let address = match u16_at(m, at + 24)? {
                FAMILY_IPV6 => at + IPV6..at + IPV6 + 16,
                _ => fields..fields + 4,
            };
            if address.end <= end {
                kept.addresses.push(address);
            }
            match u32_at(m, at)? as usize {
                0 => return Some(()),
                next => at = at.checked_add(next).filter(|at| *at < end)?,
            }
        }
        Some(())
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
}

/// Server-side copy: FSCTL_SRV_REQUEST_RESUME_KEY and FSCTL_SRV_COPYCHUNK (MS-SMB2 2.2.31.1, 2.2.32.1, 2.2.32.3).
pub mod copy_chunk {
    use crate::bytes::{u32_at, u64_at};
    use crate::codec::{FixedSizeField, List, Put};

    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ResumeKey(pub [u8; 24]);

    impl ResumeKey {
        pub const OUTPUT: u32 = 32;

        /// Parses the output of SRV_REQUEST_RESUME_KEY.
        pub fn parse(output: &[u8]) -> Option<ResumeKey> {
            FixedSizeField::at(output, 0).map(ResumeKey)
        }

        pub fn emit(self, out: &mut Vec<u8>) {
            out.put(self.0);
            out.put(0u64); // ContextLength and an empty context
        }
    }

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct SrvCopyChunk {
        pub source_offset: u64,
        pub target_offset: u64,
        pub length: u32,
    }

    impl FixedSizeField for SrvCopyChunk {
        const LENGTH: usize = 24;

        fn at(bytes: &[u8], at: usize) -> Option<SrvCopyChunk> {
            let [source_offset, target_offset] = [u64_at(bytes, at)?, u64_at(bytes, at + 8)?];
            Some(SrvCopyChunk { source_offset, target_offset, length: u32_at(bytes, at + 16)? })
        }

        fn set(self, bytes: &mut [u8], at: usize) {
            self.source_offset.set(bytes, at);
            self.target_offset.set(bytes, at + 8);
            self.length.set(bytes, at + 16);
        }
    }

    /// Appends the input of SRV_COPYCHUNK.
    pub fn emit(source: ResumeKey, chunks: &[SrvCopyChunk], out: &mut Vec<u8>) {
        out.put(source.0);
        out.put(chunks.len() as u32);
        out.put(0u32);
        chunks.iter().for_each(|chunk| out.put(*chunk));
    }

    pub fn parse(input: &[u8]) -> Option<(ResumeKey, List<'_, SrvCopyChunk>)> {
        let chunks = (u32_at(input, 24)? as usize).checked_mul(SrvCopyChunk::LENGTH)?;
        Some((ResumeKey::parse(input)?, List::Bytes(crate::codec::buffer(input, 32, chunks)?)))
    }

    /// SRV_COPYCHUNK_RESPONSE: the amount copied, or with STATUS_INVALID_PARAMETER the server's limits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Copied {
        pub chunks_written: u32,
        /// Bytes of a partly copied chunk, or the limit per chunk.
        pub chunk_bytes_written: u32,
        /// Bytes copied in all, or the limit per request.
        pub total_bytes_written: u32,
    }

    impl Copied {
        pub const OUTPUT: u32 = 12;

        pub fn parse(output: &[u8]) -> Option<Copied> {
            Some(Copied {
                chunks_written: u32_at(output, 0)?,
                chunk_bytes_written: u32_at(output, 4)?,
                total_bytes_written: u32_at(output, 8)?,
            })
        }

        pub fn emit(self, out: &mut Vec<u8>) {
            for count in [self.chunks_written, self.chunk_bytes_written, self.total_bytes_written] {
                out.put(count);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_chunk_has_24_bytes_behind_32_of_the_list() {
            let mut out = Vec::new();
            emit(ResumeKey([7; 24]), &[SrvCopyChunk { source_offset: 1, target_offset: 2, length: 3 }], &mut out);
            assert_eq!(out[..24], [7; 24]);
            assert_eq!(out[24..32], [1, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(out[32..], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        }

        #[test]
        fn answers_are_read() {
            assert_eq!(ResumeKey::parse(&[4; 28]), Some(ResumeKey([4; 24])));
            let output = [1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0];
            let expected = Copied { chunks_written: 1, chunk_bytes_written: 0, total_bytes_written: 9 };
            assert_eq!(Copied::parse(&output), Some(expected));
            assert_eq!(Copied::parse(&output[..11]), None);
        }
    }
}
