//! Receiving (MS-SMB2 3.2.5.1): decrypts, splits and verifies responses, matches them with requests, records breaks.

use super::connection::{Chain, ReceivedResponse, ResponseConsumer, Smb2Connection, Smb2OutstandingRequest};
use crate::limits::{BREAKS_MAX, INTERIMS_MAX, UNANSWERED_MAX};
use crate::sample::{HeaderIds, RequestDetails};
use crate::transport::ReceiveTimes;
use crate::{ClientError, FileHandle, Sample};
use smbscope_model::{Command, CommandGroup, FileId};
use smbscope_wire::bytes::{u16_at, u64_at};
use smbscope_wire::smb2::messages::oplock_break::Notification;
use smbscope_wire::smb2::{self, COMPRESSION_ID, Smb2Header, TRANSFORM_ID};
use smbscope_wire::status::NtStatus;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time limit for the response to a CANCEL, if the server has answered with STATUS_PENDING before.
const CANCEL_TIME: Duration = Duration::from_secs(1);

impl Smb2Connection {
    pub(super) async fn reply(&mut self, id: u64) -> Result<ReceivedResponse, ClientError> {
        let pending = self.pending.iter().find(|pending| pending.sample.message_id == id);
        let deadline = pending.and_then(|pending| self.deadline(&pending.sample));
        loop {
            match self.event(id, deadline).await? {
                Some(reply) if reply.header.message_id == id => return Ok(reply),
                _ => {}
            }
        }
    }

    pub(super) async fn any_reply(&mut self) -> Result<ReceivedResponse, ClientError> {
        loop {
            let oldest = self.pending.iter().find(|pending| pending.consumer == ResponseConsumer::Caller);
            let id = oldest.map_or(0, |pending| pending.sample.message_id);
            let deadline = oldest.and_then(|pending| self.deadline(&pending.sample));
            if let Some(reply) = self.event(id, deadline).await? {
                return Ok(reply);
            }
        }
    }

    pub(super) async fn kept_reply(
        &mut self,
        id: u64,
        until: Option<Instant>,
    ) -> Result<Option<(Smb2Header, Vec<u8>)>, ClientError> {
        loop {
            if let Some(index) = self.kept.iter().position(|(header, _)| header.message_id == id) {
                return Ok(Some(self.kept.swap_remove(index)));
            }
            if !self.serve_one(until).await? && !self.kept.iter().any(|(header, _)| header.message_id == id) {
                return Ok(None);
            }
        }
    }

