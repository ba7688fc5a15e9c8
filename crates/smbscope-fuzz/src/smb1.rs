//! Target for one SMB1 message: header, parameter and data blocks, request and response of every command.

use smbscope_wire::nbss::FrameHeader;
use smbscope_wire::smb1::{Block, PROTOCOL_ID, Smb1Command, Smb1Header, Smb1Request, Smb1Response, blocks, needed};

/// Longest prefix that the parser may request: a chain of blocks, with names and a token in the last.
const MOST_NEEDED: usize = 128 * 1024;

/// Parses a message with its header. Other first bytes than the protocol id are replaced.
pub fn smb1(data: &[u8]) {
    if let Some(&first) = data.first_chunk() {
        FrameHeader::parse(first);
    }
    let message = [&PROTOCOL_ID, data.get(4..).unwrap_or_default()].concat();
    let Some(header) = Smb1Header::parse(&message) else {
        assert!(message.len() < Smb1Header::LENGTH, "a whole header can be read");
        return;
    };
    let _ = (header.nt_status().map(|s| s.to_string()), header.dos_error().to_string(), header.command.to_string());
    Smb1Header::is_plausible(&message, message.len());
    let whole = read(&header, &message);
    assert!(whole.len() <= 16, "a chain of {} blocks", whole.len());

    let mut at_hand = Smb1Header::LENGTH;
    loop {
        let wanted = needed(&header, &message[..at_hand]);
        assert!(wanted <= MOST_NEEDED, "{wanted} bytes wanted");
        if wanted <= at_hand || at_hand == message.len() {
            break;
        }
        at_hand = wanted.min(message.len());
    }
    let from_prefix = read(&header, &message[..at_hand]);
    // The requested prefix must yield the same request as the whole message. Excluded are long names and scattered
    // chains, for which less is requested, and responses, for which only plausible offsets are followed.
    let modest =
        whole.len() == 1 && message.len() < 600 && header.command != Smb1Command::TRANSACTION && !header.is_reply();
    assert!(!modest || from_prefix == whole, "{at_hand} bytes of {}: {from_prefix:?}, {whole:?}", message.len());
}

/// Parses and formats every block, both as request and as response.
fn read(header: &Smb1Header, message: &[u8]) -> Vec<String> {
    let all: Vec<Block<'_>> = blocks(header, message).collect();
    all.iter()
        .map(|block| {
            assert!(block.words.len() <= 510 && block.data.len() <= 65_535);
            let request = format!("{} {:?}", block.command, Smb1Request::parse(header, block, message));
            let response = format!("{} {:?}", block.command, Smb1Response::parse(block, message));
            if header.is_reply() { response } else { request }
        })
        .collect()
}
