//! Effects of successful responses on sessions, trees and opens (MS-SMB2 §3.3.1).

use super::Smb2;
use super::requests::{Smb2ResponseEffect, Smb2TrackedRequest, file_id, granted, logged_on};
use crate::content::{Message2, RequestOrResponse};
use crate::ledger::Ledger;
use crate::names::TrackedTreeConnect;
use crate::rereads::{OpenFacts, TrackedOpen};
use smbscope_model::Exchange;
use smbscope_model::exchange::CreatedFile;
use smbscope_wire::smb2::{Created, FileReference, Smb2Response};
use smbscope_wire::status::NtStatus;
use std::sync::Arc;

/// Sessions of a connection: `evicted_names`.
const MAX_JOINED: usize = 256;
/// ShareType of a TREE_CONNECT response (MS-SMB2 §2.2.10).
const SHARE_TYPE_PIPE: u8 = 2;

impl Smb2 {
    pub(super) fn take_effect(&mut self, ledger: &mut Ledger<'_>, request: &mut Smb2TrackedRequest, member: &Message2) {
        let header = &member.header;
        let server = ledger.server();
        let exchange = &mut request.pending.exchange;
        let Some(session_id) = header.session_id.filter(|id| *id != 0).or(exchange.session_id) else { return };
        exchange.session_id = Some(session_id);
        if header.status.is_error() || header.status == NtStatus::MORE_PROCESSING_REQUIRED || session_id == 0 {
            return;
        }
        let answer = match &member.body {
            RequestOrResponse::Response(answer) => answer,
            _ => &Smb2Response::Other,
        };
        match std::mem::replace(&mut request.effect, Smb2ResponseEffect::None) {
            Smb2ResponseEffect::None => {}
            Smb2ResponseEffect::LogOn(user) => {
                let flags = if let Smb2Response::SessionSetup(flags) = answer { *flags } else { 0 };
                exchange.user = self.log_on(ledger, session_id, user, flags);
            }
            Smb2ResponseEffect::LogOff => {
                self.joined.retain(|id| *id != session_id);
                ledger.sessions.leave(server, session_id);
            }
            Smb2ResponseEffect::Connect(tree) => {
                let Some((tree_id, mut tree)) = header.tree_id.zip(tree) else { return };
                tree.is_pipe |= *answer == Smb2Response::TreeConnect(SHARE_TYPE_PIPE);
                connect(ledger, exchange, session_id, tree_id, tree);
            }
            Smb2ResponseEffect::Disconnect => {
                if let Some(tree_id) = exchange.tree_id {
                    ledger.sessions.change(server, session_id, |session| session.trees.remove(&tree_id));
                }
            }
            Smb2ResponseEffect::Open { path, asked } => {
                let Smb2Response::Create(created) = answer else { return };
                note_created(exchange, asked, created);
                if let Some(path) = path {
                    track_open(ledger, exchange, session_id, path, created);
                }
                self.requests.name_followers(std::mem::take(&mut request.followers), header.message_id, created.file);
            }
            Smb2ResponseEffect::Close => {
                if let Some(file) = request.file {
                    ledger.sessions.change(server, session_id, |session| session.opens.remove(&file));
                }
            }
            Smb2ResponseEffect::Rename(path) => {
                if let Some(file) = request.file {
                    rename_open(ledger, session_id, file, path);
                }
            }
        }
    }

    fn log_on(
        &mut self,
        ledger: &mut Ledger<'_>,
        session_id: u64,
        user: Option<Arc<str>>,
        flags: u16,
    ) -> Option<Arc<str>> {
        let server = ledger.server();
        if !self.joined.contains(&session_id) && self.joined.len() < MAX_JOINED {
            self.joined.push(session_id);
            ledger.sessions.join(server, session_id);
        }
        ledger.sessions.change(server, session_id, |session| {
            session.user = logged_on(user, flags).or(session.user.take());
            session.user.clone()
        })
    }
}

fn connect(ledger: &mut Ledger<'_>, exchange: &mut Exchange, session_id: u64, tree_id: u32, tree: TrackedTreeConnect) {
    let server = ledger.server();
    exchange.tree_id = Some(tree_id);
    exchange.share = Some(tree.share.clone());
    ledger.quality.evicted_names +=
        ledger.sessions.change(server, session_id, |session| session.trees.insert(tree_id, tree));
}

#[inline]
fn note_created(exchange: &mut Exchange, asked: Option<u8>, created: &Created) {
    exchange.file_id = file_id(created.file);
    exchange.caching = granted(asked, created);
    if let Some(details) = &mut exchange.details {
        let (action, attributes) = (created.create_action, created.file_attributes);
        details.created = Some(CreatedFile { action, size: created.end_of_file, attributes });
    }
}

#[inline]
fn track_open(ledger: &mut Ledger<'_>, exchange: &Exchange, session_id: u64, path: Arc<str>, created: &Created) {
    let server = ledger.server();
    let version = (created.last_write, created.end_of_file);
    let facts = OpenFacts::new(exchange.share.as_deref(), Some(&path), version, exchange.caching);
    ledger.quality.evicted_names += ledger.sessions.change(server, session_id, |session| {
        let facts = session.rereads.opened(facts);
        session.opens.insert(created.file, TrackedOpen { path, facts })
    });
}

fn rename_open(ledger: &mut Ledger<'_>, session_id: u64, file: FileReference, path: Arc<str>) {
    let server = ledger.server();
    ledger.sessions.change(server, session_id, |session| {
        if session.opens.get(&file).is_some() {
            // The file under the new name may differ from the one read before.
            session.opens.insert(file, TrackedOpen::named(path));
        }
    });
}
