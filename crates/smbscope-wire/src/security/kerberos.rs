//! Readable part of a Kerberos AP-REQ: realm and service of the ticket (RFC 4120 5.3 and 5.5.1).

use super::{SecurityToken, der};
use crate::kept::NameOf;

/// [APPLICATION 14].
pub(super) const AP_REQ: u8 = 0x6e;
/// [APPLICATION 1].
const TICKET: u8 = 0x61;
const SEQUENCE: u8 = 0x30;
const GENERAL_STRING: u8 = 0x1b;

const AP_REQ_TICKET: u8 = 0xa3;
const TICKET_REALM: u8 = 0xa1;
const TICKET_SNAME: u8 = 0xa2;
const NAME_STRING: u8 = 0xa1;

pub(super) fn identify(token: &[u8]) -> Option<SecurityToken> {
    let request = der::expect(der::expect(token, AP_REQ)?, SEQUENCE)?;
    let ticket = ticket(request).unwrap_or_default();
    let realm = der::find(ticket, TICKET_REALM).and_then(|field| strings(field).next());
    let service = service(ticket).unwrap_or_default();
    Some(SecurityToken::KerberosApReq { realm: realm.unwrap_or_default(), service })
}

fn ticket(request: &[u8]) -> Option<&[u8]> {
    der::expect(der::expect(der::find(request, AP_REQ_TICKET)?, TICKET)?, SEQUENCE)
}

/// Returns the components of the service's PrincipalName. `None` if any is truncated.
fn service(ticket: &[u8]) -> Option<String> {
    let name = der::expect(der::find(ticket, TICKET_SNAME)?, SEQUENCE)?;
    let (strings_field, _) = der::read(der::find(name, NAME_STRING)?)?;
    let complete = strings_field.tag == SEQUENCE && strings_field.whole;
    complete.then(|| strings(strings_field.content).collect::<Vec<_>>().join("/"))
}

/// Iterates over the complete GeneralStrings of `input`.
fn strings(input: &[u8]) -> impl Iterator<Item = String> {
    string_bytes(input).map(|content| String::from_utf8_lossy(content).into_owned())
}

fn string_bytes(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_string = |element: &der::Element<'_>| element.tag == GENERAL_STRING && element.whole;
    der::elements(input).filter(is_string).map(|element| element.content)
}

/// Returns the names that [`identify`] reads, as subslices of the token.
pub(super) fn names(token: &[u8]) -> Vec<(&[u8], NameOf)> {
    let request = der::expect(token, AP_REQ).and_then(|request| der::expect(request, SEQUENCE));
    let ticket = request.and_then(ticket).unwrap_or_default();
    let realm = der::find(ticket, TICKET_REALM).and_then(|field| string_bytes(field).next());
    let service = der::find(ticket, TICKET_SNAME).and_then(|name| der::expect(name, SEQUENCE));
    let service = service.and_then(|name| der::expect(der::find(name, NAME_STRING)?, SEQUENCE)).unwrap_or_default();
    let service = string_bytes(service).map(|name| (name, NameOf::Host));
    realm.map(|realm| (realm, NameOf::Domain)).into_iter().chain(service).collect()
}
