//! State of one flow: a framer per direction, and the SMB connection once one is recognised.

use crate::connection::ConnectionAnalyzer;
use crate::content::FrameContent;
use crate::encrypted::sizes::{Undecided, UndecidedFrame};
use crate::frame::Frame;
use crate::framer::Framer;
use crate::ledger::ShardContext;
use smbscope_capture::tcp::{FlowEnd, FlowView, Retransmission, StreamChunk, StreamGap};
use smbscope_model::{FlowDirection, ForeignProtocol, ForeignReply};
use smbscope_wire::{smb1, smb2};

#[derive(Debug)]
pub struct FlowState {
    framers: [Framer; 2],
    client_by_port: Option<FlowDirection>,
    connection: Option<Box<ConnectionAnalyzer>>,
    undecided: Undecided,
    /// By direction: the first bytes were seen, and the protocol if they clearly belong to another one.
    heard: [bool; 2],
    foreign: [Option<ForeignProtocol>; 2],
}

impl FlowState {
    pub(crate) fn new(view: &FlowView, promising: [bool; 2], details: bool) -> FlowState {
        let certain = promising.contains(&true);
        FlowState {
            framers: [(); 2].map(|()| Framer::new(view.midstream, certain, details)),
            client_by_port: match promising {
                [true, false] => Some(FlowDirection::Backward),
                [false, true] => Some(FlowDirection::Forward),
                _ => None,
            },
            connection: None,
            undecided: Undecided::default(),
            heard: [false, false],
            foreign: [None, None],
        }
    }

    pub(crate) fn data(
        &mut self,
        view: &FlowView,
        direction: FlowDirection,
        chunk: &StreamChunk<'_>,
        shared: &mut ShardContext<'_>,
    ) {
        if !self.heard[direction.index()] {
            self.heard[direction.index()] = true;
            self.foreign[direction.index()] = foreign_protocol(chunk.bytes);
        }
        let mut frames = std::mem::take(shared.frames);
        let framer = &mut self.framers[direction.index()];
        if !view.begins[direction.index()] {
            framer.may_miss_the_beginning(chunk.position);
        }
        framer.data(chunk, &mut frames);
        self.take_frames(view, direction, &mut frames, shared);
        *shared.frames = frames;
        if let Some(connection) = &mut self.connection {
            let open = self.framers.iter().filter_map(Framer::open_since);
            connection.settle(view, chunk.first.time, open, shared.emit);
        }
    }

    pub(crate) fn gap(
        &mut self,
        view: &FlowView,
        direction: FlowDirection,
        gap: &StreamGap,
        shared: &mut ShardContext<'_>,
    ) {
        let mut frames = std::mem::take(shared.frames);
        self.framers[direction.index()].gap(gap, &mut frames);
        self.take_frames(view, direction, &mut frames, shared);
        *shared.frames = frames;
    }

    #[inline]
    pub(crate) fn footprint(&self) -> usize {
        let [forward, backward] = &self.framers;
        let connection = self.connection.as_ref().map_or(0, |connection| connection.footprint());
        forward.footprint() + backward.footprint() + connection + self.undecided.footprint()
    }

    pub(crate) fn retransmitted(&mut self, direction: FlowDirection, retransmission: &Retransmission) {
        if let Some(connection) = &mut self.connection {
            connection.retransmitted(&self.framers[direction.index()], direction, retransmission);
        }
    }

    pub(crate) fn close(
        mut self,
        view: &FlowView,
        end: &FlowEnd,
        shared: &mut ShardContext<'_>,
    ) -> Option<smbscope_model::ConnectionSummary> {
        let mut frames = Vec::new();
        for direction in FlowDirection::BOTH {
            self.framers[direction.index()].finish(&mut frames);
            self.take_frames(view, direction, &mut frames, shared);
        }
        if !self.undecided.is_empty() {
            self.guess_client(view, shared);
        }
        let connection = self.connection?;
        self.framers.iter().for_each(|framer| framer.count(shared.quality));
        shared.quality.merge(&end.quality);
        let server = connection.client().reverse();
        if let Some(protocol) = self.foreign[server.index()] {
            shared.quality.foreign_replies += 1;
            let reply = ForeignReply { server: view.ends(server).0, protocol };
            shared.foreign_replies.add(reply, ());
        }
        Some(connection.close(view, shared, &mut self.framers, end))
    }

