//! What each command of an episode waits for: commands, threads of the application, tasks and pools of workers.
//!
//! A *lane* is a thread of the client: commands that never overlap, or that one file pipelines. A *task* is a piece of work
//! between two points at which a lane holds no file open. Lanes that take their files from one list are a *pool*: with another
//! round trip, a worker that is free earlier takes the next file.

use super::{Key, Paths, key};
use crate::facts::{is_close, is_open};
use smbscope_model::{Command, Exchange, FileId, FlowId, Group, Nanos, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// Threads that are told apart on one connection.
const LANES_MAX: usize = 64;
/// Files that go from one connection to another before the client is taken to pool its connections.
const HANDED_LEAST: usize = 3;
/// Two connections belong to one thread if they take turns this often and never overlap.
const TURNS_LEAST: u32 = 8;

/// What happened of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Started,
    Sent,
    Ended,
}

/// A command starts this long after an event of another one, at the earliest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dependency {
    pub(super) on: usize,
    pub(super) event: Event,
    pub(super) lag: i64,
}

/// A command, or the handshake of a connection. Times are relative to the first request.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Absent for a handshake.
    pub(super) key: Option<Key>,
    pub(super) flow: FlowId,
    pub(super) start: i64,
    /// Last packet of the request.
    pub(super) sent: i64,
    /// First packet of the response.
    pub(super) first: i64,
    pub(super) end: i64,
    pub(super) trip: Option<i64>,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
    /// Time in which the connection delivered earlier responses although this one was due.
    pub(super) queued: i64,
    /// From the end of the response before it, where that delayed it.
    pub(super) gap: Option<i64>,
    pub(super) lane: usize,
    pub(super) task: usize,
    pub(super) dependencies: Vec<Dependency>,
    /// Absent for a handshake.
    pub(super) kind: Option<Command>,
    file: Option<FileId>,
    opens: bool,
    closes: bool,
    compounded: bool,
    /// Connections that one pool of the client serves; alike for all of them.
    root: FlowId,
    /// File that the open or its handle reads or writes.
    file_worked_on: Option<Item>,
}

/// A file of a share, as a user sees it.
type Item = (Option<Arc<str>>, Option<Arc<str>>, Arc<str>);

/// Commands of a lane between two points at which it holds no file open.
#[derive(Debug, Clone, Default)]
pub(super) struct Task {
    pub(super) nodes: Vec<usize>,
    /// Time between the lane's last response and the task; absent for the first task of a lane.
    pub(super) lag: Option<i64>,
    lane: usize,
    start: i64,
    end: i64,
}

/// A thread of the client.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    /// Its connections in the order of their first use.
    pub(super) flows: Vec<FlowId>,
    /// Tasks that only this lane can do, in their order.
    pub(super) bound: Vec<usize>,
    /// Pool from which it takes tasks after those.
    pub(super) pool: Option<usize>,
    /// Uses connections that have nothing to do with each other.
    is_joined: bool,
    nodes: Vec<usize>,
    tasks: Vec<usize>,
}

/// Commands of an episode, and what they wait for.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) tasks: Vec<Task>,
    pub(super) lanes: Vec<Lane>,
    /// Tasks of each pool in their order.
    pub(super) pools: Vec<Vec<usize>>,
}

impl Graph {
    /// With `tight`, a pipelined request waits for the last response before it instead of for room among the outstanding ones.
    pub(super) fn new(exchanges: &[Exchange], paths: &Paths, tight: bool) -> Option<Graph> {
        let begin = exchanges.iter().filter(|exchange| counts(exchange)).filter_map(started).min()?;
        let mut of_nodes: Vec<(Node, Option<usize>)> = Vec::new();
        for (at, exchange) in exchanges.iter().enumerate() {
            of_nodes.extend(Node::from_exchange(exchange, paths, begin).map(|node| (node, Some(at))));
        }
        of_nodes.extend(handshakes(&of_nodes, paths, begin).into_iter().map(|node| (node, None)));
        of_nodes.sort_by_key(|(node, _)| (node.start, node.end, node.key));
        let (nodes, origins): (Vec<Node>, Vec<Option<usize>>) = of_nodes.into_iter().unzip();
        let mut graph = Graph { nodes, ..Graph::default() };
        graph.shortest_service_bounds_trip();
        graph.find_queues();
        graph.find_files(exchanges, &origins);
        graph.find_roots(exchanges, &origins);
        graph.find_lanes();
        graph.join_alternating_lanes();
        graph.find_tasks();
        graph.find_pools(exchanges, &origins);
        graph.find_dependencies(tight);
        Some(graph)
    }

