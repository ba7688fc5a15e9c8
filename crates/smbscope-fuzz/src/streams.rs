//! Targets for a whole connection: framing, resynchronisation, messages and protocol state.
//!
//! The input is a list of utterances: one byte of flags, two bytes of length, the message. Unless the flags say
//! otherwise, the NBSS header is added here, so that the framing survives a message that grows. If all messages are
//! complete and framed, the exchanges must not depend on the segmentation of the streams.

use crate::Bytes;
use smbscope_analyze::{Analyzer, AnalyzerOptions};
use smbscope_capture::TcpFlags;
use smbscope_capture::tcp::FlowTable;
use smbscope_crypto::key_ring::KeyRing;
use smbscope_crypto::{Cipher, CipherKey, Keystream};
use smbscope_model::{Exchange, Timestamp};
use smbscope_testkit::packet::HEADERS;
use smbscope_testkit::{Packet, Side, framed};
use smbscope_wire::nbss::HEADER_LENGTH;
use smbscope_wire::smb2;
use std::net::SocketAddr;
use std::sync::Arc;

pub const SERVER: u8 = 0x01;
/// The bytes are sent without a frame header.
pub const UNFRAMED: u8 = 0x02;
/// Position of the 2 bits for the time since the previous utterance: 1 µs to 1 s.
const PAUSE_SHIFT: u8 = 2;
/// Only the first half was captured.
pub const SNAPPED: u8 = 0x10;
pub const LOST: u8 = 0x20;
/// The sender has not yet received the other side's last message.
pub const UNINFORMED: u8 = 0x40;

pub fn smb1_stream(data: &[u8]) {
    stream(data);
}

pub fn smb2_stream(data: &[u8]) {
    stream(data);
}

/// Encrypts each message: with a key that the analysis knows, or with another one if [`UNFRAMED`] is set. So hostile
/// messages come out of the decryption.
pub fn sealed_stream(data: &[u8]) {
    let mut input = Bytes(data);
    let cipher = Cipher::from_id(u16::from(input.u8().unwrap_or(0) & 3) + 1).expect("one of four");
    let piece = usize::from(input.u8().unwrap_or(0)) + 1;
    let key = |byte| match cipher {
        Cipher::Aes128Ccm | Cipher::Aes128Gcm => CipherKey::Bits128([byte; 16]),
        Cipher::Aes256Ccm | Cipher::Aes256Gcm => CipherKey::Bits256([byte; 32]),
    };
    let mut utterances = utterances(input);
    for (number, utterance) in utterances.iter_mut().enumerate() {
        let is_known = utterance.bytes.starts_with(&[0]);
        let stream = Keystream::new(cipher, &key(if is_known { 7 } else { 8 })).expect("the key fits");
        utterance.bytes = framed(sealed(&stream, number as u64, utterance.bytes.get(4..).unwrap_or_default()));
        utterance.captured = utterance.captured.min(utterance.bytes.len());
    }
    let mut said = [0; 2];
    for utterance in &mut utterances {
        let end = said[utterance.side] + utterance.bytes.len() as u32;
        utterance.offset = std::mem::replace(&mut said[utterance.side], end);
        utterance.acknowledged = 0;
    }
    let digits: String = key(7).as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut ring = KeyRing::default();
    ring.add_keys(format!("{},,{digits}", "07".repeat(8)).as_bytes()).expect("a line of Wireshark");
    let options = AnalyzerOptions { keys: Some(Arc::new(ring)), ..AnalyzerOptions::default() };
    agree(&utterances, piece, &options);
}

fn sealed(stream: &Keystream, number: u64, message: &[u8]) -> Vec<u8> {
    const SESSION: [u8; 8] = [7; 8];
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    let mut frame = smb2::TRANSFORM_ID.to_vec();
    frame.extend([0; 16]);
    frame.extend(nonce);
    frame.extend((message.len() as u32).to_le_bytes());
    frame.extend([0, 0, 1, 0]);
    frame.extend(SESSION);
    let start = frame.len();
    frame.extend(message);
    stream.apply(&nonce, 0, &mut frame[start..]);
    frame
}

struct Utterance {
    side: usize,
    time: i64,
    offset: u32,
    acknowledged: u32,
    captured: usize,
    lost: bool,
    bytes: Vec<u8>,
}

impl Utterance {
    /// Returns true for a framed message that was captured completely.
    fn is_sound(&self) -> bool {
        let length = self.bytes.len().saturating_sub(HEADER_LENGTH) as u32;
        let framed = self.bytes.starts_with(&length.to_be_bytes());
        let id = self.bytes.get(HEADER_LENGTH..HEADER_LENGTH + 4);
        let is_smb = id.is_some_and(|id| id[0] >= 0xfc && id[1..] == *b"SMB");
        !self.lost && self.captured == self.bytes.len() && framed && is_smb
    }
}

