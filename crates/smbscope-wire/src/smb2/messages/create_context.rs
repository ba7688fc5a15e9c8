//! Create contexts for leases and durable handles (MS-SMB2 2.2.13.2, 2.2.14.2).

use crate::bytes::{u16_at, u32_at};
use crate::codec::{Buffer, FixedSizeField, Put, buffer};
use crate::kept::{MAX_ENTRIES, RetainedRanges};

/// Right to cache reads, writes and handles of a file (2.2.13.2.8, 2.2.13.2.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lease {
    /// Client-chosen key of the file.
    pub key: [u8; 16],
    /// 1 read caching, 2 handle caching, 4 write caching.
    pub state: u32,
    pub flags: u32,
    /// Version 2: key of the parent directory's lease.
    pub parent_key: [u8; 16],
    /// Version 2: incremented with every change of the state.
    pub epoch: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateContext {
    /// SMB2_CREATE_REQUEST_LEASE, from dialect 2.1.
    LeaseV1(Lease),
    /// SMB2_CREATE_REQUEST_LEASE_V2, from SMB 3.0.
    LeaseV2(Lease),
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST: the open survives a disconnect for some time.
    DurableHandle,
    /// SMB2_CREATE_DURABLE_HANDLE_REQUEST_V2, from SMB 3.0.
    DurableHandleV2 {
        /// Milliseconds; zero leaves it to the server.
        timeout: u32,
        /// Requested on continuously available shares.
        persistent: bool,
        /// Client-chosen id of the open.
        create_guid: [u8; 16],
    },
}

const LEASE: &[u8; 4] = b"RqLs";
const DURABLE: &[u8; 4] = b"DHnQ";
const DURABLE_V2: &[u8; 4] = b"DH2Q";
/// Size of a context's fields before its name.
const FIELDS: usize = 16;
/// Size of a version 1 lease: key, state, flags, duration.
const LEASE_V1: usize = 32;
/// Size of a version 2 lease, which adds parent key, epoch and two reserved bytes.
const LEASE_V2: usize = 52;

impl CreateContext {
    fn emit(&self, out: &mut Vec<u8>) {
        let (name, length) = match self {
            CreateContext::LeaseV1(_) => (LEASE, LEASE_V1),
            CreateContext::LeaseV2(_) => (LEASE, LEASE_V2),
            CreateContext::DurableHandle => (DURABLE, 16),
            CreateContext::DurableHandleV2 { .. } => (DURABLE_V2, 32),
        };
        out.put(0u32); // Next
        for field in [16u16, 4, 0, 24] {
            out.put(field);
        }
        out.put(length as u32);
        out.put_bytes(name);
        out.put(0u32);
        let data = out.len();
        out.put_zeros(length);
        match *self {
            CreateContext::LeaseV1(lease) => lease.set(out, data),
            CreateContext::LeaseV2(lease) => {
                lease.set(out, data);
                lease.parent_key.set(out, data + LEASE_V1);
                lease.epoch.set(out, data + LEASE_V1 + 16);
            }
            CreateContext::DurableHandle => {}
            CreateContext::DurableHandleV2 { timeout, persistent, create_guid } => {
                timeout.set(out, data);
                (if persistent { 2u32 } else { 0 }).set(out, data + 4);
                create_guid.set(out, data + 16);
            }
        }
    }
}