    pub(super) fn has_rest(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Handles one message. Returns false once `until` has passed.
    pub(super) async fn serve_one(&mut self, until: Option<Instant>) -> Result<bool, ClientError> {
        if self.rest.is_empty() {
            match self.link.receive(until).await {
                Ok(arrived) => self.open_frame(arrived)?,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Ok(false),
                Err(error) => return Err(self.lost("waiting for a change", error)),
            }
        }
        self.take_message()?;
        self.acknowledge().await?;
        // A server that sends without pause must not block the user.
        let is_over = until.is_some_and(|until| Instant::now() >= until);
        Ok(!is_over || self.has_rest() || self.link.has_frame())
    }

    pub(super) fn message(&self, reply: &ReceivedResponse) -> &[u8] {
        self.link.frame().get(reply.range.clone()).unwrap_or_default()
    }

    fn deadline(&self, sample: &Sample) -> Option<Instant> {
        let by_design = sample.group == CommandGroup::Waiting;
        if by_design { None } else { sample.request_first.checked_add(self.timeout) }
    }

    /// Handles one message. Returns it if it is a response that the caller may be waiting for.
    pub(super) async fn event(
        &mut self,
        id: u64,
        deadline: Option<Instant>,
    ) -> Result<Option<ReceivedResponse>, ClientError> {
        if self.rest.is_empty() {
            match self.link.receive(deadline).await {
                Ok(arrived) => self.open_frame(arrived)?,
                Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(self.give_up(id).await),
                Err(error) => return Err(self.lost("waiting for an answer", error)),
            }
        }
        let reply = self.take_message()?;
        self.acknowledge().await?;
        if reply.is_none() && self.link.is_past(deadline) {
            return Err(self.give_up(id).await);
        }
        Ok(reply)
    }

    fn open_frame(&mut self, arrived: ReceiveTimes) -> Result<(), ClientError> {
        self.arrived = Some(arrived);
        let frame = self.link.frame_mut();
        self.sealed = frame.starts_with(&TRANSFORM_ID);
        let rest = if self.sealed {
            self.protection.open(frame).ok_or("authentication tag")
        } else if frame.starts_with(&COMPRESSION_ID) {
            let error = ClientError::Protocol("it compresses, but compression was not negotiated".to_owned());
            self.abandon();
            return Err(error);
        } else {
            Ok(0..frame.len())
        };
        match rest {
            Ok(rest) => {
                self.rest = rest;
                Ok(())
            }
            Err(what) => {
                let command = self.pending.first().map_or(Command::EncryptedFrame, |pending| pending.sample.command);
                self.abandon();
                Err(ClientError::Tampered { command, what })
            }
        }
    }

    fn take_message(&mut self) -> Result<Option<ReceivedResponse>, ClientError> {
        let result = self.try_take_message();
        if result.is_err() {
            self.abandon();
        }
        result
    }

    fn try_take_message(&mut self) -> Result<Option<ReceivedResponse>, ClientError> {
        let (header, range) = self.split_message()?;
        let message = self.link.frame().get(range.clone()).unwrap_or_default();
        self.protection.check(&header, message, self.sealed)?;
        let Some(arrived) = self.arrived else { return Ok(None) };
        if header.message_id == u64::MAX && header.command == smb2::Smb2Command::OPLOCK_BREAK {
            return self.record_break(&header, range, arrived).map(|()| None);
        }
        let index = self.match_request(&header, message)?;
        let pending = &mut self.pending[index];
        self.credits.granted(header.credits, std::mem::take(&mut pending.credits_asked));
        if header.status == NtStatus::PENDING && header.async_id.is_some() {
            return note_interim(pending, &header, arrived).map(|()| None);
        }
        Ok(self.complete(index, ReceivedResponse { header, range }, arrived))
    }

    fn split_message(&mut self) -> Result<(Smb2Header, Range<usize>), ClientError> {
        let rest = std::mem::replace(&mut self.rest, 0..0);
        let bytes = self.link.frame().get(rest.clone()).unwrap_or_default();
        let header = Smb2Header::parse(bytes)
            .filter(|header| bytes.len() >= Smb2Header::LENGTH && header.is_response())
            .ok_or_else(|| ClientError::Protocol("a message without a response header".to_owned()))?;
        let range = match header.next_command as usize {
            0 => rest,
            next if next >= Smb2Header::LENGTH && next < bytes.len() => {
                self.rest = rest.start + next..rest.end;
                rest.start..rest.start + next
            }
            next => return Err(ClientError::Protocol(format!("a compound whose next message is {next} bytes on"))),
        };
        Ok((header, range))
    }

    fn record_break(
        &mut self,
        header: &Smb2Header,
        range: Range<usize>,
        arrived: ReceiveTimes,
    ) -> Result<(), ClientError> {
        let message = self.link.frame().get(range).unwrap_or_default();
        let notification =
            Notification::parse(message).ok_or_else(|| ClientError::Protocol("a malformed OPLOCK_BREAK".to_owned()))?;
        self.unasked += 1;
        if self.unasked > BREAKS_MAX {
            let text = format!("more than {BREAKS_MAX} oplock or lease breaks without a response in between");
            return Err(ClientError::Protocol(text));
        }
        let file = match notification {
            Notification::Oplock(oplock) => Some(FileHandle::from(oplock.file).0),
            Notification::Lease(_) => None,
        };
        let (session, tree) = (header.session_id.unwrap_or(0), header.tree_id.unwrap_or(0));
        let ids = HeaderIds { message: header.message_id, session, tree };
        self.samples.push(Sample {
            signed: header.is_signed(),
            encrypted: self.sealed,
            ..Sample::of_break(Command::Smb2(header.command), file, ids, arrived, message.len())
        });
        self.breaks.take(notification);
        Ok(())
    }

    fn match_request(&self, header: &Smb2Header, message: &[u8]) -> Result<usize, ClientError> {
        let command = header.command;
        let found = self.pending.iter().position(|pending| pending.sample.message_id == header.message_id);
        let Some(index) = found else {
            let id = header.message_id;
            return Err(ClientError::Protocol(format!("an unsolicited response to {command} {id}")));
        };
        let asked = self.pending[index].sample.command;
        if asked != Command::Smb2(command) {
            return Err(ClientError::Protocol(format!("{command} as an answer to {asked}")));
        }
        if header.status == NtStatus::SUCCESS && !has_its_body(command, message) {
            return Err(ClientError::Protocol(format!("its answer to {command} is cut off or malformed")));
        }
        Ok(index)
    }

    /// Records the final response to a request. Returns it if the caller consumes it.
    fn complete(&mut self, index: usize, reply: ReceivedResponse, arrived: ReceiveTimes) -> Option<ReceivedResponse> {
        let mut pending = self.pending.remove(index);
        let message = self.link.frame().get(reply.range.clone()).unwrap_or_default();
        complete_sample(&mut pending.sample, &reply.header, message, arrived);
        self.samples.push(pending.sample);
        if pending.consumer != ResponseConsumer::Discarded {
            self.unasked = 0;
        }
        match pending.consumer {
            ResponseConsumer::Caller => return Some(reply),
            ResponseConsumer::Discarded => {}
            ResponseConsumer::Later => self.kept.push((reply.header, message.to_vec())),
        }
        None
    }

    async fn acknowledge(&mut self) -> Result<(), ClientError> {
        while self.credits.affords(1)
            && let Some(acknowledgement) = self.breaks.due()
        {
            if self.pending.len() >= UNANSWERED_MAX {
                self.abandon();
                return Err(ClientError::Protocol(format!(
                    "{UNANSWERED_MAX} break acknowledgements without a response"
                )));
            }
            self.begin();
            self.add(&acknowledgement, RequestDetails::default(), Chain::Own);
            self.answer_to(ResponseConsumer::Discarded);
            self.flush().await?;
        }
        Ok(())
    }

    /// Handles a timeout: cancels the request, and waits briefly if the server has shown signs of life.
    async fn give_up(&mut self, id: u64) -> ClientError {
        let waited = self.timeout;
        let Some(pending) = self.pending.iter().find(|pending| pending.sample.message_id == id) else {
            return self.silent(id);
        };
        let (command, alive) = (pending.sample.command, pending.async_id.is_some());
        if let Err(error) = self.cancel(id).await {
            return error;
        }
        let until = Instant::now().checked_add(CANCEL_TIME);
        while alive && !self.link.is_past(until) && self.pending.iter().any(|pending| pending.sample.message_id == id) {
            let Ok(arrived) = self.link.receive(until).await else { break };
            let mut result = self.open_frame(arrived).map(|()| None);
            while result.is_ok() && !self.rest.is_empty() {
                result = self.take_message();
            }
            if result.is_err() {
                break;
            }
        }
        self.abandon();
        ClientError::TimedOut { command, waited }
    }

    pub(super) fn silent(&mut self, id: u64) -> ClientError {
        let pending = self.pending.iter().find(|pending| pending.sample.message_id == id);
        let command = pending.map_or(Command::Smb2(smb2::Smb2Command::NEGOTIATE), |pending| pending.sample.command);
        self.abandon();
        ClientError::TimedOut { command, waited: self.timeout }
    }

    pub(super) fn lost(&mut self, what: &'static str, error: io::Error) -> ClientError {
        self.abandon();
        ClientError::on_connection(what, error)
    }

    fn abandon(&mut self) {
        let now = Instant::now();
        self.samples.extend(self.pending.drain(..).map(|pending| pending.sample.abandoned(now)));
        self.rest = 0..0;
    }
}

fn note_interim(
    pending: &mut Smb2OutstandingRequest,
    header: &Smb2Header,
    arrived: ReceiveTimes,
) -> Result<(), ClientError> {
    pending.sample.interim.get_or_insert(arrived.last);
    pending.async_id = header.async_id;
    pending.interims += 1;
    if pending.interims > INTERIMS_MAX {
        let command = header.command;
        return Err(ClientError::Protocol(format!("STATUS_PENDING to {command} more than {INTERIMS_MAX} times")));
    }
    Ok(())
}

fn complete_sample(sample: &mut Sample, header: &Smb2Header, message: &[u8], arrived: ReceiveTimes) {
    *sample = Sample { status: Some(header.status), ..sample.completed(arrived, message.len()) };
    if header.command == smb2::Smb2Command::CREATE && header.status == NtStatus::SUCCESS {
        sample.file_id = u64_at(message, 128)
            .zip(u64_at(message, 136))
            .map(|(persistent, volatile)| FileId::Smb2 { persistent, volatile });
    }
}

/// Returns true if a successful response has the body of its command, for bodies that are not parsed elsewhere.
fn has_its_body(command: smb2::Smb2Command, message: &[u8]) -> bool {
    let structure_size: u16 = match command {
        smb2::Smb2Command::LOGOFF
        | smb2::Smb2Command::TREE_DISCONNECT
        | smb2::Smb2Command::FLUSH
        | smb2::Smb2Command::LOCK
        | smb2::Smb2Command::ECHO => 4,
        smb2::Smb2Command::CLOSE => 60,
        smb2::Smb2Command::SET_INFO => 2,
        _ => return true,
    };
    message.len() >= Smb2Header::LENGTH + usize::from(structure_size)
        && u16_at(message, Smb2Header::LENGTH) == Some(structure_size)
}
