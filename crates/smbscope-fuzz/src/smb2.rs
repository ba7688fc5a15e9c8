//! Target for one SMB2 frame: header, compound, the bodies of every command, transform header.

use smbscope_wire::names::InfoLevel;
use smbscope_wire::smb2::{PROTOCOL_ID, Smb2Header, Smb2Request, Smb2Response, TRANSFORM_ID, TransformHeader};

/// Longest prefix that the parser may request: a name or token at the largest offset.
const MOST_NEEDED: usize = 192 * 1024;
const MAX_MEMBERS: usize = 256;

/// Parses a frame with its header. Other first bytes than the protocol id are replaced.
pub fn smb2(data: &[u8]) {
    let frame = [&PROTOCOL_ID, data.get(4..).unwrap_or_default()].concat();
    let mut rest = &frame[..];
    for _ in 0..MAX_MEMBERS {
        let Some(header) = Smb2Header::parse(rest) else { break };
        let next = header.next_command as usize;
        // A member is at least as long as its header.
        let end = if next < Smb2Header::LENGTH { rest.len() } else { next.min(rest.len()) };
        message(&header, &rest[..end]);
        if next < Smb2Header::LENGTH || end == rest.len() {
            break;
        }
        rest = &rest[end..];
    }
    let covered = [&TRANSFORM_ID, data.get(4..).unwrap_or_default()].concat();
    let transform = TransformHeader::parse(&covered).expect("the protocol id is there");
    assert!(covered.len() < TransformHeader::LENGTH || transform.session_id.is_some());
}

fn message(header: &Smb2Header, message: &[u8]) {
    assert!(message.len() >= Smb2Header::LEAST, "a header in {} bytes", message.len());
    assert_eq!(header.message_id & !header.id_mask, 0);
    let _ = (header.command.to_string(), header.status.to_string(), header.is_response(), header.is_signed());
    Smb2Header::is_plausible(message, message.len());
    let request = Smb2Request::parse(header.command, message);
    let response = Smb2Response::parse(header.command, message);
    let _ = format!("{response:?}");
    match &request {
        Smb2Request::Ioctl { code, .. } => drop(code.to_string()),
        Smb2Request::Info { level, .. } => same_level(*level),
        _ => {}
    }
    // The requested prefix must yield the same as the whole message.
    let mut at_hand = message.len().min(Smb2Header::LENGTH);
    loop {
        let wanted = Smb2Request::needed(header.command, &message[..at_hand]);
        assert!(wanted <= MOST_NEEDED, "{wanted} bytes wanted");
        if wanted <= at_hand || at_hand == message.len() {
            break;
        }
        at_hand = wanted.min(message.len());
    }
    let from_prefix = Smb2Request::parse(header.command, &message[..at_hand]);
    assert_eq!(from_prefix, request, "{at_hand} bytes of {} are not enough", message.len());
    let mut at_hand = message.len().min(Smb2Header::LENGTH);
    loop {
        let wanted = Smb2Response::needed(header.command, &message[..at_hand]);
        assert!(wanted <= MOST_NEEDED, "{wanted} bytes wanted");
        if wanted <= at_hand || at_hand == message.len() {
            break;
        }
        at_hand = wanted.min(message.len());
    }
    let from_prefix = Smb2Response::parse(header.command, &message[..at_hand]);
    assert_eq!(from_prefix, response, "{at_hand} bytes of {} are not enough", message.len());
}

/// Checks that a level survives encoding and decoding and can be printed.
fn same_level(level: InfoLevel) {
    let (kind, class) = level.to_wire();
    let again = InfoLevel::from_wire(kind, class);
    assert_eq!(again, level);
    drop(again.to_string());
}
