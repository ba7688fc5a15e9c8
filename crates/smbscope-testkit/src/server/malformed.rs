//! Turns valid responses into malformed ones.

use super::script::Malformed;
use crate::random::Random;
use smbscope_wire::bytes::u16_at;
use smbscope_wire::codec::Put;
use smbscope_wire::nbss::HEADER_LENGTH;
use smbscope_wire::smb1;
use smbscope_wire::smb1::messages::{ReadAndxFields, Smb1Message, Transaction2ResponseFields, WriteAndxResponse};
use smbscope_wire::smb2::messages::{
    create, ioctl, negotiate, query_directory, query_info, read, session_setup, write,
};
use smbscope_wire::smb2::{self, TRANSFORM_ID};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Afterwards {
    GoOn,
    Close,
}

/// Damages the frame from `start` to the end of `out`.
pub(super) fn spoil(how: Malformed, out: &mut Vec<u8>, start: usize) -> Afterwards {
    let at = start + HEADER_LENGTH;
    let message = &mut out[at..];
    let whole = message.len();
    let is_smb2 = message.starts_with(&smb2::PROTOCOL_ID);
    match how {
        Malformed::ProtocolId => overwrite(message, 0, b"\xfeXYZ"),
        Malformed::StructureSize if is_smb2 => overwrite(message, smb2::Smb2Header::LENGTH, &[7, 0]),
        Malformed::StructureSize => overwrite(message, smb1::Smb1Header::LENGTH, &[99]),
        Malformed::OffsetBehindEnd => behind_end(message, Which::Offset),
        Malformed::LengthBehindEnd => behind_end(message, Which::Length),
        Malformed::FrameLength => overwrite(out, start, &[0, 0xff, 0xff, 0xff]),
        Malformed::FrameType => overwrite(out, start, &[0x47]),
        Malformed::Truncated(length) => {
            out.truncate(at + length.min(whole));
            set_frame_length(out, start);
        }
        Malformed::CutOff(length) => {
            out.truncate(at + length.min(whole));
            return Afterwards::Close;
        }
        Malformed::MessageId => change_id(message),
        Malformed::WithoutRequest => {
            let good = out[start..].to_vec();
            change_id(&mut out[at..]);
            out.put_bytes(&good);
        }
        Malformed::Twice => out.extend_from_within(start..),
        Malformed::Command => change(message, |smb1| smb1.command.0 ^= 4, |smb2| smb2.command.0 ^= 4),
        Malformed::NotAResponse => change(
            message,
            |smb1| smb1.flags &= !smb1::flags::REPLY,
            |smb2| smb2.flags &= !smb2::flags::SERVER_TO_REDIR,
        ),
        Malformed::NoCredits => change(message, |_| {}, |smb2| smb2.credits = 0),
        Malformed::NextCommand => change(message, |_| {}, |smb2| smb2.next_command = whole as u32 + 64),
        Malformed::WrongSignature => {
            change(
                message,
                |smb1| smb1.flags2 |= smb1::flags2::SECURITY_SIGNATURE,
                |smb2| smb2.flags |= smb2::flags::SIGNED,
            );
            let signature = if is_smb2 { smb2::Smb2Header::SIGNATURE } else { smb1::Smb1Header::SIGNATURE };
            message.get_mut(signature).into_iter().for_each(|signature| signature.fill(0x5a));
        }
        Malformed::Encrypted => {
            let mut header = TRANSFORM_ID.to_vec();
            header.extend([0x5a; 32]);
            header.put_u32(whole as u32);
            header.put_u16(0);
            header.put_u16(1);
            header.put_u64(0x5000_0000_0001);
            out.splice(at..at, header);
            set_frame_length(out, start);
        }
        Malformed::Longer(by) => {
            if lengthen(message, by) {
                out.put_zeros(by.into());
                set_frame_length(out, start);
            }
        }
        Malformed::Random(seed) => {
            let mut random = Random::new(seed);
            for _ in 0..=random.below(8) {
                let at = random.below(whole as u64) as usize;
                overwrite(message, at, &[random.bits() as u8]);
            }
        }
    }
    Afterwards::GoOn
}

