//! Packet sources of a lane: part of a file in memory, or a stream.

use super::capture::OpenCapture;
use super::format::CaptureParser;
use super::pcapng::Interfaces;
use super::record::{ParseStep, SkipReason};
use super::runs::SortedRun;
use super::sides::ClockCorrection;
use super::stream::{self, ENDS_INSIDE, InputStream, RecordPoll};
use super::survey::Survey;
use super::warm::Warmer;
use std::sync::Arc;
use std::time::Duration;

/// A parsed packet header and the location of the packet's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) time: i64,
    pub(super) number: u64,
    pub(super) link_type: u32,
    pub(super) wire_length: u32,
    /// Start of the captured bytes: in the file for [`PacketSource::Bytes`], in the window for
    /// [`PacketSource::Stream`].
    pub(super) data_start: usize,
    pub(super) data_length: usize,
    pub(super) record_length: usize,
}

pub(super) enum PacketPoll {
    Packet(Head),
    /// No packet arrived within the time limit.
    Idle,
    End,
}

pub(super) enum PacketSource {
    Bytes(MemorySource),
    Stream(Box<StreamSource>),
}

/// Part of a file in memory, from one packet to another.
pub(super) struct MemorySource {
    position: usize,
    format: CaptureParser,
    next_number: u64,
    /// Added to all timestamps, to compensate for clock steps.
    shift: i64,
    /// Number of the packet at which the part ends, exclusive.
    end_number: u64,
    sides: Option<Arc<ClockCorrection>>,
    warmer: Warmer,
}

impl MemorySource {
    /// Starts at `run` and ends before packet `end_number`.
    pub(super) fn new(run: &SortedRun, end_number: u64, sides: Option<Arc<ClockCorrection>>) -> MemorySource {
        MemorySource {
            position: usize::try_from(run.position).unwrap_or(usize::MAX),
            format: run.format,
            next_number: run.number,
            shift: run.shift,
            end_number,
            sides,
            warmer: Warmer::default(),
        }
    }
}

pub(super) struct StreamSource {
    pub(super) stream: Option<InputStream>,
    pub(super) format: CaptureParser,
    pub(super) number: u64,
    /// Length of the already delivered record at the start of the window.
    pub(super) delivered: usize,
    /// The stream is read for the first time and is surveyed on the way.
    pub(super) surveying: bool,
}

impl PacketSource {
    /// Returns the next packet in file order. Invalidates the bytes of the previous one.
    #[inline]
    pub(super) fn next(&mut self, capture: &mut OpenCapture, patience: Option<Duration>) -> PacketPoll {
        match self {
            PacketSource::Bytes(stretch) => {
                let (bytes, interfaces, survey) = capture.parts();
                stretch.next(bytes, interfaces, survey)
            }
            PacketSource::Stream(source) => source.next(capture, patience),
        }
    }

    #[inline]
    pub(super) fn data<'s>(&'s self, capture: &'s OpenCapture, head: &Head) -> &'s [u8] {
        let bytes = match self {
            PacketSource::Bytes(_) => capture.bytes(),
            PacketSource::Stream(source) => source.stream.as_ref().map(InputStream::window).unwrap_or_default(),
        };
        bytes.get(head.data_start..head.data_start + head.data_length).unwrap_or_default()
    }
}

impl MemorySource {
    #[inline(always)]
    pub(super) fn next(
        &mut self,
        bytes: &[u8],
        interfaces: &mut Interfaces,
        mut survey: Option<&mut Survey>,
    ) -> PacketPoll {
        while self.next_number < self.end_number {
            self.warmer.at(self.position, bytes);
            let window = bytes.get(self.position..).unwrap_or_default();
            match self.format.step(interfaces, window) {
                ParseStep::Packet(mut record, length) => {
                    record.time += self.shift;
                    if let Some(sides) = &self.sides {
                        sides.correct(&mut record, window);
                    }
                    if let Some(survey) = &mut survey {
                        survey.ordered_packet(record.time);
                    }
                    let head = Head {
                        time: record.time,
                        number: self.next_number,
                        link_type: record.link_type,
                        wire_length: record.wire_length,
                        data_start: self.position + record.data_start,
                        data_length: record.data_length,
                        record_length: length,
                    };
                    self.position += length;
                    self.next_number += 1;
                    return PacketPoll::Packet(head);
                }
                ParseStep::Skip { length, what } => {
                    if let Some(survey) = &mut survey {
                        survey.passed(what);
                        if length > window.len() {
                            survey.damaged(ENDS_INSIDE.to_owned(), self.position as u64);
                        }
                    }
                    self.position = self.position.saturating_add(length);
                    self.next_number += u64::from(what == SkipReason::Numbered);
                }
                ParseStep::More(_) if window.is_empty() => break,
                ParseStep::More(_) => {
                    // If there was an earlier survey, it has reported this already.
                    if let Some(survey) = &mut survey {
                        survey.damaged(ENDS_INSIDE.to_owned(), self.position as u64);
                    }
                    break;
                }
                ParseStep::Stop(reason) => {
                    if let Some(survey) = &mut survey {
                        survey.damaged(reason, self.position as u64);
                    }
                    break;
                }
            }
        }
        PacketPoll::End
    }
}

impl StreamSource {
    fn next(&mut self, capture: &mut OpenCapture, patience: Option<Duration>) -> PacketPoll {
        if self.stream.is_none() {
            // The survey has read this file before: if it can't be opened again, its remaining packets are lost.
            match capture.open_stream() {
                Ok(stream) => self.stream = Some(stream),
                Err(error) => {
                    capture.survey.damaged(format!("it cannot be read again ({error})"), 0);
                    return PacketPoll::End;
                }
            }
        }
        let Some(stream) = &mut self.stream else { return PacketPoll::End };
        stream.consume(std::mem::take(&mut self.delivered));
        loop {
            match stream::next_record(stream, &mut self.format, &mut capture.interfaces, patience) {
                RecordPoll::Packet(record, length) => {
                    if self.surveying {
                        capture.survey.packet(&record, length, stream.offset(), &self.format);
                    }
                    self.number += 1;
                    self.delivered = length;
                    return PacketPoll::Packet(Head {
                        time: record.time,
                        number: self.number,
                        link_type: record.link_type,
                        wire_length: record.wire_length,
                        data_start: record.data_start,
                        data_length: record.data_length,
                        record_length: length,
                    });
                }
                RecordPoll::Passed(what) => {
                    self.number += u64::from(what == SkipReason::Numbered);
                    if self.surveying {
                        capture.survey.passed(what);
                    }
                }
                RecordPoll::Idle => return PacketPoll::Idle,
                RecordPoll::End(reason) => {
                    if self.surveying {
                        capture.survey.length = stream.input_bytes();
                        if let Some(reason) = reason {
                            capture.survey.damaged(reason, stream.offset());
                        }
                    }
                    return PacketPoll::End;
                }
            }
        }
    }
}
