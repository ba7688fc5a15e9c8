//! What an analysis finds in a damaged copy of a capture, judged by the analysis of the undamaged one.
//!
//! The terms are those of `scripts/accuracy.py`, which also compares the undamaged analysis with tshark:
//!
//! - An exchange is **allowed** when the copy still holds what its measurement needs: the first packet of its request,
//!   the first and the last packet of its final response, and the headers of both up to the message id; and when no
//!   packet of its request stands behind the beginning of its response, as packets may overtake each other.
//! - It is **right** when the analysis of the copy measures it, and **missing** when it does not, though it is allowed.
//! - A pair is **false** when the analysis joins a request with a response, or with one end of a response, that is not
//!   its own in the undamaged capture.
//! - A right pair is **mistimed** when its time begins or ends at another packet than the first copy of the right one.
//!   Where packets overtook each other, the one that arrived last ends a message.

pub(crate) mod messages;

use crate::recording::{self, Kept, Recording};
use messages::{Ends, Id, Message};
use smbscope_model::{Command, Exchange, ExchangeOutcome, Half, Protocol, Stamp};
use std::collections::HashMap;
use std::fmt;

/// The undamaged capture: every exchange that was measured, with the packets that hold it.
#[derive(Debug)]
pub struct Truth {
    pairs: Vec<Pair>,
    /// By the place of a packet: the pairs with a request that it holds a part of.
    by_request: Vec<Vec<usize>>,
    /// Halves of exchanges that a late packet completed.
    filled: usize,
}

#[derive(Debug)]
struct Pair {
    command: Command,
    message_id: Option<u64>,
    request: Part,
    response: Part,
    /// It is measured where nothing is damaged.
    expected: bool,
}

/// One half of an exchange, by places of packets.
#[derive(Debug, Default)]
struct Part {
    first: usize,
    last: usize,
    /// All that hold a part of it, ascending.
    packets: Vec<usize>,
    /// Those that hold its first byte.
    first_copies: Vec<usize>,
    /// Those that hold its last byte.
    last_copies: Vec<usize>,
    /// Whether it ends with a packet that filled a hole, behind the one with its last byte.
    filled: bool,
    /// What must be there to know its id.
    header: Vec<(usize, usize)>,
}

impl Part {
    fn holds(&self, place: usize) -> bool {
        self.packets.binary_search(&place).is_ok()
    }
}

/// Counts of one damaged copy, or of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Answered commands of the undamaged capture, but for those before the first and behind the last packet of their
    /// flow that the copy holds: of those, nobody can know.
    pub commands: u64,
    /// Those of them that are measured where nothing is damaged.
    pub exchanges: u64,
    /// Those that the copy still allows to be measured.
    pub allowed: u64,
    /// Those of them that were measured.
    pub right: u64,
    /// Pairs that are not in the undamaged capture.
    pub false_pairs: u64,
    /// Right pairs with a wrong begin or end.
    pub mistimed: u64,
    /// Those of `exchanges` that were measured, allowed or not.
    pub measured: u64,
}

impl Counts {
    /// Allowed and not measured.
    pub fn missing(&self) -> u64 {
        self.allowed - self.right
    }

    /// Adds those of another copy.
    pub fn add(&mut self, other: Counts) {
        self.commands += other.commands;
        self.exchanges += other.exchanges;
        self.allowed += other.allowed;
        self.right += other.right;
        self.false_pairs += other.false_pairs;
        self.mistimed += other.mistimed;
        self.measured += other.measured;
    }
}

/// Something wrong, with packet numbers (from 1) of the copy and of the undamaged capture.
#[derive(Debug, Clone)]
pub struct Wrong {
    /// Two exchanges that are not one; otherwise a begin or end.
    pub is_false_pair: bool,
    text: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What came of a copy.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    /// How much.
    pub counts: Counts,
    /// What was wrong.
    pub wrong: Vec<Wrong>,
    /// Exchanges that are missing, in words; only when asked for.
    pub missing: Vec<String>,
}

