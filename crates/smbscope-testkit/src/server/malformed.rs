//! Answers that break the protocol: bytes of a good answer, changed.

use super::script::Malformed;
use crate::random::Random;
use smbscope_wire::codec::{Put, Value};
use smbscope_wire::nbss::HEADER_LENGTH;
use smbscope_wire::smb2::{self, TRANSFORM_ID};

/// What must happen with the connection once the frame is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Afterwards {
    GoOn,
    Close,
}

/// Spoils the frame that begins at `start` and reaches to the end of `out`.
pub(super) fn spoil(how: Malformed, out: &mut Vec<u8>, start: usize) -> Afterwards {
    let message = start + HEADER_LENGTH;
    let is_smb2 = out.get(message..message + 4).is_some_and(|id| id == smb2::PROTOCOL_ID);
    // SMB2: the body behind the header. SMB1: the parameter words behind their count.
    let body = if is_smb2 { message + 64 } else { message + 33 };
    let whole = out.len() - message;
    match how {
        Malformed::ProtocolId => overwrite(out, message, b"\xfeXYZ"),
        Malformed::StructureSize if is_smb2 => put_over(out, body, 7u16),
        Malformed::StructureSize => overwrite(out, body - 1, &[99]),
        Malformed::OffsetBehindEnd => offsets(out, message, body, is_smb2),
        Malformed::LengthBehindEnd => lengths(out, message, body, is_smb2),
        Malformed::FrameLength => overwrite(out, start, &[0, 0xff, 0xff, 0xff]),
        Malformed::FrameType => overwrite(out, start, &[0x47]),
        Malformed::Truncated(length) => {
            out.truncate(message + length.min(whole));
            set_frame_length(out, start);
        }
        Malformed::CutOff(length) => {
            out.truncate(message + length.min(whole));
            return Afterwards::Close;
        }
        Malformed::MessageId => add_to_message_id(out, message, is_smb2),
        Malformed::WithoutRequest => {
            let good = out[start..].to_vec();
            add_to_message_id(out, message, is_smb2);
            out.put_bytes(&good);
        }
        Malformed::Twice => out.extend_from_within(start..),
        Malformed::Command => flip(out, message + if is_smb2 { 12 } else { 4 }, 4),
        Malformed::NotAResponse if is_smb2 => clear(out, message + 16, 1),
        Malformed::NotAResponse => clear(out, message + 9, 0x80),
        Malformed::NoCredits if is_smb2 => put_over(out, message + 14, 0u16),
        Malformed::NextCommand if is_smb2 => put_over(out, message + smb2::Header::NEXT_COMMAND, whole as u32 + 64),
        // SMB1 has neither.
        Malformed::NoCredits | Malformed::NextCommand => {}
        Malformed::WrongSignature if is_smb2 => {
            set(out, message + 16, 8);
            overwrite(out, message + 48, &[0x5a; 16]);
        }
        Malformed::WrongSignature => {
            set(out, message + 10, 4);
            overwrite(out, message + 14, &[0x5a; 8]);
        }
        Malformed::Encrypted => {
            let mut header = TRANSFORM_ID.to_vec();
            header.extend([0x5a; 32]);
            header.put_u32(whole as u32);
            header.put_u16(0);
            header.put_u16(1);
            header.put_u64(0x5000_0000_0001);
            out.splice(message..message, header);
            set_frame_length(out, start);
        }
        Malformed::Longer(by) => lengthen(out, start, message, body, is_smb2, by),
        Malformed::Random(seed) => {
            let mut random = Random::new(seed);
            for _ in 0..=random.below(8) {
                let at = message + random.below(whole as u64) as usize;
                overwrite(out, at, &[random.bits() as u8]);
            }
        }
    }
    Afterwards::GoOn
}

/// READ with more data, and WRITE with a larger count; other answers stay as they are.
fn lengthen(out: &mut Vec<u8>, start: usize, message: usize, body: usize, is_smb2: bool, by: u16) {
    let command = out[message + if is_smb2 { 12 } else { 4 }];
    let (read, write) = if is_smb2 { (8, 9) } else { (0x2e, 0x2f) };
    if command == read {
        out.put_zeros(by.into());
        set_frame_length(out, start);
        // SMB2: DataLength. SMB1: DataLength, and the byte count behind the words.
        if is_smb2 {
            add_u16(out, body + 4, by);
        } else {
            add_u16(out, body + 10, by);
            let words = 2 * usize::from(out[body - 1]);
            add_u16(out, body + words, by);
        }
    } else if command == write {
        add_u16(out, body + 4, by);
    }
}

