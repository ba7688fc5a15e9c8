//! Random conversations of SMB clients, with the truth about matching requests and responses.
//!
//! Every response carries a unique status, its *tag*. Every request carries the same tag where its command has a
//! suitable field: offset, name or file. An exchange with mismatched halves is thus recognisable.

use crate::conversation::{Conversation, Span, framed};
use crate::packet::{Packet, Side};
use crate::random::Random;
use crate::smb1::Part;
use crate::{smb1, smb2};
use proptest::prelude::*;
use smbscope_model::{CUT_NAME_MARK, Command, Exchange, FileId, ResponseStatus};
use smbscope_wire::{smb1 as wire1, smb2 as wire2};

/// Status without a tag: success with the customer bit, and a low half that can't be an SMB1 error class.
const TAGGED: u32 = 0x2000_1000;
/// Time between the capture point and either end.
const LATENCY_NS: i64 = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// CREATE or NT_CREATE_ANDX.
    Open,
    Close,
    /// READ or READ_ANDX; the size applies to the response.
    Read,
    /// WRITE or WRITE_ANDX; the size applies to the request.
    Write,
    Echo,
    /// SMB1: TRANS2_QUERY_PATH_INFORMATION, in two messages if it is large. SMB2: CREATE and CLOSE in a compound.
    Query,
}

#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub kind: Kind,
    pub size: u16,
    /// Time since the previous request, unless the window is full.
    pub gap_us: u16,
    pub service_us: u16,
    /// The server sends STATUS_PENDING first (SMB2 only).
    pub interim: bool,
}

/// Protocol and numbering of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Consecutive message ids.
    Smb2,
    /// A fixed number of MIDs, used in rotation.
    Smb1 { mids: u16 },
}

