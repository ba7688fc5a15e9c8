//! Encrypted conversations with known pairs: generated ones, and readable captures converted message by message, with
//! the same times and each message in a TRANSFORM_HEADER.

use super::read_exchanges;
use smbscope_model::{Exchange, ExchangeOutcome, PacketRef, Stamp};
use smbscope_testkit::{Conversation, Packet, Side, Span, framed, random::Random, smb2};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const SESSION: u64 = 0x5e55_1011;
/// Size of an error and of an interim response.
const ERROR: u64 = 73;

#[derive(Debug, Clone, Copy)]
struct Said {
    at_ns: i64,
    side: Side,
    plain: u64,
    /// The exchange of the message, and if it is its final response.
    exchange: Option<usize>,
    is_final: bool,
}

pub(crate) struct Ciphertext {
    pub(crate) packets: Vec<Packet>,
    /// Requests and their final responses.
    pub(crate) pairs: Vec<(Span, Span)>,
}

impl Ciphertext {
    /// Sends the messages in order of their times; messages of the same side never overlap.
    fn told(mut said: Vec<Said>, latency_ns: i64) -> Ciphertext {
        said.sort_by_key(|message| message.at_ns);
        let mut conversation = Conversation::new().latency_ns(latency_ns).pace_ns(1000);
        let mut free = [100_000i64; 2];
        for message in &said {
            let at = free[message.side.index()].max(message.at_ns);
            let bytes = framed(smb2::encrypted(SESSION, message.plain as usize));
            free[message.side.index()] = conversation.passed_ns(at, bytes.len()) + 1000;
            conversation = conversation.says(message.side, at, bytes);
        }
        let end = free[0].max(free[1]) / 1000 + 10;
        let conversation = conversation.client_acks(end).server_acks(end + 1);
        let spans = said.iter().zip(conversation.spans());
        let of_exchange = |side: Side| spans.clone().filter(move |(message, _)| message.side == side);
        let pairs = of_exchange(Side::Client)
            .filter(|(request, _)| request.exchange.is_some())
            .flat_map(|(request, asked)| {
                let answers = of_exchange(Side::Server)
                    .filter(|(response, _)| response.is_final && response.exchange == request.exchange);
                answers.map(|(_, answered)| (*asked, *answered)).collect::<Vec<_>>()
            })
            .collect();
        Ciphertext { packets: conversation.packets(), pairs }
    }
}

/// Sizes of requests and responses (MS-SMB2 §2.2): open, close, read, write, list, query, set.
const OPERATIONS: [(u64, u64); 9] =
    [(140, 152), (88, 124), (113, 8272), (31_638, 80), (98, 1200), (98, ERROR), (105, 96), (136, 66), (140, ERROR)];

/// A client that is mostly sequential, sometimes has several requests outstanding, watches a folder, and receives
/// oplock breaks. `concurrency` is the probability of concurrent requests.
pub(crate) fn client(seed: u64, length: usize, concurrency: f64) -> Ciphertext {
    let mut random = Random::new(seed);
    let mut teller = Teller { said: Vec::new(), now: 200_000, exchanges: 0 };
    let mut last = None;
    for _ in 0..length {
        if random.chance(concurrency) {
            match random.below(4) {
                0 => teller.pipeline(&mut random),
                1 => teller.watch(&mut random),
                2 => teller.breaks(&mut random),
                _ => teller.cancel(&mut random),
            }
        }
        // Opened files are closed soon.
        let (request, response) = match last {
            Some(0) if random.chance(0.3) => OPERATIONS[1],
            _ => OPERATIONS[random.below(OPERATIONS.len() as u64) as usize],
        };
        last = OPERATIONS.iter().position(|operation| operation.0 == request);
        teller.ask(&mut random, request, response);
        teller.now += 20_000 + random.below(200_000) as i64;
        if random.chance(0.01) {
            teller.now += 1_000_000_000;
        }
    }
    Ciphertext::told(teller.said, [0, 20_000, 500_000][random.below(3) as usize])
}

struct Teller {
    said: Vec<Said>,
    now: i64,
    exchanges: usize,
}

impl Teller {
    fn say(&mut self, at_ns: i64, side: Side, plain: u64, exchange: Option<usize>, is_final: bool) {
        self.said.push(Said { at_ns, side, plain, exchange, is_final });
    }

    fn request(&mut self, at_ns: i64, plain: u64) -> usize {
        self.exchanges += 1;
        self.say(at_ns, Side::Client, plain, Some(self.exchanges), false);
        self.exchanges
    }

    /// A request that is answered before the next one.
    fn ask(&mut self, random: &mut Random, request: u64, response: u64) {
        let exchange = self.request(self.now, request);
        // The segments of a long message take their time.
        let passed = (request / 1460) as i64 * 1000;
        let mut answered = self.now + passed + 1_100_000 + random.below(2_000_000) as i64;
        if random.chance(0.05) {
            self.say(answered, Side::Server, ERROR, Some(exchange), false);
            answered += 100_000 + random.below(3_000_000) as i64;
        }
        self.say(answered, Side::Server, response, Some(exchange), true);
        self.now = answered + (response / 1460) as i64 * 1000 + 1_100_000;
    }

