//! Names in SMB1 requests, and the effect of successful responses on users, trees and opens (MS-CIFS §3.2.1, §3.3.1).

use crate::content::{Body1, Message1, RequestOrResponse};
use crate::names::{ConnectionNames, TrackedTreeConnect, kept, user_name};
use crate::rereads::{OpenFacts, TrackedOpen};
use smbscope_model::exchange::CreatedFile;
use smbscope_model::{Exchange, FileId, GrantedCaching, Subcommand};
use smbscope_wire::names::{NtTransact, Trans2};
use smbscope_wire::smb1::{self, Smb1Command, Smb1Request, Smb1Response};
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub(super) struct Smb1RequestFields {
    pub(super) subcommand: Option<Subcommand>,
    pub(super) fid: Option<u16>,
    pub(super) path: Option<Arc<str>>,
    pub(super) offset: Option<u64>,
    pub(super) length: Option<u64>,
    pub(super) waits: bool,
    pub(super) unanswered: bool,
    pub(super) oplock_release: bool,
}

impl Smb1RequestFields {
    pub(super) fn from_message(message: &Message1, is_pipe: bool) -> Smb1RequestFields {
        let command = message.header.command;
        let base = Smb1RequestFields { unanswered: command == Smb1Command::NT_CANCEL, ..Smb1RequestFields::default() };
        let RequestOrResponse::Request(request) = &message.body else { return base };
        match request {
            Smb1Request::Open { name: path, .. } | Smb1Request::Path(path) => {
                Smb1RequestFields { path: path.as_ref().and_then(kept), ..base }
            }
            Smb1Request::File(fid) => Smb1RequestFields { fid: Some(*fid), ..base },
            Smb1Request::Range { fid, offset, length } => Smb1RequestFields {
                fid: Some(*fid),
                offset: Some(*offset),
                length: Some(*length),
                waits: is_pipe && command == Smb1Command::READ_ANDX,
                ..base
            },
            Smb1Request::WriteRaw { fid, offset, length, .. } => {
                Smb1RequestFields { fid: Some(*fid), offset: Some(*offset), length: Some(*length), ..base }
            }
            Smb1Request::Locking { fid, timeout, locks, unlocks, oplock_release, range } => {
                let oplock_release = *oplock_release && *locks == 0 && *unlocks == 0;
                Smb1RequestFields {
                    fid: Some(*fid),
                    offset: range.map(|(offset, _)| offset),
                    length: range.map(|(_, length)| length),
                    waits: *timeout != 0 && *locks > 0 || oplock_release,
                    oplock_release,
                    ..base
                }
            }
            Smb1Request::Echo(count) => Smb1RequestFields { unanswered: *count == 0, ..base },
            Smb1Request::Transaction(transaction) => Smb1RequestFields {
                subcommand: transaction
                    .trans2
                    .map(Subcommand::Trans2)
                    .or(transaction.fsctl.map(Subcommand::Fsctl))
                    .or(transaction.nt.map(Subcommand::NtTransact))
                    .or(transaction.trans.map(Subcommand::Transaction)),
                fid: transaction.fid,
                path: transaction.path.as_ref().and_then(kept),
                ..base
            },
            _ => base,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Smb1ResponseEffect {
    LogOn(Option<Arc<str>>),
    LogOff(u16),
    Connect(Option<TrackedTreeConnect>),
    Disconnect(u16),
    Open { path: Option<Arc<str>>, asks_for_oplock: Option<bool> },
    Close(u16),
}

impl Smb1ResponseEffect {
    pub(super) fn all_from_message(message: &Message1, path: Option<Arc<str>>) -> Vec<Smb1ResponseEffect> {
        let mut effects = Vec::new();
        let commands = std::iter::once(message.header.command).chain(message.chain);
        for (command, body) in commands.zip(message.bodies()) {
            match body {
                RequestOrResponse::Request(Smb1Request::SessionSetup(identity)) => {
                    effects.push(Smb1ResponseEffect::LogOn(identity.as_ref().and_then(user_name)));
                }
                RequestOrResponse::Request(Smb1Request::TreeConnect(path)) => {
                    effects.push(Smb1ResponseEffect::Connect(TrackedTreeConnect::new(path)))
                }
                RequestOrResponse::Request(Smb1Request::Open { asks_for_oplock, .. }) => {
                    effects.push(Smb1ResponseEffect::Open { path: path.clone(), asks_for_oplock: *asks_for_oplock });
                }
                RequestOrResponse::Request(Smb1Request::Transaction(transaction))
                    if transaction.trans2 == Some(Trans2::OPEN2) || transaction.nt == Some(NtTransact::CREATE) =>
                {
                    effects.push(Smb1ResponseEffect::Open { path: path.clone(), asks_for_oplock: None });
                }
                RequestOrResponse::Request(Smb1Request::File(fid)) if command == Smb1Command::CLOSE => {
                    effects.push(Smb1ResponseEffect::Close(*fid))
                }
                _ if command == Smb1Command::LOGOFF_ANDX => {
                    effects.push(Smb1ResponseEffect::LogOff(message.header.uid))
                }
                _ if command == Smb1Command::TREE_DISCONNECT => {
                    effects.push(Smb1ResponseEffect::Disconnect(message.header.tid))
                }
                _ => {}
            }
        }
        effects
    }

    pub(super) fn take(
        effects: Vec<Smb1ResponseEffect>,
        names: &mut ConnectionNames,
        exchange: &mut Exchange,
        answer: &Message1,
    ) -> u64 {
        let header = &answer.header;
        let mut answers = answer.bodies();
        let mut forgotten = 0;
        for effect in effects {
            forgotten += match effect {
                Smb1ResponseEffect::LogOn(user) => {
                    exchange.session_id = Some(header.uid.into());
                    user.map_or(0, |user| names.users.insert(header.uid, user))
                }
                Smb1ResponseEffect::LogOff(uid) => {
                    names.users.remove(&uid);
                    0
                }
                Smb1ResponseEffect::Connect(tree) => {
                    exchange.tree_id = Some(header.tid.into());
                    exchange.share = tree.as_ref().map(|tree| tree.share.clone());
                    tree.map_or(0, |tree| names.trees.insert(header.tid, tree))
                }
                Smb1ResponseEffect::Disconnect(tid) => {
                    names.trees.remove(&tid);
                    0
                }
                Smb1ResponseEffect::Open { path, asks_for_oplock } => match answers.find_map(opened) {
                    Some((fid, opened)) => {
                        exchange.file_id = Some(FileId::Smb1(fid));
                        exchange.caching = opened.and_then(|opened| granted(asks_for_oplock, &opened));
                        if let Some((details, opened)) = exchange.details.as_mut().zip(opened) {
                            let smb1::Smb1OpenResult { action, size, attributes, .. } = opened;
                            details.created = Some(CreatedFile { action, size, attributes });
                        }
                        let version = opened.map_or((0, 0), |opened| (opened.last_write, opened.size));
                        let facts =
                            OpenFacts::new(exchange.share.as_deref(), path.as_deref(), version, exchange.caching);
                        let facts = names.rereads.opened(facts);
                        path.map_or(0, |path| names.opens.insert(fid, TrackedOpen { path, facts }))
                    }
                    None => 0,
                },
                Smb1ResponseEffect::Close(fid) => {
                    names.opens.remove(&fid);
                    0
                }
            };
        }
        forgotten
    }
}

fn opened(body: &Body1) -> Option<(u16, Option<smb1::Smb1OpenResult>)> {
    match body {
        RequestOrResponse::Response(Smb1Response::Open(opened)) => Some((opened.fid, Some(*opened))),
        RequestOrResponse::Response(Smb1Response::Transaction { fid, .. }) => fid.map(|fid| (fid, None)),
        _ => None,
    }
}

/// Returns the granted oplock. `None` if it is unknown whether the request asked for one.
fn granted(asks: Option<bool>, opened: &smb1::Smb1OpenResult) -> Option<GrantedCaching> {
    match opened.oplock_level? {
        0 if asks? => Some(GrantedCaching::NotGranted),
        0 => Some(GrantedCaching::NotRequested),
        1 => Some(GrantedCaching::Exclusive),
        2 => Some(GrantedCaching::Batch),
        3 => Some(GrantedCaching::LevelII),
        _ => None,
    }
}
