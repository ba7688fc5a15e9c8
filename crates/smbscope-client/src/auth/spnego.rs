//! SPNEGO tokens (RFC 4178 4.2, MS-SPNG 2.2), limited to the offer of a single mechanism.

use smbscope_wire::security::der;

/// NTLMSSP, 1.3.6.1.4.1.311.2.2.10 (MS-SPNG 1.9), as an OBJECT IDENTIFIER's contents.
pub(super) const NTLM: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0a];
/// Kerberos 5, 1.2.840.113554.1.2.2 (RFC 4121 1).
#[cfg(all(feature = "kerberos", unix))]
pub(super) const KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02];
/// Kerberos 5 with the wrong identifier of Windows 2000, 1.2.840.48018.1.2.2 (MS-SPNG 3.2.5.1).
#[cfg(all(feature = "kerberos", unix))]
pub(super) const KERBEROS_OF_WINDOWS_2000: &[u8] = &[0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 0x01, 0x02, 0x02];
/// SPNEGO, 1.3.6.1.5.5.2.
const SPNEGO: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x02];

mod tag {
    pub(super) const OCTET_STRING: u8 = 0x04;
    pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
    pub(super) const ENUMERATED: u8 = 0x0a;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const INITIAL_CONTEXT_TOKEN: u8 = 0x60;
    /// NegTokenInit and its mechTypes; negState of NegTokenResp.
    pub(super) const FIELD_0: u8 = 0xa0;
    /// NegTokenResp and its supportedMech.
    pub(super) const FIELD_1: u8 = 0xa1;
    /// mechToken and responseToken.
    pub(super) const FIELD_2: u8 = 0xa2;
    /// mechListMIC.
    pub(super) const FIELD_3: u8 = 0xa3;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NegState {
    AcceptCompleted,
    AcceptIncomplete,
    Reject,
    RequestMic,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct NegTokenResp<'a> {
    pub(super) neg_state: Option<NegState>,
    pub(super) supported_mech: Option<&'a [u8]>,
    pub(super) response_token: Option<&'a [u8]>,
    pub(super) mech_list_mic: Option<&'a [u8]>,
}

impl<'a> NegTokenResp<'a> {
    pub(super) fn parse(token: &'a [u8]) -> Option<NegTokenResp<'a>> {
        let (response, _) = der::read(token)?;
        if response.tag != tag::FIELD_1 || !response.whole {
            return None;
        }
        let fields = der::expect(response.content, tag::SEQUENCE)?;
        let field = |field, kind| der::expect(der::find(fields, field)?, kind);
        let neg_state = match field(tag::FIELD_0, tag::ENUMERATED) {
            Some([0]) => Some(NegState::AcceptCompleted),
            Some([1]) => Some(NegState::AcceptIncomplete),
            Some([2]) => Some(NegState::Reject),
            Some([3]) => Some(NegState::RequestMic),
            Some(_) => return None,
            None => None,
        };
        Some(NegTokenResp {
            neg_state,
            supported_mech: field(tag::FIELD_1, tag::OBJECT_IDENTIFIER),
            response_token: field(tag::FIELD_2, tag::OCTET_STRING),
            mech_list_mic: field(tag::FIELD_3, tag::OCTET_STRING),
        })
    }
}

pub(super) fn mech_types(mechanisms: &[&[u8]]) -> Vec<u8> {
    let types: Vec<u8> = mechanisms.iter().flat_map(|mechanism| der(tag::OBJECT_IDENTIFIER, mechanism)).collect();
    der(tag::SEQUENCE, &types)
}

/// Encodes a NegTokenInit with the first mechanism's token, in an InitialContextToken (RFC 2743 3.1).
pub(super) fn init_token(mech_types: &[u8], mech_token: &[u8]) -> Vec<u8> {
    let fields = [der(tag::FIELD_0, mech_types), der(tag::FIELD_2, &der(tag::OCTET_STRING, mech_token))].concat();
    let init = der(tag::FIELD_0, &der(tag::SEQUENCE, &fields));
    der(tag::INITIAL_CONTEXT_TOKEN, &[der(tag::OBJECT_IDENTIFIER, SPNEGO), init].concat())
}

/// Encodes a NegTokenResp with the mechanism's next token. Its state is accept-incomplete, as in Windows clients.
pub(super) fn response_token(response_token: &[u8], mech_list_mic: Option<&[u8]>) -> Vec<u8> {
    let mut fields = der(tag::FIELD_0, &der(tag::ENUMERATED, &[NegState::AcceptIncomplete as u8]));
    fields.extend(der(tag::FIELD_2, &der(tag::OCTET_STRING, response_token)));
    if let Some(mic) = mech_list_mic {
        fields.extend(der(tag::FIELD_3, &der(tag::OCTET_STRING, mic)));
    }
    der(tag::FIELD_1, &der(tag::SEQUENCE, &fields))
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut element = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length @ 0..=0x7f) => element.push(length),
        _ => {
            let length = content.len().to_be_bytes();
            let significant = &length[length.iter().take_while(|&&byte| byte == 0).count()..];
            element.push(0x80 | significant.len() as u8);
            element.extend_from_slice(significant);
        }
    }
    element.extend_from_slice(content);
    element
}