    /// A window of requests of one kind: each response triggers the next request.
    fn pipeline(&mut self, random: &mut Random) {
        let (request, response) = [(113, 16_464), (16_496, 80)][random.below(2) as usize];
        let window = 2 + random.below(6) as usize;
        let mut outstanding: Vec<(i64, usize)> = Vec::new();
        for at in 0..window as i64 {
            outstanding.push((self.now + at, self.request(self.now + at, request)));
        }
        let mut left = 30 + random.below(40) as usize;
        while !outstanding.is_empty() {
            let index = if random.chance(0.9) { 0 } else { random.below(outstanding.len() as u64) as usize };
            let (asked, exchange) = outstanding.remove(index);
            // Add the network latency in both directions.
            self.now = (self.now + 400_000 + random.below(400_000) as i64).max(asked + 1_100_000);
            self.say(self.now, Side::Server, response, Some(exchange), true);
            if left > 0 {
                left -= 1;
                let at = self.now + 1_050_000;
                outstanding.push((at, self.request(at, request)));
            }
        }
        self.now += 1_500_000;
    }

    /// A request that is answered later, while the client continues.
    fn watch(&mut self, random: &mut Random) {
        let exchange = self.request(self.now, 96);
        self.say(self.now + 1_100_000, Side::Server, ERROR, Some(exchange), false);
        let later = self.now + 3_000_000 + random.below(100_000_000) as i64;
        // A change takes 12 bytes and a name (MS-FSCC §2.7.1).
        let plain = [ERROR, 72, 72 + 14 + 2 * random.below(20)][random.below(3) as usize];
        self.say(later, Side::Server, plain, Some(exchange), true);
        self.now += 2_500_000;
    }

    /// An oplock break and its acknowledgment.
    fn breaks(&mut self, random: &mut Random) {
        let (notification, acknowledgment) = [(88, 88), (108, 100)][random.below(2) as usize];
        self.say(self.now + 500_000, Side::Server, notification, None, false);
        if random.chance(0.5) {
            self.now += 2_000_000;
            self.ask(random, acknowledgment, acknowledgment);
        }
    }

    fn cancel(&mut self, random: &mut Random) {
        let exchange = self.request(self.now, 112);
        self.say(self.now + 1_100_000, Side::Server, ERROR, Some(exchange), false);
        self.now += 3_000_000 + random.below(3_000_000) as i64;
        self.say(self.now, Side::Client, 68, None, false);
        self.now += 1_200_000;
        self.say(self.now, Side::Server, ERROR, Some(exchange), true);
        self.now += 1_200_000;
    }
}

/// Converts the connections of a capture to encrypted ones.
pub(crate) fn as_if_encrypted(capture: &Path) -> Vec<Ciphertext> {
    let mut connections: BTreeMap<_, Vec<Exchange>> = BTreeMap::new();
    for exchange in read_exchanges(capture, |_| true) {
        connections.entry(exchange.flow).or_default().push(exchange);
    }
    connections.into_values().map(|exchanges| encrypt(&exchanges)).collect()
}

fn encrypt(exchanges: &[Exchange]) -> Ciphertext {
    let mut requests: BTreeMap<PacketRef, (Stamp, u64)> = BTreeMap::new();
    let mut responses = requests.clone();
    let mut interims = BTreeMap::new();
    let mut answers: BTreeMap<PacketRef, BTreeSet<PacketRef>> = BTreeMap::new();
    let add = |frames: &mut BTreeMap<PacketRef, (Stamp, u64)>, first: Stamp, bytes| {
        frames.entry(first.packet).or_insert((first, 0)).1 += bytes;
    };
    for exchange in exchanges {
        let (request, response) = (exchange.request.first, exchange.response.first);
        if let Some(first) = request {
            add(&mut requests, first, exchange.request.bytes);
        }
        if let Some(first) = response {
            add(&mut responses, first, exchange.response.bytes);
        }
        if let Some(interim) = exchange.interim {
            interims.insert(interim.packet, (interim, ERROR));
        }
        if let (Some(request), Some(response), ExchangeOutcome::Complete) = (request, response, exchange.outcome) {
            answers.entry(request.packet).or_default().insert(response.packet);
        }
    }
    let at = |stamp: Stamp, first: Stamp| (stamp.time - first.time).0 + 200_000;
    let first = requests.values().chain(responses.values()).map(|frame| frame.0).min_by_key(|stamp| stamp.time);
    let Some(first) = first else { return Ciphertext::told(Vec::new(), 0) };
    let numbers: BTreeMap<PacketRef, usize> = requests.keys().copied().zip(1..).collect();
    // A compound may be answered in several frames; the last one can't be recognised.
    let ends: BTreeMap<PacketRef, usize> =
        answers.iter().flat_map(|(request, frames)| frames.iter().map(|frame| (*frame, numbers[request]))).collect();
    let client = requests.iter().map(|(packet, (stamp, plain))| Said {
        at_ns: at(*stamp, first),
        side: Side::Client,
        plain: *plain,
        exchange: numbers.get(packet).copied(),
        is_final: false,
    });
    let server = responses.iter().chain(&interims).map(|(packet, (stamp, plain))| Said {
        at_ns: at(*stamp, first),
        side: Side::Server,
        plain: *plain,
        exchange: ends.get(packet).copied(),
        is_final: true,
    });
    Ciphertext::told(client.chain(server).collect(), 0)
}