pub(super) fn set_frame_length(out: &mut [u8], start: usize) {
    let length = (out.len() - start - HEADER_LENGTH) as u32;
    out[start..start + HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
}

fn change_id(message: &mut [u8]) {
    change(
        message,
        |smb1| smb1.mid = smb1.mid.wrapping_add(0x5500),
        |smb2| smb2.message_id = smb2.message_id.wrapping_add(0x5500),
    );
}

/// Changes fields of the header, if it is complete.
fn change(message: &mut [u8], smb1: impl FnOnce(&mut smb1::Smb1Header), smb2: impl FnOnce(&mut smb2::Smb2Header)) {
    if let Some(header) = smb1::Smb1Header::parse(message) {
        rewrite(message, header, smb1, smb1::Smb1Header::emit);
    } else if let Some(header) = smb2::Smb2Header::parse(message) {
        rewrite(message, header, smb2, smb2::Smb2Header::emit);
    }
}

/// Changes words of an SMB1 response, if it has them.
pub(super) fn change_words<M: Smb1Message + Copy>(
    message: &mut [u8],
    parse: fn(&[u8]) -> Result<M, smb1::messages::Malformed>,
    change: impl FnOnce(&mut M),
) {
    if let (Some(header), Ok(words)) = (smb1::Smb1Header::parse(message), parse(message)) {
        rewrite(message, words, change, |words, out| words.emit(&header, out));
    }
}

/// Writes only the bytes that a change affects, so that bytes without a field in our types stay.
fn rewrite<T: Copy>(bytes: &mut [u8], was: T, change: impl FnOnce(&mut T), emit: impl Fn(&T, &mut Vec<u8>)) {
    let (mut is, mut before, mut after) = (was, Vec::new(), Vec::new());
    change(&mut is);
    emit(&was, &mut before);
    emit(&is, &mut after);
    for ((byte, _), after) in bytes.iter_mut().zip(before).zip(after).filter(|((_, before), after)| before != after) {
        *byte = after;
    }
}

fn overwrite(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(field) = out.get_mut(at..at + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}

#[derive(Clone, Copy)]
enum Which {
    Offset,
    Length,
}

/// An offset or length beyond the end of every response.
const BEHIND: u16 = 0xfff0;

/// Makes every offset, or every length, in the body of the response point beyond its end.
fn behind_end(message: &mut [u8], which: Which) {
    if let Some(header) = smb2::Smb2Header::parse(message) {
        for place in places(header.command) {
            let [spoilt, other] = [which as usize, 1 - which as usize].map(|index| place[index].clone());
            // The client checks an absent buffer only if both length and offset are set.
            if message.get(other.clone()).is_some_and(|other| other.iter().all(|byte| *byte == 0)) {
                overwrite(message, other.start, &[128]);
            }
            match spoilt.len() {
                1 => overwrite(message, spoilt.start, &[0xff]),
                2 => overwrite(message, spoilt.start, &BEHIND.to_le_bytes()),
                _ => overwrite(message, spoilt.start, &0x00ff_0000u32.to_le_bytes()),
            }
        }
        return;
    }
    match (smb1::Smb1Header::parse(message).map(|header| header.command), which) {
        (Some(smb1::Smb1Command::READ_ANDX), _) => change_words(message, ReadAndxFields::parse, |words| match which {
            Which::Offset => words.data_offset = BEHIND,
            Which::Length => words.data_length = BEHIND,
        }),
        (Some(smb1::Smb1Command::TRANSACTION2), _) => {
            change_words(message, Transaction2ResponseFields::parse, |words| match which {
                Which::Offset => (words.parameter_offset, words.data_offset) = (BEHIND, BEHIND),
                Which::Length => (words.parameter_count, words.data_count) = (BEHIND, BEHIND),
            });
        }
        (_, Which::Offset) => {}
        (_, Which::Length) => overwrite(message, byte_count(message), &BEHIND.to_le_bytes()),
    }
}

/// Returns the positions of offset and length of each buffer in SMB2 responses.
fn places(command: smb2::Smb2Command) -> &'static [[Range<usize>; 2]] {
    match command {
        smb2::Smb2Command::NEGOTIATE => negotiate::Response::PLACES,
        smb2::Smb2Command::SESSION_SETUP => session_setup::Response::PLACES,
        smb2::Smb2Command::CREATE => create::Response::PLACES,
        smb2::Smb2Command::READ => read::Response::PLACES,
        smb2::Smb2Command::IOCTL => ioctl::Response::PLACES,
        smb2::Smb2Command::QUERY_DIRECTORY => query_directory::Response::PLACES,
        smb2::Smb2Command::QUERY_INFO => query_info::Response::PLACES,
        _ => &[],
    }
}

/// Returns the position of ByteCount in an SMB1 message, after its words.
fn byte_count(message: &[u8]) -> usize {
    let words = message.get(smb1::Smb1Header::LENGTH).copied().unwrap_or_default();
    smb1::Smb1Header::LENGTH + 1 + 2 * usize::from(words)
}

/// Increases the length in READ and WRITE responses. Returns true if the data must become longer, too.
fn lengthen(message: &mut [u8], by: u16) -> bool {
    if let Some(header) = smb2::Smb2Header::parse(message) {
        match header.command {
            smb2::Smb2Command::READ => add(message, read::Response::PLACES[0][1].start, by),
            smb2::Smb2Command::WRITE => {
                let Some(answer) = write::Response::parse(message) else { return false };
                let body = &mut message[smb2::Smb2Header::LENGTH..];
                rewrite(body, answer, |answer| answer.count += u32::from(by), smb2::messages::Smb2Message::emit);
            }
            _ => {}
        }
        return header.command == smb2::Smb2Command::READ;
    }
    match smb1::Smb1Header::parse(message).map(|header| header.command) {
        Some(smb1::Smb1Command::READ_ANDX) => {
            change_words(message, ReadAndxFields::parse, |words| words.data_length += by);
            add(message, byte_count(message), by);
            true
        }
        Some(smb1::Smb1Command::WRITE_ANDX) => {
            change_words(message, WriteAndxResponse::parse, |words| words.count += by);
            false
        }
        _ => false,
    }
}

fn add(message: &mut [u8], at: usize, by: u16) {
    if let Some(value) = u16_at(message, at) {
        overwrite(message, at, &value.wrapping_add(by).to_le_bytes());
    }
}
