//! Determines the client of a connection from the sizes of encrypted messages, some of which occur only in requests or
//! only in responses (MS-SMB2 §2.2).

use super::sizes;
use crate::content::FrameContent;
use crate::framer::Frame;
use smbscope_model::FlowDirection;

const MAX_UNDECIDED: usize = 32;
/// Decisive score. A size that is rare on the other side counts 1, an impossible one counts 2.
const DECISIVE: i32 = 4;

#[derive(Debug)]
pub(crate) struct UndecidedFrame {
    pub(crate) direction: FlowDirection,
    pub(crate) frame: Frame,
    pub(crate) reached: [u64; 2],
}

#[derive(Debug, Default)]
pub(crate) struct Undecided {
    frames: Vec<UndecidedFrame>,
    /// Score in favour of the forward direction being the client's.
    forward: i32,
}

impl Undecided {
    pub(crate) fn push(&mut self, waiting: UndecidedFrame) -> Option<FlowDirection> {
        let UndecidedFrame { direction, frame, .. } = &waiting;
        let weight = match frame.content {
            FrameContent::Encrypted { .. } => sizes::speaks_for_client(sizes::plain(frame.length())),
            _ => 0,
        };
        self.forward += if *direction == FlowDirection::Forward { weight } else { -weight };
        self.frames.push(waiting);
        let client = if self.forward > 0 { FlowDirection::Forward } else { FlowDirection::Backward };
        (self.forward.abs() >= DECISIVE).then_some(client)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= MAX_UNDECIDED
    }

    pub(crate) fn footprint(&self) -> usize {
        self.frames.capacity() * size_of::<UndecidedFrame>()
    }

    pub(crate) fn take_frames(&mut self) -> Vec<UndecidedFrame> {
        std::mem::take(&mut self.frames)
    }
}