    /// Connection that a lane uses for a command, which may be another lane's.
    pub(super) fn flow(&self, at: usize, lane: usize) -> FlowId {
        let node = &self.nodes[at];
        let (own, lane) = (&self.lanes[node.lane], &self.lanes[lane]);
        let position = own.flows.iter().position(|flow| *flow == node.flow).unwrap_or(0);
        let flow = if own.flows == lane.flows {
            own.flows.get(position)
        } else {
            lane.flows.get(position).or(lane.flows.last())
        };
        flow.copied().unwrap_or(node.flow)
    }

    /// The client's own time before a command; absent where nothing is known to precede it.
    pub(super) fn think(&self, at: usize) -> Option<i64> {
        let task = &self.tasks[self.nodes[at].task];
        if task.nodes.first() == Some(&at) {
            return task.lag;
        }
        self.nodes[at].dependencies.iter().map(|dependency| dependency.lag).min()
    }

    /// The round trip of the handshake may have been a slow one: a command that took less had less.
    fn shortest_service_bounds_trip(&mut self) {
        let mut least: HashMap<FlowId, i64> = HashMap::new();
        for node in self.nodes.iter().filter(|node| node.key.is_some() && node.first > node.sent) {
            let known = least.entry(node.flow).or_insert(i64::MAX);
            *known = (*known).min(node.first - node.sent);
        }
        for node in &mut self.nodes {
            if let (Some(trip), Some(least)) = (&mut node.trip, least.get(&node.flow)) {
                *trip = (*trip).min(*least);
            }
        }
    }

    /// Finds out which responses had to wait for others on their connection.
    fn find_queues(&mut self) {
        let mut by_flow: HashMap<FlowId, Vec<usize>> = HashMap::new();
        for at in 0..self.nodes.len() {
            by_flow.entry(self.nodes[at].flow).or_default().push(at);
        }
        for mut of_flow in by_flow.into_values() {
            of_flow.sort_by_key(|at| (self.nodes[*at].first, self.nodes[*at].end, *at));
            // Ends of what was delivered without a pause, and how long the connection had been busy by then.
            let mut busy: Vec<(i64, i64, i64)> = Vec::new();
            for at in of_flow {
                let node = &self.nodes[at];
                let due = node.sent.saturating_add(node.trip.unwrap_or(0));
                let before = |time: i64| {
                    let past = busy.partition_point(|(from, _, _)| *from < time);
                    let (from, to, total) = past.checked_sub(1).map_or((0, 0, 0), |last| busy[last]);
                    total - (to - from) + (time.min(to) - from).max(0)
                };
                let queued = if due < node.first { before(node.first) - before(due) } else { 0 };
                let last = busy.last().copied();
                let gap = last.filter(|(_, to, _)| *to > due && *to <= node.first).map(|(_, to, _)| node.first - to);
                let (first, end) = (node.first, node.end);
                let (_, to, total) = last.unwrap_or((0, i64::MIN, 0));
                let from = first.max(to);
                if end > from {
                    busy.push((from, end, total + (end - from)));
                }
                let node = &mut self.nodes[at];
                (node.queued, node.gap) = (queued, gap);
            }
        }
    }

    /// Finds the commands on files that are read or written, by the path of their open.
    fn find_files(&mut self, exchanges: &[Exchange], origins: &[Option<usize>]) {
        let of_node = |at: usize| origins[at].map(|origin: usize| &exchanges[origin]);
        let mut worked_on: HashSet<Item> = HashSet::new();
        let item = |exchange: &Exchange| Some((exchange.user.clone(), exchange.share.clone(), exchange.path.clone()?));
        for exchange in (0..self.nodes.len()).filter_map(of_node) {
            if matches!(exchange.group, Group::Read | Group::Write) {
                worked_on.extend(item(exchange));
            }
        }
        for at in 0..self.nodes.len() {
            let found = of_node(at).and_then(item);
            self.nodes[at].file_worked_on = found.filter(|item| self.nodes[at].opens && worked_on.contains(item));
        }
    }