impl Truth {
    /// The truth about a capture by what the analysis of all its packets says.
    pub fn new(recording: &Recording, exchanges: &[Exchange]) -> Truth {
        let reading = Reading::new(recording);
        let mut truth = Truth { pairs: Vec::new(), by_request: vec![Vec::new(); recording.len()], filled: 0 };
        for exchange in exchanges.iter().filter(|exchange| exchange.is_complete()) {
            let (client, server) = (exchange.endpoints.client, exchange.endpoints.server);
            let request = reading.part(&exchange.request, (client, server), exchange);
            let response = reading.part(&exchange.response, (server, client), exchange);
            let (Some(request), Some(response)) = (request, response) else { continue };
            for packet in &request.packets {
                truth.by_request[*packet].push(truth.pairs.len());
            }
            truth.filled += [&request, &response].into_iter().filter(|part| part.filled).count();
            let Exchange { command, message_id, .. } = *exchange;
            truth.pairs.push(Pair { command, message_id, request, response, expected: true });
        }
        truth
    }

    /// The truth about a [sealed](crate::recording::Recording::sealed) capture by what the analysis of the readable one
    /// says: what stands in one frame there is one exchange.
    pub fn sealed(sealed: &Recording, readable: &[Exchange]) -> Truth {
        let mut frames: Vec<Exchange> = Vec::new();
        for exchange in readable.iter().filter(|exchange| exchange.is_complete()) {
            let mut exchange = exchange.clone();
            if !recording::stays_readable(exchange.command) {
                (exchange.command, exchange.message_id) = (Command::EncryptedFrame, None);
                let ends = |exchange: &Exchange| {
                    let Exchange { request, response, .. } = exchange;
                    [request.first, request.last, response.first, response.last].map(place)
                };
                if frames.iter().any(|known| known.message_id.is_none() && ends(known) == ends(&exchange)) {
                    continue;
                }
            }
            frames.push(exchange);
        }
        Truth::new(sealed, &frames)
    }

    /// Leaves exchanges out that the analysis of the undamaged capture does not measure: nobody expects more of a copy.
    /// Pairs of them are still no false ones.
    pub fn expect_only(&mut self, recording: &Recording, found: &[Exchange]) {
        let undamaged = recording.undamaged();
        let measured = self.matches(found, &undamaged, &mut Vec::new());
        for (pair, exchange) in self.pairs.iter_mut().zip(measured) {
            pair.expected = exchange.is_some_and(|exchange| exchange.outcome == ExchangeOutcome::Complete);
        }
    }

    /// How many exchanges it has.
    pub fn exchanges(&self) -> usize {
        self.pairs.len()
    }

    /// Whether the network lost packets of its messages, so that retransmissions completed them. When such a message ends
    /// in a copy depends on which of its packets were lost there, too: no copy of it can be judged.
    pub fn has_filled_holes(&self) -> bool {
        self.filled > 0
    }

    /// Judges what was found in a copy.
    pub fn judge(&self, recording: &Recording, copy: &[Kept], found: &[Exchange], say_missing: bool) -> Judgement {
        let survivors = Survivors::new(recording, copy);
        let mut verdict = Judgement::default();
        let mut foreign = Vec::new();
        let matches = self.matches(found, copy, &mut foreign);
        for exchange in foreign {
            verdict.counts.false_pairs += 1;
            verdict.wrong.push(self.false_pair(exchange, copy));
        }
        for (pair, exchange) in self.pairs.iter().zip(matches) {
            let measured = exchange.filter(|exchange| exchange.outcome == ExchangeOutcome::Complete);
            if let Some(text) = measured.and_then(|exchange| pair.timing(exchange, copy, &survivors)) {
                verdict.counts.mistimed += 1;
                verdict.wrong.push(Wrong { is_false_pair: false, text });
            }
            if !survivors.spans(recording, pair) {
                continue;
            }
            verdict.counts.commands += 1;
            if !pair.expected {
                continue;
            }
            let allowed = survivors.allow(pair);
            verdict.counts.exchanges += 1;
            verdict.counts.measured += u64::from(measured.is_some());
            verdict.counts.allowed += u64::from(allowed);
            verdict.counts.right += u64::from(allowed && measured.is_some());
            if say_missing && allowed && measured.is_none() {
                let how = if exchange.is_some() { " (paired, but not measured)" } else { "" };
                verdict.missing.push(format!("{}{how}", pair.describe()));
            }
        }
        verdict
    }

