//! One SMB1 message: header, parameter and data blocks, request and response of every command.

use smbscope_wire::nbss::FrameHeader;
use smbscope_wire::smb1::{Block, PROTOCOL_ID, Smb1Command, Smb1Header, Smb1Request, Smb1Response, blocks, needed};

/// Longest prefix that may be asked for: a chain of blocks, and the names and token in the last.
const MOST_NEEDED: usize = 128 * 1024;

/// Reads a message that begins with its header. Other first bytes than the protocol id are replaced.
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
    // What is at hand after every wish was granted says as much of a request as the whole message; but of a long name or
    // a chain that jumps about, less is wanted than there is, and of a response only what sane offsets point at.
    let modest =
        whole.len() == 1 && message.len() < 600 && header.command != Smb1Command::TRANSACTION && !header.is_reply();
    assert!(!modest || from_prefix == whole, "{at_hand} bytes of {}: {from_prefix:?}, {whole:?}", message.len());
}

/// Every block as what it is, in words; it is read as request and as response.
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
