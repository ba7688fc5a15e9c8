//! What client and server say in turn, and who makes it up.

use crate::packet::Side;
use crate::random::Random;
use smbscope_model::Command;
use std::collections::VecDeque;

/// A message in its frame: the bytes that matter, and how many that do not follow.
#[derive(Debug)]
pub(super) struct Frame {
    /// NetBIOS session header and what the analysis reads.
    pub(super) head: Vec<u8>,
    /// Payload behind it, of which nobody looks at a byte.
    pub(super) filler: usize,
}

impl Frame {
    /// A message whose last `filler` bytes are not in `message`.
    pub(super) fn new(message: impl Into<Vec<u8>>, filler: usize) -> Frame {
        let message = message.into();
        let mut head = Vec::with_capacity(4 + message.len());
        head.extend(((message.len() + filler) as u32).to_be_bytes());
        head.extend(message);
        Frame { head, filler }
    }

    /// Length with the NetBIOS session header.
    pub(super) fn length(&self) -> usize {
        self.head.len() + self.filler
    }
}

/// What a frame is for the count.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// Requests.
    Requests(&'static [Command]),
    /// Their final responses.
    Responses(&'static [Command]),
    /// An interim response.
    Interim,
}

/// Something said.
#[derive(Debug)]
pub(super) struct Turn {
    /// By whom.
    pub(super) side: Side,
    /// After the end of the turn before.
    pub(super) wait_ns: i64,
    /// The words.
    pub(super) frame: Frame,
    /// For the count.
    pub(super) part: Part,
}

/// The turns that a client has planned.
pub(super) struct Turns {
    queue: VecDeque<Turn>,
    service_ns: i64,
    think_ns: i64,
    wait_ns: i64,
    /// For what clients decide.
    pub(super) random: Random,
}

impl Turns {
    /// None yet.
    pub(super) fn new(service_ns: i64, think_ns: i64, random: Random) -> Turns {
        Turns { queue: VecDeque::new(), service_ns, think_ns, wait_ns: 0, random }
    }

    /// The client thinks before its next request.
    pub(super) fn think(&mut self) {
        self.wait_ns = self.about(self.think_ns);
    }

    /// The client asks.
    pub(super) fn ask(&mut self, commands: &'static [Command], frame: Frame) {
        // A program needs a moment even between operations that belong together.
        let wait_ns = std::mem::take(&mut self.wait_ns).max(2_000);
        self.queue.push_back(Turn { side: Side::Client, wait_ns, frame, part: Part::Requests(commands) });
    }

    /// The server answers.
    pub(super) fn answer(&mut self, commands: &'static [Command], frame: Frame) {
        let wait_ns = self.about(self.service_ns);
        self.queue.push_back(Turn { side: Side::Server, wait_ns, frame, part: Part::Responses(commands) });
    }

    /// The server answers at once, because the answer was ready while it sent the one before.
    pub(super) fn answer_at_once(&mut self, commands: &'static [Command], frame: Frame) {
        self.answer(commands, frame);
        if let Some(last) = self.queue.back_mut() {
            last.wait_ns = 3_000;
        }
    }

    /// The server says that the answer will take a while.
    pub(super) fn interim(&mut self, frame: Frame) {
        let wait_ns = self.about(self.service_ns);
        self.queue.push_back(Turn { side: Side::Server, wait_ns, frame, part: Part::Interim });
    }

    /// The current turn.
    pub(super) fn current(&self) -> Option<&Turn> {
        self.queue.front()
    }

    /// The current turn is over.
    pub(super) fn next(&mut self) {
        self.queue.pop_front();
    }

    /// From nothing to twice the mean.
    fn about(&mut self, mean_ns: i64) -> i64 {
        1_000 + self.random.below(2 * mean_ns.max(0) as u64) as i64
    }
}

/// Makes up what a client and its server say.
pub(super) trait Client {
    /// Adds the turns of the next operation; the first sets the connection up.
    fn act(&mut self, turns: &mut Turns);
    /// Whether the client's TCP sends timestamps.
    fn has_timestamps(&self) -> bool;
}
