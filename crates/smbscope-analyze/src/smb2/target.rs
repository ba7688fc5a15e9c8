//! Session, tree and open that a request refers to by the ids of its header and body.

use super::requests::{Smb2RequestFields, Smb2ResponseEffect, display_path};
use crate::content::{Message2, RequestOrResponse};
use crate::ledger::Ledger;
use crate::rereads::OpenFacts;
use smbscope_wire::smb2::{FileReference, Smb2Header, Smb2Request, flags};
use std::sync::Arc;

/// Properties that a related member of a compound inherits (MS-SMB2 §3.3.5.2.7.2).
#[derive(Debug, Default, Clone)]
pub(super) struct Previous {
    session_id: Option<u64>,
    tree_id: Option<u32>,
    file: Option<FileReference>,
    file_from: Option<u64>,
    path: Option<Arc<str>>,
}

impl Previous {
    #[inline]
    pub(super) fn session_id_of(&self, header: &Smb2Header) -> Option<u64> {
        if is_related(header) { self.session_id } else { header.session_id }
    }

    #[inline]
    fn tree_id_of(&self, header: &Smb2Header) -> Option<u32> {
        if is_related(header) { self.tree_id } else { header.tree_id }
    }
}

#[inline]
fn is_related(header: &Smb2Header) -> bool {
    header.flags & flags::RELATED_OPERATIONS != 0
}

#[derive(Debug)]
pub(super) struct Smb2RequestTarget {
    pub(super) session_id: Option<u64>,
    pub(super) tree_id: Option<u32>,
    pub(super) file: Option<FileReference>,
    /// Message id of the CREATE in the same compound whose response will contain the file id.
    pub(super) file_from: Option<u64>,
    pub(super) path: Option<Arc<str>>,
    pub(super) user: Option<Arc<str>>,
    pub(super) share: Option<Arc<str>>,
    pub(super) is_pipe: bool,
    pub(super) facts: Option<OpenFacts>,
}

impl Smb2RequestTarget {
    #[inline]
    pub(super) fn resolve(
        ledger: &mut Ledger<'_>,
        member: &Message2,
        named: &Smb2RequestFields,
        previous: &Previous,
    ) -> Smb2RequestTarget {
        let header = &member.header;
        let (session_id, tree_id) = (previous.session_id_of(header), previous.tree_id_of(header));
        let server = ledger.server();
        // 0 is not a valid session id (MS-SMB2 §3.3.5.5.1).
        let session = session_id.filter(|id| *id != 0).and_then(|id| ledger.sessions.get(server, id));
        let tree = session.zip(tree_id).and_then(|(session, id)| session.trees.get(&id));
        let is_pipe = tree.is_some_and(|tree| tree.is_pipe);
        let inherits = named.file == Some(FileReference::RELATED);
        let file = if inherits { previous.file } else { named.file };
        let open = file.and_then(|file| session.and_then(|session| session.opens.get(&file)));
        let path = match (&member.body, file) {
            (RequestOrResponse::Request(Smb2Request::Create { name, .. }), _) => display_path(name),
            (_, Some(_)) => open.map(|open| open.path.clone()),
            (_, None) if inherits => previous.path.clone(),
            _ => None,
        };
        Smb2RequestTarget {
            session_id,
            tree_id,
            file,
            file_from: previous.file_from.filter(|_| inherits && file.is_none()),
            path,
            user: session.and_then(|session| session.user.clone()),
            share: tree.map(|tree| tree.share.clone()),
            is_pipe,
            facts: open.map(|open| open.facts).filter(|_| !is_pipe),
        }
    }

    #[inline]
    pub(super) fn into_previous(self, message_id: u64, effect: &Smb2ResponseEffect) -> Previous {
        let is_open = matches!(effect, Smb2ResponseEffect::Open { .. });
        Previous {
            session_id: self.session_id,
            tree_id: self.tree_id,
            file: self.file,
            file_from: if is_open { Some(message_id) } else { self.file_from },
            path: self.path,
        }
    }
}
