//! Compares the analyses of a damaged capture and of the undamaged original.
//!
//! The terms match `scripts/accuracy.py`, which also compares the undamaged analysis with tshark:
//!
//! - An exchange is **allowed** if the copy still contains everything its measurement needs: the first packet of the
//!   request, the first and last packets of the final response, and the headers of both up to the message id. In
//!   addition, no packet of the request may follow the start of the response, since packets may be reordered.
//! - It is **right** if the analysis of the copy measures it, and **missing** if it is allowed but not measured.
//! - A pair is **false** if the analysis combines a request with a response, or an end of one, that does not belong to
//!   it in the undamaged capture.
//! - A right pair is **mistimed** if its time starts or ends at a packet other than the first copy of the right one.
//!   With reordering, the packet that arrived last ends a message.

pub(crate) mod messages;

use crate::recording::{self, Kept, Recording};
use messages::{Ends, Id, Message};
use smbscope_model::{Command, Exchange, ExchangeOutcome, Half, Protocol, Stamp};
use std::collections::HashMap;
use std::fmt;

/// Measured exchanges of the undamaged capture, with their packets.
#[derive(Debug)]
pub struct Truth {
    pairs: Vec<Pair>,
    /// Indexes of the pairs whose request the packet contains parts of, by packet.
    by_request: Vec<Vec<usize>>,
    /// Number of request and response halves completed by a late packet.
    filled: usize,
}

#[derive(Debug)]
struct Pair {
    command: Command,
    message_id: Option<u64>,
    request: Part,
    response: Part,
    /// The analysis of the undamaged capture measures it.
    expected: bool,
}

#[derive(Debug, Default)]
struct Part {
    first: usize,
    last: usize,
    /// All packets that contain parts of it, ascending.
    packets: Vec<usize>,
    /// All packets that contain its first byte.
    first_copies: Vec<usize>,
    /// All packets that contain its last byte.
    last_copies: Vec<usize>,
    /// A packet that fills a hole completes it, after the packet with its last byte.
    filled: bool,
    /// Packets needed to know its id, each with the number of payload bytes needed.
    header: Vec<(usize, usize)>,
}

impl Part {
    fn holds(&self, place: usize) -> bool {
        self.packets.binary_search(&place).is_ok()
    }
}

/// Counts of one or more damaged copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Answered commands of the undamaged capture, except those before the first or after the last packet of their flow
    /// in the copy, which are unknowable.
    pub commands: u64,
    /// Commands measured in the undamaged capture.
    pub exchanges: u64,
    /// Exchanges that are measurable in the copy.
    pub allowed: u64,
    /// Allowed exchanges that were measured.
    pub right: u64,
    pub false_pairs: u64,
    /// Right pairs with a wrong start or end.
    pub mistimed: u64,
    pub measured: u64,
}

impl Counts {
    pub fn missing(&self) -> u64 {
        self.allowed - self.right
    }

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

/// An error, described with packet numbers (from 1) of the copy and of the undamaged capture.
#[derive(Debug, Clone)]
pub struct Wrong {
    /// True for a false pair, false for a wrong start or end.
    pub is_false_pair: bool,
    text: String,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Debug, Clone, Default)]
pub struct Judgement {
    pub counts: Counts,
    pub wrong: Vec<Wrong>,
    /// Descriptions of the missing exchanges, if requested.
    pub missing: Vec<String>,
}

impl Truth {
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

    /// Creates the truth about a [sealed](crate::recording::Recording::sealed) capture from the analysis of the
    /// readable one: messages that share a frame form one exchange.
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

    /// Excludes exchanges that the analysis of the undamaged capture does not measure, as a copy can't be better. Pairs
    /// of them still do not count as false.
    pub fn expect_only(&mut self, recording: &Recording, found: &[Exchange]) {
        let undamaged = recording.undamaged();
        let measured = self.matches(found, &undamaged, &mut Vec::new());
        for (pair, exchange) in self.pairs.iter_mut().zip(measured) {
            pair.expected = exchange.is_some_and(|exchange| exchange.outcome == ExchangeOutcome::Complete);
        }
    }

    pub fn exchanges(&self) -> usize {
        self.pairs.len()
    }

    /// Returns true if the network lost packets of messages and retransmissions completed them. The end of such a
    /// message in a copy depends on which of its packets were lost there too, so no copy can be judged.
    pub fn has_filled_holes(&self) -> bool {
        self.filled > 0
    }

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

    /// Returns the exchange found for each pair. Other pairs go to `foreign`.
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

    /// Returns true if the end of the request and both ends of the response are the pair's own.
    fn has_ends_of(&self, exchange: &Exchange, copy: &[Kept]) -> bool {
        let in_part = |stamp: Option<Stamp>, part: &Part| stamp.is_none_or(|it| part.holds(copy[place_of(it)].origin));
        in_part(exchange.request.last, &self.request)
            && in_part(exchange.response.first, &self.response)
            && in_part(exchange.response.last, &self.response)
    }

    /// Describes a wrong start or end of the measured time.
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
            // With reordering, the packet that arrived last completes a message.
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
            // A frame without a readable message: raw data, or a response in another protocol.
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

/// Packets of the undamaged capture that remain in a copy.
struct Survivors {
    arrival: Vec<Option<usize>>,
    payload: Vec<usize>,
    times: Vec<i64>,
    /// First and last packet of each flow in the copy.
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

    /// Returns true if the pair overlaps the range from the first to the last packet of its flow in the copy.
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

fn flow_of(direction: u32) -> u32 {
    direction / 2
}

fn place_of(stamp: Stamp) -> usize {
    stamp.packet.number() as usize - 1
}

fn place(stamp: Option<Stamp>) -> Option<usize> {
    stamp.map(place_of)
}