    /// Joins connections that bind one session, and those between which a client hands its files around.
    fn find_roots(&mut self, exchanges: &[Exchange], origins: &[Option<usize>]) {
        let mut roots: BTreeMap<FlowId, FlowId> = self.nodes.iter().map(|node| (node.flow, node.flow)).collect();
        let mut pairs: Vec<(FlowId, FlowId)> = Vec::new();
        let mut sessions: HashMap<(SocketAddr, u64), FlowId> = HashMap::new();
        for exchange in origins.iter().flatten().map(|origin| &exchanges[*origin]) {
            let session = exchange.session_id.filter(|id| *id > u64::from(u16::MAX));
            if let Some(session) = session {
                let first = *sessions.entry((exchange.endpoints.server, session)).or_insert(exchange.flow);
                if first != exchange.flow {
                    pairs.push((first, exchange.flow));
                }
            }
        }
        let mut users: HashMap<&Item, (FlowId, i64)> = HashMap::new();
        let mut handed = Vec::new();
        for node in &self.nodes {
            let Some(item) = &node.file_worked_on else { continue };
            if let Some((flow, end)) = users.insert(item, (node.flow, node.end))
                && flow != node.flow
                && end <= node.start
            {
                handed.push((flow, node.flow));
            }
        }
        if handed.len() >= HANDED_LEAST {
            pairs.extend(handed);
        }
        for (one, other) in pairs {
            let (one, other) = (roots[&one], roots[&other]);
            if one != other {
                roots.values_mut().filter(|root| **root == other).for_each(|root| *root = one);
            }
        }
        for node in &mut self.nodes {
            node.root = roots[&node.flow];
        }
    }

    /// A command goes on with its file, or is of the thread whose last response came just before it.
    fn find_lanes(&mut self) {
        let mut of_file: HashMap<(FlowId, FileId), usize> = HashMap::new();
        let mut of_root: HashMap<FlowId, Vec<usize>> = HashMap::new();
        // Of each lane: the end of its last response, the file of its outstanding requests, and what it works on.
        let mut state: Vec<(i64, Option<FileId>, Option<Item>)> = Vec::new();
        let mut before: Option<usize> = None;
        let first_items = self.first_items();
        let mut set_up: HashMap<FlowId, usize> = HashMap::new();
        for at in 0..self.nodes.len() {
            let node = &self.nodes[at];
            let with =
                before.filter(|before| node.is_compounded_with(&self.nodes[*before])).map(|at| self.nodes[at].lane);
            let known = node.file.and_then(|file| of_file.get(&(node.root, file)).copied());
            let is_free = |lane: &usize| state[*lane].0 <= node.start;
            let known = known.filter(|lane| is_free(lane) || state[*lane].1 == node.file);
            let lanes = of_root.entry(node.root).or_default();
            let is_new_flow = !set_up.contains_key(&node.flow);
            // A connection that a thread opens to go on with its file.
            let item = node.file_worked_on.as_ref().or(first_items.get(&node.flow).filter(|_| is_new_flow));
            let same_item =
                || lanes.iter().copied().filter(is_free).find(|lane| item.is_some() && state[*lane].2.as_ref() == item);
            let own = || {
                set_up
                    .get(&node.flow)
                    .copied()
                    .filter(|lane| *lane != usize::MAX)
                    .filter(is_free)
                    .filter(|_| node.file_worked_on.is_none())
            };
            let free = || {
                let lanes = lanes.iter().copied().filter(is_free).filter(|_| !is_new_flow);
                lanes.max_by_key(|lane| (state[*lane].0, Reverse(*lane)))
            };
            let earliest =
                || lanes.iter().copied().min_by_key(|lane| state[*lane].0).filter(|_| lanes.len() >= LANES_MAX);
            let found = with.or(known).or_else(same_item).or_else(own).or_else(free).or_else(earliest);
            let lane = found.unwrap_or_else(|| {
                state.push((i64::MIN, None, None));
                lanes.push(state.len() - 1);
                state.len() - 1
            });
            let working_on = node.file_worked_on.clone().or(state[lane].2.take());
            state[lane] = (state[lane].0.max(node.end), node.file, working_on);
            if let Some(file) = node.file {
                of_file.insert((node.root, file), lane);
            }
            if is_new_flow || node.file_worked_on.is_none() && set_up.get(&node.flow) == Some(&lane) {
                set_up.insert(node.flow, lane);
            } else {
                // From its first file on, whoever is free uses the connection.
                set_up.insert(node.flow, usize::MAX);
            }
            if self.lanes.len() < state.len() {
                self.lanes.push(Lane::default());
            }
            self.lanes[lane].nodes.push(at);
            self.nodes[at].lane = lane;
            before = self.nodes[at].key.map(|_| at);
        }
    }

