//! Turns of client and server, and the trait of clients that invent them.

use crate::packet::Side;
use crate::random::Random;
use smbscope_model::Command;
use std::collections::VecDeque;

/// A framed message: its relevant bytes, and the amount of filler.
#[derive(Debug)]
pub(super) struct Frame {
    /// NetBIOS session header and the bytes that the analysis reads.
    pub(super) head: Vec<u8>,
    pub(super) filler: usize,
}

impl Frame {
    /// Frames a message whose last `filler` bytes are not in `message`.
    pub(super) fn new(message: impl Into<Vec<u8>>, filler: usize) -> Frame {
        let message = message.into();
        let mut head = Vec::with_capacity(4 + message.len());
        head.extend(((message.len() + filler) as u32).to_be_bytes());
        head.extend(message);
        Frame { head, filler }
    }

    pub(super) fn length(&self) -> usize {
        self.head.len() + self.filler
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Requests(&'static [Command]),
    Responses(&'static [Command]),
    Interim,
}

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) side: Side,
    /// Time since the end of the previous turn.
    pub(super) wait_ns: i64,
    pub(super) frame: Frame,
    pub(super) part: Part,
}

pub(super) struct Turns {
    queue: VecDeque<Turn>,
    service_ns: i64,
    think_ns: i64,
    wait_ns: i64,
    pub(super) random: Random,
}

impl Turns {
    pub(super) fn new(service_ns: i64, think_ns: i64, random: Random) -> Turns {
        Turns { queue: VecDeque::new(), service_ns, think_ns, wait_ns: 0, random }
    }

    pub(super) fn think(&mut self) {
        self.wait_ns = self.about(self.think_ns);
    }

    pub(super) fn ask(&mut self, commands: &'static [Command], frame: Frame) {
        // Even within an operation, a client needs some time between requests.
        let wait_ns = std::mem::take(&mut self.wait_ns).max(2_000);
        self.queue.push_back(Turn { side: Side::Client, wait_ns, frame, part: Part::Requests(commands) });
    }

    pub(super) fn answer(&mut self, commands: &'static [Command], frame: Frame) {
        let wait_ns = self.about(self.service_ns);
        self.queue.push_back(Turn { side: Side::Server, wait_ns, frame, part: Part::Responses(commands) });
    }

    /// Adds a response that is sent directly after the previous one.
    pub(super) fn answer_at_once(&mut self, commands: &'static [Command], frame: Frame) {
        self.answer(commands, frame);
        if let Some(last) = self.queue.back_mut() {
            last.wait_ns = 3_000;
        }
    }

    pub(super) fn interim(&mut self, frame: Frame) {
        let wait_ns = self.about(self.service_ns);
        self.queue.push_back(Turn { side: Side::Server, wait_ns, frame, part: Part::Interim });
    }

    pub(super) fn current(&self) -> Option<&Turn> {
        self.queue.front()
    }

    pub(super) fn next(&mut self) {
        self.queue.pop_front();
    }

    /// Returns a random time from almost zero to twice the mean.
    fn about(&mut self, mean_ns: i64) -> i64 {
        1_000 + self.random.below(2 * mean_ns.max(0) as u64) as i64
    }
}

/// Invents the messages of a client and its server.
pub(super) trait Client {
    /// Adds the turns of the next operation; the first operation sets up the connection.
    fn act(&mut self, turns: &mut Turns);
    fn has_timestamps(&self) -> bool;
}
