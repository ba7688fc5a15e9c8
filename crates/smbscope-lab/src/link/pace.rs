//! A slower server: every response is held back in proportion to the time that the server took until its first byte,
//! without the time in which other responses occupied the connection. Held responses do not delay others, so the order
//! may change, as MS-SMB2 allows. Encrypted messages have no id and pass at once.

use smbscope_wire::nbss::HEADER_LENGTH;
use smbscope_wire::smb1::Smb1Header;
use smbscope_wire::smb2::Smb2Header;
use smbscope_wire::status::NtStatus;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Messages of one connection between their request and their response.
#[derive(Debug)]
pub(super) struct ServerPace {
    /// Factor of the server's time, from 1.
    factor: f64,
    requests: Messages,
    responses: Messages,
    asked: HashMap<u64, Asked>,
    /// Responses in the order in which they began. Only the last one may be incomplete.
    held: Vec<HeldResponse>,
    held_bytes: usize,
    /// Time in which responses occupied the connection, without an incomplete one.
    occupied: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    time: Instant,
    /// Time in which responses had occupied the connection.
    occupied: Duration,
}

#[derive(Debug)]
struct HeldResponse {
    first: Instant,
    /// Delay of each byte.
    hold: Duration,
    /// Bytes with the time at which they came.
    pieces: VecDeque<(Instant, Vec<u8>)>,
    missing: usize,
    /// True if a part of it was passed on: the rest follows before any other response.
    passes: bool,
}

impl HeldResponse {
    fn due(&self) -> Instant {
        self.first + self.hold
    }

    /// Returns when the next of its bytes that have come are due.
    fn next_due(&self) -> Option<Instant> {
        self.pieces.front().map(|(came, _)| *came + self.hold)
    }
}

impl ServerPace {
    pub(super) fn new(factor: f64) -> ServerPace {
        ServerPace {
            factor,
            requests: Messages::default(),
            responses: Messages::default(),
            asked: HashMap::new(),
            held: Vec::new(),
            held_bytes: 0,
            occupied: Duration::ZERO,
        }
    }

    /// Takes note of bytes on their way to the server.
    pub(super) fn asks(&mut self, now: Instant, data: &[u8]) {
        self.requests.add(data);
        while let Some(message) = self.requests.next() {
            if let Some(MessageId { id, .. }) = MessageId::parse(&message) {
                self.asked.insert(id, Asked { time: now, occupied: self.occupied(now) });
            }
        }
    }

    fn arriving(&self) -> Option<&HeldResponse> {
        self.held.last().filter(|response| response.missing > 0)
    }

    fn occupied(&self, now: Instant) -> Duration {
        let arriving = self.arriving().map(|response| now.saturating_duration_since(response.first));
        self.occupied + arriving.unwrap_or_default()
    }

    /// Takes bytes from the server, and holds them until they are due.
    pub(super) fn answers(&mut self, now: Instant, data: &[u8]) {
        self.responses.add(data);
        loop {
            if self.arriving().is_none() {
                let Some(missing) = self.responses.begun() else { return };
                let hold = self.hold(now);
                self.held.push(HeldResponse { first: now, hold, pieces: VecDeque::new(), missing, passes: false });
            }
            let Some(response) = self.held.last_mut() else { return };
            let piece = self.responses.take(response.missing);
            if piece.is_empty() {
                return;
            }
            self.held_bytes += piece.len();
            response.missing -= piece.len();
            response.pieces.push_back((now, piece));
            if response.missing == 0 {
                self.occupied += now.saturating_duration_since(response.first);
            }
        }
    }

    /// Returns how long to hold the response that begins now.
    fn hold(&mut self, now: Instant) -> Duration {
        let asked = MessageId::parse(&self.responses.bytes).and_then(|MessageId { id, is_pending }| match is_pending {
            true => self.asked.get(&id).copied(),
            false => self.asked.remove(&id),
        });
        let took = asked.map_or_else(Duration::default, |asked| {
            let behind_others = self.occupied.saturating_sub(asked.occupied);
            now.saturating_duration_since(asked.time).saturating_sub(behind_others)
        });
        took.mul_f64((self.factor - 1.0).max(0.0))
    }

