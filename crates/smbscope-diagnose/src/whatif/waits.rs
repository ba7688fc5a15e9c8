//! Dependencies between commands.

use super::ConnectionThreads;
use super::graph::{Dependency, DependencyEvent, Graph};
use smbscope_model::FlowId;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

impl Graph {
    /// With `tight`, a pipelined request waits for the last response before it rather than for a free slot.
    pub(super) fn find_dependencies(&mut self, tight: bool) {
        for lane in 0..self.lanes.len() {
            self.chain(lane, tight);
        }
        let alone = self.tasks_without_others();
        let handshake_gap = self.handshake_gap();
        let mut outstanding: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
        let mut latest: Option<usize> = None;
        let mut last_handshake: Option<usize> = None;
        let mut flows: HashSet<FlowId> = HashSet::new();
        for at in 0..self.nodes.len() {
            let start = self.nodes[at].start;
            while let Some(Reverse((end, done))) = outstanding.peek().copied().filter(|Reverse((end, _))| *end <= start)
            {
                outstanding.pop();
                latest = latest.filter(|known| self.nodes[*known].end > end).or(Some(done));
            }

            let task = self.nodes[at].task;
            let is_first = self.tasks[task].nodes.first() == Some(&at);
            if self.nodes[at].key.is_none() {
                let is_busy = !outstanding.is_empty() || self.pool_of(at).is_some() || self.is_within_task(at, start);
                let before = last_handshake.filter(|_| is_busy);
                self.nodes[at].dependencies = match before {
                    Some(before) => {
                        if is_first {
                            self.tasks[task].lag = self.tasks[task].lag.map(|_| 0);
                        }
                        self.within_lane(at).chain(self.spawned(at, before, handshake_gap)).collect()
                    }
                    _ => self.after(at, latest),
                };
            } else if is_first && self.tasks[task].lag.is_none() && self.nodes[at].dependencies.is_empty() {
                let joins_pool = self.pool_of(at).and_then(|pool| self.joins_pool(at, pool));
                self.nodes[at].dependencies = joins_pool.map_or_else(|| self.after(at, latest), |joins| vec![joins]);
            } else if is_first {
                self.follow_other_lane(at, latest, &alone);
            }
            let flow = self.nodes[at].flow;
            if flows.insert(flow) {
                last_handshake = Some(at);
            }
            outstanding.push(Reverse((self.nodes[at].end, at)));
        }
    }

    fn after(&self, at: usize, other: Option<usize>) -> Vec<Dependency> {
        let lag = |on: usize| self.nodes[at].start - self.nodes[on].end;
        other.map(|on| Dependency { on, event: DependencyEvent::Ended, lag: lag(on) }).into_iter().collect()
    }

    /// Returns the dependencies of a handshake: the interval since the previous one, and the first file of its pool.
    fn spawned(&self, at: usize, before: usize, usual: Option<i64>) -> Vec<Dependency> {
        let start = self.nodes[at].start;
        let gap = start - self.nodes[before].start;
        // Clients open connections at intervals; a longer gap means that there was no work before.
        let interval = usual.filter(|usual| *usual < gap / 5 * 4).unwrap_or(gap);
        let mut found = vec![Dependency { on: before, event: DependencyEvent::Started, lag: interval }];
        let first = self.pool_of(at).and_then(|pool| self.first_file(pool));
        match first.filter(|on| self.nodes[*on].start <= start) {
            Some(on) => {
                let lag = if interval < gap { start - self.nodes[on].start } else { 0 };
                found.push(Dependency { on, event: DependencyEvent::Started, lag });
            }
            None => found[0].lag = gap,
        }
        found
    }

    /// Makes a worker whose connection was there before begin as long after the first file of its pool as it did: it
    /// waits for none of the others' commands.
    fn joins_pool(&self, at: usize, pool: usize) -> Option<Dependency> {
        let start = self.nodes[at].start;
        let on = self.first_file(pool).filter(|on| (self.nodes[*on].start, *on) < (start, at))?;
        Some(Dependency { on, event: DependencyEvent::Started, lag: start - self.nodes[on].start })
    }