    /// What was found of each exchange in a copy. Pairs that are none of them go to `foreign`.
    fn matches<'a>(
        &self,
        found: &'a [Exchange],
        copy: &[Kept],
        foreign: &mut Vec<&'a Exchange>,
    ) -> Vec<Option<&'a Exchange>> {
        let mut matches = vec![None; self.pairs.len()];
        for exchange in found {
            let (Some(request), Some(_)) = (exchange.request.first, exchange.response.last) else { continue };
            let request = copy[place_of(request)].origin;
            let own = self.by_request[request].iter().copied().find(|index| {
                let pair = &self.pairs[*index];
                matches[*index].is_none() && pair.is(exchange) && pair.has_ends_of(exchange, copy)
            });
            match own {
                Some(index) => matches[index] = Some(exchange),
                None => foreign.push(exchange),
            }
        }
        matches
    }

    fn false_pair(&self, exchange: &Exchange, copy: &[Kept]) -> Wrong {
        let request = exchange.request.first.map(place_of);
        let of_request: Vec<String> = request
            .map(|request| self.by_request[copy[request].origin].as_slice())
            .unwrap_or_default()
            .iter()
            .take(2)
            .map(|index| self.pairs[*index].describe())
            .collect();
        let truth = if of_request.is_empty() { "no such exchange".to_owned() } else { of_request.join("; ") };
        Wrong { is_false_pair: true, text: format!("{}; right: {truth}", describe(exchange, copy)) }
    }
}

/// An exchange of a copy, with the numbers of its packets in the copy and in the undamaged capture.
fn describe(exchange: &Exchange, copy: &[Kept]) -> String {
    let numbers = |half: &Half| {
        let number = |stamp: Option<Stamp>| stamp.map_or("?".to_owned(), |stamp| stamp.packet.number().to_string());
        let origin = |stamp: Option<Stamp>| stamp.map_or(0, |stamp| copy[place_of(stamp)].origin + 1);
        format!("{}–{} (undamaged {}–{})", number(half.first), number(half.last), origin(half.first), origin(half.last))
    };
    let id = exchange.message_id.map_or("without id".to_owned(), |id| format!("id {id}"));
    let (request, response) = (numbers(&exchange.request), numbers(&exchange.response));
    format!("{} {id}, {}: request {request}, response {response}", exchange.command, exchange.outcome)
}

impl Pair {
    fn is(&self, exchange: &Exchange) -> bool {
        self.command == exchange.command && (exchange.message_id.is_none() || exchange.message_id == self.message_id)
    }

    /// Whether both ends of the response are its own, and the end of the request.
    fn has_ends_of(&self, exchange: &Exchange, copy: &[Kept]) -> bool {
        let in_part = |stamp: Option<Stamp>, part: &Part| stamp.is_none_or(|it| part.holds(copy[place_of(it)].origin));
        in_part(exchange.request.last, &self.request)
            && in_part(exchange.response.first, &self.response)
            && in_part(exchange.response.last, &self.response)
    }

    /// What is wrong with the packets that the time was taken from.
    fn timing(&self, exchange: &Exchange, copy: &[Kept], survivors: &Survivors) -> Option<String> {
        let ends = [
            ("request begins", exchange.request.first, &self.request.first_copies, self.request.first),
            ("response ends", exchange.response.last, &self.response.last_copies, self.response.last),
        ];
        for (what, stamp, copies, right) in ends {
            let place = place_of(stamp?);
            let arrived = |packets: &[usize]| -> Vec<usize> {
                packets.iter().filter_map(|packet| survivors.arrival[*packet]).collect()
            };
            let first_copy = arrived(copies).into_iter().min();
            // Where packets overtook each other, the one that arrived last completes a message.
            let overtaken = first_copy.is_some()
                && match what {
                    "request begins" => arrived(&self.request.packets).into_iter().min() == Some(place),
                    _ => arrived(&self.response.packets).into_iter().max() == Some(place),
                };
            if first_copy != Some(place) && !overtaken {
                return Some(format!("{}; the {what} in packet {}", describe(exchange, copy), right + 1));
            }
        }
        None
    }

    fn describe(&self) -> String {
        let id = self.message_id.map_or("without id".to_owned(), |id| format!("id {id}"));
        let numbers = |part: &Part| format!("{}–{}", part.first + 1, part.last + 1);
        format!("{} {id}, request {}, response {}", self.command, numbers(&self.request), numbers(&self.response))
    }
}

/// The messages of the undamaged capture.
struct Reading<'a> {
    recording: &'a Recording,
    by_id: HashMap<(Ends, Id), Vec<Message>>,
}