#[derive(Debug, Clone)]
pub struct Script {
    pub ids: Ids,
    pub window: usize,
    pub segment_size: usize,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub struct Played {
    pub packets: Vec<Packet>,
    /// Exchanges that an analysis must find.
    pub truth: Vec<TrueExchange>,
}

#[derive(Debug, Clone, Copy)]
pub struct TrueExchange {
    pub tag: u32,
    pub command: Command,
    /// MessageId or MID.
    pub message_id: u64,
    pub request: Span,
    pub interim: Option<Span>,
    /// One or more consecutive frames.
    pub response: Span,
}

pub fn scripts() -> impl Strategy<Value = Script> {
    let mids = prop_oneof![Just(1u16), Just(2), Just(50)];
    scripts_with(prop_oneof![Just(Ids::Smb2), mids.prop_map(|mids| Ids::Smb1 { mids })], 1..60)
}

pub fn scripts_with(ids: impl Strategy<Value = Ids>, steps: std::ops::Range<usize>) -> impl Strategy<Value = Script> {
    let sizes = prop_oneof![Just(1460usize), 300usize..1460, Just(8960)];
    let steps = prop::collection::vec(step(), steps);
    (ids, 1usize..8, sizes, steps).prop_map(|(ids, window, segment_size, steps)| Script {
        ids,
        window,
        segment_size,
        steps,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        Just(Kind::Open),
        Just(Kind::Close),
        Just(Kind::Read),
        Just(Kind::Write),
        Just(Kind::Echo),
        Just(Kind::Query)
    ];
    let size = prop_oneof![0u16..200, 200u16..9000];
    (kind, size, 1u16..500, 1u16..800, prop::bool::weighted(0.2))
        .prop_map(|(kind, size, gap_us, service_us, interim)| Step { kind, size, gap_us, service_us, interim })
}

impl Script {
    /// Creates a script from a seed, for tests that need very many.
    pub fn random(ids: Ids, steps: usize, seed: u64) -> Script {
        const KINDS: [Kind; 6] = [Kind::Open, Kind::Close, Kind::Read, Kind::Write, Kind::Echo, Kind::Query];
        let mut random = Random::new(seed);
        let step = |_| Step {
            kind: KINDS[random.below(6) as usize],
            size: if random.chance(0.5) { random.below(200) } else { random.below(9000) } as u16,
            gap_us: 1 + random.below(500) as u16,
            service_us: 1 + random.below(800) as u16,
            interim: random.chance(0.2),
        };
        let steps = (0..steps).map(step).collect();
        Script { ids, window: 1 + random.below(8) as usize, segment_size: 1460, steps }
    }

    /// Plays the script: the client sends as fast as its window allows; the server responds in order of completion.
    pub fn play(&self) -> Played {
        let mut stage = Stage::new(self);
        for (index, step) in self.steps.iter().enumerate() {
            stage.step(index as u32, step);
        }
        stage.end()
    }
}

/// A request, the messages of its response, and tag, command and id of each member.
type Turn = (Vec<u8>, Vec<Vec<u8>>, Vec<(u32, Command, u64)>);

struct Due {
    ready_ns: i64,
    frames: Vec<Vec<u8>>,
    members: Vec<(u32, Command, u64)>,
    request: Span,
    interim: Option<Span>,
    is_interim: bool,
}

struct Stage {
    conversation: Conversation,
    ids: Ids,
    window: usize,
    next_message_id: u64,
    next_mid: u16,
    client_free_ns: i64,
    server_free_ns: i64,
    due: Vec<Due>,
    /// For each outstanding request: time at which the client receives the response, and the MID freed by that.
    busy: Vec<(i64, u64)>,
    truth: Vec<TrueExchange>,
}

impl Stage {
    fn new(script: &Script) -> Stage {
        let window = match script.ids {
            Ids::Smb2 => script.window,
            Ids::Smb1 { mids } => script.window.min(mids.into()),
        };
        let conversation = Conversation::new().segment_size(script.segment_size).pace_ns(2_000).latency_ns(LATENCY_NS);
        Stage {
            conversation,
            ids: script.ids,
            window,
            next_message_id: 1,
            next_mid: 1,
            client_free_ns: 100_000,
            server_free_ns: 100_000,
            due: Vec::new(),
            busy: Vec::new(),
            truth: Vec::new(),
        }
    }

    fn step(&mut self, tag: u32, step: &Step) {
        let mut at = self.client_free_ns + i64::from(step.gap_us) * 1000;
        self.speak_until(at);
        self.busy.retain(|(known, _)| *known > at);
        while self.busy.len() + self.due.iter().filter(|due| !due.is_interim).count() >= self.window {
            while self.busy.is_empty() {
                self.speak_next();
            }
            let first = self.busy.iter().map(|(known, _)| *known).min().expect("the window is full");
            at = at.max(first);
            self.speak_until(at);
            self.busy.retain(|(known, _)| *known > at);
        }
        let (request, mut answers, members) = match self.ids {
            Ids::Smb2 => self.smb2(tag, step),
            Ids::Smb1 { mids } => self.smb1(tag, step, mids),
        };
        let request = framed(request);
        let passed = self.conversation.passed_ns(at, request.len());
        self.say(Side::Client, at, request);
        let span = *self.conversation.spans().last().expect("just said");
        self.client_free_ns = passed;
        let mut ready_ns = passed + 2 * LATENCY_NS;
        if step.interim && self.ids == Ids::Smb2 && members.len() == 1 {
            let (_, command, message_id) = members[0];
            let Command::Smb2(command) = command else { return };
            let frame = framed(smb2::pending(command, message_id, 0x1000 + message_id));
            let due = Due {
                ready_ns,
                frames: vec![frame],
                members: members.clone(),
                request: span,
                interim: None,
                is_interim: true,
            };
            self.due.push(due);
            ready_ns += 1;
        }
        ready_ns += i64::from(step.service_us) * 1000;
        let frames = answers.drain(..).map(framed).collect();
        self.due.push(Due { ready_ns, frames, members, request: span, interim: None, is_interim: false });
    }

    fn say(&mut self, side: Side, at_ns: i64, bytes: Vec<u8>) {
        let conversation = std::mem::take(&mut self.conversation);
        self.conversation = conversation.says(side, at_ns, bytes);
    }

    /// Sends the responses that are ready by `until`.
    fn speak_until(&mut self, until: i64) {
        while self.due.iter().any(|due| due.ready_ns.max(self.server_free_ns) <= until) {
            self.speak_next();
        }
    }

    fn speak_next(&mut self) {
        let next =
            self.due.iter().enumerate().min_by_key(|(index, due)| (due.ready_ns, *index)).map(|(index, _)| index);
        let due = self.due.remove(next.expect("something is due"));
        let at = due.ready_ns.max(self.server_free_ns);
        let mut now = at;
        let mut spans: Vec<Span> = Vec::new();
        for frame in due.frames {
            let passed = self.conversation.passed_ns(now, frame.len());
            self.say(Side::Server, now, frame);
            spans.push(*self.conversation.spans().last().expect("just said"));
            now = passed + 1_000;
        }
        self.server_free_ns = now;
        let span = Span { side: Side::Server, start: spans[0].start, end: spans[spans.len() - 1].end };
        if due.is_interim {
            let message_id = due.members[0].2;
            let answer = self.due.iter_mut().find(|other| other.members[0].2 == message_id);
            answer.expect("an answer follows an interim response").interim = Some(span);
            return;
        }
        for (tag, command, message_id) in &due.members {
            self.truth.push(TrueExchange {
                tag: *tag,
                command: *command,
                message_id: *message_id,
                request: due.request,
                interim: due.interim,
                response: span,
            });
        }
        self.busy.push((now + 2 * LATENCY_NS, due.members[0].2));
    }

    fn end(mut self) -> Played {
        while !self.due.is_empty() {
            self.speak_next();
        }
        let last_us = self.server_free_ns.max(self.client_free_ns) / 1000 + 100;
        let packets = self.conversation.closes(last_us).packets();
        self.truth.sort_by_key(|exchange| exchange.tag);
        Played { packets, truth: self.truth }
    }

    fn smb2(&mut self, tag: u32, step: &Step) -> Turn {
        use wire2::Smb2Command as C;
        let id = self.next_message_id;
        let (data, status) = (vec![0x77; step.size.into()], TAGGED + 2 * tag);
        let file = 0x5000 + u64::from(tag);
        self.next_message_id += 1;
        let (command, request, response) = match step.kind {
            Kind::Open => (C::CREATE, smb2::create(id, &format!("t{tag}")), smb2::create_response(id, file)),
            Kind::Close => (C::CLOSE, smb2::close(id, file), smb2::close_response(id)),
            Kind::Read => (C::READ, smb2::read(id, file, tag.into(), step.size.into()), smb2::read_response(id, &data)),
            Kind::Write => {
                (C::WRITE, smb2::write(id, file, tag.into(), &data), smb2::write_response(id, step.size.into()))
            }
            Kind::Echo => (C::ECHO, smb2::echo(id), smb2::echo_response(id)),
            Kind::Query => {
                self.next_message_id += 1;
                let request = smb2::compound(&[
                    smb2::create(id, &format!("t{tag}")),
                    smb2::close(id + 1, smb2::RELATED).related(),
                ]);
                let response = smb2::compound(&[
                    smb2::create_response(id, file).status(status),
                    smb2::close_response(id + 1).related().status(status + 1),
                ]);
                let members =
                    vec![(2 * tag, Command::Smb2(C::CREATE), id), (2 * tag + 1, Command::Smb2(C::CLOSE), id + 1)];
                return (request, vec![response], members);
            }
        };
        let response = response.status(status);
        let response = if step.interim { response.asynchronous(0x1000 + id) } else { response };
        (request.into(), vec![response.into()], vec![(2 * tag, Command::Smb2(command), id)])
    }

    fn smb1(&mut self, tag: u32, step: &Step, mids: u16) -> Turn {
        use wire1::Smb1Command as C;
        let in_use = |mid: u16| {
            self.busy.iter().any(|(_, busy)| *busy == u64::from(mid))
                || self.due.iter().any(|due| due.members[0].2 == u64::from(mid))
        };
        while in_use(self.next_mid) {
            self.next_mid = self.next_mid % mids + 1;
        }
        let mid = self.next_mid;
        self.next_mid = self.next_mid % mids + 1;
        let (data, status) = (vec![0x77; step.size.into()], TAGGED + 2 * tag);
        let fid = 0x1000 + tag as u16;
        let name = format!("\\t{tag}");
        let (command, request, responses) = match step.kind {
            Kind::Open => (C::NT_CREATE_ANDX, smb1::nt_create(mid, &name), vec![smb1::nt_create_response(mid, fid)]),
            Kind::Close => (C::CLOSE, smb1::close(mid, fid), vec![smb1::close_response(mid)]),
            Kind::Read => {
                (C::READ_ANDX, smb1::read_andx(mid, fid, tag, step.size), vec![smb1::read_andx_response(mid, &data)])
            }
            Kind::Write => {
                (C::WRITE_ANDX, smb1::write_andx(mid, fid, tag, &data), vec![smb1::write_andx_response(mid, step.size)])
            }
            Kind::Echo => {
                let text = vec![0; tag as usize];
                (C::ECHO, smb1::echo(mid, 1, &text), vec![smb1::echo_response(mid, 1, &text)])
            }
            Kind::Query => {
                let half = step.size / 2;
                let parts = match half {
                    0..400 => vec![Part::whole(step.size)],
                    _ => vec![
                        Part { total: 2 * half, before: 0, here: half },
                        Part { total: 2 * half, before: half, here: half },
                    ],
                };
                let answers = parts.into_iter().map(|part| smb1::trans2_response(mid, part)).collect();
                (C::TRANSACTION2, smb1::query_path(mid, &name), answers)
            }
        };
        let responses = responses.into_iter().map(|response| response.status(status).into()).collect();
        (request.into(), responses, vec![(2 * tag, Command::Smb1(command), mid.into())])
    }
}

pub fn response_tag(exchange: &Exchange) -> Option<u32> {
    match exchange.status? {
        ResponseStatus::Nt(status) => status.0.checked_sub(TAGGED).filter(|tag| *tag < 0x1000_0000),
        ResponseStatus::Dos(_) => None,
    }
}

impl TrueExchange {
    /// Returns true if an exchange has this one's request, judged by the captured parts of the request.
    pub fn has_request_of(&self, exchange: &Exchange) -> bool {
        let tag = self.tag / 2;
        let says_tag = match exchange.command {
            // Message ids are unique.
            Command::Smb2(_) => true,
            Command::Smb1(wire1::Smb1Command::READ_ANDX | wire1::Smb1Command::WRITE_ANDX) => {
                exchange.offset.is_none_or(|offset| offset == u64::from(tag))
            }
            Command::Smb1(wire1::Smb1Command::CLOSE) => {
                exchange.file_id.is_none_or(|file| file == FileId::Smb1(0x1000 + tag as u16))
            }
            // Header, word count, word and byte count: the data of an ECHO is as long as its tag.
            Command::Smb1(wire1::Smb1Command::ECHO) => exchange.request.bytes == 32 + 1 + 2 + 2 + u64::from(tag),
            _ => exchange.path.as_deref().is_none_or(|path| {
                // The snap length may have truncated the name.
                let name = format!("\\t{tag}");
                path.strip_suffix(CUT_NAME_MARK).map_or(path == name, |beginning| name.starts_with(beginning))
            }),
        };
        let same_id = exchange.message_id.is_none_or(|id| id == self.message_id);
        says_tag && same_id && exchange.command == self.command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_is_used_while_it_is_outstanding_and_the_window_is_kept() {
        for seed in 0..100 {
            let script = Script::random(Ids::Smb1 { mids: 1 + (seed % 3) as u16 }, 60, seed);
            let Played { packets, truth } = script.play();
            assert_eq!(truth.len(), 60);
            let interval = |exchange: &TrueExchange| {
                let first = exchange.request.first_packet(&packets).unwrap();
                (packets[first].time, packets[exchange.response.last_packet(&packets).unwrap()].time)
            };
            for (index, one) in truth.iter().enumerate() {
                for other in truth[..index].iter().filter(|other| other.message_id == one.message_id) {
                    assert!(interval(other).1 < interval(one).0, "seed {seed}: {one:?} {other:?}");
                }
                let (first, last) = interval(one);
                assert!(first < last, "seed {seed}: {one:?}");
                assert!(packets.is_sorted_by_key(|packet| packet.time));
            }
        }
    }
}