    fn take_frames(
        &mut self,
        view: &FlowView,
        direction: FlowDirection,
        frames: &mut Vec<Frame>,
        shared: &mut ShardContext<'_>,
    ) {
        for frame in frames.iter_mut() {
            let connection = match &mut self.connection {
                Some(connection) => connection,
                None if matches!(frame.content, FrameContent::Raw) => continue,
                none => {
                    self.framers.iter_mut().for_each(Framer::make_certain);
                    match known_client(view, self.client_by_port, direction, frame) {
                        Some(client) if self.undecided.is_empty() => {
                            none.insert(Box::new(ConnectionAnalyzer::new(view, client)))
                        }
                        known => {
                            self.wait(view, direction, frame, known, shared);
                            continue;
                        }
                    }
                }
            };
            connection.take_frame(view, shared, &self.framers, direction, frame);
        }
        frames.clear();
    }

    #[cold]
    fn wait(
        &mut self,
        view: &FlowView,
        direction: FlowDirection,
        frame: &mut Frame,
        known: Option<FlowDirection>,
        shared: &mut ShardContext<'_>,
    ) {
        let content = std::mem::replace(&mut frame.content, FrameContent::Raw);
        let reached = self.framers.each_ref().map(|framer| framer.losses.reached());
        let by_size = self.undecided.push(UndecidedFrame { direction, frame: Frame { content, ..*frame }, reached });
        match known.or(by_size) {
            Some(client) => self.connect(view, client, shared),
            None if self.undecided.is_full() => self.guess_client(view, shared),
            None => {}
        }
    }

    fn guess_client(&mut self, view: &FlowView, shared: &mut ShardContext<'_>) {
        shared.quality.sides_guessed += 1;
        self.connect(view, view.client_by_port(), shared);
    }

    fn connect(&mut self, view: &FlowView, client: FlowDirection, shared: &mut ShardContext<'_>) {
        let connection = self.connection.insert(Box::new(ConnectionAnalyzer::new(view, client)));
        let now = self.framers.each_ref().map(|framer| framer.losses.reached());
        let reach = |framers: &mut [Framer; 2], reached: [u64; 2]| {
            framers.iter_mut().zip(reached).for_each(|(framer, position)| framer.losses.reach(position));
        };
        for UndecidedFrame { direction, mut frame, reached } in self.undecided.take_frames() {
            reach(&mut self.framers, reached);
            connection.take_frame(view, shared, &self.framers, direction, &mut frame);
        }
        reach(&mut self.framers, now);
    }
}

/// Returns the direction of the client: the sender of a request. If the message could be from either side, like
/// encrypted ones, the side that opened the connection, or the one without an SMB port.
fn known_client(
    view: &FlowView,
    by_port: Option<FlowDirection>,
    direction: FlowDirection,
    frame: &Frame,
) -> Option<FlowDirection> {
    match frame.content.asks() {
        Some(true) => Some(direction),
        Some(false) => Some(direction.reverse()),
        None => view.opener.or(by_port),
    }
}

pub(crate) fn foreign_protocol(bytes: &[u8]) -> Option<ForeignProtocol> {
    Some(match bytes {
        [b'H', b'T', b'T', b'P', b'/', ..] => ForeignProtocol::Http,
        [b'S', b'S', b'H', b'-', ..] => ForeignProtocol::Ssh,
        [0x15 | 0x16, 3, 0..=4, ..] => ForeignProtocol::Tls,
        [b'R', b'F', b'B', b' ', ..] => ForeignProtocol::Vnc,
        [b'2', b'2', b'0', b' ' | b'-', ..] => ForeignProtocol::FtpOrSmtp,
        [b'*', b' ', b'O', b'K', ..] => ForeignProtocol::Imap,
        _ => return None,
    })
}

/// Returns true if a segment begins with a NEGOTIATE request, which occurs only at the beginning of a connection.
pub(crate) fn begins_connection(bytes: &[u8]) -> bool {
    let Some(message) = bytes.get(4..).filter(|_| bytes[0] == 0) else { return false };
    match message {
        [0xff, b'S', b'M', b'B', command, _, _, _, _, flags, ..] => {
            smb1::Smb1Command(*command) == smb1::Smb1Command::NEGOTIATE && flags & 0x80 == 0
        }
        [0xfe, b'S', b'M', b'B', ..] => {
            let field = |at: usize| message.get(at..at + 2).map(|field| u16::from_le_bytes([field[0], field[1]]));
            let is_negotiate = field(12).map(smb2::Smb2Command) == Some(smb2::Smb2Command::NEGOTIATE);
            is_negotiate && field(16).is_some_and(|flags| flags & 1 == 0)
        }
        _ => false,
    }
}
