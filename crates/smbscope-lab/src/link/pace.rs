//! A slower server: every response is held back in proportion to the time that the server took for it. Held responses
//! do not delay others, so the order may change, as MS-SMB2 allows. Encrypted messages have no id and pass at once.

use smbscope_wire::nbss::HEADER_LENGTH;
use smbscope_wire::smb1::Smb1Header;
use smbscope_wire::smb2::Smb2Header;
use smbscope_wire::status::NtStatus;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Instant;

/// Messages of one connection between their request and their response.
#[derive(Debug)]
pub(super) struct ServerPace {
    /// Factor of the server's time, from 1.
    factor: f64,
    requests: Messages,
    responses: Messages,
    asked: HashMap<u64, Instant>,
    /// Responses by due time and arrival.
    held: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>>,
    held_bytes: usize,
    arrivals: u64,
}

impl ServerPace {
    pub(super) fn new(factor: f64) -> ServerPace {
        ServerPace {
            factor,
            requests: Messages::default(),
            responses: Messages::default(),
            asked: HashMap::new(),
            held: BinaryHeap::new(),
            held_bytes: 0,
            arrivals: 0,
        }
    }

    /// Takes note of bytes on their way to the server.
    pub(super) fn asks(&mut self, now: Instant, data: &[u8]) {
        self.requests.add(data);
        while let Some(message) = self.requests.next() {
            self.asked.extend(MessageId::parse(&message).map(|MessageId { id, .. }| (id, now)));
        }
    }

    /// Takes bytes from the server, and holds complete messages until they are due.
    pub(super) fn answers(&mut self, now: Instant, data: &[u8]) {
        self.responses.add(data);
        while let Some(message) = self.responses.next() {
            let asked = MessageId::parse(&message).and_then(|MessageId { id, is_pending }| match is_pending {
                true => self.asked.get(&id).copied(),
                false => self.asked.remove(&id),
            });
            let took = asked.map_or_else(Default::default, |asked| now.saturating_duration_since(asked));
            self.held_bytes += message.len();
            self.arrivals += 1;
            let due = now + took.mul_f64((self.factor - 1.0).max(0.0));
            self.held.push(Reverse((due, self.arrivals, message)));
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse((due, ..))| *due)
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns the next response that is due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.next_due().filter(|due| *due <= now)?;
        let Reverse((_, _, message)) = self.held.pop()?;
        self.held_bytes -= message.len();
        Some(message)
    }

    /// Returns everything that is left when the server has closed the connection.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.held_bytes = 0;
        let held = std::mem::take(&mut self.held).into_sorted_vec();
        let mut rest: Vec<u8> = held.into_iter().rev().flat_map(|Reverse((_, _, message))| message).collect();
        rest.append(&mut self.responses.bytes);
        rest
    }
}

/// Bytes of one direction, cut into messages with their NetBIOS header.
#[derive(Debug, Default)]
struct Messages {
    bytes: Vec<u8>,
}

impl Messages {
    fn add(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let [_, length @ ..] = *self.bytes.first_chunk::<HEADER_LENGTH>()?;
        let end = HEADER_LENGTH + length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        if self.bytes.len() < end {
            return None;
        }
        let rest = self.bytes.split_off(end);
        Some(std::mem::replace(&mut self.bytes, rest))
    }
}

/// Number that a response shares with its request.
struct MessageId {
    id: u64,
    /// An interim response, which the final one follows.
    is_pending: bool,
}

impl MessageId {
    fn parse(message: &[u8]) -> Option<MessageId> {
        let message = message.get(HEADER_LENGTH..)?;
        let smb2 = Smb2Header::parse(message);
        let smb2 =
            smb2.map(|header| MessageId { id: header.message_id, is_pending: header.status == NtStatus::PENDING });
        smb2.or_else(|| Some(MessageId { id: Smb1Header::parse(message)?.mid.into(), is_pending: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::Smb2Command;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    /// Returns a message of MS-SMB2 with this id and status, and a byte of payload.
    fn message(id: u64, status: NtStatus) -> Vec<u8> {
        let header = Smb2Header { message_id: id, status, ..Smb2Header::new(Smb2Command::READ) };
        let mut message = vec![0, 0, 0, 65];
        header.emit(&mut message);
        message.push(0);
        message
    }

    #[test]
    fn a_response_comes_as_many_times_later_as_the_factor_says() {
        let start = Instant::now();
        let mut pace = ServerPace::new(3.0);
        pace.asks(start, &message(7, NtStatus::SUCCESS));
        // In two pieces: it has come when its last byte has. The server took 2 ms, so 4 ms are added.
        let response = message(7, NtStatus::SUCCESS);
        pace.answers(start + MS, &response[..30]);
        assert_eq!(pace.next_due(), None);
        pace.answers(start + 2 * MS, &response[30..]);
        assert_eq!((pace.next_due(), pace.due(start + 5 * MS)), (Some(start + 6 * MS), None));
        assert_eq!(pace.due(start + 6 * MS), Some(response));
        assert_eq!((pace.next_due(), pace.held_bytes()), (None, 0));
    }

    #[test]
    fn a_quick_response_passes_a_held_one() {
        let start = Instant::now();
        let mut pace = ServerPace::new(2.0);
        pace.asks(start, &[message(1, NtStatus::SUCCESS), message(2, NtStatus::SUCCESS)].concat());
        // 10 ms become 20; of the other one, asked at 10, 1 ms becomes 2.
        pace.answers(start + 10 * MS, &message(1, NtStatus::SUCCESS));
        pace.asks(start + 10 * MS, &message(3, NtStatus::SUCCESS));
        pace.answers(start + 11 * MS, &message(3, NtStatus::SUCCESS));
        assert_eq!(pace.due(start + 12 * MS), Some(message(3, NtStatus::SUCCESS)));
        assert_eq!((pace.due(start + 19 * MS), pace.next_due()), (None, Some(start + 20 * MS)));
        assert_eq!(pace.rest(), message(1, NtStatus::SUCCESS));
    }

    #[test]
    fn an_interim_response_leaves_its_request_outstanding() {
        let start = Instant::now();
        let mut pace = ServerPace::new(2.0);
        pace.asks(start, &message(1, NtStatus::SUCCESS));
        pace.answers(start + MS, &message(1, NtStatus::PENDING));
        pace.answers(start + 5 * MS, &message(1, NtStatus::SUCCESS));
        assert_eq!(pace.due(start + 2 * MS), Some(message(1, NtStatus::PENDING)));
        assert_eq!(pace.next_due(), Some(start + 10 * MS));
    }

    #[test]
    fn what_nobody_asked_for_and_what_is_no_message_of_smb_passes_at_once() {
        let start = Instant::now();
        let mut pace = ServerPace::new(2.0);
        // An oplock break, a keep-alive and an encrypted message.
        let encrypted = [0, 0, 0, 4, 0xfd, b'S', b'M', b'B'];
        pace.answers(start, &message(u64::MAX, NtStatus::SUCCESS));
        pace.answers(start, &[0x85, 0, 0, 0]);
        pace.answers(start, &encrypted);
        let passed: Vec<u8> = std::iter::from_fn(|| pace.due(start)).flatten().collect();
        assert_eq!(passed, [&message(u64::MAX, NtStatus::SUCCESS)[..], &[0x85, 0, 0, 0], &encrypted].concat());
    }
}