fn add_u16(out: &mut [u8], at: usize, by: u16) {
    if let Some([low, high]) = out.get(at..at + 2) {
        let value = u16::from_le_bytes([*low, *high]).wrapping_add(by);
        put_over(out, at, value);
    }
}

/// Writes the length of the frame from `start` to the end into its header.
pub(super) fn set_frame_length(out: &mut [u8], start: usize) {
    let length = (out.len() - start - HEADER_LENGTH) as u32;
    out[start..start + HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
}

/// A field, where the answer has one.
fn put_over<T: Value>(out: &mut [u8], at: usize, value: T) {
    if at + T::LENGTH <= out.len() {
        value.set(out, at);
    }
}

fn overwrite(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(field) = out.get_mut(at..at + bytes.len()) {
        field.copy_from_slice(bytes);
    }
}

fn clear(out: &mut [u8], at: usize, bits: u8) {
    if let Some(byte) = out.get_mut(at) {
        *byte &= !bits;
    }
}

fn set(out: &mut [u8], at: usize, bits: u8) {
    if let Some(byte) = out.get_mut(at) {
        *byte |= bits;
    }
}

fn flip(out: &mut [u8], at: usize, bits: u8) {
    if let Some(byte) = out.get_mut(at) {
        *byte ^= bits;
    }
}

fn add_to_message_id(out: &mut [u8], message: usize, is_smb2: bool) {
    let at = if is_smb2 { message + 25 } else { message + 31 };
    if let Some(byte) = out.get_mut(at) {
        *byte = byte.wrapping_add(0x55);
    }
}

/// Every offset that the body of the answer has.
fn offsets(out: &mut [u8], message: usize, body: usize, is_smb2: bool) {
    match (is_smb2, out[message + 4 + if is_smb2 { 8 } else { 0 }]) {
        // READ: DataOffset is a byte.
        (true, 8) => overwrite(out, body + 2, &[0xff]),
        // CREATE: the offset of the contexts. IOCTL: of the output. NEGOTIATE: of the token and of the contexts.
        (true, 5) => {
            put_over(out, body + 80, 0x00ff_0000u32);
            put_over(out, body + 84, 64u32);
        }
        (true, 11) => put_over(out, body + 32, 0x00ff_0000u32),
        (true, 0) => {
            put_over(out, body + 56, 0xfff0u16);
            put_over(out, body + 60, 0x00ff_0000u32);
        }
        (true, 1) => put_over(out, body + 4, 0xfff0u16),
        (true, _) => put_over(out, body + 2, 0xfff0u16),
        // READ_ANDX: DataOffset. TRANSACTION2: ParameterOffset and DataOffset.
        (false, 0x2e) => put_over(out, body + 12, 0xfff0u16),
        (false, 0x32) => {
            put_over(out, body + 8, 0xfff0u16);
            put_over(out, body + 14, 0xfff0u16);
        }
        (false, _) => put_over(out, body + 2, 0xfff0u16),
    }
}

/// Every length that the body of the answer has.
fn lengths(out: &mut [u8], message: usize, body: usize, is_smb2: bool) {
    match (is_smb2, out[message + 4 + if is_smb2 { 8 } else { 0 }]) {
        (true, 5) => {
            put_over(out, body + 80, 152u32);
            put_over(out, body + 84, 0x00ff_0000u32);
        }
        (true, 11) => put_over(out, body + 36, 0x00ff_0000u32),
        (true, 0) => put_over(out, body + 58, 0xfff0u16),
        (true, 1) => put_over(out, body + 6, 0xfff0u16),
        (true, _) => put_over(out, body + 4, 0x00ff_0000u32),
        // READ_ANDX: DataLength. TRANSACTION2: the counts of parameters and data.
        (false, 0x2e) => put_over(out, body + 10, 0xfff0u16),
        (false, 0x32) => {
            put_over(out, body + 6, 0xfff0u16);
            put_over(out, body + 12, 0xfff0u16);
        }
        (false, _) => {
            let words = 2 * usize::from(out[body - 1]);
            put_over(out, body + words, 0xfff0u16);
        }
    }
}
