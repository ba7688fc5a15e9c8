//! NEGOTIATE, SESSION_SETUP and TREE_CONNECT (MS-SMB2 3.3.5.3 to 3.3.5.7).

use super::*;

/// SMB2_NEGOTIATE_SIGNING_ENABLED
const SECURITY_MODE: u16 = 1;
const SERVER_GUID: [u8; 16] = *b"scripted server.";
/// SMB2_GLOBAL_CAP_LEASING and SMB2_GLOBAL_CAP_LARGE_MTU, of 2.1 and later.
const CAPABILITIES: u32 = 6;
/// What 2.0.2 allows at most.
const SMALL: u32 = 65_536;
/// SMB2 dialect that asks for another NEGOTIATE.
const WILDCARD: u16 = 0x02ff;

impl Connection {
    /// 2.2.4
    pub(super) fn negotiate(&mut self, message: &[u8], script: &Script, out: &mut Vec<u8>, start: usize) -> Body {
        let offered = NegotiateRequest::parse(message).ok_or(NtStatus::INVALID_PARAMETER)?.dialects;
        let common = script.dialects.iter().filter(|dialect| offered.contains(dialect));
        self.dialect = *common.max().ok_or(NtStatus::NOT_SUPPORTED)?;
        let contexts = if self.dialect == 0x0311 { contexts(message, script) } else { Vec::new() };
        put_negotiate(self.dialect, &contexts, script, out, start);
        Ok(())
    }

    /// 2.2.6
    pub(super) fn session_setup(
        &mut self,
        message: &[u8],
        script: &Script,
        related: &mut Related,
        out: &mut Vec<u8>,
    ) -> Option<Body> {
        let (offset, length) = (usize::from(u16_at(message, 76)?), usize::from(u16_at(message, 78)?));
        let (leg, wrapping) = ntlm::leg(message.get(offset..offset + length)?);
        related.session_id = self.session_id();
        // SMB2_SESSION_FLAG_IS_GUEST with the last leg.
        let (session_flags, token, result) = match leg {
            ntlm::Leg::Negotiate(offered) => {
                (0, ntlm::challenge(offered, wrapping), Err(NtStatus::MORE_PROCESSING_REQUIRED))
            }
            ntlm::Leg::Authenticate if script.endless_login => {
                (0, ntlm::challenge(0, wrapping), Err(NtStatus::MORE_PROCESSING_REQUIRED))
            }
            ntlm::Leg::Authenticate => (1, ntlm::accepted(wrapping), Ok(())),
            ntlm::Leg::Unknown => return Some(Err(NtStatus::LOGON_FAILURE)),
        };
        out.put_u16(9);
        out.put_u16(session_flags);
        out.put_u16(72);
        out.put_u16(token.len() as u16);
        out.put_bytes(&token);
        Some(result)
    }

    /// 2.2.10
    pub(super) fn tree_connect(&mut self, message: &[u8], related: &mut Related, out: &mut Vec<u8>) -> Option<()> {
        let (offset, length) = (usize::from(u16_at(message, 68)?), usize::from(u16_at(message, 70)?));
        let path = utf16_text(message.get(offset..offset + length)?);
        self.trees += 1;
        related.tree_id = self.trees;
        let is_pipe = path.to_ascii_uppercase().ends_with("\\IPC$");
        out.put_u16(16);
        out.put_u8(if is_pipe { 2 } else { 1 });
        out.put_u8(0);
        out.put_u32(0);
        out.put_u32(0);
        out.put_u32(0x001f_01ff);
        Some(())
    }
}

/// The answer to an SMB1 NEGOTIATE that offers SMB2 (3.3.5.3.1, 3.3.5.3.2); `None` where it does not.
pub(in super::super) fn negotiate_from_smb1(message: &[u8], script: &Script, out: &mut Vec<u8>) -> Option<()> {
    let offers = |name: &[u8]| message.windows(name.len()).any(|window| window == name);
    let dialect = if offers(b"\x02SMB 2.???\0") && script.dialects.iter().any(|dialect| *dialect > 0x0202) {
        WILDCARD
    } else if offers(b"\x02SMB 2.002\0") && script.dialects.contains(&0x0202) {
        0x0202
    } else {
        return None;
    };
    let start = out.len();
    out.put_bytes(&PROTOCOL_ID);
    out.put_u16(64);
    out.put_zeros(8);
    out.put_u16(1);
    out.put_u32(flags::SERVER_TO_REDIR);
    out.put_zeros(44);
    put_negotiate(dialect, &[], script, out, start);
    Some(())
}

fn put_negotiate(dialect: u16, contexts: &[Vec<u8>], script: &Script, out: &mut Vec<u8>, start: usize) {
    let token = ntlm::offer();
    let largest = if dialect == 0x0202 { script.max_transfer.min(SMALL) } else { script.max_transfer };
    out.put_u16(65);
    out.put_u16(SECURITY_MODE);
    out.put_u16(dialect);
    out.put_u16(contexts.len() as u16);
    out.put_bytes(&SERVER_GUID);
    out.put_u32(capabilities(dialect));
    (0..3).for_each(|_| out.put_u32(largest));
    out.put_u64(FILETIME);
    out.put_u64(0);
    out.put_u16(128);
    out.put_u16(token.len() as u16);
    let offset_at = out.len();
    out.put_u32(0);
    out.put_bytes(&token);
    for (index, context) in contexts.iter().enumerate() {
        out.pad(start, 8);
        if index == 0 {
            out.set_u32(offset_at, (out.len() - start) as u32);
        }
        out.put_bytes(context);
    }
}

fn capabilities(dialect: u16) -> u32 {
    if dialect > 0x0202 { CAPABILITIES } else { 0 }
}

/// VALIDATE_NEGOTIATE_INFO response (2.2.32.6): what NEGOTIATE said.
pub(super) fn put_validation(dialect: u16, _script: &Script, out: &mut Vec<u8>) {
    out.put_u32(capabilities(dialect));
    out.put_bytes(&SERVER_GUID);
    out.put_u16(SECURITY_MODE);
    out.put_u16(dialect);
}

/// Negotiate contexts of 3.1.1 (2.2.4.1): SHA-512, and of the ciphers and signing algorithms offered the first.
fn contexts(message: &[u8], script: &Script) -> Vec<Vec<u8>> {
    const PREAUTH_INTEGRITY: u16 = 1;
    const ENCRYPTION: u16 = 2;
    const SIGNING: u16 = 8;
    let mut preauth = vec![1, 0, 32, 0, 1, 0];
    preauth.extend([0x5a; 32]);
    let mut all = vec![context(PREAUTH_INTEGRITY, &preauth)];
    for kind in [ENCRYPTION, SIGNING] {
        if let Some(first) = script.contexts.then(|| first_offered(message, kind)).flatten() {
            let mut data = vec![1, 0];
            data.put_u16(first);
            all.push(context(kind, &data));
        }
    }
    all
}

fn context(kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.put_u16(kind);
    bytes.put_u16(data.len() as u16);
    bytes.put_u32(0);
    bytes.put_bytes(data);
    bytes
}

/// The first algorithm of a context that is a count and a list.
fn first_offered(message: &[u8], kind: u16) -> Option<u16> {
    let mut offset = u32_at(message, 92)? as usize;
    for _ in 0..u16_at(message, 96)?.min(16) {
        if u16_at(message, offset)? == kind {
            return u16_at(message, offset.checked_add(10)?);
        }
        let length = usize::from(u16_at(message, offset.checked_add(2)?)?);
        offset = offset.checked_add(8 + length)?.checked_next_multiple_of(8)?;
    }
    None
}