impl Reading<'_> {
    fn new(recording: &Recording) -> Reading<'_> {
        let mut by_id: HashMap<(Ends, Id), Vec<Message>> = HashMap::new();
        for (ends, said) in messages::read(recording) {
            for message in said {
                by_id.entry((ends, message.id)).or_default().push(message);
            }
        }
        Reading { recording, by_id }
    }

    /// The packets of one half of an exchange.
    fn part(&self, half: &Half, ends: Ends, exchange: &Exchange) -> Option<Part> {
        let (first, last) = (place(half.first)?, place(half.last)?);
        let protocol = match exchange.command.protocol() {
            Protocol::Smb1 => 0xff,
            Protocol::Smb2 => 0xfe,
        };
        let of_id = |id| {
            let known = self.by_id.get(&(ends, id)).into_iter().flatten();
            known.filter(|message| first <= message.first && message.last <= last)
        };
        let mut own: Vec<&Message> =
            exchange.message_id.map(|id| of_id(Some((protocol, id))).collect()).unwrap_or_default();
        if own.is_empty() {
            // A frame that shows no message; or raw data, or an answer in another protocol: whatever this side said.
            own.extend(of_id(None).find(|message| (message.first, message.last) == (first, last)));
        }
        let mut part = Part { first, last, first_copies: vec![first], last_copies: vec![last], ..Part::default() };
        match own.first() {
            Some(message) => part.header.clone_from(&message.header),
            None => part.packets = self.recording.payloads_between(first, last),
        }
        part.filled = !own.is_empty() && own.iter().all(|message| message.last < last);
        for message in own {
            part.packets.extend(&message.packets);
            part.first_copies.extend(message.first_copies.iter().filter(|_| message.first == first));
            part.last_copies.extend(message.last_copies.iter().filter(|_| message.last == last));
        }
        part.packets.extend([first, last]);
        part.packets.sort_unstable();
        part.packets.dedup();
        Some(part)
    }
}

/// What became of the packets of the undamaged capture.
struct Survivors {
    /// First place in the copy.
    arrival: Vec<Option<usize>>,
    /// Bytes of payload that the copy holds.
    payload: Vec<usize>,
    /// Times of the copy's packets in the order of their places.
    times: Vec<i64>,
    /// By flow, its first and its last packet that the copy holds.
    spans: HashMap<u32, (usize, usize)>,
}

impl Survivors {
    fn new(recording: &Recording, copy: &[Kept]) -> Survivors {
        let mut arrival = vec![None; recording.len()];
        for (place, kept) in copy.iter().enumerate() {
            arrival[kept.origin].get_or_insert(place);
        }
        let mut payload = vec![0; recording.len()];
        recording.segments(copy, |place, segment| payload[copy[place].origin] = segment.payload.len());
        let mut spans = HashMap::new();
        for origin in copy.iter().map(|kept| kept.origin) {
            let Some(direction) = recording.direction(origin) else { continue };
            let (first, last) = spans.entry(flow_of(direction)).or_insert((origin, origin));
            (*first, *last) = (origin.min(*first), origin.max(*last));
        }
        Survivors { arrival, payload, times: copy.iter().map(|kept| kept.time.0).collect(), spans }
    }

    /// Whether any of a pair passed between the first and the last packet of its flow in the copy.
    fn spans(&self, recording: &Recording, pair: &Pair) -> bool {
        let flow = recording.direction(pair.request.first).map(flow_of);
        let span = flow.and_then(|flow| self.spans.get(&flow));
        span.is_some_and(|(first, last)| pair.response.last >= *first && pair.request.first <= *last)
    }

    fn allow(&self, pair: &Pair) -> bool {
        let Pair { request, response, .. } = pair;
        let (Some(_), Some(answered), Some(_)) =
            (self.arrival[request.first], self.arrival[response.first], self.arrival[response.last])
        else {
            return false;
        };
        let overtaken = [request.first, request.last]
            .into_iter()
            .filter_map(|asked| self.arrival[asked])
            .any(|asked| self.times[answered] < self.times[asked]);
        let mut headers = request.header.iter().chain(&response.header);
        !overtaken && headers.all(|(packet, bytes)| self.arrival[*packet].is_some() && self.payload[*packet] >= *bytes)
    }
}

/// The flow of a direction.
fn flow_of(direction: u32) -> u32 {
    direction / 2
}

/// A packet's place in its capture.
fn place_of(stamp: Stamp) -> usize {
    stamp.packet.number() as usize - 1
}

fn place(stamp: Option<Stamp>) -> Option<usize> {
    stamp.map(place_of)
}