fn stream(data: &[u8]) {
    let mut input = Bytes(data);
    let piece = usize::from(input.u8().unwrap_or(0)) + 1;
    agree(&utterances(input), piece, &AnalyzerOptions::default());
}

fn agree(utterances: &[Utterance], piece: usize, options: &AnalyzerOptions) {
    let whole = analyze(utterances, usize::MAX, options);
    let cut = analyze(utterances, piece, options);
    // When frames have to be searched for, segment boundaries matter.
    if utterances.iter().all(Utterance::is_sound) {
        assert_eq!(whole, cut, "the exchanges depend on segments, of {piece} bytes here");
    }
}

fn utterances(mut input: Bytes<'_>) -> Vec<Utterance> {
    let mut said = [0u32; 2];
    let mut acknowledged = [0u32; 2];
    let mut time = 0;
    let mut all = Vec::new();
    while let (Some(how), Some(length)) = (input.u8(), input.u16()) {
        let bytes = input.up_to(length.into());
        let bytes = if how & UNFRAMED != 0 { bytes.to_vec() } else { framed(bytes) };
        let side = usize::from(how & SERVER);
        time += 1000i64.pow(u32::from(how >> PAUSE_SHIFT & 3)).max(1) * 1000;
        if how & UNINFORMED == 0 {
            acknowledged[side] = said[1 - side];
        }
        let captured = if how & SNAPPED != 0 { bytes.len() / 2 } else { bytes.len() };
        let (offset, length) = (said[side], bytes.len() as u32);
        said[side] += length;
        let acknowledged = acknowledged[side];
        all.push(Utterance { side, time, offset, acknowledged, captured, lost: how & LOST != 0, bytes });
    }
    all
}

/// Properties of an exchange that must not depend on the segmentation.
type Found = (String, Option<u64>, [Option<Timestamp>; 4], [u64; 2], String);

/// Analyses a connection with a captured handshake, in segments of up to `piece` bytes.
fn analyze(utterances: &[Utterance], piece: usize, options: &AnalyzerOptions) -> Vec<Found> {
    let mut found = Vec::new();
    let mut table = FlowTable::new(Analyzer::new(options.clone(), |exchange: Exchange| {
        found.push(describe(&exchange));
    }));
    let mut number = 0;
    let mut send =
        |side: usize, time: i64, sequence: u32, acknowledgment: u32, flags: u8, bytes: &[u8], held: usize| {
            number += 1;
            let ends = [SocketAddr::from(([10, 0, 0, 1], 50_000)), SocketAddr::from(([10, 0, 0, 2], 445))];
            let packet = Packet {
                origin: number,
                time: Timestamp(time),
                side: if side == 0 { Side::Client } else { Side::Server },
                offset: 0,
                source: ends[side],
                destination: ends[1 - side],
                sequence,
                acknowledgment,
                flags: TcpFlags(flags),
                window: 64_000,
                window_scale: None,
                ip_id: number as u16,
                payload: bytes.to_vec(),
                snap: HEADERS + held,
            };
            table.segment(&packet.segment(number));
        };
    send(0, -30, 0, 0, TcpFlags::SYN, &[], 0);
    send(1, -20, 0, 1, TcpFlags::SYN | TcpFlags::ACK, &[], 0);
    // Limit of an IP packet.
    let piece = piece.min(60_000);
    for Utterance { side, time, offset, acknowledged, captured, bytes, .. } in utterances.iter().filter(|u| !u.lost) {
        for (index, part) in bytes.chunks(piece).enumerate() {
            let at = index * piece;
            let sequence = offset.wrapping_add(1 + at as u32);
            let held = captured.saturating_sub(at).min(part.len());
            send(*side, *time, sequence, acknowledged.wrapping_add(1), TcpFlags::ACK, part, held);
        }
    }
    drop(table.finish().finish());
    found.sort();
    found
}

fn describe(exchange: &Exchange) -> Found {
    let Exchange { request, response, .. } = exchange;
    let stamps = [request.first, request.last, response.first, response.last];
    let rest = format!(
        "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        exchange.outcome,
        exchange.subcommand,
        exchange.status,
        exchange.user,
        exchange.share,
        exchange.path,
        exchange.file_id,
        exchange.offset,
        exchange.length,
        exchange.interim.map(|stamp| stamp.time),
    );
    let times = stamps.map(|stamp| stamp.map(|stamp| stamp.time));
    (exchange.command.to_string(), exchange.message_id, times, [request.bytes, response.bytes], rest)
}
