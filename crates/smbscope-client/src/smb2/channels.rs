//! Further channels of a session (SMB 3 multichannel, MS-SMB2 3.2.4.20.6): additional connections with the same share
//! and open files.

use super::connection::Smb2Connection;
use super::negotiate::{self, Smb2NegotiateResult};
use super::{SessionOrigin, Smb2ClientSession, setup};
use crate::crypto::SessionKeys;
use crate::{Cipher, ClientError, SessionOptions};

/// State of the first channel that further ones need.
#[derive(Debug)]
pub(super) struct SessionBinding {
    client_guid: [u8; 16],
    dialect: u16,
    cipher: Option<Cipher>,
    /// `None` for guests, anonymous users and further channels.
    keys: Option<Box<SessionKeys>>,
    count: u8,
    further: bool,
}

impl SessionBinding {
    pub(super) fn of_first(negotiated: &Smb2NegotiateResult, keys: Option<SessionKeys>) -> SessionBinding {
        let Smb2NegotiateResult { client_guid, dialect, cipher, .. } = *negotiated;
        SessionBinding { client_guid, dialect, cipher, keys: keys.map(Box::new), count: 1, further: false }
    }

    fn further(first: &SessionBinding) -> SessionBinding {
        let SessionBinding { client_guid, dialect, cipher, .. } = *first;
        SessionBinding { client_guid, dialect, cipher, keys: None, count: 1, further: true }
    }

    pub(super) fn is_further(&self) -> bool {
        self.further
    }
}

impl Smb2ClientSession {
    /// Opens another connection to the same session, with the same options or to another address of the server. It has
    /// the same share and handles, but its own samples. It ends with its own disconnect or the first channel's.
    pub async fn bind(&mut self, options: &SessionOptions) -> Result<Smb2ClientSession, ClientError> {
        let unsupported = |reason: &str| ClientError::Unsupported(reason.to_owned());
        if self.channels.dialect < 0x0300 {
            return Err(unsupported("several connections a session need SMB 3"));
        }
        let (Some(keys), Some(count)) = (&self.channels.keys, self.channels.count.checked_add(1)) else {
            return Err(unsupported("another channel needs the first one of a user with a password, and 255 at most"));
        };
        let mut connection = Smb2Connection::connect(options).await?;
        let negotiated = negotiate::negotiate(&mut connection, options, Some(self.channels.client_guid)).await?;
        let same = negotiated.dialect == self.channels.dialect && negotiated.cipher == self.channels.cipher;
        if !same {
            return Err(unsupported("another channel must have the dialect and the cipher of the first one"));
        }
        let (session_id, channel) = (self.connection.session_id, self.channels.count);
        setup::bind(&mut connection, &negotiated, options, session_id, keys, channel).await?;
        self.channels.count = count;
        connection.protection.mode = self.connection.protection.mode;
        connection.tree_id = self.connection.tree_id;
        let facts = super::facts(&connection, &negotiated, false);
        Ok(Smb2ClientSession {
            connection,
            facts,
            caching: self.caching,
            compound: options.compound,
            root: None,
            data: Vec::new(),
            parts: Vec::new(),
            watch: None,
            channels: SessionBinding::further(&self.channels),
            origin: Box::new(SessionOrigin { options: options.clone(), negotiated }),
        })
    }
}
