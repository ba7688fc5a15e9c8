//! The requests of SMB2 that are outstanding, by message id, also where a snap length cut the ids.

use super::named::{Smb2ResponseEffect, file_id};
use crate::outstanding::OutstandingRequests;
use crate::pending::PendingExchange;
use smbscope_model::Command;
use smbscope_wire::smb2::{self, FileReference};

/// Requests outstanding on a connection at most; servers grant no more than 8,192 credits.
const MAX_OUTSTANDING: usize = 8192;
/// The message id of a notification that the server sends of its own accord (MS-SMB2 2.2.23).
pub(super) const UNSOLICITED: u64 = u64::MAX;

/// The requests that wait for a response.
#[derive(Debug, Default)]
pub(super) struct Smb2RequestTracker {
    pub(super) outstanding: OutstandingRequests<u64, Smb2TrackedRequest>,
    /// How many that are outstanding have an id of which all bits are known, 32 bits, or fewer.
    by_mask: [usize; 3],
    /// How many were answered with STATUS_PENDING.
    asynchronous: u32,
    /// The highest message id so far: ids begin at 0 and grow (MS-SMB2 3.2.4.1.3).
    highest_id: Option<u64>,
}

/// A request that waits for its response.
#[derive(Debug)]
pub(super) struct Smb2TrackedRequest {
    pub(super) pending: Box<PendingExchange>,
    /// Which bits of its message id are known.
    pub(super) id_mask: u64,
    pub(super) async_id: Option<u64>,
    pub(super) file: Option<FileReference>,
    /// The member of the same compound whose answer names the file.
    pub(super) file_from: Option<u64>,
    /// The members of the same compound whose file the answer names.
    pub(super) followers: Vec<u64>,
    pub(super) effect: Smb2ResponseEffect,
}

impl AsRef<PendingExchange> for Smb2TrackedRequest {
    fn as_ref(&self) -> &PendingExchange {
        &self.pending
    }
}

impl AsMut<PendingExchange> for Smb2TrackedRequest {
    fn as_mut(&mut self) -> &mut PendingExchange {
        &mut self.pending
    }
}

impl Smb2TrackedRequest {
    /// Whether a response repeats what the request and its interim response said: the command, and the AsyncId.
    pub(super) fn fits(&self, header: &smb2::Smb2Header) -> bool {
        let same_operation = self.async_id.zip(header.async_id).is_none_or(|(known, answered)| known == answered);
        same_operation && self.pending.exchange.command == Command::Smb2(header.command)
    }
}

impl Smb2RequestTracker {
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Box<PendingExchange>> {
        (self.by_mask, self.asynchronous) = Default::default();
        self.outstanding.take_all().map(|request| request.pending)
    }

    /// Adds a request; returns the one with the same id that was outstanding.
    pub(super) fn insert(&mut self, message_id: u64, request: Smb2TrackedRequest) -> Option<Smb2TrackedRequest> {
        if let Some(first) = request.file_from.and_then(|id| self.outstanding.get_mut(id)) {
            first.followers.push(message_id);
        }
        self.by_mask[mask_index(request.id_mask)] += 1;
        let older = self.outstanding.insert(message_id, request);
        older.inspect(|older| self.leaves(older.id_mask, older.async_id))
    }

    fn leaves(&mut self, id_mask: u64, async_id: Option<u64>) {
        self.by_mask[mask_index(id_mask)] -= 1;
        self.asynchronous -= u32::from(async_id.is_some());
    }

    /// The server answers a request with STATUS_PENDING; returns how many requests it has put off like that.
    pub(super) fn put_off(&mut self, message_id: u64, async_id: Option<u64>) -> u32 {
        if let Some(request) = self.outstanding.get_mut(message_id) {
            self.asynchronous += u32::from(request.async_id.is_none() && async_id.is_some());
            request.async_id = request.async_id.or(async_id);
        }
        self.asynchronous
    }

    pub(super) fn remove(&mut self, message_id: u64) -> Option<Smb2TrackedRequest> {
        let request = self.outstanding.remove(message_id)?;
        self.leaves(request.id_mask, request.async_id);
        Some(request)
    }

    /// Removes the request with the lowest id, where there are too many.
    pub(super) fn remove_excess(&mut self) -> Option<Smb2TrackedRequest> {
        let requests = self.outstanding.by_id();
        if requests.len() <= MAX_OUTSTANDING {
            return None;
        }
        let lowest = requests.first_key_value().map(|(id, _)| *id)?;
        self.remove(lowest)
    }

    /// The request of a response, by message id. Where a snap length cut either id, by the bits that both have, if these
    /// fit one request only. An AsyncId finds nothing: servers use the same few again and again.
    pub(super) fn find(&self, header: &smb2::Smb2Header) -> Option<u64> {
        let requests = self.outstanding.by_id();
        if requests.contains_key(&header.message_id) {
            return Some(header.message_id);
        }
        let same_bits = self.by_mask[mask_index(header.id_mask)];
        if same_bits == requests.len() {
            return None;
        }
        let mut alike = requests
            .iter()
            .filter(|(_, request)| header.id_mask & request.id_mask != u64::MAX)
            .filter(|(id, request)| (*id ^ header.message_id) & header.id_mask & request.id_mask == 0);
        match (alike.next(), alike.next()) {
            (Some((id, _)), None) => Some(*id),
            _ => None,
        }
    }

    /// Adds the bits of a message id that a snap length cut: those of the id that is nearest to the highest so far.
    pub(super) fn complete_id(&mut self, header: &mut smb2::Smb2Header, midstream: bool) {
        if header.id_mask != u64::MAX {
            let Some(highest) = self.highest_id.or((!midstream).then_some(0)) else { return };
            let ahead = header.message_id.wrapping_sub(highest) & header.id_mask;
            let behind = (header.id_mask - ahead).wrapping_add(1);
            let unsolicited = header.message_id == header.id_mask && header.command == smb2::Smb2Command::OPLOCK_BREAK;
            header.message_id = match highest.checked_sub(behind) {
                _ if unsolicited => UNSOLICITED,
                Some(id) if behind < ahead => id,
                _ => highest.saturating_add(ahead),
            };
            header.id_mask = u64::MAX;
        }
        if header.message_id != UNSOLICITED {
            self.highest_id = self.highest_id.max(Some(header.message_id));
        }
    }

    /// Members of a compound that work on the file which its first member opened.
    pub(super) fn name_followers(&mut self, followers: Vec<u64>, create: u64, file: FileReference) {
        for id in followers {
            let Some(request) = self.outstanding.get_mut(id).filter(|request| request.file_from == Some(create)) else {
                continue;
            };
            request.file = Some(file);
            request.pending.exchange.file_id = file_id(file);
        }
    }
}

/// Index of a mask of known bits in a table of counts.
fn mask_index(id_mask: u64) -> usize {
    match id_mask {
        u64::MAX => 0,
        mask if mask > u64::from(u16::MAX) => 1,
        _ => 2,
    }
}
