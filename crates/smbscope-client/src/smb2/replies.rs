//! Receiving (MS-SMB2 3.2.5.1): decrypts, splits and verifies responses, matches them with requests, records breaks.

use super::connection::{Chain, Smb2Connection, Smb2Family, Smb2Reply, Smb2RequestState};
use crate::connection::{DialectFamily, OutstandingRequest, ResponseConsumer};
use crate::limits::{INTERIMS_MAX, UNANSWERED_MAX};
use crate::sample::{HeaderIds, RequestDetails};
use crate::transport::ReceiveTimes;
use crate::{ClientError, FileHandle, Sample};
use smbscope_model::{Command, FileId};
use smbscope_wire::bytes::{u16_at, u64_at};
use smbscope_wire::smb2::messages::oplock_break::Notification;
use smbscope_wire::smb2::{self, COMPRESSION_ID, Smb2Header, TRANSFORM_ID};
use smbscope_wire::status::NtStatus;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Time limit for the response to a CANCEL, if the server has answered with STATUS_PENDING before.
const CANCEL_TIME: Duration = Duration::from_secs(1);

impl DialectFamily for Smb2Family {
    type Request = Smb2RequestState;
    type Header = Smb2Header;

    fn open_frame(connection: &mut Smb2Connection) -> Result<Range<usize>, ClientError> {
        let frame = connection.link.frame_mut();
        connection.dialect.sealed = frame.starts_with(&TRANSFORM_ID);
        if frame.starts_with(&COMPRESSION_ID) {
            return Err(ClientError::Protocol("it compresses, but compression was not negotiated".to_owned()));
        }
        if !connection.dialect.sealed {
            return Ok(0..frame.len());
        }
        connection.dialect.protection.open(frame).ok_or_else(|| {
            let first = connection.outstanding.first();
            let command = first.map_or(Command::EncryptedFrame, |request| request.sample.command);
            ClientError::Tampered { command, what: "authentication tag" }
        })
    }

    fn take_message(connection: &mut Smb2Connection, arrived: ReceiveTimes) -> Result<Option<Smb2Reply>, ClientError> {
        let (header, range) = connection.split_message()?;
        let message = connection.link.frame().get(range.clone()).unwrap_or_default();
        connection.dialect.protection.check(&header, message, connection.dialect.sealed)?;
        if header.message_id == u64::MAX && header.command == smb2::Smb2Command::OPLOCK_BREAK {
            return connection.record_break(&header, range, arrived).map(|()| None);
        }
        let index = connection.match_request(&header, message)?;
        let (bytes, file_id) = (message.len(), created(&header, message));
        let request = &mut connection.outstanding[index];
        connection.dialect.credits.granted(header.credits, std::mem::take(&mut request.state.credits_asked));
        if header.status == NtStatus::PENDING && header.async_id.is_some() {
            return note_interim(request, &header, arrived).map(|()| None);
        }
        request.sample.file_id = file_id.or(request.sample.file_id);
        Ok(connection.complete(index, (header.status, header), range, arrived, bytes))
    }

    async fn acknowledge(connection: &mut Smb2Connection) -> Result<(), ClientError> {
        while connection.dialect.credits.affords(1)
            && let Some(acknowledgement) = connection.dialect.breaks.due()
        {
            if connection.outstanding.len() >= UNANSWERED_MAX {
                let what = format!("{UNANSWERED_MAX} break acknowledgements without a response");
                return connection.checked(Err(ClientError::Protocol(what)));
            }
            connection.begin();
            connection.add(&acknowledgement, RequestDetails::default(), Chain::Own);
            connection.answer_to(ResponseConsumer::Discarded);
            connection.flush().await?;
        }
        Ok(())
    }

    /// Cancels the request, and waits briefly for the response if the server has shown signs of life.
    async fn withdraw(connection: &mut Smb2Connection, id: u64) -> Result<(), ClientError> {
        let is_alive = connection.request(id).is_some_and(|request| request.state.async_id.is_some());
        connection.cancel(id).await?;
        let until = Instant::now().checked_add(CANCEL_TIME);
        while is_alive && !connection.link.is_past(until) && connection.request(id).is_some() {
            let Ok(arrived) = connection.link.receive(until).await else { break };
            let mut result = connection.open_frame(arrived).map(|()| None);
            while result.is_ok() && !connection.rest.is_empty() {
                result = connection.take_message();
            }
            if result.is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl Smb2Connection {
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
        let bytes = message.len();
        self.count_unsolicited()?;
        let file = match notification {
            Notification::Oplock(oplock) => Some(FileHandle::from(oplock.file).0),
            Notification::Lease(_) => None,
        };
        let (session, tree) = (header.session_id.unwrap_or(0), header.tree_id.unwrap_or(0));
        let ids = HeaderIds { message: header.message_id, session, tree };
        self.samples.push(Sample {
            signed: header.is_signed(),
            encrypted: self.dialect.sealed,
            ..Sample::of_break(Command::Smb2(header.command), file, ids, arrived, bytes)
        });
        self.dialect.breaks.take(notification);
        Ok(())
    }

    fn match_request(&self, header: &Smb2Header, message: &[u8]) -> Result<usize, ClientError> {
        let command = header.command;
        let found = self.outstanding.iter().position(|request| request.sample.message_id == header.message_id);
        let Some(index) = found else {
            let id = header.message_id;
            return Err(ClientError::Protocol(format!("an unsolicited response to {command} {id}")));
        };
        let asked = self.outstanding[index].sample.command;
        if asked != Command::Smb2(command) {
            return Err(ClientError::Protocol(format!("{command} as an answer to {asked}")));
        }
        if header.status == NtStatus::SUCCESS && !has_its_body(command, message) {
            return Err(ClientError::Protocol(format!("its answer to {command} is cut off or malformed")));
        }
        Ok(index)
    }
}

fn note_interim(
    request: &mut OutstandingRequest<Smb2RequestState>,
    header: &Smb2Header,
    arrived: ReceiveTimes,
) -> Result<(), ClientError> {
    request.sample.interim.get_or_insert(arrived.last);
    request.state.async_id = header.async_id;
    request.state.interims += 1;
    if request.state.interims > INTERIMS_MAX {
        let command = header.command;
        return Err(ClientError::Protocol(format!("STATUS_PENDING to {command} more than {INTERIMS_MAX} times")));
    }
    Ok(())
}

fn created(header: &Smb2Header, message: &[u8]) -> Option<FileId> {
    let is_created = header.command == smb2::Smb2Command::CREATE && header.status == NtStatus::SUCCESS;
    let (persistent, volatile) = u64_at(message, 128).zip(u64_at(message, 136)).filter(|_| is_created)?;
    Some(FileId::Smb2 { persistent, volatile })
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
