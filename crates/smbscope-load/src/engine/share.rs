//! Divides workers among hosts. Sessions are divided among workers by number.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerShare {
    /// Numbers of the workers, counted across all hosts.
    pub(crate) workers: Vec<u32>,
    pub(crate) of: u32,
}

impl WorkerShare {
    pub(crate) fn whole(workers: usize) -> WorkerShare {
        WorkerShare { workers: (0..workers as u32).collect(), of: workers as u32 }
    }

    /// Deals out workers to hosts with these numbers of workers. Hosts take turns, so that even a few sessions spread
    /// over all hosts.
    pub(crate) fn deal(hosts: &[u32]) -> Vec<WorkerShare> {
        let of = hosts.iter().sum();
        let mut shares: Vec<WorkerShare> = hosts.iter().map(|_| WorkerShare { workers: Vec::new(), of }).collect();
        let mut next = 0;
        while next < of {
            for (share, most) in shares.iter_mut().zip(hosts) {
                if share.workers.len() < *most as usize {
                    share.workers.push(next);
                    next += 1;
                }
            }
        }
        shares
    }

    /// Returns how many of `of` sessions belong to this share.
    pub(crate) fn sessions(&self, of: u32) -> u32 {
        self.workers.iter().map(|worker| of.saturating_sub(*worker).div_ceil(self.of.max(1))).sum()
    }

    /// Returns this share's part of a quantity of all sessions. The parts of all hosts add up to the whole.
    pub(crate) fn part_of(&self, whole: u64, hosts: &[WorkerShare], sessions: u32) -> u64 {
        let before: u32 = hosts.iter().take_while(|host| *host != self).map(|host| host.sessions(sessions)).sum();
        let up_to = |sum: u32| (u128::from(whole) * u128::from(sum) / u128::from(sessions.max(1))) as u64;
        up_to(before + self.sessions(sessions)) - up_to(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_take_turns_and_every_worker_is_that_of_one() {
        let shares = WorkerShare::deal(&[4, 2, 0]);
        let workers: Vec<_> = shares.iter().map(|share| share.workers.clone()).collect();
        assert_eq!(workers, [vec![0, 2, 4, 5], vec![1, 3], vec![]]);
        assert_eq!(WorkerShare::deal(&[3]), [WorkerShare::whole(3)]);
    }

    #[test]
    fn sessions_and_limits_are_divided_without_a_rest() {
        let shares = WorkerShare::deal(&[4, 2]);
        for sessions in 0..30 {
            let each: Vec<u32> = shares.iter().map(|share| share.sessions(sessions)).collect();
            let counted = |share: &WorkerShare| {
                share.workers.iter().map(|worker| (*worker..sessions).step_by(6).count() as u32).sum::<u32>()
            };
            assert_eq!(each, shares.iter().map(counted).collect::<Vec<_>>());
            assert_eq!(each.iter().sum::<u32>(), sessions);
            let whole = if sessions == 0 { 0 } else { 1_001 };
            let parts = shares.iter().map(|share| share.part_of(1_001, &shares, sessions));
            assert_eq!(parts.sum::<u64>(), whole);
        }
    }
}