    /// The first file that each connection works on.
    fn first_items(&self) -> HashMap<FlowId, Item> {
        let mut found = HashMap::new();
        for node in &self.nodes {
            if let Some(item) = &node.file_worked_on {
                found.entry(node.flow).or_insert_with(|| item.clone());
            }
        }
        found
    }

    /// Connections of one thread take turns and never overlap: a program that copies from one server to another.
    fn join_alternating_lanes(&mut self) {
        let mut lanes_of: BTreeMap<FlowId, BTreeSet<usize>> = BTreeMap::new();
        for node in &self.nodes {
            lanes_of.entry(node.root).or_default().insert(node.lane);
        }
        let single: BTreeSet<usize> = lanes_of.into_values().filter(|lanes| lanes.len() == 1).flatten().collect();
        let mut turns: BTreeMap<(usize, usize), (u32, u32)> = BTreeMap::new();
        for at in 1..self.nodes.len() {
            let (one, other) = (&self.nodes[at - 1], &self.nodes[at]);
            if one.lane != other.lane {
                let pair = (one.lane.min(other.lane), one.lane.max(other.lane));
                let (all, overlapping) = turns.entry(pair).or_default();
                *all += 1;
                *overlapping += u32::from(one.end > other.start);
            }
        }
        let mut into: Vec<usize> = (0..self.lanes.len()).collect();
        for ((one, other), (all, overlapping)) in turns {
            if all >= TURNS_LEAST && overlapping == 0 && single.contains(&one) && single.contains(&other) {
                into[other] = into[one];
            }
        }
        let joined: Vec<usize> =
            into.iter().enumerate().filter(|(lane, into)| lane != *into).map(|(_, into)| *into).collect();
        joined.into_iter().for_each(|lane| self.lanes[lane].is_joined = true);
        self.lanes.iter_mut().for_each(|lane| lane.nodes.clear());
        for at in 0..self.nodes.len() {
            let lane = into[self.nodes[at].lane];
            self.nodes[at].lane = lane;
            self.lanes[lane].nodes.push(at);
            let flow = self.nodes[at].flow;
            if !self.lanes[lane].flows.contains(&flow) {
                self.lanes[lane].flows.push(flow);
            }
        }
    }

    fn find_tasks(&mut self) {
        for lane in 0..self.lanes.len() {
            let order = std::mem::take(&mut self.lanes[lane].nodes);
            let simple = self.files_without_others(&order);
            let mut open: HashSet<(FlowId, FileId)> = HashSet::new();
            let mut end = i64::MIN;
            // Where files are handed around, all that is done with one of them is one task.
            let hands_around = self.lanes[lane].flows.len() > 1 && !self.lanes[lane].is_joined;
            let mut item: Option<Item> = None;
            for (position, at) in order.iter().copied().enumerate() {
                let node = &self.nodes[at];
                let is_other_item = node.file_worked_on.is_some() && node.file_worked_on != item;
                item = node.file_worked_on.clone().or(item);
                let divides = !hands_around || is_other_item;
                if position == 0 || (divides && open.is_empty() && end <= node.start) {
                    let lag = (position > 0).then(|| node.start - end);
                    self.lanes[lane].tasks.push(self.tasks.len());
                    self.tasks.push(Task { lag, lane, start: node.start, end: node.end, ..Task::default() });
                }
                let number = self.tasks.len() - 1;
                let file = node.file.map(|file| (node.root, file));
                if node.opens && simple.contains(&at) {
                    open.extend(file);
                }
                if let Some(file) = file.filter(|_| node.closes) {
                    open.remove(&file);
                }
                end = end.max(node.end);
                self.nodes[at].task = number;
                self.tasks[number].end = end;
                self.tasks[number].nodes.push(at);
            }
            self.lanes[lane].nodes = order;
        }
    }

