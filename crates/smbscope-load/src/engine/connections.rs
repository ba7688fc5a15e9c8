//! The connections of a session: one, or several that take turns (SMB 3 multichannel).

use smbscope_client::{ClientError, ClientSession, SessionOptions};
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Instant;

/// The first one was made with the session, the others were bound to it.
pub(crate) struct RoundRobinChannels {
    all: Vec<ClientSession>,
    turn: usize,
}

impl RoundRobinChannels {
    /// Makes a session, and binds further connections to it.
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

    /// Which one has its turn.
    pub(crate) fn turn(&self) -> usize {
        self.turn
    }

    /// The one that has its turn.
    pub(crate) fn current(&mut self) -> &mut ClientSession {
        &mut self.all[self.turn]
    }

    /// The turn of the next one.
    pub(crate) fn next(&mut self) {
        self.turn = (self.turn + 1) % self.all.len();
    }

    pub(crate) fn get(&self, connection: usize) -> &ClientSession {
        &self.all[connection]
    }

    pub(crate) fn get_mut(&mut self, connection: usize) -> &mut ClientSession {
        &mut self.all[connection]
    }

    /// Waits until something comes on any of them, or one ends; may be dropped at any time.
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

    /// Does what the server wants by what is there already.
    pub(crate) async fn attend(&mut self) -> Result<(), ClientError> {
        for session in &mut self.all {
            session.rest(Instant::now()).await?;
        }
        Ok(())
    }

    /// Says goodbye; the session ends with the first one, so that is the last.
    pub(crate) async fn disconnect(&mut self) -> Result<(), ClientError> {
        self.turn = 0;
        while let Some(further) = self.all.get_mut(1..).and_then(<[ClientSession]>::last_mut) {
            further.disconnect().await?;
            self.all.pop();
        }
        self.all[0].disconnect().await
    }
}
