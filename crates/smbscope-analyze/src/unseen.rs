//! Estimates the number of commands that a capture misses completely, request and response.
//!
//! SMB2 numbers the messages of a connection consecutively (MS-SMB2 §3.2.4.1.3), so ids that never occurred belong to
//! lost commands; if commands take several ids, their number is an estimate. The MIDs of most SMB1 clients are a
//! counter, too. Otherwise, the missing bytes of each direction, divided by the typical size of the frames around them,
//! give two estimates of the same number, which are weighted by their variance.

use smbscope_model::Quality;
use smbscope_wire::smb2::Smb2Header;
use std::collections::VecDeque;

/// Ranges of message ids; the oldest hole then stays in `commands_unseen`.
const MAX_ID_RANGES: usize = 64;
/// Length of the smallest request with its frame header, one of SMB1 (MS-CIFS §2.2.3).
const SMALLEST_MESSAGE: u64 = 4 + 32 + 3;
/// Size of a request without bulk data: a quarter of the bundled captures have fewer bytes of the client per command.
const TYPICAL_MESSAGE: f64 = 140.0;
/// Number of frames around missing bytes, or of commands around missing ids, that determine the typical size.
const TYPICAL: f64 = 24.0;
/// Consecutive MIDs that prove a counter.
const LEAST_COUNTED: u64 = 8;
/// Consecutive 64-bit numbers that prove a counter; they never follow one another by chance.
const LEAST_COUNTED_LONG: u64 = 2;
/// Maximum number of missing requests between two MIDs of a counter if no loss is visible between them.
const MOST_SKIPPED: u64 = 32;
/// Minimum ratio of numbers in step to numbers out of step.
const LEAST_REGULAR: u64 = 16;
/// Variance of a count whose last command is uncertain.
const ROUNDING: f64 = 0.25;

/// Uncertainty at an end of a connection that the capture misses.
const A_COMMAND_MORE_OR_LESS: UnseenEstimate = UnseenEstimate { count: 0.0, variance: ROUNDING };

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct UnseenEstimate {
    pub(crate) count: f64,
    pub(crate) variance: f64,
}

impl UnseenEstimate {
    fn plus(self, other: UnseenEstimate) -> UnseenEstimate {
        UnseenEstimate { count: self.count + other.count, variance: self.variance + other.variance }
    }

    /// Raises the estimate of missing bytes that hold whole messages to one message.
    fn at_least_one(self) -> UnseenEstimate {
        let count = if self.count > 0.0 { self.count.max(1.0) } else { 0.0 };
        UnseenEstimate { count, ..self }
    }

    fn add(&mut self, other: UnseenEstimate) {
        *self = self.plus(other);
    }

    /// Combines two estimates by variance; a difference beyond their errors increases the variance (Birge 1932).
    fn and(self, other: UnseenEstimate) -> UnseenEstimate {
        let weights = self.variance + other.variance;
        if weights <= 0.0 {
            return self;
        }
        let excess = ((self.count - other.count).powi(2) / weights).max(1.0);
        UnseenEstimate {
            count: (self.count * other.variance + other.count * self.variance) / weights,
            variance: excess * self.variance * other.variance / weights,
        }
    }

    /// Estimates the commands of a connection that lost every message in the capture, at least one, from the lost bytes
    /// of each direction (0 if unknown). Bulk data goes in the direction with more bytes.
    pub(crate) fn from_bytes(lost: [u64; 2]) -> UnseenEstimate {
        let Some(least) = lost.into_iter().filter(|bytes| *bytes > 0).min() else { return UnseenEstimate::default() };
        let count = (least as f64 / TYPICAL_MESSAGE).max(1.0);
        UnseenEstimate { count, variance: count * count / 4.0 + ROUNDING }
    }