    /// Opens after which the lane opens nothing else until it closes that file.
    fn files_without_others(&self, order: &[usize]) -> HashSet<usize> {
        let mut last: Option<(usize, FlowId, FileId)> = None;
        let mut found = HashSet::new();
        for at in order.iter().copied() {
            let node = &self.nodes[at];
            let Some(file) = node.file else { continue };
            if node.opens {
                last = Some((at, node.root, file));
            } else if node.closes
                && let Some((opened, ..)) = last.take_if(|(_, flow, known)| *flow == node.root && *known == file)
            {
                found.insert(opened);
            }
        }
        found
    }

    /// Lanes that work on files of one folder in the same way at the same time, and go from one file straight to the next.
    fn find_pools(&mut self, exchanges: &[Exchange], origins: &[Option<usize>]) {
        for lane in 0..self.lanes.len() {
            self.lanes[lane].bound = self.lanes[lane].tasks.clone();
        }
        let workers: Vec<Worker> =
            (0..self.lanes.len()).filter_map(|lane| self.worker(lane, exchanges, origins)).collect();
        let mut of_kind: BTreeMap<&Work, Vec<&Worker>> = BTreeMap::new();
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
                    // The next one has to overlap, or there is no pool.
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

    fn worker(&self, lane: usize, exchanges: &[Exchange], origins: &[Option<usize>]) -> Option<Worker> {
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
        goes_on.then_some(Worker { lane, bound, start, end: self.tasks[*last].end, works })
    }

    /// What a task does with a file; absent if it does not read or write one.
    fn work(&self, task: &Task, exchanges: &[Exchange], origins: &[Option<usize>]) -> Option<Work> {
        let of_node = |at: &usize| origins[*at].map(|origin| &exchanges[origin]);
        let opened = task.nodes.iter().find(|at| self.nodes[**at].opens).and_then(of_node)?;
        let mut groups: Vec<Group> = task.nodes.iter().filter_map(of_node).map(|exchange| exchange.group).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.retain(|group| matches!(group, Group::Read | Group::Write));
        let path = opened.path.as_ref().filter(|_| !groups.is_empty())?;
        let folder = path.rfind(['\\', '/']).map_or("", |end| &path[..end]);
        Some(Work {
            server: opened.endpoints.server,
            share: opened.share.clone(),
            user: opened.user.clone(),
            folder: folder.into(),
            groups,
        })
    }

    fn find_dependencies(&mut self, tight: bool) {
        for lane in 0..self.lanes.len() {
            self.chain(lane, tight);
        }
        let alone = self.tasks_without_others();
        let handshake_gap = self.handshake_gap();
        // Ends of all commands so far, latest last.
        let mut outstanding: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
        let mut latest: Option<usize> = None;
        let mut last_handshake: Option<usize> = None;
        let mut first_of_flow: HashMap<FlowId, usize> = HashMap::new();
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
                self.nodes[at].dependencies = self.after(at, latest);
            } else if is_first {
                self.follow_other_lane(at, latest, &alone);
            }
            let flow = self.nodes[at].flow;
            if !first_of_flow.contains_key(&flow) {
                first_of_flow.insert(flow, at);
                last_handshake = Some(at);
            }
            outstanding.push(Reverse((self.nodes[at].end, at)));
        }
    }

    fn after(&self, at: usize, other: Option<usize>) -> Vec<Dependency> {
        let lag = |on: usize| self.nodes[at].start - self.nodes[on].end;
        other.map(|on| Dependency { on, event: Event::Ended, lag: lag(on) }).into_iter().collect()
    }

    /// A connection that is opened while others are at work: by a thread that started some time after the one before, and
    /// when there was something to do.
    fn spawned(&self, at: usize, before: usize, usual: Option<i64>) -> Vec<Dependency> {
        let start = self.nodes[at].start;
        let gap = start - self.nodes[before].start;
        // Clients open connections at intervals; where it took longer, there was nothing to do before.
        let interval = usual.filter(|usual| *usual < gap / 5 * 4).unwrap_or(gap);
        let mut found = vec![Dependency { on: before, event: Event::Started, lag: interval }];
        let pool = self.pool_of(at);
        // The first file of the pool.
        let of_pool = self.lanes.iter().filter(|lane| pool.is_some() && lane.pool == pool);
        let firsts = of_pool.filter_map(|lane| lane.bound.last()).filter_map(|task| self.tasks[*task].nodes.first());
        let first = firsts.copied().min_by_key(|first| (self.nodes[*first].start, *first));
        match first.filter(|on| self.nodes[*on].start <= start) {
            Some(on) => {
                let lag = if interval < gap { start - self.nodes[on].start } else { 0 };
                found.push(Dependency { on, event: Event::Started, lag });
            }
            None => found[0].lag = gap,
        }
        found
    }

    /// A thread opens a connection after what it did before.
    fn within_lane(&self, at: usize) -> impl Iterator<Item = Dependency> + use<> {
        let known: Vec<Dependency> =
            self.nodes[at].dependencies.iter().map(|dependency| Dependency { lag: 0, ..*dependency }).collect();
        known.into_iter()
    }

    /// Median of the time between two handshakes.
    fn handshake_gap(&self) -> Option<i64> {
        let starts = self.nodes.iter().filter(|node| node.key.is_none()).map(|node| node.start);
        let mut gaps: Vec<i64> = starts.clone().zip(starts.skip(1)).map(|(one, next)| next - one).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).copied()
    }

    /// Pool of the connection.
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

    /// A task that begins after one of another lane, if both ran alone and its own lane had nothing to do meanwhile.
    fn follow_other_lane(&mut self, at: usize, latest: Option<usize>, alone: &[bool]) {
        let Some(on) = latest.filter(|on| self.nodes[*on].lane != self.nodes[at].lane) else { return };
        let (task, other) = (self.nodes[at].task, self.nodes[on].task);
        let start = self.nodes[at].start;
        let own_end = self.tasks[task].lag.map_or(i64::MIN, |lag| start - lag);
        if !alone[task] || !alone[other] || own_end > self.tasks[other].start {
            return;
        }
        let lag = start - self.nodes[on].end;
        self.nodes[at].dependencies.push(Dependency { on, event: Event::Ended, lag });
        self.tasks[task].lag = self.tasks[task].lag.map(|own| own.min(lag));
    }

    /// Tasks during which no other one went on.
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

    /// What commands of a lane wait for in their own lane.
    fn chain(&mut self, lane: usize, tight: bool) {
        let order = std::mem::take(&mut self.lanes[lane].nodes);
        let runs = self.runs(&order);
        let mut done = Done::default();
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
                    let room = position.checked_sub(run.window).map(|freed| (ends[freed].1, Event::Ended));
                    before.map(|before| (before, Event::Sent)).into_iter().chain(room).collect::<Vec<_>>()
                });
                let on = match (before, window) {
                    (Some(before), _) if self.nodes[at].is_compounded_with(&self.nodes[before]) => {
                        vec![(before, Event::Started)]
                    }
                    (_, Some(on)) => on,
                    (before, None) => match done.latest {
                        Some((_, latest)) => vec![(latest, Event::Ended)],
                        None => before.map(|before| (before, Event::Started)).into_iter().collect(),
                    },
                };
                self.nodes[at].dependencies = self.within_task(at, on);
                done.add(self.nodes[at].end, at);
            }
        }
        self.lanes[lane].nodes = order;
    }

    /// The same within the command's task, of which the first command stands for what was before it.
    fn within_task(&self, at: usize, on: Vec<(usize, Event)>) -> Vec<Dependency> {
        let node = &self.nodes[at];
        let Some(first) = self.tasks[node.task].nodes.first().copied().filter(|first| *first != at) else {
            return Vec::new();
        };
        let mut found: Vec<(usize, Event)> = Vec::new();
        for (on, event) in on {
            let inside = self.nodes[on].task == node.task;
            let (on, event) = if inside { (on, event) } else { (first, Event::Started) };
            let event = if self.nodes[on].at(event) > node.start { Event::Started } else { event };
            if !found.contains(&(on, event)) {
                found.push((on, event));
            }
        }
        let since = found.iter().map(|(on, event)| self.nodes[*on].at(*event)).max().unwrap_or(node.start);
        let lag = node.start - since;
        found.into_iter().map(|(on, event)| Dependency { on, event, lag }).collect()
    }

    /// Divides a lane into runs of the same command on the same file.
    fn runs(&self, order: &[usize]) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
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
                runs.push(Run::default());
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

