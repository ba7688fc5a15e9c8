//! Login in any dialect: the rounds of an authentication, the policies on signing and guests, and refusals in words.

use crate::auth::Authenticator;
use crate::{ClientError, ClientSigningPolicy, Credentials, Encryption, SessionOptions};
use smbscope_wire::status::NtStatus;

/// Rounds of session setup. NTLM takes two; other mechanisms may take more.
const MOST_ROUNDS: u32 = 8;

/// Answer to a session setup.
#[derive(Debug)]
pub(crate) struct SetupAnswer<R> {
    /// True if the server needs another token: STATUS_MORE_PROCESSING_REQUIRED.
    pub(crate) is_interim: bool,
    pub(crate) token: Vec<u8>,
    pub(crate) reply: R,
}

/// Sends the tokens of an authentication, each in a session setup of the dialect, until the server needs no more.
/// Returns the last answer, with a token that the caller verifies.
pub(crate) async fn authenticate<R>(
    options: &SessionOptions,
    mut set_up: impl AsyncFnMut(&[u8]) -> Result<SetupAnswer<R>, ClientError>,
) -> Result<(Authenticator, SetupAnswer<R>), ClientError> {
    let mut authenticator = Authenticator::new(&options.credentials, &options.host)?;
    let mut token = authenticator.first();
    for _ in 0..MOST_ROUNDS {
        let answer = set_up(&token).await.map_err(|error| refused_logon(error, options))?;
        if !answer.is_interim {
            return Ok((authenticator, answer));
        }
        token = authenticator.next(&answer.token)?;
    }
    Err(ClientError::Protocol(format!("an authentication of more than {MOST_ROUNDS} steps")))
}

/// Returns true if a session with a key signs its messages.
pub(crate) fn must_sign(options: &SessionOptions, required: bool, can_sign: bool) -> Result<bool, ClientError> {
    match options.signing {
        ClientSigningPolicy::Off if required => {
            Err(unsupported(options, "the server requires signing; use --signing on or required"))
        }
        ClientSigningPolicy::Required if !can_sign && !required => {
            Err(unsupported(options, "the server cannot sign, and signing is required"))
        }
        ClientSigningPolicy::Off => Ok(false),
        ClientSigningPolicy::On => Ok(required),
        ClientSigningPolicy::Required => Ok(true),
    }
}

/// Refuses a session without a key if its messages must be protected.
pub(crate) fn check_keyless(options: &SessionOptions, signing_required: bool) -> Result<(), ClientError> {
    let what = match (options.signing, options.encryption) {
        (_, Encryption::Required(_)) => "encryption",
        (ClientSigningPolicy::Required, _) => "signing",
        _ if signing_required => "signing",
        _ => return Ok(()),
    };
    let who = match options.credentials {
        Credentials::Anonymous => "an anonymous session",
        _ => "a guest",
    };
    let what = format!("{what} is required, and {who} has no key for it; use a user with a password");
    Err(unsupported(options, &what))
}

pub(crate) fn unsupported(options: &SessionOptions, what: &str) -> ClientError {
    ClientError::Unsupported(format!("{}: {what}", options.host))
}

pub(crate) fn refused_logon(error: ClientError, options: &SessionOptions) -> ClientError {
    let Some(status) = error.status() else { return error };
    let who = match &options.credentials {
        Credentials::Anonymous => "an anonymous user",
        Credentials::Guest => "a guest",
        Credentials::Ntlm { user, .. } => user,
        Credentials::Kerberos => "a Kerberos user",
    };
    let hint = match (status, &options.credentials) {
        (NtStatus::LOGON_FAILURE | NtStatus::WRONG_PASSWORD | NtStatus::NO_SUCH_USER, _) => {
            "the user name or the password is wrong, or guests are not allowed"
        }
        (NtStatus::ACCESS_DENIED, Credentials::Anonymous | Credentials::Guest) => {
            "the server allows neither guests nor anonymous users, or requires signing: give a user"
        }
        (NtStatus::ACCESS_DENIED, _) => "the server rejects this user",
        (NtStatus::ACCOUNT_DISABLED, _) => "the account is disabled",
        (NtStatus::ACCOUNT_LOCKED_OUT, _) => "the account is locked after too many wrong passwords: wait, or unlock it",
        (NtStatus::ACCOUNT_RESTRICTION, _) => "the account cannot be used now; see the server's policy",
        (NtStatus::PASSWORD_EXPIRED | NtStatus::PASSWORD_MUST_CHANGE, _) => "the password must be changed first",
        (NtStatus::REQUEST_NOT_ACCEPTED | NtStatus::INSUFFICIENT_RESOURCES, _) => "the server has too many sessions",
        _ => "see the server's log",
    };
    ClientError::Refused { what: format!("log on to {} as {who}", options.host), status, hint }
}

pub(crate) fn refused_tree(error: ClientError, options: &SessionOptions) -> ClientError {
    let Some(status) = error.status() else { return error };
    let hint = match status {
        NtStatus::BAD_NETWORK_NAME => "the server has no share of this name",
        NtStatus::ACCESS_DENIED => {
            "access is denied, or the share requires encryption, which needs SMB 3 and a user with a password"
        }
        _ => "see the server's log",
    };
    ClientError::Refused { what: format!(r"share \\{}\{}", options.host, options.share), status, hint }
}
