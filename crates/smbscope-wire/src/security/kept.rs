//! Parts of a security token that an anonymised capture retains: identities, and nothing that would help to guess a
//! password.

use super::{der, gss, kerberos, ntlm};
use crate::kept::{RetainedRanges, place_in};

/// Returns the ranges that [`identify`](super::identify) reads.
pub(crate) fn kept(token: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    let Some(inner) = gss::mechanism_token(token) else {
        // The first byte shows that the token is neither NTLM nor Kerberos.
        kept.field(0..1);
        return kept;
    };
    let start = place_in(token, inner).start;
    kept.field(0..start);
    let of_mechanism = if inner.starts_with(ntlm::SIGNATURE) { ntlm::kept(inner) } else { of_kerberos(inner) };
    kept.absorb(of_mechanism, start);
    kept
}

/// Retains the wrappers, realm and service, but neither the ticket nor the authenticator.
fn of_kerberos(token: &[u8]) -> RetainedRanges {
    let mut kept = RetainedRanges::default();
    let mut end = 0;
    for (name, of) in kerberos::names(token) {
        let range = place_in(token, name);
        end = end.max(range.end);
        // Service classes such as `cifs` identify nobody, so they stay readable.
        if !is_service_class(name) {
            kept.name(of, false, range);
        }
    }
    let wrapper = der::read(token).map_or(0, |(element, _)| place_in(token, element.content).start);
    kept.field(0..end.max(wrapper));
    kept
}

fn is_service_class(name: &[u8]) -> bool {
    [&b"cifs"[..], b"host", b"krbtgt", b"http", b"ldap"].iter().any(|known| name.eq_ignore_ascii_case(known))
}