    /// Returns the position of the response to pass on next.
    fn next(&self) -> Option<usize> {
        let passing = self.held.iter().position(|response| response.passes);
        passing.or_else(|| (0..self.held.len()).min_by_key(|at| self.held[*at].due()))
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held[self.next()?].next_due()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns the next bytes that are due.
    pub(super) fn due(&mut self, now: Instant) -> Option<Vec<u8>> {
        let at = self.next()?;
        let response = &mut self.held[at];
        response.next_due().filter(|due| *due <= now)?;
        let (_, piece) = response.pieces.pop_front()?;
        response.passes = true;
        self.held_bytes -= piece.len();
        if response.missing == 0 && response.pieces.is_empty() {
            self.held.remove(at);
        }
        Some(piece)
    }

    /// Returns everything that is left when the server has closed the connection.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.held_bytes = 0;
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(|response| (!response.passes, response.missing > 0, response.due()));
        let pieces = held.into_iter().flat_map(|response| response.pieces).flat_map(|(_, piece)| piece);
        pieces.chain(std::mem::take(&mut self.responses.bytes)).collect()
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

    /// Returns the length of the next message.
    fn length(&self) -> Option<usize> {
        let [_, length @ ..] = *self.bytes.first_chunk::<HEADER_LENGTH>()?;
        Some(HEADER_LENGTH + length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    /// Returns the length of the next message if its header has come.
    fn begun(&self) -> Option<usize> {
        self.length().filter(|length| self.bytes.len() >= (*length).min(HEADER_LENGTH + Smb2Header::LENGTH))
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let length = self.length().filter(|length| self.bytes.len() >= *length)?;
        Some(self.take(length))
    }

    /// Takes this number of bytes, or as many as there are.
    fn take(&mut self, length: usize) -> Vec<u8> {
        let rest = self.bytes.split_off(length.min(self.bytes.len()));
        std::mem::replace(&mut self.bytes, rest)
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

    fn long_message(id: u64, length: u16) -> Vec<u8> {
        let mut long = message(id, NtStatus::SUCCESS);
        long.resize(HEADER_LENGTH + usize::from(length), 7);
        let [high, low] = length.to_be_bytes();
        long[..HEADER_LENGTH].copy_from_slice(&[0, 0, high, low]);
        long
    }

    #[test]
    fn a_response_begins_as_many_times_later_as_the_factor_says_and_takes_as_long_as_it_did() {
        let start = Instant::now();
        let mut pace = ServerPace::new(3.0);
        pace.asks(start, &message(7, NtStatus::SUCCESS));
        let response = long_message(7, 1_000);
        // The header comes in two pieces. Until then, the server took 2 ms, so 4 ms are added.
        pace.answers(start + MS, &response[..30]);
        assert_eq!(pace.next_due(), None);
        pace.answers(start + 2 * MS, &response[30..500]);
        assert_eq!((pace.next_due(), pace.due(start + 5 * MS)), (Some(start + 6 * MS), None));
        pace.answers(start + 5 * MS, &response[500..]);
        assert_eq!(pace.held_bytes(), 1_004);
        assert_eq!(pace.due(start + 6 * MS), Some(response[..500].to_vec()));
        assert_eq!((pace.next_due(), pace.due(start + 8 * MS)), (Some(start + 9 * MS), None));
        assert_eq!(pace.due(start + 9 * MS), Some(response[500..].to_vec()));
        assert_eq!((pace.next_due(), pace.held_bytes()), (None, 0));
    }

    #[test]
    fn the_time_behind_other_responses_is_not_that_of_the_server_and_none_interrupts_another() {
        let start = Instant::now();
        let mut pace = ServerPace::new(2.0);
        pace.asks(start, &[message(1, NtStatus::SUCCESS), message(2, NtStatus::SUCCESS)].concat());
        let long = long_message(2, 1_000);
        pace.answers(start + 3 * MS, &long[..500]);
        assert_eq!(pace.due(start + 6 * MS), Some(long[..500].to_vec()));
        assert_eq!(pace.next_due(), None, "the rest has not come");
        pace.answers(start + 8 * MS, &[&long[500..], &message(1, NtStatus::SUCCESS)].concat());
        // It was due after 8 + 3 ms, as is the end of the long one: without the 5 ms of that, its server took 3.
        assert_eq!((pace.next_due(), pace.due(start + 10 * MS)), (Some(start + 11 * MS), None));
        assert_eq!(pace.due(start + 11 * MS), Some(long[500..].to_vec()));
        assert_eq!(pace.due(start + 11 * MS), Some(message(1, NtStatus::SUCCESS)));
    }

    #[test]
    fn what_has_come_of_a_response_is_the_last_of_the_rest() {
        let start = Instant::now();
        let mut pace = ServerPace::new(3.0);
        let [first, second] = [message(1, NtStatus::SUCCESS), message(2, NtStatus::SUCCESS)];
        pace.asks(start, &first);
        pace.answers(start + 10 * MS, &first);
        pace.asks(start + 10 * MS, &second);
        pace.answers(start + 11 * MS, &second[..68]);
        assert_eq!(pace.rest(), [&first[..], &second[..68]].concat());
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