impl Lease {
    fn set(&self, out: &mut [u8], at: usize) {
        self.key.set(out, at);
        self.state.set(out, at + 16);
        self.flags.set(out, at + 20);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateContextList<'a> {
    List(&'a [CreateContext]),
    Bytes(&'a [u8]),
}

impl Default for CreateContextList<'_> {
    fn default() -> Self {
        CreateContextList::Bytes(&[])
    }
}

impl<'a> CreateContextList<'a> {
    pub fn lease(self) -> Option<CreateContext> {
        let data = self.find(LEASE)?;
        let lease = Lease {
            key: FixedSizeField::at(data, 0)?,
            state: FixedSizeField::at(data, 16)?,
            flags: FixedSizeField::at(data, 20)?,
            parent_key: FixedSizeField::at(data, LEASE_V1).unwrap_or_default(),
            epoch: FixedSizeField::at(data, LEASE_V1 + 16).unwrap_or_default(),
        };
        match data.len() {
            LEASE_V1 => Some(CreateContext::LeaseV1(lease)),
            LEASE_V2 => Some(CreateContext::LeaseV2(lease)),
            _ => None,
        }
    }

    pub fn is_durable(self) -> bool {
        self.find(DURABLE).or_else(|| self.find(DURABLE_V2)).is_some()
    }

    fn find(self, name: &[u8]) -> Option<&'a [u8]> {
        let CreateContextList::Bytes(mut rest) = self else { return None };
        loop {
            let at = usize::from(u16_at(rest, 4)?);
            if rest.get(at..at + usize::from(u16_at(rest, 6)?)) == Some(name) {
                return buffer(rest, u16_at(rest, 10)?.into(), u32_at(rest, 12)? as usize);
            }
            match u32_at(rest, 0)? as usize {
                0 => return None,
                next => rest = rest.get(next..)?,
            }
        }
    }
}

impl<'a> Buffer<'a> for CreateContextList<'a> {
    fn parse(message: &'a [u8], offset: usize, length: usize) -> Option<CreateContextList<'a>> {
        buffer(message, offset, length).map(CreateContextList::Bytes)
    }

    fn emit(&self, _header: usize, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        let contexts = match self {
            CreateContextList::List(contexts) => *contexts,
            CreateContextList::Bytes(bytes) => {
                out.put_bytes(bytes);
                &[]
            }
        };
        for (index, context) in contexts.iter().enumerate() {
            let at = out.len();
            context.emit(out);
            if index + 1 < contexts.len() {
                out.pad(at, 8);
                ((out.len() - at) as u32).set(out, at);
            }
        }
        out.len() - start
    }

    fn is_empty(&self) -> bool {
        matches!(self, CreateContextList::List([]) | CreateContextList::Bytes([]))
    }
}

/// Retains the lease among the contexts at this offset and length, and the presence of other contexts.
pub(super) fn retain((start, length): (usize, usize), m: &[u8], kept: &mut RetainedRanges) -> Option<()> {
    let end = start.saturating_add(length);
    let mut at = start;
    for _ in 0..MAX_ENTRIES {
        let field = |offset: usize| u16_at(m, at.checked_add(offset)?).map(usize::from);
        kept.field(at..at.checked_add(FIELDS)?.min(end));
        let name = at.checked_add(field(4)?)?;
        let name = name..name.checked_add(field(6)?)?.min(end);
        let data = at.checked_add(field(10)?)?;
        let data = data..data.checked_add(u32_at(m, at + 12)? as usize)?.min(end);
        // Context names are not longer; a longer one is invalid.
        kept.field(name.start..name.end.min(name.start + FIELDS));
        if m.get(name) == Some(LEASE) {
            kept.field(data);
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
    fn granted_contexts_are_found() {
        let lease = CreateContext::LeaseV2(Lease { key: [5; 16], state: 3, flags: 0, parent_key: [6; 16], epoch: 9 });
        let mut bytes = Vec::new();
        CreateContextList::List(&[CreateContext::DurableHandle, lease]).emit(0, &mut bytes);
        let granted = CreateContextList::Bytes(&bytes);
        assert_eq!(granted.lease(), Some(lease));
        assert!(granted.is_durable());
        bytes.truncate(60);
        assert_eq!(CreateContextList::Bytes(&bytes).lease(), None, "cut off");
    }

    #[test]
    fn a_durable_handle_of_version_2_has_32_bytes() {
        // 2.2.13.2.11
        let mut bytes = Vec::new();
        let context = CreateContext::DurableHandleV2 { timeout: 1000, persistent: true, create_guid: [8; 16] };
        CreateContextList::List(&[context]).emit(0, &mut bytes);
        assert_eq!(bytes[..24], *b"\0\0\0\0\x10\0\x04\0\0\0\x18\0\x20\0\0\0DH2Q\0\0\0\0");
        assert_eq!(bytes[24..32], [0xe8, 3, 0, 0, 2, 0, 0, 0]);
        assert_eq!(bytes[40..], [8; 16]);
    }
}
