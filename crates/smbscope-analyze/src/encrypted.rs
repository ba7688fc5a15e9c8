//! Encrypted frames: what they hold can't be seen, but when they pass can (MS-SMB2 2.2.41).
//!
//! A client's frame and the server's next frame are a pair as long as nothing else is outstanding. Where several
//! frames are under way nothing says which answer belongs to which, and none is timed. Frames of the size of an
//! interim response are taken for final only once the client goes on.

use crate::connection::{Connection, Opening, Scene};
use crate::framer::Frame;
use crate::pending::{Causality, Pending};
use smbscope_model::{Command, Direction, Group, Outcome, Status};
use smbscope_wire::smb2::TransformHeader;
use smbscope_wire::status::NtStatus;
use std::collections::VecDeque;

/// Frames under way at most.
const MAX_OUTSTANDING: usize = 512;
/// Plain size of an SMB2 ERROR response without data, which interim responses have too (MS-SMB2 2.2.2).
const INTERIM_SIZE: u64 = 64 + 9;
/// Plain sizes of oplock and lease break notifications (MS-SMB2 2.2.23).
const BREAK_SIZES: [u64; 2] = [64 + 24, 64 + 44];

/// Encrypted frames of a connection that are under way.
#[derive(Debug, Default)]
pub(crate) struct EncryptedFrames {
    outstanding: VecDeque<Pending>,
    /// A pair whose second half may be an interim response.
    tentative: Option<Pending>,
    /// Several were under way together, or others are hidden: none that is outstanding can be paired.
    mixed: bool,
    /// Positions of both streams, the client's first, before which nothing that is still open can be hidden.
    settled: (u64, u64),
}

impl EncryptedFrames {
    pub(crate) fn take_all(&mut self) -> Vec<Pending> {
        let mut tentative: Vec<Pending> = self.tentative.take().into_iter().collect();
        for pending in &mut tentative {
            pending.exchange.response = Default::default();
        }
        tentative.extend(self.outstanding.drain(..));
        tentative
    }

    pub(crate) fn count(&self) -> usize {
        self.outstanding.len()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Pending> {
        self.outstanding.iter_mut().chain(&mut self.tentative)
    }
}

impl Connection {
    /// Takes in a frame in a TRANSFORM_HEADER.
    pub(crate) fn encrypted_frame(
        &mut self,
        scene: &mut Scene<'_, '_>,
        direction: Direction,
        frame: &Frame,
        session_id: Option<u64>,
    ) {
        self.encrypted_frames += 1;
        scene.shared.quality.encrypted_frames += 1;
        if direction == self.client {
            if let Some(pending) = self.encrypted.tentative.take() {
                self.complete(scene, pending);
            }
            self.encrypted_request(scene, frame, session_id);
        } else {
            self.encrypted_response(scene, frame);
        }
    }

    fn encrypted_request(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame, session_id: Option<u64>) {
        let opening = Opening {
            command: Command::EncryptedFrame,
            subcommand: None,
            group: Group::Encrypted,
            message_id: None,
            bytes: frame.length(),
        };
        let mut pending = self.begin(frame, opening);
        pending.exchange.encrypted = true;
        pending.exchange.session_id = session_id;
        let server = self.endpoints.server.ip();
        pending.exchange.user =
            session_id.and_then(|id| scene.shared.sessions.get(server, id)).and_then(|session| session.user.clone());
        self.started(&pending);
        self.encrypted.outstanding.push_back(pending);
        if self.encrypted.outstanding.len() > MAX_OUTSTANDING {
            self.give_up_oldest(scene, Outcome::Evicted);
        }
    }

    fn encrypted_response(&mut self, scene: &mut Scene<'_, '_>, frame: &Frame) {
        let plain = frame.length().saturating_sub(TransformHeader::LENGTH as u64);
        if let Some(mut pending) = self.encrypted.tentative.take() {
            // Another answer while nothing else is outstanding: the first one was interim.
            pending.exchange.interim = pending.exchange.response.first;
            pending.exchange.response = Default::default();
            pending.response = None;
            scene.shared.quality.interim_responses += 1;
            self.encrypted.outstanding.push_front(pending);
        }
        if BREAK_SIZES.contains(&plain) {
            return;
        }
        let Some(pending) = self.encrypted.outstanding.front() else { return };
        let (client_settled, server_settled) = self.encrypted.settled;
        let seen_by_server = frame.acknowledged_first.unwrap_or(u64::MAX);
        self.encrypted.mixed |= self.encrypted.outstanding.len() > 1
            || pending.causality(frame) == Causality::Impossible
            || scene.client_losses.bytes_between(client_settled, seen_by_server) > 0
            || scene.server_losses.bytes_between(server_settled, frame.start) > 0;
        let last_request = self.encrypted.outstanding.back().map_or(0, |pending| pending.request.end);
        if self.encrypted.mixed {
            self.give_up_oldest(scene, Outcome::NotPairable);
        } else if let Some(mut pending) = self.encrypted.outstanding.pop_front() {
            pending.add_response(frame, frame.length(), Status::Nt(NtStatus::SUCCESS));
            pending.exchange.status = None;
            if plain == INTERIM_SIZE {
                self.encrypted.tentative = Some(pending);
            } else {
                self.complete(scene, pending);
            }
        }
        if self.encrypted.outstanding.is_empty() {
            self.encrypted.mixed = false;
            self.encrypted.settled = (last_request, frame.end);
        }
    }

    fn give_up_oldest(&mut self, scene: &mut Scene<'_, '_>, outcome: Outcome) {
        if let Some(mut pending) = self.encrypted.outstanding.pop_front() {
            pending.exchange.outcome = outcome;
            self.finish(scene, pending);
        }
    }
}
