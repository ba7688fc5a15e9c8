//! Read_Raw and Write_Raw (MS-CIFS §2.2.4.22, §2.2.4.25): data without an SMB header, matched by position alone.
//!
//! Write_Raw is reported in two parts, as in Swartz (1997): the request up to the server's "go ahead" (synchronous,
//! with a response time), and the block of data (asynchronous), answered in write-through mode only.

use super::requests::{Hidden, PidMid, Smb1RequestTracker, status};
use crate::content::{Message1, RequestOrResponse};
use crate::frame::Frame;
use crate::ledger::Ledger;
use crate::pending::{Causality, PendingExchange};
use smbscope_model::{Exchange, ExchangeOutcome, Half, ResponseStatus, Subcommand};
use smbscope_wire::smb1;
use smbscope_wire::status::NtStatus;

/// Expected raw data. Only one raw command may be outstanding on a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Smb1RawTransfer {
    read: Option<PidMid>,
    write: Option<WriteRaw>,
    /// Data block of a Write_Raw in write-through mode, which will get a response.
    block: Option<(PidMid, Box<PendingExchange>)>,
}

#[derive(Debug, Clone)]
struct WriteRaw {
    key: PidMid,
    write_through: bool,
    go_ahead: Option<Box<Exchange>>,
}

pub(crate) enum RawRequest {
    Read(PidMid),
    Write { key: PidMid, write_through: bool },
    None,
}

impl RawRequest {
    pub(crate) fn new(message: &Message1, key: PidMid) -> RawRequest {
        match (&message.body, message.header.command) {
            (_, smb1::Smb1Command::READ_RAW) => RawRequest::Read(key),
            (RequestOrResponse::Request(smb1::Smb1Request::WriteRaw { write_through, .. }), _) => {
                RawRequest::Write { key, write_through: *write_through }
            }
            _ => RawRequest::None,
        }
    }
}

impl Smb1RawTransfer {
    pub(crate) fn expect(&mut self, request: RawRequest) {
        match request {
            RawRequest::Read(key) => self.read = Some(key),
            RawRequest::Write { key, write_through } => {
                self.write = Some(WriteRaw { key, write_through, go_ahead: None });
            }
            RawRequest::None => {}
        }
    }

    /// The server is ready for the data block, which inherits the properties of the synchronous portion.
    pub(crate) fn go_ahead(&mut self, key: PidMid, pending: &PendingExchange) {
        match &mut self.write {
            Some(write) if write.key == key => write.go_ahead = Some(Box::new(pending.exchange.clone())),
            _ => self.write = None,
        }
    }

    pub(crate) fn take_block(&mut self, key: PidMid) -> Option<Box<PendingExchange>> {
        self.block.take_if(|(block_key, _)| *block_key == key).map(|(_, pending)| pending)
    }

    pub(crate) fn take_all(&mut self) -> Option<Box<PendingExchange>> {
        self.block.take().map(|(_, pending)| pending)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PendingExchange> {
        self.block.iter_mut().map(|(_, pending)| &mut **pending)
    }

    pub(super) fn take_answer_to_read(
        &mut self,
        requests: &mut Smb1RequestTracker,
        ledger: &mut Ledger<'_>,
        frame: &Frame,
    ) -> bool {
        let Some(key) = self.read.take() else { return false };
        let Some(request) = requests.outstanding.by_id().get(&key) else { return false };
        let pending = &request.pending;
        // Only the position identifies the request, so there must be no gap in between.
        let sent = pending.acknowledged.unwrap_or(0);
        let hidden = ledger.server_losses.bytes_between(sent, frame.start) > 0;
        if hidden || pending.causality(frame) == Causality::Impossible {
            return false;
        }
        if let Some(mut request) = requests.outstanding.remove(key) {
            request.pending.add_response(frame, frame.length(), ResponseStatus::Nt(NtStatus::SUCCESS));
            // Without a header there is no status: an error shows as an empty response.
            request.pending.exchange.status = None;
            ledger.complete(request.pending);
        }
        true
    }

    pub(super) fn take_block_of_write(
        &mut self,
        requests: &mut Smb1RequestTracker,
        ledger: &mut Ledger<'_>,
        frame: &Frame,
    ) -> bool {
        let Some(WriteRaw { key, write_through, go_ahead }) = self.write.take() else { return false };
        let synchronous = match go_ahead {
            Some(synchronous) => *synchronous,
            // The client continues, so the "go ahead" was sent but not captured.
            None => {
                let Some(request) = requests.outstanding.remove(key) else { return false };
                let synchronous = request.pending.exchange.clone();
                ledger.abandon(request.pending);
                synchronous
            }
        };
        let exchange = Exchange {
            subcommand: Some(Subcommand::AsyncPortion),
            request: frame.half(frame.length()),
            response: Half::default(),
            interim: None,
            status: None,
            outcome: ExchangeOutcome::NoResponseByDesign,
            retransmitted: 0,
            retransmission_delay: None,
            resent: None,
            standstill: None,
            think_time: None,
            ..synchronous
        };
        let pending = PendingExchange::new(exchange, frame);
        if write_through {
            ledger.started(&pending);
            if let Some((_, older)) = self.block.replace((key, pending)) {
                ledger.abandon(older);
            }
        } else {
            ledger.report(pending);
        }
        true
    }

    /// Processes WRITE_COMPLETE or, from Samba, WRITE_RAW, which answers the data block in write-through mode.
    pub(super) fn take_answer(
        &mut self,
        requests: &Smb1RequestTracker,
        ledger: &mut Ledger<'_>,
        frame: &Frame,
        message: &Message1,
        key: PidMid,
    ) -> bool {
        let command = message.header.command;
        if !matches!(command, smb1::Smb1Command::WRITE_COMPLETE | smb1::Smb1Command::WRITE_RAW) {
            return false;
        }
        let fits = |(_, block): &&(PidMid, Box<PendingExchange>)| block.causality(frame) == Causality::Possible;
        let Some((_, block)) = self.block.as_ref().filter(|(known, _)| *known == key).filter(fits) else {
            return false;
        };
        let hidden = requests.hidden_between(ledger, frame, key, block, false);
        let Some(mut pending) = self.take_block(key) else { return false };
        if hidden != Hidden::Nothing {
            // It may be the "go ahead" of the next request, which looks the same.
            ledger.abandon(pending);
            return false;
        }
        pending.add_response(frame, frame.length(), status(&message.header));
        ledger.complete(pending);
        true
    }
}
