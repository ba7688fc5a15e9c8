//! Outstanding SMB2 requests by message id, even if the snap length truncated the ids.

use super::named::{Smb2ResponseEffect, file_id};
use crate::outstanding::OutstandingRequests;
use crate::pending::PendingExchange;
use smbscope_model::Command;
use smbscope_wire::smb2::{self, FileReference};

/// Maximum number of outstanding requests per connection; servers grant no more than 8,192 credits.
const MAX_OUTSTANDING: usize = 8192;
/// Message id of an unsolicited notification (MS-SMB2 §2.2.23).
pub(super) const UNSOLICITED: u64 = u64::MAX;

#[derive(Debug, Default)]
pub(super) struct Smb2RequestTracker {
    pub(super) outstanding: OutstandingRequests<u64, Smb2TrackedRequest>,
    /// Number of outstanding requests by known bits of the id: all, at least 17, or fewer.
    by_mask: [usize; 3],
    asynchronous: u32,
    /// Highest message id so far: ids begin at 0 and grow (MS-SMB2 §3.2.4.1.3).
    highest_id: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Smb2TrackedRequest {
    pub(super) pending: Box<PendingExchange>,
    pub(super) id_mask: u64,
    pub(super) async_id: Option<u64>,
    pub(super) file: Option<FileReference>,
    /// Member of the same compound whose response provides the file.
    pub(super) file_from: Option<u64>,
    /// Members of the same compound that use the file of this response.
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
    /// Returns true if the response repeats the command and the AsyncId of the interim response.
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

    /// Records an interim response with STATUS_PENDING. Returns the number of requests that are pending like this.
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

    pub(super) fn remove_excess(&mut self) -> Option<Smb2TrackedRequest> {
        let requests = self.outstanding.by_id();
        if requests.len() <= MAX_OUTSTANDING {
            return None;
        }
        let lowest = requests.first_key_value().map(|(id, _)| *id)?;
        self.remove(lowest)
    }

    /// Finds the request of a response by message id. If the snap length truncated either id, compares the bits that
    /// both have; only one request may match. The AsyncId is useless for this, because servers reuse the same few
    /// values.
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

    /// Restores the bits of a truncated message id from the nearest possible id to the highest so far.
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

fn mask_index(id_mask: u64) -> usize {
    match id_mask {
        u64::MAX => 0,
        mask if mask > u64::from(u16::MAX) => 1,
        _ => 2,
    }
}
