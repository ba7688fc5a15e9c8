//! Pools of workers that take their files from one list.

use super::graph::{Graph, Task};
use smbscope_model::{CommandGroup, Exchange};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

impl Graph {
    /// Finds lanes that work on the same folder at the same time and proceed directly from file to file.
    pub(super) fn find_pools(&mut self, exchanges: &[Exchange], origins: &[Option<usize>]) {
        for lane in 0..self.lanes.len() {
            self.lanes[lane].bound = self.lanes[lane].tasks.clone();
        }
        let workers: Vec<PoolWorker> =
            (0..self.lanes.len()).filter_map(|lane| self.worker(lane, exchanges, origins)).collect();
        let mut of_kind: BTreeMap<&FolderWork, Vec<&PoolWorker>> = BTreeMap::new();
        for worker in &workers {
            for work in &worker.works {
                of_kind.entry(work).or_default().push(worker);
            }
        }
        let mut pool_of: Vec<Option<usize>> = vec![None; self.lanes.len()];
        for mut workers in of_kind.into_values() {
            workers.sort_by_key(|worker| (worker.start, worker.lane));
            let mut until = i64::MIN;
            let mut pool = None;
            for (position, worker) in workers.iter().enumerate() {
                let next = workers.get(position + 1);
                if worker.start >= until {
                    // Without an overlap there is no pool.
                    until = worker.end;
                    pool = None;
                    if next.is_some_and(|next| next.start < until) && pool_of[worker.lane].is_none() {
                        self.pools.push(Vec::new());
                        pool = Some(self.pools.len() - 1);
                    }
                }
                until = until.max(worker.end);
                if pool_of[worker.lane].is_none() {
                    pool_of[worker.lane] = pool;
                }
            }
        }
        for worker in &workers {
            let Some(pool) = pool_of[worker.lane] else { continue };
            let lane = &mut self.lanes[worker.lane];
            let free = lane.bound.split_off(worker.bound);
            lane.pool = Some(pool);
            self.pools[pool].extend(free);
        }
        for pool in &mut self.pools {
            pool.sort_by_key(|task| (self.tasks[*task].start, *task));
        }
    }

    /// Returns `None` if the lane works on no file, or if its pauses are longer than its tasks (lower medians).
    fn worker(&self, lane: usize, exchanges: &[Exchange], origins: &[Option<usize>]) -> Option<PoolWorker> {
        let of_lane = &self.lanes[lane];
        if of_lane.is_joined {
            return None;
        }
        let mut works = BTreeSet::new();
        let mut bound = 0;
        let (mut lags, mut durations) = (Vec::new(), Vec::new());
        for (position, task) in of_lane.tasks.iter().map(|task| &self.tasks[*task]).enumerate() {
            if let Some(work) = self.work(task, exchanges, origins) {
                if works.is_empty() {
                    bound = position + 1;
                }
                works.insert(work);
            }
            if bound > 0 {
                durations.push(task.end - task.start);
                lags.extend(task.lag.filter(|_| position >= bound));
            }
        }
        let lower_median = |values: &mut Vec<i64>| {
            values.sort_unstable();
            values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
        };
        let goes_on = lower_median(&mut lags) <= lower_median(&mut durations);
        let last = of_lane.tasks.last()?;
        let start = self.tasks[*of_lane.tasks.get(bound.checked_sub(1)?)?].start;
        goes_on.then_some(PoolWorker { lane, bound, start, end: self.tasks[*last].end, works })
    }

    /// Returns the folder and kind of work of a task, or `None` if it neither reads nor writes a file.
    fn work(&self, task: &Task, exchanges: &[Exchange], origins: &[Option<usize>]) -> Option<FolderWork> {
        let of_node = |at: &usize| origins[*at].map(|origin| &exchanges[origin]);
        let opened = task.nodes.iter().find(|at| self.nodes[**at].opens).and_then(of_node)?;
        let mut groups: Vec<CommandGroup> =
            task.nodes.iter().filter_map(of_node).map(|exchange| exchange.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.retain(|group| matches!(group, CommandGroup::Read | CommandGroup::Write));
        let path = opened.path.as_ref().filter(|_| !groups.is_empty())?;
        let folder = path.rfind(['\\', '/']).map_or("", |end| &path[..end]);
        Some(FolderWork {
            server: opened.endpoints.server,
            share: opened.share.clone(),
            user: opened.user.clone(),
            folder: folder.into(),
            groups,
        })
    }
}

/// Kind of work on the files of a folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FolderWork {
    server: SocketAddr,
    share: Option<Arc<str>>,
    user: Option<Arc<str>>,
    folder: Arc<str>,
    groups: Vec<CommandGroup>,
}

/// Lane that proceeds directly from file to file.
#[derive(Debug)]
struct PoolWorker {
    lane: usize,
    /// Number of initial tasks, up to and including the first file, that no other lane can do.
    bound: usize,
    start: i64,
    end: i64,
    works: BTreeSet<FolderWork>,
}
