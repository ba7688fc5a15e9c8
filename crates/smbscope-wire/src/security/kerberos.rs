//! The readable part of a Kerberos AP-REQ: whom its ticket is for (RFC 4120 5.3 and 5.5.1).

use super::{Identity, der};

/// AP-REQ: [APPLICATION 14].
pub(super) const AP_REQ: u8 = 0x6e;
/// Ticket: [APPLICATION 1].
const TICKET: u8 = 0x61;
const SEQUENCE: u8 = 0x30;
const GENERAL_STRING: u8 = 0x1b;

/// Context tags of the fields used.
const AP_REQ_TICKET: u8 = 0xa3;
const TICKET_REALM: u8 = 0xa1;
const TICKET_SNAME: u8 = 0xa2;
const NAME_STRING: u8 = 0xa1;

/// Realm and service of the ticket in an AP-REQ.
pub(super) fn identify(token: &[u8]) -> Option<Identity> {
    let request = der::expect(der::expect(token, AP_REQ)?, SEQUENCE)?;
    let ticket = ticket(request).unwrap_or_default();
    let realm = der::find(ticket, TICKET_REALM).and_then(|field| strings(field).next());
    let service = service(ticket).unwrap_or_default();
    Some(Identity::KerberosApReq { realm: realm.unwrap_or_default(), service })
}

fn ticket(request: &[u8]) -> Option<&[u8]> {
    der::expect(der::expect(der::find(request, AP_REQ_TICKET)?, TICKET)?, SEQUENCE)
}

/// The components of the service's PrincipalName, all of them or none.
fn service(ticket: &[u8]) -> Option<String> {
    let name = der::expect(der::find(ticket, TICKET_SNAME)?, SEQUENCE)?;
    let (strings_field, _) = der::read(der::find(name, NAME_STRING)?)?;
    let complete = strings_field.tag == SEQUENCE && strings_field.whole;
    complete.then(|| strings(strings_field.content).collect::<Vec<_>>().join("/"))
}

/// The GeneralStrings that stand in `input`, as far as they are all there.
fn strings(input: &[u8]) -> impl Iterator<Item = String> {
    der::elements(input)
        .filter(|element| element.tag == GENERAL_STRING && element.whole)
        .map(|element| String::from_utf8_lossy(element.content).into_owned())
}
