//! Threads of recorded clients: their lines as a recording holds them, the sessions that they need, and how they wait
//! for each other.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Work of one client. Its threads have sessions of their own and the same files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedClient {
    /// Lines that create the files which the client expects.
    pub files: String,
    /// Lines of each thread.
    pub threads: Vec<String>,
    /// Work that threads share once they have done their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<RecordedPool>,
}

impl RecordedClient {
    /// Returns the lines of all threads and tasks.
    pub fn lines(&self) -> impl Iterator<Item = &str> + Clone {
        let tasks = self.pools.iter().flat_map(|pool| &pool.tasks);
        self.threads.iter().chain(tasks).flat_map(|steps| steps.lines())
    }
}

/// A list of tasks, such as files to copy: whichever thread is free takes the next one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedPool {
    /// Numbers of the threads, from 1.
    pub threads: Vec<u32>,
    /// Lines of each task.
    pub tasks: Vec<String>,
}

/// Number of sessions of each user: the same for all, or the sessions of recorded clients, which users play in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsPerUser(Vec<u32>);

impl SessionsPerUser {
    pub fn same(sessions: u32) -> SessionsPerUser {
        SessionsPerUser(vec![sessions])
    }

    pub(super) fn of_clients(clients: &[RecordedClient]) -> SessionsPerUser {
        SessionsPerUser(clients.iter().map(|client| client.threads.len() as u32).collect())
    }

    /// Returns the number of clients that users play.
    pub fn clients(&self) -> u32 {
        self.0.len() as u32
    }

    pub(crate) fn is_for_everyone(&self) -> bool {
        !self.0.is_empty() && !self.0.contains(&0)
    }

    pub(super) fn is_one_for_all(&self) -> bool {
        self.0 == [1]
    }

    pub fn most(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or(0)
    }

    pub fn of_users(&self, users: u32) -> u32 {
        let of_round = self.0.iter().fold(0, |sum: u32, sessions| sum.saturating_add(*sessions));
        let (rounds, rest) = (users / self.0.len().max(1) as u32, users as usize % self.0.len().max(1));
        let of_rest = self.0[..rest].iter().fold(0, |sum: u32, sessions| sum.saturating_add(*sessions));
        rounds.saturating_mul(of_round).saturating_add(of_rest)
    }

    /// Returns the number of users who have all their sessions.
    pub(crate) fn users_with(&self, sessions: u32) -> u32 {
        let of_round = self.of_users(self.0.len() as u32).max(1);
        let (rounds, mut left) = (sessions / of_round, sessions % of_round);
        let rest = self.0.iter().take_while(|wanted| {
            let is_there = **wanted <= left;
            left -= (**wanted).min(left);
            is_there
        });
        rounds * self.0.len() as u32 + rest.count() as u32
    }

    /// Returns the place of a session among all of them.
    pub(super) fn place(&self, session: u32) -> SessionPlace {
        let of_all = self.of_users(self.clients()).max(1);
        let (round, of_round) = (session / of_all, session % of_all);
        let (mut own, mut client) = (of_round, 0);
        while let Some(count) = self.0.get(client).filter(|count| own >= **count) {
            own -= count;
            client += 1;
        }
        let of = self.0.get(client).copied().unwrap_or(1);
        SessionPlace { user: round * self.clients() + client as u32, own, of, of_round }
    }
}

/// Place of a session: user, number among the `of` sessions of this user, and number among the sessions of all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionPlace {
    pub(super) user: u32,
    pub(super) own: u32,
    pub(super) of: u32,
    pub(super) of_round: u32,
}

/// Position in the passes of a recording. A pass and the number of its operations that are complete, so positions of
/// different passes can be compared, however many operations a pass has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PassPosition {
    pub pass: u32,
    /// [`PassPosition::END`] for the end of the pass.
    pub operations: u32,
}

impl PassPosition {
    pub const END: u32 = u32::MAX;
    pub(crate) const BEGIN: PassPosition = PassPosition { pass: 0, operations: 0 };
    const GONE: PassPosition = PassPosition { pass: u32::MAX, operations: u32::MAX };
}

/// Progress of the threads of a recorded client, and the tasks that they share.
#[derive(Debug, Clone)]
pub struct ThreadProgress(Arc<SharedProgress>);

#[derive(Debug)]
struct SharedProgress {
    threads: watch::Sender<Vec<PassPosition>>,
    /// By pool: pass, and the next task in it.
    pools: Mutex<BTreeMap<usize, (u32, usize)>>,
}

impl ThreadProgress {
    pub(crate) fn new(threads: usize) -> ThreadProgress {
        let threads = watch::Sender::new(vec![PassPosition::BEGIN; threads]);
        ThreadProgress(Arc::new(SharedProgress { threads, pools: Mutex::default() }))
    }

    pub(crate) fn reached(&self, thread: u32, position: PassPosition) {
        self.0.threads.send_if_modified(|all| {
            let known = all.get_mut(thread as usize).filter(|known| **known < position);
            known.map(|known| *known = position).is_some()
        });
    }

    /// Releases all threads that wait for this one, now and later: it starts over.
    pub(crate) fn gives_up(&self, thread: u32) {
        self.reached(thread, PassPosition::GONE);
    }

    pub(crate) async fn wait(&self, thread: u32, position: PassPosition) {
        let is_there = |all: &Vec<PassPosition>| all.get(thread as usize).is_none_or(|known| *known >= position);
        // The sender is held here, so the channel stays open.
        let _ = self.0.threads.subscribe().wait_for(is_there).await;
    }

    /// Takes the next of `of` tasks of a pool in this pass.
    pub(crate) fn take_task(&self, pool: usize, pass: u32, of: usize) -> Option<usize> {
        let mut pools = self.0.pools.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (known, next) = pools.entry(pool).or_insert((pass, 0));
        if *known < pass {
            (*known, *next) = (pass, 0);
        }
        let task = (*next < of).then_some(*next);
        *next += usize::from(task.is_some());
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_play_recorded_clients_in_turn() {
        // Clients of 4, 1 and 2 sessions: 7 for three users, 11 for four.
        let sessions = SessionsPerUser(vec![4, 1, 2]);
        assert_eq!([0, 1, 2, 3, 4, 6].map(|users| sessions.of_users(users)), [0, 4, 5, 7, 11, 14]);
        assert_eq!([0, 3, 4, 6, 7, 11].map(|count| sessions.users_with(count)), [0, 0, 1, 2, 3, 4]);
        assert_eq!((SessionsPerUser::same(3).of_users(5), SessionsPerUser::same(3).users_with(14)), (15, 4));
        assert_eq!(SessionsPerUser::same(3).of_users(u32::MAX), u32::MAX);
    }

    #[test]
    fn each_session_has_a_user_and_a_number_among_the_users_sessions() {
        let place = |session| {
            let SessionPlace { user, own, of, of_round } = SessionsPerUser(vec![2, 1]).place(session);
            [user, own, of, of_round]
        };
        assert_eq!([0, 1, 2].map(place), [[0, 0, 2, 0], [0, 1, 2, 1], [1, 0, 1, 2]]);
        assert_eq!([3, 5].map(place), [[2, 0, 2, 0], [3, 0, 1, 2]]);
    }
}
