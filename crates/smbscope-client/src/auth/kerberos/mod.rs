//! Kerberos through the system's GSSAPI (RFC 4121, RFC 2743), with the tickets of `kinit` in `KRB5CCNAME`'s cache.
//!
//! Mutual authentication takes one token each way: AP-REQ and AP-REP.

mod gssapi;

use super::AuthError;
use gssapi::{GssapiError, SecurityContext};
use std::fmt;

/// A security context for `cifs/host` in the default realm, or in a realm that its KDC refers to.
pub(super) struct KerberosClient {
    context: SecurityContext,
    /// The next token for the server.
    token: Vec<u8>,
    session_key: Option<Vec<u8>>,
}

impl KerberosClient {
    pub(super) fn new(host: &str) -> Result<KerberosClient, AuthError> {
        let service = format!("cifs/{host}");
        let context =
            SecurityContext::new(&service).map_err(|error| unavailable(&format!("the name {service}"), &error))?;
        let mut client = KerberosClient { context, token: Vec::new(), session_key: None };
        client.advance(&[]).map_err(|error| unavailable(&format!("no ticket for {service}"), &error))?;
        Ok(client)
    }

    pub(super) fn first(&self) -> Vec<u8> {
        self.token.clone()
    }

    /// Returns the response to the server's token. Empty if there is nothing to send.
    pub(super) fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, AuthError> {
        if self.session_key.is_some() {
            return Err(AuthError::Malformed("place after the end of the authentication"));
        }
        self.advance(token).map_err(|error| unavailable("the server's answer is not accepted", &error))?;
        Ok(self.token.clone())
    }

    pub(super) fn finish(&mut self, token: Option<&[u8]>) -> Result<(), AuthError> {
        match (&self.session_key, token) {
            (Some(_), _) => Ok(()),
            (None, Some(token)) => self.step(token).map(drop),
            (None, None) => Err(AuthError::Malformed("Kerberos answer")),
        }
    }

    pub(super) fn session_key(&self) -> Option<&[u8]> {
        self.session_key.as_deref()
    }

    fn advance(&mut self, token: &[u8]) -> Result<(), GssapiError> {
        let (token, is_established) = self.context.step(token)?;
        self.token = token;
        if is_established {
            self.session_key = Some(self.context.session_key()?);
        }
        Ok(())
    }
}

/// Without the session key.
impl fmt::Debug for KerberosClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KerberosClient").field("is_established", &self.session_key.is_some()).finish_non_exhaustive()
    }
}

fn unavailable(what: &str, error: &GssapiError) -> AuthError {
    AuthError::Unavailable(match error {
        GssapiError::NoLibrary => format!("Kerberos: {error}"),
        GssapiError::NoCredentials(_) => format!("Kerberos: no ticket; run kinit: {error}"),
        GssapiError::Refused(_) => format!("Kerberos: {what}: {error}"),
    })
}
