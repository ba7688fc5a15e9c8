//! Create contexts (MS-SMB2 2.2.13.2, 2.2.14.2): leases and durable handles.

use super::put::Put;
use crate::bytes::{array_at, u16_at, u32_at};

/// A lease: the right to keep reads, writes and opens of a file to oneself (2.2.13.2.8, 2.2.13.2.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lease {
    /// The client's name for the file.
    pub key: [u8; 16],
    /// 1 read caching, 2 handle caching, 4 write caching.
    pub state: u32,
    /// LeaseFlags.
    pub flags: u32,
    /// Version 2: a number that grows with every change of the state.
    pub epoch: u16,
}

/// What a CREATE asks for beside the open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// SMB2_CREATE_REQUEST_LEASE, of dialect 2.1.
    LeaseV1(Lease),
    /// SMB2_CREATE_REQUEST_LEASE_V2, of SMB 3.
    LeaseV2(Lease),
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST: the open outlives the connection for a while.
    DurableHandle,
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2, of SMB 3.
    DurableHandleV2 {
        /// How long, in milliseconds; zero leaves it to the server.
        timeout: u32,
        /// Persistent, as on continuously available shares.
        persistent: bool,
        /// The client's name for the open.
        create_guid: [u8; 16],
    },
}

impl Context {
    /// Appends a list of them, which begins at a multiple of eight.
    pub(super) fn emit_all(contexts: &[Context], out: &mut Vec<u8>) {
        for (index, context) in contexts.iter().enumerate() {
            let start = out.len();
            context.emit(out);
            if index + 1 < contexts.len() {
                out.pad_to_8(start);
                out.set_u32(start, out.len() - start);
            }
        }
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let (name, length) = match self {
            Context::LeaseV1(_) => (LEASE, 32),
            Context::LeaseV2(_) => (LEASE, 52),
            Context::DurableHandle => (b"DHnQ", 16),
            Context::DurableHandleV2 { .. } => (b"DH2Q", 32),
        };
        out.put_u32(0); // Next
        out.put_u16(16);
        out.put_u16(4);
        out.put_u16(0);
        out.put_u16(24);
        out.put_u32(length);
        out.extend_from_slice(name);
        out.put_u32(0);
        match self {
            Context::LeaseV1(lease) => emit_lease(lease, out),
            Context::LeaseV2(lease) => {
                emit_lease(lease, out);
                out.put_zeros(16); // ParentLeaseKey
                out.put_u16(lease.epoch);
                out.put_u16(0);
            }
            Context::DurableHandle => out.put_zeros(16),
            Context::DurableHandleV2 { timeout, persistent, create_guid } => {
                out.put_u32(*timeout);
                out.put_u32(if *persistent { 2 } else { 0 });
                out.put_u64(0);
                out.extend_from_slice(create_guid);
            }
        }
    }
}

const LEASE: &[u8; 4] = b"RqLs";

fn emit_lease(lease: &Lease, out: &mut Vec<u8>) {
    out.extend_from_slice(&lease.key);
    out.put_u32(lease.state);
    out.put_u32(lease.flags);
    out.put_u64(0); // LeaseDuration
}

/// What the server granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted<'a>(&'a [u8]);

impl<'a> Granted<'a> {
    pub(super) fn new(message: &'a [u8], offset: usize, length: usize) -> Option<Granted<'a>> {
        super::buffer(message, offset, length).map(Granted)
    }

    /// The lease, of either version.
    pub fn lease(self) -> Option<Lease> {
        let data = self.find(LEASE)?;
        Some(Lease {
            key: array_at(data, 0)?,
            state: u32_at(data, 16)?,
            flags: u32_at(data, 20)?,
            epoch: u16_at(data, 48).unwrap_or(0),
        })
    }

    /// Whether the open is durable.
    pub fn is_durable(self) -> bool {
        self.find(b"DHnQ").or_else(|| self.find(b"DH2Q")).is_some()
    }

    /// The data of the context of that name.
    fn find(self, name: &[u8]) -> Option<&'a [u8]> {
        let mut rest = self.0;
        loop {
            let at = usize::from(u16_at(rest, 4)?);
            if rest.get(at..at + usize::from(u16_at(rest, 6)?)) == Some(name) {
                return super::buffer(rest, u16_at(rest, 10)?.into(), u32_at(rest, 12)? as usize);
            }
            match u32_at(rest, 0)? as usize {
                0 => return None,
                next => rest = rest.get(next..)?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_can_be_found_in_what_is_granted() {
        let lease = Lease { key: [5; 16], state: 3, flags: 0, epoch: 9 };
        let mut bytes = Vec::new();
        Context::emit_all(&[Context::DurableHandle, Context::LeaseV2(lease)], &mut bytes);
        let granted = Granted::new(&bytes, 0, bytes.len()).unwrap();
        assert_eq!(granted.lease(), Some(lease));
        assert!(granted.is_durable());
        bytes.truncate(60);
        assert_eq!(Granted(&bytes).lease(), None, "cut off");
    }

    #[test]
    fn a_durable_handle_of_version_2_has_32_bytes() {
        // 2.2.13.2.11
        let mut bytes = Vec::new();
        let context = Context::DurableHandleV2 { timeout: 1000, persistent: true, create_guid: [8; 16] };
        Context::emit_all(&[context], &mut bytes);
        assert_eq!(bytes[..24], *b"\0\0\0\0\x10\0\x04\0\0\0\x18\0\x20\0\0\0DH2Q\0\0\0\0");
        assert_eq!(bytes[24..32], [0xe8, 3, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes[40..], [8; 16]);
    }
}