    pub(crate) fn count_in(self, quality: &mut Quality) {
        quality.commands_unseen += self.count.round() as u64;
        quality.commands_unseen_variance += self.variance.ceil() as u64;
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct SizeMoments {
    number: f64,
    sum: f64,
    squares: f64,
}

impl SizeMoments {
    fn add(&mut self, size: f64) {
        self.number += 1.0;
        self.sum += size;
        self.squares += size * size;
    }

    fn forget(&mut self, number: f64) {
        if self.number > number {
            let share = number / self.number;
            *self = SizeMoments { number, sum: self.sum * share, squares: self.squares * share };
        }
    }

    fn with(self, other: SizeMoments) -> SizeMoments {
        SizeMoments {
            number: self.number + other.number,
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
        }
    }

    /// Estimates how many items of these sizes make up a total. Includes the variation of the sizes and of their mean.
    fn within(self, total: f64) -> UnseenEstimate {
        if self.sum <= 0.0 || total <= 0.0 {
            return UnseenEstimate::default();
        }
        let mean = self.sum / self.number;
        let spread = (self.squares / self.number / (mean * mean) - 1.0).max(0.0);
        let count = total / mean;
        UnseenEstimate { count, variance: count * spread + count * count * spread / self.number }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct MessageIds {
    ranges: VecDeque<MessageIdRange>,
    settled: UnseenEstimate,
    charges: SizeMoments,
    requested_to: u64,
}

#[derive(Debug, Clone, Copy)]
struct MessageIdRange {
    start: u64,
    end: u64,
    charges: SizeMoments,
}

impl MessageIds {
    /// Records the ids of a request or its response. Not for CANCEL and unsolicited messages.
    #[inline]
    pub(crate) fn note(&mut self, header: &Smb2Header) {
        let (start, charge) = (header.message_id, u64::from(header.credit_charge.max(1)));
        let end = start.saturating_add(charge);
        if !header.is_response() {
            self.requested_to = self.requested_to.max(end);
        }
        match self.ranges.back_mut() {
            Some(last) if last.end == start => last.end = end,
            Some(last) if last.start <= start && end <= last.end => return,
            _ => self.insert(start, end),
        }
        self.charges.forget(TYPICAL);
        self.charges.add(charge as f64);
    }

    #[cold]
    fn insert(&mut self, start: u64, end: u64) {
        let at = self.ranges.partition_point(|known| known.end < start);
        let mut range = MessageIdRange { start, end, charges: self.charges };
        while let Some(known) = self.ranges.get(at).copied().filter(|known| known.start <= range.end) {
            let charges = if known.start <= range.start { known.charges } else { range.charges };
            range = MessageIdRange { start: range.start.min(known.start), end: range.end.max(known.end), charges };
            self.ranges.remove(at);
        }
        self.ranges.insert(at, range);
        if self.ranges.len() > MAX_ID_RANGES
            && let (Some(oldest), Some(next)) = (self.ranges.pop_front(), self.ranges.front_mut())
        {
            let hole = next.charges.with(self.charges).within((next.start - oldest.end) as f64);
            next.start = oldest.start;
            self.settled.add(hole);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    fn after_the_last_request(&self) -> f64 {
        let end = self.ranges.back().map_or(0, |last| last.end);
        self.charges.within(end.saturating_sub(self.requested_to) as f64).count
    }

    /// A connection starts with id 0 if its beginning was captured.
    fn unseen(&self, from_the_beginning: bool) -> UnseenEstimate {
        let mut estimate = self.settled;
        let mut expected = if from_the_beginning { 0 } else { self.ranges.front().map_or(0, |first| first.start) };
        for (index, range) in self.ranges.iter().enumerate() {
            let behind = self.ranges.get(index + 1).map_or(self.charges, |next| next.charges);
            estimate.add(range.charges.with(behind).within((range.start - expected) as f64));
            expected = range.end;
        }
        estimate
    }
}

/// Numbers of `BITS` bits that a sender assigns to its messages. In a counter, missing numbers are lost messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct SequenceTracker<const BITS: u32> {
    last: Option<u64>,
    step: u64,
    /// Messages with the expected number and nothing missing before them, and messages with an unexpected number.
    regular: u64,
    irregular: u64,
    missing: u64,
}

pub(crate) type MidCounter = SequenceTracker<16>;

impl<const BITS: u32> SequenceTracker<BITS> {
    /// A rise of at least this much is a fall: the counter restarted, and the missing numbers are unknown.
    const BACKWARDS: u64 = 1 << (BITS - 1);
    const LONG: bool = BITS == u64::BITS;
    const LEAST_COUNTED: u64 = if Self::LONG { LEAST_COUNTED_LONG } else { LEAST_COUNTED };

    pub(crate) fn begin(&mut self) {
        (self.last, self.step) = (Some(0), 1);
    }

    #[inline]
    pub(crate) fn note(&mut self, number: u64, lost: bool) {
        let rise = self.last.map_or(0, |last| number.wrapping_sub(last) & (u64::MAX >> (u64::BITS - BITS)));
        self.last = Some(number);
        if rise > 0 && rise == self.step {
            self.regular += u64::from(!lost || Self::LONG);
        } else if self.step > 0
            && rise < Self::BACKWARDS
            && rise.is_multiple_of(self.step)
            && (lost || rise / self.step <= MOST_SKIPPED)
        {
            self.missing = self.missing.saturating_add((rise / self.step).saturating_sub(1));
            self.irregular += u64::from(!lost);
        } else {
            self.irregular += u64::from(self.step > 0 || !Self::LONG);
            // Any step is possible until one is confirmed; a long counter counts messages.
            if self.regular == 0 {
                self.step = if Self::LONG { 1 } else { rise };
            }
        }
    }

    pub(crate) fn latest(&self) -> Option<u64> {
        self.last
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.irregular == 0 && self.regular >= Self::LEAST_COUNTED
    }

    pub(crate) fn missing(&self) -> Option<u64> {
        (self.regular >= Self::LEAST_COUNTED && self.regular >= LEAST_REGULAR * self.irregular).then_some(self.missing)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct HiddenFrames {
    pub(crate) frames: u64,
    pub(crate) unread: u64,
    cut: u64,
    frames_of_known_length_only: u64,
    /// True if bytes before the first frame were not read.
    pub(crate) begins_unread: bool,
    before: SizeMoments,
    /// The latest unreadable range with the sizes before and after it, until there are enough.
    open: Option<(u64, SizeMoments, SizeMoments)>,
    settled: UnseenEstimate,
    tail: UnseenEstimate,
}

impl HiddenFrames {
    #[inline]
    pub(crate) fn frame(&mut self, length: u64) {
        let length = length as f64;
        self.frames += 1;
        self.before.forget(TYPICAL);
        self.before.add(length);
        if let Some((_, _, behind)) = &mut self.open {
            behind.add(length);
            if behind.number >= TYPICAL {
                self.settle();
            }
        }
    }

    /// Notes a frame of this many bytes whose last messages, or all of them, lack their headers.
    #[cold]
    pub(crate) fn cut(&mut self, length: u64, is_unknown: bool) {
        self.cut += length;
        self.frames_of_known_length_only += u64::from(is_unknown);
    }

    pub(crate) fn end(&mut self, bytes: u64) {
        self.unread += bytes;
        self.settle();
        self.tail = self.before.within(bytes as f64);
        self.settled.add(self.tail);
    }

    pub(crate) fn stretch(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.unread += bytes;
        self.begins_unread |= self.frames == 0;
        match &mut self.open {
            // There was no frame between the two ranges.
            Some((known, _, behind)) if behind.number == 0.0 => *known += bytes,
            _ => {
                self.settle();
                self.open = Some((bytes, self.before, SizeMoments::default()));
            }
        }
    }

    fn settle(&mut self) {
        let Some((bytes, before, behind)) = self.open.take() else { return };
        let estimate = before.with(behind).within(bytes as f64);
        self.settled.add(if bytes >= SMALLEST_MESSAGE { estimate.at_least_one() } else { estimate });
    }

    fn commands_at_the_end(&self, seen: u64) -> UnseenEstimate {
        let per_frame = seen as f64 / self.frames.max(1) as f64;
        UnseenEstimate { count: self.tail.count * per_frame, variance: self.tail.variance * per_frame * per_frame }
    }

    /// Estimates the commands with a half in this direction, `seen` of them captured. Absent if nothing was captured.
    fn commands(&mut self, seen: u64) -> Option<UnseenEstimate> {
        self.settle();
        let known = self.frames.saturating_sub(self.frames_of_known_length_only);
        if seen == 0 || known == 0 {
            return None;
        }
        let per_frame = seen as f64 / known as f64;
        let unknown = UnseenEstimate { count: self.frames_of_known_length_only as f64, variance: 0.0 };
        let hidden = self.settled.plus(unknown);
        Some(UnseenEstimate {
            count: seen as f64 + hidden.count * per_frame,
            variance: hidden.variance * per_frame * per_frame + if hidden.count > 0.0 { ROUNDING } else { 0.0 },
        })
    }
}

#[derive(Debug)]
pub(crate) struct CommandObservations<'a> {
    pub(crate) seen: u64,
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) client: &'a mut HiddenFrames,
    pub(crate) server: &'a mut HiddenFrames,
    pub(crate) ids: Option<&'a MessageIds>,
    pub(crate) mids: Option<&'a MidCounter>,
    pub(crate) encrypted: EncryptedMissing,
    pub(crate) from_the_beginning: bool,
    pub(crate) begins_in_response: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EncryptedMissing {
    pub(crate) requests: Option<u64>,
    pub(crate) responses: Option<u64>,
    pub(crate) others: f64,
    pub(crate) before: u64,
}

impl CommandObservations<'_> {
    /// Estimates the number of commands at the end of the connection that lack both request and response, so that their
    /// ids never occur. Missing requests with a captured response are not included.
    fn lost_at_the_end(&self, ids: &MessageIds) -> UnseenEstimate {
        let mut requests = self.client.commands_at_the_end(self.asked).at_least_one();
        requests.count -= ids.after_the_last_request();
        let responses = self.server.commands_at_the_end(self.answered).at_least_one();
        // Without any response, their size is unknown.
        let both = if self.answered > 0 && responses.count < requests.count { responses } else { requests };
        // Nothing follows that would show whether the bytes are a command more or less.
        if both.count < 0.5 { UnseenEstimate::default() } else { both.plus(A_COMMAND_MORE_OR_LESS) }
    }

    pub(crate) fn unseen(self) -> UnseenEstimate {
        // Asked before the capture, and answered by a response whose header came before it, too.
        let before = UnseenEstimate { count: 1.0, variance: ROUNDING };
        if self.begins_in_response { self.hidden().plus(before) } else { self.hidden() }
    }

    /// Returns the number of commands that lost parts of the streams hide. If the client's was read completely, these
    /// are only the encrypted ones from before the capture.
    fn hidden(self) -> UnseenEstimate {
        let seen = self.seen as f64;
        let unread = self.client.unread + self.client.cut;
        let earlier = self.encrypted.before;
        if unread == 0 {
            return UnseenEstimate { count: earlier as f64, variance: 0.0 };
        }
        let at_the_end = self.client.commands_at_the_end(self.asked);
        let all = match (self.ids, self.mids.and_then(MidCounter::missing)) {
            (Some(ids), _) => {
                let numbered = ids.unseen(self.from_the_beginning);
                UnseenEstimate { count: seen, variance: 0.0 }.plus(numbered).plus(self.lost_at_the_end(ids))
            }
            (None, Some(missing)) => {
                UnseenEstimate { count: (self.asked + missing) as f64, variance: 0.0 }.plus(at_the_end)
            }
            (None, None) if self.encrypted.requests.is_some() => {
                let missing = self.encrypted.requests.unwrap_or(0) as f64;
                let requests = (self.asked + self.encrypted.before) as f64 + missing;
                UnseenEstimate { count: requests, variance: 0.0 }.plus(at_the_end)
            }
            (None, None) if self.encrypted.responses.is_some() => {
                let EncryptedMissing { responses, others, .. } = self.encrypted;
                let missing = responses.unwrap_or(0) as f64;
                let final_ones =
                    UnseenEstimate { count: missing * (1.0 - others), variance: missing * others * (1.0 - others) };
                let answered = UnseenEstimate { count: self.answered as f64, variance: 0.0 };
                answered.plus(final_ones).plus(self.server.commands_at_the_end(self.answered))
            }
            (None, None) => {
                // Both directions carry the same commands.
                let both =
                    [self.client.commands(self.asked + self.encrypted.before), self.server.commands(self.answered)];
                both.into_iter().flatten().reduce(UnseenEstimate::and).unwrap_or_default()
            }
        };
        // A command from before the capture may have been answered in it, by a response that is missing, too.
        let all = if self.from_the_beginning { all } else { all.plus(A_COMMAND_MORE_OR_LESS) };
        UnseenEstimate { count: (all.count - seen).clamp(0.0, (unread / SMALLEST_MESSAGE + earlier) as f64), ..all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smbscope_wire::smb2::{Smb2Command, flags};

    fn header(message_id: u64, credit_charge: u16) -> Smb2Header {
        let mut bytes = vec![0xfe, b'S', b'M', b'B', 64, 0];
        bytes.resize(Smb2Header::LENGTH, 0);
        let parsed = Smb2Header::parse(&bytes).expect("it is a header");
        Smb2Header { message_id, credit_charge, command: Smb2Command::READ, ..parsed }
    }

    fn unseen(ids: impl IntoIterator<Item = (u64, u16)>) -> UnseenEstimate {
        let mut seen = MessageIds::default();
        ids.into_iter().for_each(|(id, charge)| seen.note(&header(id, charge)));
        seen.unseen(true)
    }

    #[test]
    fn ids_that_were_never_seen_are_the_commands_lost() {
        assert_eq!(unseen((0..50).map(|id| (id, 1))), UnseenEstimate::default());
        // 3, 4, 5 and 20 are missing; a response repeats the id of its request, and responses arrive in any order.
        let ids = (0..30).filter(|id| ![3, 4, 5, 20].contains(id)).flat_map(|id| [(id ^ 1, 1), (id, 1)]);
        let ids = ids.filter(|(id, _)| ![3, 4, 5, 20].contains(id));
        assert_eq!(unseen(ids), UnseenEstimate { count: 4.0, variance: 0.0 });
        // A charge of 0 means one id (MS-SMB2 §2.2.1); a late response fills a gap.
        assert_eq!(unseen([(0, 0), (2, 0), (1, 0)]), UnseenEstimate::default());
    }

    #[test]
    fn the_ids_of_a_connection_begin_at_zero() {
        let mut seen = MessageIds::default();
        seen.note(&header(7, 1));
        assert_eq!((seen.unseen(true).count, seen.unseen(false).count), (7.0, 0.0));
    }

    /// Observations of a readable connection captured from its beginning: commands seen, asked and answered.
    fn observed<'a>(
        [seen, asked, answered]: [u64; 3],
        client: &'a mut HiddenFrames,
        server: &'a mut HiddenFrames,
        ids: Option<&'a MessageIds>,
    ) -> CommandObservations<'a> {
        CommandObservations {
            seen,
            asked,
            answered,
            client,
            server,
            ids,
            mids: None,
            encrypted: EncryptedMissing::default(),
            from_the_beginning: true,
            begins_in_response: false,
        }
    }

    #[test]
    fn requests_missing_at_the_end_are_not_counted_beside_their_responses() {
        // A request of 200 bytes, and 400 missing bytes after it: two requests. The responses look the same.
        let unseen = |(answered, missing): (u64, u64)| {
            let [mut client, mut server] = [HiddenFrames::default(), HiddenFrames::default()];
            client.frame(200);
            client.end(400);
            let mut ids = MessageIds::default();
            ids.note(&header(0, 1));
            (0..answered).for_each(|id| {
                server.frame(200);
                ids.note(&Smb2Header { flags: flags::SERVER_TO_REDIR, ..header(id, 1) });
            });
            server.end(missing);
            let known = observed([answered, 1, answered], &mut client, &mut server, Some(&ids));
            known.unseen().count
        };
        assert_eq!([(3, 0), (2, 0), (2, 200), (1, 400)].map(unseen), [0.0, 0.0, 1.0, 2.0]);
    }

    /// The capture begins in the response to a request that came before it. Nothing else is missing.
    #[test]
    fn a_capture_that_begins_in_a_response_hides_its_command() {
        let [mut client, mut server] = [HiddenFrames::default(), HiddenFrames::default()];
        client.frame(200);
        server.frame(200);
        let known = CommandObservations {
            from_the_beginning: false,
            begins_in_response: true,
            ..observed([1, 1, 1], &mut client, &mut server, None)
        };
        assert_eq!(known.unseen().count, 1.0);
    }

    #[test]
    fn a_connection_without_any_captured_message_has_one_command_at_least() {
        assert_eq!(UnseenEstimate::from_bytes([0, 0]), UnseenEstimate::default());
        assert_eq!(UnseenEstimate::from_bytes([560, 0]).count, 4.0);
        assert_eq!(UnseenEstimate::from_bytes([70, 1 << 20]).count, 1.0);
        assert_eq!(UnseenEstimate::from_bytes([1 << 20, 1_400]).count, 10.0);
    }

    /// Two chains of four requests each. The snap length left two requests and one response of each chain.
    #[test]
    fn requests_that_the_snap_length_cut_off_a_chain_are_counted_by_their_ids() {
        let [mut client, mut server] = [HiddenFrames::default(), HiddenFrames::default()];
        let mut ids = MessageIds::default();
        for first in [0, 4] {
            client.frame(400);
            client.cut(400, false);
            ids.note(&header(first, 1));
            ids.note(&header(first + 1, 1));
            server.frame(500);
            server.cut(500, false);
        }
        ids.note(&header(8, 1));
        let known = observed([5, 5, 2], &mut client, &mut server, Some(&ids));
        assert_eq!(known.unseen(), UnseenEstimate { count: 4.0, variance: 0.0 });
    }

    #[test]
    fn a_command_of_several_ids_counts_once() {
        // Every command takes four ids, and those from 40 to 60 are missing: five commands.
        let ids = (0..25).map(|command| (4 * command, 4)).filter(|(id, _)| !(40..60).contains(id));
        assert_eq!(unseen(ids), UnseenEstimate { count: 5.0, variance: 0.0 });
        // One in ten commands takes 11 ids, the others one, so two ids on average. Ten ids may be one command or ten.
        let ids =
            (0..100u64).map(|command| (2 * (command / 10) * 10 + command % 10, if command % 10 == 9 { 11 } else { 1 }));
        let some = unseen(ids.filter(|(id, _)| !(40..50).contains(id)));
        assert!(some.count > 3.0 && some.count < 10.0 && some.variance > 10.0, "{some:?}");
    }

    #[test]
    fn more_holes_than_are_remembered_are_still_counted() {
        let missing = unseen((0..400u64).map(|id| (2 * id, 1)));
        assert_eq!(missing, UnseenEstimate { count: 399.0, variance: 0.0 });
    }

    #[test]
    fn mids_that_count_up_show_what_was_left_out() {
        let missing = |mids: &mut dyn Iterator<Item = u16>| {
            let mut counter = MidCounter::default();
            let mut last = None;
            for mid in mids {
                counter.note(u64::from(mid), last.is_some_and(|last: u16| mid.wrapping_sub(last) != 64));
                last = Some(mid);
            }
            counter.missing()
        };
        assert_eq!(missing(&mut (0..50).map(|number| 64 * number)), Some(0));
        assert_eq!(
            missing(&mut (0..50).filter(|number| !(20..27).contains(number)).map(|number| 64 * number)),
            Some(7)
        );
        assert_eq!(missing(&mut (0..50).map(|number| 640 * (number % 5))), None, "these come again");
        assert_eq!(missing(&mut (0..5).map(|number| 64 * number)), None, "too few to tell");
    }

    #[test]
    fn missing_bytes_are_divided_by_the_sizes_around_them() {
        // 1,000 frames of 2,000 bytes, then 1,000 of 100; in the middle of the latter, 5,000 bytes are missing.
        let mut hidden = HiddenFrames::default();
        (0..1000).for_each(|_| hidden.frame(2_000));
        (0..500).for_each(|_| hidden.frame(100));
        hidden.stretch(5_000);
        (0..500).for_each(|_| hidden.frame(100));
        let all = hidden.commands(2_000).expect("there are frames");
        assert!((all.count - 2_050.0).abs() < 0.01 && all.variance < 1.0, "{all:?}");
    }

    #[test]
    fn missing_bytes_between_frames_are_one_message_at_least() {
        // 48 writes of 64 KiB, and 170 bytes missing between them.
        let mut hidden = HiddenFrames::default();
        (0..24).for_each(|_| hidden.frame(65_536));
        hidden.stretch(170);
        (0..24).for_each(|_| hidden.frame(65_536));
        assert_eq!(hidden.commands(48).expect("there are frames").count, 49.0);
    }

    #[test]
    fn a_frame_whose_length_alone_is_known_is_one_command() {
        // Of ten requests, one lost everything but the frame header, which its client sends in a segment of its own.
        let mut hidden = HiddenFrames::default();
        (0..10).for_each(|_| hidden.frame(170));
        hidden.cut(170, true);
        let all = hidden.commands(9).expect("there are frames");
        assert_eq!((all.count, all.variance), (10.0, ROUNDING));
    }

    #[test]
    fn of_two_estimates_the_surer_one_counts_for_more() {
        let sure = UnseenEstimate { count: 10.0, variance: 1.0 };
        let vague = UnseenEstimate { count: 20.0, variance: 9.0 };
        // (10 · 9 + 20 · 1) / 10 and 9 / 10, ten times as much because they differ by 10 instead of √10.
        assert_eq!(sure.and(vague), UnseenEstimate { count: 11.0, variance: 9.0 });
        // (10 · 9 + 13 · 1) / 10: a difference of 3 is within the errors.
        assert_eq!(sure.and(UnseenEstimate { count: 13.0, ..vague }), UnseenEstimate { count: 10.3, variance: 0.9 });
    }
}
