//! Kerberos through the system's GSSAPI (RFC 4121, RFC 2743), with the tickets of `kinit` in `KRB5CCNAME`'s cache.
//!
//! Mutual authentication takes one token each way: AP-REQ and AP-REP.

use super::AuthError;

use kenobi_unix::client::{ClientBuilder, PendingClientContext, StepOut};
use kenobi_unix::cred::{Credentials, Outbound};
use kenobi_unix::mech::Mechanism;
use std::fmt;
use std::sync::Arc;

/// A security context for `cifs/host` in the default realm, or in a realm that its KDC refers to.
pub(super) struct KerberosClient(KerberosState);

enum KerberosState {
    Pending(PendingClientContext<Outbound>),
    Established { token: Vec<u8>, session_key: Vec<u8> },
    Failed,
}

impl KerberosClient {
    pub(super) fn new(host: &str) -> Result<KerberosClient, AuthError> {
        let credentials = Credentials::outbound(None, None, Mechanism::KerberosV5)
            .map_err(|error| unavailable("no ticket; run kinit", &error))?;
        let service = format!("cifs/{host}");
        ClientBuilder::new(Arc::new(credentials), Some(&service))
            .and_then(|builder| builder.request_mutual_auth().request_signing().initialize())
            .and_then(KerberosState::after)
            .map(KerberosClient)
            .map_err(|error| unavailable(&format!("no ticket for {service}"), &error))
    }

    pub(super) fn first(&self) -> Vec<u8> {
        match &self.0 {
            KerberosState::Pending(context) => context.next_token().to_vec(),
            KerberosState::Established { token, .. } => token.clone(),
            KerberosState::Failed => Vec::new(),
        }
    }

    /// Returns the response to the server's token. Empty if there is nothing to send.
    pub(super) fn step(&mut self, token: &[u8]) -> Result<Vec<u8>, AuthError> {
        let KerberosState::Pending(context) = std::mem::replace(&mut self.0, KerberosState::Failed) else {
            return Err(AuthError::Malformed("place after the end of the authentication"));
        };
        self.0 = context
            .step(token)
            .and_then(KerberosState::after)
            .map_err(|error| unavailable("the server's answer is not accepted", &error))?;
        Ok(self.first())
    }

    pub(super) fn finish(&mut self, token: Option<&[u8]>) -> Result<(), AuthError> {
        match (&self.0, token) {
            (KerberosState::Established { .. }, _) => Ok(()),
            (_, Some(token)) => self.step(token).map(drop),
            (_, None) => Err(AuthError::Malformed("Kerberos answer")),
        }
    }

    pub(super) fn session_key(&self) -> Option<&[u8]> {
        match &self.0 {
            KerberosState::Established { session_key, .. } => Some(session_key),
            _ => None,
        }
    }
}

impl KerberosState {
    fn after(step: StepOut<Outbound>) -> Result<KerberosState, kenobi_unix::Error> {
        Ok(match step {
            StepOut::Pending(context) => KerberosState::Pending(context),
            StepOut::Finished(context) => KerberosState::Established {
                token: context.last_token().unwrap_or_default().to_vec(),
                session_key: context.session_key()?.to_vec(),
            },
        })
    }
}

impl fmt::Debug for KerberosClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            KerberosState::Pending(_) => "kerberos::Client(pending)",
            KerberosState::Established { .. } => "kerberos::Client(established)",
            KerberosState::Failed => "kerberos::Client(failed)",
        })
    }
}

fn unavailable(what: &str, error: &kenobi_unix::Error) -> AuthError {
    AuthError::Unavailable(format!("Kerberos: {what}: {error}"))
}
