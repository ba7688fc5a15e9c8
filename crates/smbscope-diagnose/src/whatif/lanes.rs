//! Division of an episode into the client's threads (lanes), their tasks, and pools that take files from one list.

use super::graph::{ClientLane, Graph, Item, Task};
use super::{ConnectionThreads, FlowPaths, simulate};
use smbscope_model::{CommandGroup, Exchange, FileId, FlowId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

/// Threads per client in a prediction.
const LANES_MAX: usize = 64;
/// Number of files that must move between connections before they are treated as one pool.
const HANDED_LEAST: usize = 3;
/// Connections that alternate at least this often without overlapping belong to one thread.
const TURNS_LEAST: u32 = 8;
/// Share of the captured duration that a replay with pools may take longer. Workers with one list are hardly slower than
/// those that keep to their own files, so a longer replay refutes the list.
const POOL_ERROR_MOST: f64 = 0.05;

impl Graph {
    pub(super) fn find_files(&mut self, exchanges: &[Exchange], origins: &[Option<usize>]) {
        let of_node = |at: usize| origins[at].map(|origin: usize| &exchanges[origin]);
        let mut worked_on: HashSet<Item> = HashSet::new();
        let item = |exchange: &Exchange| Some((exchange.user.clone(), exchange.share.clone(), exchange.path.clone()?));
        for exchange in (0..self.nodes.len()).filter_map(of_node) {
            if matches!(exchange.group, CommandGroup::Read | CommandGroup::Write) {
                worked_on.extend(item(exchange));
            }
        }
        for at in 0..self.nodes.len() {
            let found = of_node(at).and_then(item);
            self.nodes[at].file_worked_on = found.filter(|item| self.nodes[at].opens && worked_on.contains(item));
        }
    }

    /// Joins connections of one session, and connections that share files. A connection used only after another one
    /// ended belongs to a later step of the job, even if it uses the same files.
    pub(super) fn find_roots(&mut self, exchanges: &[Exchange], origins: &[Option<usize>]) {
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
        let spans = self.spans();
        let overlap = |one: FlowId, other: FlowId| {
            spans[&one].start <= spans[&other].end && spans[&other].start <= spans[&one].end
        };
        let mut users: HashMap<&Item, (FlowId, i64)> = HashMap::new();
        let mut handed = Vec::new();
        for node in &self.nodes {
            let Some(item) = &node.file_worked_on else { continue };
            if let Some((flow, end)) = users.insert(item, (node.flow, node.end))
                && flow != node.flow
                && end <= node.start
                && overlap(flow, node.flow)
            {
                handed.push((flow, node.flow));
            }
        }
        if handed.len() >= HANDED_LEAST {
            pairs.extend(handed);
        }
        for (one, other) in pairs {
            if [one, other].into_iter().any(|flow| self.threads_of(flow) != ConnectionThreads::Unknown) {
                continue;
            }
            let (one, other) = (roots[&one], roots[&other]);
            if one != other {
                roots.values_mut().filter(|root| **root == other).for_each(|root| *root = one);
            }
        }
        for node in &mut self.nodes {
            node.root = roots[&node.flow];
        }
    }

    fn spans(&self) -> HashMap<FlowId, Range<i64>> {
        let mut found: HashMap<FlowId, Range<i64>> = HashMap::new();
        for node in &self.nodes {
            let span = found.entry(node.flow).or_insert(node.start..node.end);
            *span = span.start.min(node.start)..span.end.max(node.end);
        }
        found
    }

    /// A command joins the lane that uses its file, or else the lane whose last response came just before it.
    pub(super) fn find_lanes(&mut self) {
        let mut of_file: HashMap<(FlowId, FileId), usize> = HashMap::new();
        let mut of_root: HashMap<FlowId, Vec<usize>> = HashMap::new();
        // By lane: end of the last response, file of the outstanding requests, and current item.
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
            // A thread may open a connection to continue with its file.
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
                // From its first file on, any free lane may use the connection.
                set_up.insert(node.flow, usize::MAX);
            }
            if self.lanes.len() < state.len() {
                self.lanes.push(ClientLane::default());
            }
            self.lanes[lane].nodes.push(at);
            self.nodes[at].lane = lane;
            before = self.nodes[at].key.map(|_| at);
        }
    }

    fn first_items(&self) -> HashMap<FlowId, Item> {
        let mut found = HashMap::new();
        for node in &self.nodes {
            if let Some(item) = &node.file_worked_on {
                found.entry(node.flow).or_insert_with(|| item.clone());
            }
        }
        found
    }

    /// Joins connections that alternate and never overlap, as in a copy from one server to another.
    pub(super) fn join_alternating_lanes(&mut self) {
        let mut lanes_of: BTreeMap<FlowId, BTreeSet<usize>> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| self.threads_of(node.flow) == ConnectionThreads::Unknown) {
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

    pub(super) fn find_tasks(&mut self) {
        for lane in 0..self.lanes.len() {
            let order = std::mem::take(&mut self.lanes[lane].nodes);
            let simple = self.files_without_others(&order);
            let mut open: HashSet<(FlowId, FileId)> = HashSet::new();
            let mut end = i64::MIN;
            // If connections share files, everything done with one file is one task.
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
}

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
            // Start of the previous worker, and the longest interval between two of the pool.
            let (mut before, mut interval) = (None, 0i64);
            for (position, worker) in workers.iter().enumerate() {
                let next = workers.get(position + 1);
                let since = before.replace(worker.start).map_or(0, |before| worker.start - before);
                // One that comes when the others have done everything belongs to the pool if it follows in their rhythm.
                let is_late = worker.has_one_file && interval > 0 && since <= interval.saturating_mul(2);
                if worker.start < until || is_late {
                    interval = interval.max(since);
                } else {
                    // Without an overlap there is no pool.
                    until = worker.end;
                    interval = 0;
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

    /// Dissolves pools that were found from the commands if a replay with them takes longer than the capture.
    pub(super) fn dissolve_refuted_pools(&mut self, paths: &FlowPaths) {
        let is_known = self.nodes.iter().any(|node| self.threads_of(node.flow) != ConnectionThreads::Unknown);
        if self.pools.is_empty() || is_known {
            return;
        }
        let mut replayed = self.clone();
        replayed.find_dependencies(false);
        let most = self.captured().0 as f64 * (1.0 + POOL_ERROR_MOST);
        if simulate::duration_as_captured(&replayed, paths) as f64 > most {
            self.pools.clear();
            for lane in &mut self.lanes {
                lane.pool = None;
                lane.bound.clone_from(&lane.tasks);
            }
        }
    }

    /// Returns `None` if the lane works on no file, or if its pauses are longer than its tasks (lower medians), unless
    /// its threads are known. Tasks after its last file don't count: they may belong to the next step of the job.
    fn worker(&self, lane: usize, exchanges: &[Exchange], origins: &[Option<usize>]) -> Option<PoolWorker> {
        let of_lane = &self.lanes[lane];
        let threads = of_lane.flows.first().map(|flow| self.threads_of(*flow)).unwrap_or_default();
        if of_lane.is_joined || threads == ConnectionThreads::One {
            return None;
        }
        let tasks: Vec<&Task> = of_lane.tasks.iter().map(|task| &self.tasks[*task]).collect();
        let works: Vec<Option<FolderWork>> = tasks.iter().map(|task| self.work(task, exchanges, origins)).collect();
        let first = works.iter().position(Option::is_some)?;
        let last = works.iter().rposition(Option::is_some)?;
        let goes_on = || {
            let lags = tasks[first + 1..=last].iter().filter_map(|task| task.lag);
            let durations = tasks[first..=last].iter().map(|task| task.end - task.start);
            lower_median(lags) <= lower_median(durations)
        };
        let is_worker = threads == ConnectionThreads::OneOfPool || goes_on();
        is_worker.then(|| PoolWorker {
            lane,
            bound: first + 1,
            has_one_file: first == last,
            start: tasks[first].start,
            end: tasks[last].end,
            works: works.into_iter().flatten().collect(),
        })
    }

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

fn lower_median(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FolderWork {
    server: SocketAddr,
    share: Option<Arc<str>>,
    user: Option<Arc<str>>,
    folder: Arc<str>,
    groups: Vec<CommandGroup>,
}

#[derive(Debug)]
struct PoolWorker {
    lane: usize,
    /// Number of initial tasks, up to and including the first file, that no other lane can do.
    bound: usize,
    /// True if its first file is its last one, too.
    has_one_file: bool,
    start: i64,
    end: i64,
    works: BTreeSet<FolderWork>,
}