/// Commands of one kind on one file.
#[derive(Debug, Default)]
struct Run {
    nodes: Vec<usize>,
    /// Most outstanding at once.
    window: usize,
}

/// Commands of a lane that ended by some time.
#[derive(Debug, Default)]
struct Done {
    outstanding: BinaryHeap<Reverse<(i64, usize)>>,
    latest: Option<(i64, usize)>,
}

impl Done {
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

/// What is done with the files of a folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    server: SocketAddr,
    share: Option<Arc<str>>,
    user: Option<Arc<str>>,
    folder: Arc<str>,
    groups: Vec<Group>,
}

/// A lane that goes from one file straight to the next.
#[derive(Debug)]
struct Worker {
    lane: usize,
    /// Number of its first tasks that no other can do: those up to the first file.
    bound: usize,
    start: i64,
    end: i64,
    works: BTreeSet<Work>,
}

/// Change notifications and other expected waits hold nobody up.
fn counts(exchange: &Exchange) -> bool {
    exchange.group != Group::Waiting && exchange.response.last.is_some()
}

fn started(exchange: &Exchange) -> Option<Timestamp> {
    Some(exchange.request.first?.time)
}

/// Handshakes within the episode.
fn handshakes(nodes: &[(Node, Option<usize>)], paths: &Paths, begin: Timestamp) -> Vec<Node> {
    let mut first: BTreeMap<FlowId, i64> = BTreeMap::new();
    for (node, _) in nodes {
        let known = first.entry(node.flow).or_insert(node.start);
        *known = node.start.min(*known);
    }
    let handshake = |(flow, command): (FlowId, i64)| {
        let path = paths.get(&flow)?;
        let start = (path.opened? - begin).0;
        let trip = path.round_trip?.0;
        let end = start.checked_add(trip).filter(|end| start >= 0 && *end <= command)?;
        Some(Node { trip: Some(trip), ..Node::new(flow, start, start, end, end) })
    };
    first.into_iter().filter_map(handshake).collect()
}

