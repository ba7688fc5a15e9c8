//! NEGOTIATE, SESSION_SETUP and TREE_CONNECT (MS-SMB2 3.3.5.3 to 3.3.5.7).

use super::*;
use negotiate::{capabilities, security_mode};
use smbscope_wire::codec::List;

const SERVER_GUID: [u8; 16] = *b"scripted server.";
/// Maximum transfer size of dialect 2.0.2.
const SMALL: u32 = 65_536;
/// SMB2 wildcard dialect, which requests another NEGOTIATE.
const WILDCARD: u16 = 0x02ff;

impl Smb2 {
    pub(super) fn negotiate(&mut self, message: &[u8], script: &Script, out: &mut Vec<u8>) -> Answered {
        let request = negotiate::Request::parse(message).ok_or(INVALID)?;
        let common = request.dialects.iter().filter(|dialect| script.dialects.contains(dialect));
        self.dialect = common.max().ok_or(NtStatus::NOT_SUPPORTED)?;
        // Selects the first offered cipher and signing algorithm.
        let contexts = request.contexts;
        let first = |list: Option<List<'_, u16>>| list.filter(|_| script.contexts).and_then(|list| list.iter().next());
        let (cipher, algorithm) = (first(contexts.ciphers()), first(contexts.signing_algorithms()));
        let offer = negotiate_context::Offer {
            salt: &[0x5a; 32],
            ciphers: cipher.as_slice(),
            signing_algorithms: algorithm.as_slice(),
            net_name: None,
        };
        let contexts = match self.dialect {
            0x0311 => negotiate_context::NegotiateContextList::Offer(offer),
            _ => negotiate_context::NegotiateContextList::default(),
        };
        put_negotiate(self.dialect, contexts, script, out);
        Ok(())
    }

    pub(super) fn session_setup(
        &mut self,
        message: &[u8],
        script: &Script,
        related: &mut Related,
        out: &mut Vec<u8>,
    ) -> Answered {
        use session_setup::{Request, Response};
        const MORE: Answered = Err(NtStatus::MORE_PROCESSING_REQUIRED);
        let (leg, wrapping) = ntlm::leg(Request::parse(message).ok_or(INVALID)?.token);
        related.session_id = self.session_id();
        // The last leg makes everybody a guest.
        let (session_flags, token, result) = match leg {
            ntlm::Leg::Negotiate(offered) => (0, ntlm::challenge(offered, wrapping), MORE),
            ntlm::Leg::Authenticate if script.endless_login => (0, ntlm::challenge(0, wrapping), MORE),
            ntlm::Leg::Authenticate => (Response::GUEST, ntlm::accepted(wrapping), Ok(())),
            ntlm::Leg::Unknown => return Err(NtStatus::LOGON_FAILURE),
        };
        Response { session_flags, token: &token }.emit(out);
        result
    }

    pub(super) fn tree_connect(&mut self, message: &[u8], related: &mut Related, out: &mut Vec<u8>) -> Answered {
        let path = tree_connect::Request::parse(message).ok_or(INVALID)?.path.to_string();
        self.trees += 1;
        related.tree_id = self.trees;
        let share_type = if path.to_ascii_uppercase().ends_with("\\IPC$") { 2 } else { 1 };
        tree_connect::Response { share_type, maximal_access: 0x001f_01ff, ..Default::default() }.emit(out);
        Ok(())
    }
}

/// Responds to an SMB1 NEGOTIATE that offers SMB2 (§3.3.5.3.1, §3.3.5.3.2); returns `None` if it does not.
pub(in super::super) fn negotiate_from_smb1(message: &[u8], script: &Script, out: &mut Vec<u8>) -> Option<()> {
    let offers = |name: &[u8]| message.windows(name.len()).any(|window| window == name);
    let dialect = if offers(b"\x02SMB 2.???\0") && script.dialects.iter().any(|dialect| *dialect > 0x0202) {
        WILDCARD
    } else if offers(b"\x02SMB 2.002\0") && script.dialects.contains(&0x0202) {
        0x0202
    } else {
        return None;
    };
    Smb2Header { credits: 1, flags: flags::SERVER_TO_REDIR, ..Smb2Header::new(Smb2Command::NEGOTIATE) }.emit(out);
    put_negotiate(dialect, negotiate_context::NegotiateContextList::default(), script, out);
    Some(())
}

fn put_negotiate(
    dialect: u16,
    contexts: negotiate_context::NegotiateContextList<'_>,
    script: &Script,
    out: &mut Vec<u8>,
) {
    let largest = if dialect == 0x0202 { script.max_transfer.min(SMALL) } else { script.max_transfer };
    let response = negotiate::Response {
        security_mode: security_mode::SIGNING_ENABLED,
        dialect,
        server_guid: SERVER_GUID,
        capabilities: capabilities(dialect),
        max_transact_size: largest,
        max_read_size: largest,
        max_write_size: largest,
        system_time: FILETIME,
        security_buffer: &ntlm::offer(),
        contexts,
    };
    response.emit(out);
}

fn capabilities(dialect: u16) -> u32 {
    if dialect > 0x0202 { capabilities::LEASING | capabilities::LARGE_MTU } else { 0 }
}

/// Repeats the NEGOTIATE response for VALIDATE_NEGOTIATE_INFO.
pub(super) fn validation(dialect: u16) -> validate_negotiate::ValidateNegotiateResponse {
    validate_negotiate::ValidateNegotiateResponse {
        capabilities: capabilities(dialect),
        guid: SERVER_GUID,
        security_mode: security_mode::SIGNING_ENABLED,
        dialect,
    }
}