    /// Returns the command that opens the first file of a pool.
    fn first_file(&self, pool: usize) -> Option<usize> {
        let of_pool = self.lanes.iter().filter(|lane| lane.pool == Some(pool));
        let firsts = of_pool.filter_map(|lane| lane.bound.last()).filter_map(|task| self.tasks[*task].nodes.first());
        firsts.copied().min_by_key(|first| (self.nodes[*first].start, *first))
    }

    /// Repeats the lane's own dependencies without a lag: a thread opens a connection after its previous command.
    fn within_lane(&self, at: usize) -> impl Iterator<Item = Dependency> + use<> {
        let known: Vec<Dependency> =
            self.nodes[at].dependencies.iter().map(|dependency| Dependency { lag: 0, ..*dependency }).collect();
        known.into_iter()
    }

    fn handshake_gap(&self) -> Option<i64> {
        let starts = self.nodes.iter().filter(|node| node.key.is_none()).map(|node| node.start);
        let mut gaps: Vec<i64> = starts.clone().zip(starts.skip(1)).map(|(one, next)| next - one).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).copied()
    }

    fn pool_of(&self, at: usize) -> Option<usize> {
        let flow = self.nodes[at].flow;
        self.lanes.iter().filter(|lane| lane.flows.contains(&flow)).find_map(|lane| lane.pool)
    }

    fn is_within_task(&self, at: usize, time: i64) -> bool {
        let flow = self.nodes[at].flow;
        self.tasks
            .iter()
            .any(|task| task.start < time && time < task.end && !self.lanes[task.lane].flows.contains(&flow))
    }

    /// Makes a task depend on a task of another lane if both ran alone and its own lane was idle during the other. In a
    /// replay, tasks from a list wait for none.
    fn follow_other_lane(&mut self, at: usize, latest: Option<usize>, alone: &[bool]) {
        let Some(on) = latest.filter(|on| self.nodes[*on].lane != self.nodes[at].lane) else { return };
        let (task, other) = (self.nodes[at].task, self.nodes[on].task);
        let lane = &self.lanes[self.nodes[at].lane];
        let is_from_list = lane.pool.is_some() && !lane.bound.contains(&task);
        if is_from_list && self.threads_of(self.nodes[at].flow) == ConnectionThreads::OneOfPool {
            return;
        }
        let start = self.nodes[at].start;
        let own_end = self.tasks[task].lag.map_or(i64::MIN, |lag| start - lag);
        if !alone[task] || !alone[other] || own_end > self.tasks[other].start {
            return;
        }
        let lag = start - self.nodes[on].end;
        self.nodes[at].dependencies.push(Dependency { on, event: DependencyEvent::Ended, lag });
        self.tasks[task].lag = self.tasks[task].lag.map(|own| own.min(lag));
    }

    fn tasks_without_others(&self) -> Vec<bool> {
        let mut order: Vec<usize> = (0..self.tasks.len()).collect();
        order.sort_by_key(|task| (self.tasks[*task].start, self.tasks[*task].end));
        let mut alone = vec![true; self.tasks.len()];
        let mut longest: Option<usize> = None;
        for task in order {
            if let Some(longest) = longest.filter(|longest| self.tasks[*longest].end > self.tasks[task].start) {
                (alone[longest], alone[task]) = (false, false);
            }
            if longest.is_none_or(|longest| self.tasks[longest].end < self.tasks[task].end) {
                longest = Some(task);
            }
        }
        alone
    }

    fn chain(&mut self, lane: usize, tight: bool) {
        let order = std::mem::take(&mut self.lanes[lane].nodes);
        let runs = self.runs(&order);
        let mut done = LaneCompletions::default();
        for (number, run) in runs.iter().enumerate() {
            let mut ends: Vec<(i64, usize)> = run.nodes.iter().map(|at| (self.nodes[*at].end, *at)).collect();
            ends.sort_unstable();
            for (position, at) in run.nodes.iter().copied().enumerate() {
                done.advance(self.nodes[at].start);
                let before = match position {
                    0 => number.checked_sub(1).and_then(|number| runs[number].nodes.last().copied()),
                    _ => Some(run.nodes[position - 1]),
                };
                let window = (run.window > 1 && position > 0 && !tight).then(|| {
                    let room = position.checked_sub(run.window).map(|freed| (ends[freed].1, DependencyEvent::Ended));
                    before.map(|before| (before, DependencyEvent::Sent)).into_iter().chain(room).collect::<Vec<_>>()
                });
                let on = match (before, window) {
                    (Some(before), _) if self.nodes[at].is_compounded_with(&self.nodes[before]) => {
                        vec![(before, DependencyEvent::Started)]
                    }
                    (_, Some(on)) => on,
                    (before, None) => match done.latest {
                        Some((_, latest)) => vec![(latest, DependencyEvent::Ended)],
                        None => before.map(|before| (before, DependencyEvent::Started)).into_iter().collect(),
                    },
                };
                self.nodes[at].dependencies = self.within_task(at, on);
                done.add(self.nodes[at].end, at);
            }
        }
        self.lanes[lane].nodes = order;
    }

    /// Restricts dependencies to the command's task; its first command replaces anything earlier.
    fn within_task(&self, at: usize, on: Vec<(usize, DependencyEvent)>) -> Vec<Dependency> {
        let node = &self.nodes[at];
        let Some(first) = self.tasks[node.task].nodes.first().copied().filter(|first| *first != at) else {
            return Vec::new();
        };
        let mut found: Vec<(usize, DependencyEvent)> = Vec::new();
        for (on, event) in on {
            let inside = self.nodes[on].task == node.task;
            let (on, event) = if inside { (on, event) } else { (first, DependencyEvent::Started) };
            let event = if self.nodes[on].at(event) > node.start { DependencyEvent::Started } else { event };
            if !found.contains(&(on, event)) {
                found.push((on, event));
            }
        }
        let since = found.iter().map(|(on, event)| self.nodes[*on].at(*event)).max().unwrap_or(node.start);
        let lag = node.start - since;
        found.into_iter().map(|(on, event)| Dependency { on, event, lag }).collect()
    }

    fn runs(&self, order: &[usize]) -> Vec<CommandRun> {
        let mut runs: Vec<CommandRun> = Vec::new();
        let mut outstanding: BinaryHeap<Reverse<i64>> = BinaryHeap::new();
        let mut before: Option<usize> = None;
        for at in order.iter().copied() {
            let node = &self.nodes[at];
            while outstanding.peek().is_some_and(|Reverse(end)| *end <= node.start) {
                outstanding.pop();
            }
            let is_same = before.is_some_and(|before| {
                let other = &self.nodes[before];
                other.kind == node.kind && other.file == node.file && other.flow == node.flow && other.task == node.task
            });
            if !is_same {
                runs.push(CommandRun::default());
            }
            if let Some(run) = runs.last_mut() {
                run.nodes.push(at);
                run.window = run.window.max(1 + outstanding.len());
            }
            outstanding.push(Reverse(node.end));
            before = Some(at);
        }
        runs
    }
}

#[derive(Debug, Default)]
struct CommandRun {
    nodes: Vec<usize>,
    window: usize,
}

#[derive(Debug, Default)]
struct LaneCompletions {
    outstanding: BinaryHeap<Reverse<(i64, usize)>>,
    latest: Option<(i64, usize)>,
}

impl LaneCompletions {
    fn advance(&mut self, time: i64) {
        while let Some(Reverse(done)) = self.outstanding.peek().copied().filter(|Reverse((end, _))| *end <= time) {
            self.outstanding.pop();
            self.latest = self.latest.max(Some(done));
        }
    }

    fn add(&mut self, end: i64, at: usize) {
        self.outstanding.push(Reverse((end, at)));
    }
}