impl Node {
    fn new(flow: FlowId, start: i64, sent: i64, first: i64, end: i64) -> Node {
        Node {
            key: None,
            flow,
            start,
            sent,
            first,
            end,
            trip: None,
            request_bytes: 0,
            response_bytes: 0,
            queued: 0,
            gap: None,
            lane: 0,
            task: 0,
            dependencies: Vec::new(),
            kind: None,
            file: None,
            opens: false,
            closes: false,
            compounded: false,
            root: flow,
            file_worked_on: None,
        }
    }

    fn from_exchange(exchange: &Exchange, paths: &Paths, begin: Timestamp) -> Option<Node> {
        if !counts(exchange) {
            return None;
        }
        let since = |time: Timestamp| (time - begin).0;
        let start = since(started(exchange)?);
        let end = since(exchange.response.last?.time).max(start);
        let sent = exchange.request.last.map_or(start, |stamp| since(stamp.time)).clamp(start, end);
        let first = exchange.response.first.map_or(end, |stamp| since(stamp.time)).clamp(sent, end);
        Some(Node {
            key: key(exchange),
            trip: paths.get(&exchange.flow).and_then(|path| path.round_trip).map(|Nanos(trip)| trip.max(0)),
            request_bytes: exchange.request.bytes,
            response_bytes: exchange.response.bytes,
            kind: Some(exchange.command),
            file: exchange.file_id,
            opens: is_open(exchange) && exchange.file_id.is_some(),
            closes: is_close(exchange),
            compounded: exchange.compounded,
            ..Node::new(exchange.flow, start, sent, first, end)
        })
    }

    /// Time of an event in the capture.
    fn at(&self, event: Event) -> i64 {
        match event {
            Event::Started => self.start,
            Event::Sent => self.sent,
            Event::Ended => self.end,
        }
    }

    fn is_compounded_with(&self, other: &Node) -> bool {
        self.compounded && other.compounded && self.flow == other.flow && self.start == other.start
    }
}
