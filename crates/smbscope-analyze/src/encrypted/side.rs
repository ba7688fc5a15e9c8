//! Tells client and server apart where only encrypted frames were captured, by message sizes that only requests or only
//! responses have (MS-SMB2 2.2).

use super::sizes;
use crate::content::FrameContent;
use crate::framer::Frame;
use smbscope_model::FlowDirection;

/// Frames that are kept until sizes decide.
const MAX_UNDECIDED: usize = 32;
/// Score that decides. A size that few messages of the other side have counts 1, one that none has counts 2.
const DECISIVE: i32 = 4;

/// A frame of a connection whose client is not known.
#[derive(Debug)]
pub(crate) struct UndecidedFrame {
    pub(crate) direction: FlowDirection,
    pub(crate) frame: Frame,
    /// How far both streams had been read when it came.
    pub(crate) reached: [u64; 2],
}

/// Frames of a connection whose client is not known.
#[derive(Debug, Default)]
pub(crate) struct Undecided {
    frames: Vec<UndecidedFrame>,
    /// Score of a client that sends forward.
    forward: i32,
}

impl Undecided {
    /// Adds a frame. Returns the direction of the client if sizes decide it.
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

    /// Returns true if no more frames are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.frames.len() >= MAX_UNDECIDED
    }

    /// Approximate memory in bytes.
    pub(crate) fn footprint(&self) -> usize {
        self.frames.capacity() * size_of::<UndecidedFrame>()
    }

    pub(crate) fn take_frames(&mut self) -> Vec<UndecidedFrame> {
        std::mem::take(&mut self.frames)
    }
}
