//! The connections of a session: one, or several used in turn (SMB 3 multichannel).

use smbscope_client::{ClientError, ClientSession, SessionOptions};
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Instant;

/// The first connection established the session; the others are bound to it.
pub(crate) struct RoundRobinChannels {
    all: Vec<ClientSession>,
    turn: usize,
}

impl RoundRobinChannels {
    pub(crate) async fn make(options: &SessionOptions, count: u32) -> Result<RoundRobinChannels, ClientError> {
        let mut all = vec![ClientSession::connect(options).await?];
        for _ in 1..count {
            let further = all[0].bind(options).await?;
            all.push(further);
        }
        Ok(RoundRobinChannels { all, turn: 0 })
    }

    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn turn(&self) -> usize {
        self.turn
    }

    pub(crate) fn current(&mut self) -> &mut ClientSession {
        &mut self.all[self.turn]
    }

    pub(crate) fn next(&mut self) {
        self.turn = (self.turn + 1) % self.all.len();
    }

    pub(crate) fn get(&self, connection: usize) -> &ClientSession {
        &self.all[connection]
    }

    pub(crate) fn get_mut(&mut self, connection: usize) -> &mut ClientSession {
        &mut self.all[connection]
    }

    /// Waits for a message on any connection, or for the end of one. Cancel-safe.
    pub(crate) async fn disturbed(&self) -> Result<(), ClientError> {
        if let [session] = self.all.as_slice() {
            return session.disturbed().await;
        }
        let mut waits: Vec<_> = self.all.iter().map(|session| Box::pin(session.disturbed())).collect();
        poll_fn(|context| {
            let ready = waits.iter_mut().find_map(|wait| match wait.as_mut().poll(context) {
                Poll::Ready(result) => Some(result),
                Poll::Pending => None,
            });
            ready.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Handles the server's requests that have already arrived.
    pub(crate) async fn attend(&mut self) -> Result<(), ClientError> {
        for session in &mut self.all {
            session.rest(Instant::now()).await?;
        }
        Ok(())
    }

    /// Disconnects. The session ends with the first connection, so that is the last.
    pub(crate) async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.turn = 0;
        while let Some(further) = self.all.get_mut(1..).and_then(<[ClientSession]>::last_mut) {
            further.disconnect().await?;
            self.all.pop();
        }
        self.all[0].disconnect().await
    }
}
