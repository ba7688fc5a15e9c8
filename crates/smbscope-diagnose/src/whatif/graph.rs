//! Dependency graph of the commands of an episode.
//!
//! A *lane* is a thread of the client: its commands follow each other, or it pipelines them on one file (`lanes`). A
//! *task* is the part of a lane between two points at which it holds no file open. Lanes that take their files from one
//! list form a *pool* (`pools`): whichever worker is free first takes the next file. `waits` finds the dependencies.

use super::tcp::INITIAL_WINDOW;
use super::{ConnectionThreads, EpisodeExchangeKey, FlowPaths, key};
use crate::classify::{is_close, is_open};
use smbscope_model::{
    Command, CommandGroup, Dialect, Exchange, FileId, FlowId, Nanos, Protocol, Subcommand, Timestamp,
};
use smbscope_wire::names::Trans2;
use smbscope_wire::smb1::Smb1Command;
use smbscope_wire::smb2::Smb2Command;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Directions of a transfer, as indices.
pub(super) const TO_SERVER: usize = 0;
pub(super) const TO_CLIENT: usize = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DependencyEvent {
    Started,
    Sent,
    Ended,
}

/// A command starts no earlier than `lag` ns after an event of command `on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dependency {
    pub(super) on: usize,
    pub(super) event: DependencyEvent,
    pub(super) lag: i64,
}

/// Counterpart of a command in another dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Elsewhere {
    #[default]
    Alike,
    /// Names a path, where SMB2 needs an open file.
    ByPath,
    /// Begins a listing by its path.
    ListsPath,
    ConnectsTree,
}

impl Elsewhere {
    pub(super) fn from_exchange(exchange: &Exchange) -> Elsewhere {
        // One that fails ends with the open.
        let succeeded = exchange.status.is_some_and(|status| !status.is_error());
        let is_by_path = exchange.path.is_some() && exchange.file_id.is_none() && !is_open(exchange);
        match (exchange.command, exchange.subcommand) {
            (Command::Smb1(Smb1Command::TREE_CONNECT_ANDX | Smb1Command::TREE_CONNECT), _)
            | (Command::Smb2(Smb2Command::TREE_CONNECT), _) => Elsewhere::ConnectsTree,
            (_, Some(Subcommand::Trans2(Trans2::FIND_FIRST2))) if succeeded => Elsewhere::ListsPath,
            (_, Some(Subcommand::Trans2(Trans2::FIND_NEXT2))) => Elsewhere::Alike,
            (Command::Smb1(_), _) if is_by_path && succeeded => Elsewhere::ByPath,
            _ => Elsewhere::Alike,
        }
    }
}

/// Command, or handshake of a connection. Times are in ns, relative to the first request.
#[derive(Debug, Clone)]
pub(super) struct CommandNode {
    /// Absent for a handshake.
    pub(super) key: Option<EpisodeExchangeKey>,
    pub(super) flow: FlowId,
    pub(super) start: i64,
    pub(super) sent: i64,
    pub(super) first: i64,
    pub(super) end: i64,
    pub(super) trip: Option<i64>,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
    pub(super) queued: i64,
    /// Previous response on the connection, if it delayed this one, and the time since its end.
    pub(super) behind: Option<(usize, i64)>,
    pub(super) lane: usize,
    pub(super) task: usize,
    pub(super) dependencies: Vec<Dependency>,
    pub(super) kind: Option<Command>,
    pub(super) group: Option<CommandGroup>,
    pub(super) file: Option<FileId>,
    pub(super) opens: bool,
    pub(super) closes: bool,
    pub(super) compounded: bool,
    /// Representative of the connections that one pool of the client shares.
    pub(super) root: FlowId,
    pub(super) file_worked_on: Option<Item>,
    pub(super) negotiated: Option<Dialect>,
    pub(super) elsewhere: Elsewhere,
    /// Signed or encrypted.
    pub(super) is_protected: bool,
}

pub(super) type Item = (Option<Arc<str>>, Option<Arc<str>>, Arc<str>);

#[derive(Debug, Clone, Default)]
pub(super) struct Task {
    pub(super) nodes: Vec<usize>,
    /// Time since the lane's last response. Absent for the first task of a lane.
    pub(super) lag: Option<i64>,
    pub(super) lane: usize,
    pub(super) start: i64,
    pub(super) end: i64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ClientLane {
    pub(super) flows: Vec<FlowId>,
    pub(super) bound: Vec<usize>,
    pub(super) pool: Option<usize>,
    /// Alternates between otherwise unrelated connections.
    pub(super) is_joined: bool,
    pub(super) nodes: Vec<usize>,
    pub(super) tasks: Vec<usize>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<CommandNode>,
    pub(super) tasks: Vec<Task>,
    pub(super) lanes: Vec<ClientLane>,
    pub(super) pools: Vec<Vec<usize>>,
    /// Connections whose payload consists almost entirely of these commands, by direction.
    complete: [HashSet<FlowId>; 2],
    threads: HashMap<FlowId, ConnectionThreads>,
}

/// A command's place among the threads of its client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ThreadPlace {
    pub thread: usize,
    /// Pool and number of the task in it, if any free thread of the pool could have taken the task.
    pub pooled: Option<(usize, usize)>,
    /// Commands of other threads, as indices, that ended before it could begin.
    pub after: Vec<usize>,
}

/// Divides the commands of a client into threads: within a thread, commands follow each other, overlap only on one
/// file, or belong to one compound. Threads of a pool take their tasks from one list. `None` stands for a command that no thread waited for.
pub fn threads(exchanges: &[Exchange]) -> Vec<Option<ThreadPlace>> {
    let mut places = vec![None; exchanges.len()];
    let Some((mut graph, origins)) = Graph::with_origins(exchanges, &FlowPaths::new()) else { return places };
    graph.find_dependencies(false);
    let mut numbers: HashMap<usize, usize> = HashMap::new();
    let mut pooled: HashMap<usize, (usize, usize)> = HashMap::new();
    for (pool, tasks) in graph.pools.iter().enumerate() {
        pooled.extend(tasks.iter().enumerate().map(|(number, task)| (*task, (pool, number))));
    }
    for (node, origin) in graph.nodes.iter().zip(&origins) {
        let next = numbers.len();
        let thread = *numbers.entry(node.lane).or_insert(next);
        let of_others = node.dependencies.iter().filter(|dependency| graph.nodes[dependency.on].lane != node.lane);
        let ended = of_others.filter_map(|dependency| match dependency.event {
            DependencyEvent::Ended => Some(dependency.on),
            // It waited for the same as the other.
            DependencyEvent::Started => graph.ended_before(dependency.on),
            DependencyEvent::Sent => None,
        });
        let after = ended.filter_map(|on| origins[on]).collect();
        if let Some(origin) = origin {
            places[*origin] = Some(ThreadPlace { thread, pooled: pooled.get(&node.task).copied(), after });
        }
    }
    places
}

impl Graph {
    pub(super) fn new(exchanges: &[Exchange], paths: &FlowPaths) -> Option<Graph> {
        Graph::with_origins(exchanges, paths).map(|(graph, _)| graph)
    }

    /// Also returns the index of each node's exchange. A handshake has none.
    fn with_origins(exchanges: &[Exchange], paths: &FlowPaths) -> Option<(Graph, Vec<Option<usize>>)> {
        let begin = exchanges.iter().filter(|exchange| counts(exchange)).filter_map(started).min()?;
        let mut of_nodes: Vec<(CommandNode, Option<usize>)> = Vec::new();
        for (at, exchange) in exchanges.iter().enumerate() {
            of_nodes.extend(CommandNode::from_exchange(exchange, paths, begin).map(|node| (node, Some(at))));
        }
        of_nodes.extend(handshakes(&of_nodes, paths, begin).into_iter().map(|node| (node, None)));
        of_nodes.sort_by_key(|(node, _)| (node.start, node.end, node.key));
        let (nodes, origins): (Vec<CommandNode>, Vec<Option<usize>>) = of_nodes.into_iter().unzip();
        let mut graph = Graph { nodes, ..Graph::default() };
        graph.shortest_service_bounds_trip();
        graph.find_queues();
        graph.find_files(exchanges, &origins);
        graph.threads = paths.iter().map(|(flow, path)| (*flow, path.threads)).collect();
        graph.find_roots(exchanges, &origins);
        graph.find_lanes();
        graph.join_alternating_lanes();
        graph.find_tasks();
        graph.find_pools(exchanges, &origins);
        graph.find_complete_connections(paths);
        graph.dissolve_refuted_pools(paths);
        Some((graph, origins))
    }

    /// Returns the captured duration, from the first request to the last response.
    pub(super) fn captured(&self) -> Nanos {
        Nanos(self.nodes.iter().map(|node| node.end).max().unwrap_or(0))
    }

    /// Returns true if the connection's window was still a new one before the first command.
    pub(super) fn begins_with_new_window(&self, flow: FlowId, direction: usize) -> bool {
        self.complete[direction].contains(&flow)
    }

    pub(super) fn threads_of(&self, flow: FlowId) -> ConnectionThreads {
        self.threads.get(&flow).copied().unwrap_or_default()
    }

    fn find_complete_connections(&mut self, paths: &FlowPaths) {
        let mut known: HashMap<FlowId, [u64; 2]> = HashMap::new();
        for node in &self.nodes {
            let [requests, responses] = known.entry(node.flow).or_default();
            *requests += node.request_bytes;
            *responses += node.response_bytes;
        }
        for (flow, known) in known {
            let Some(path) = paths.get(&flow) else { continue };
            for direction in [TO_SERVER, TO_CLIENT] {
                let missing = path.bytes[direction].map(|all| all.saturating_sub(known[direction]));
                if missing.is_some_and(|bytes| bytes as f64 <= 2.0 * INITIAL_WINDOW) {
                    self.complete[direction].insert(flow);
                }
            }
        }
    }

    /// Returns the command of the same lane that ended last before this one began.
    fn ended_before(&self, at: usize) -> Option<usize> {
        let of_lane = self.lanes[self.nodes[at].lane].nodes.iter().copied();
        let ended = of_lane.filter(|before| *before != at && self.nodes[*before].end <= self.nodes[at].start);
        ended.max_by_key(|before| (self.nodes[*before].end, *before))
    }

    /// Returns the connection on which a lane sends a command. The command may come from another lane's task.
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

    /// Returns the client's own time before a command. `None` if it is unknown what preceded it.
    pub(super) fn think(&self, at: usize) -> Option<i64> {
        let task = &self.tasks[self.nodes[at].task];
        if task.nodes.first() == Some(&at) {
            return task.lag;
        }
        self.nodes[at].dependencies.iter().map(|dependency| dependency.lag).min()
    }

    /// Caps the round trip of each connection at its shortest service time, because the handshake may have been slow.
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

    fn find_queues(&mut self) {
        let mut by_flow: HashMap<FlowId, Vec<usize>> = HashMap::new();
        for at in 0..self.nodes.len() {
            by_flow.entry(self.nodes[at].flow).or_default().push(at);
        }
        for mut of_flow in by_flow.into_values() {
            of_flow.sort_by_key(|at| (self.nodes[*at].first, self.nodes[*at].end, *at));
            // Periods of uninterrupted delivery: start, end, and busy time accumulated by the end.
            let mut busy: Vec<(i64, i64, i64)> = Vec::new();
            // The response that ended last, and its end. It may be a single packet and take no time.
            let mut delivered: Option<(usize, i64)> = None;
            for at in of_flow {
                let node = &self.nodes[at];
                let due = node.sent.saturating_add(node.trip.unwrap_or(0));
                let before = |time: i64| {
                    let past = busy.partition_point(|(from, _, _)| *from < time);
                    let (from, to, total) = past.checked_sub(1).map_or((0, 0, 0), |last| busy[last]);
                    total - (to - from) + (time.min(to) - from).max(0)
                };
                let queued = if due < node.first { before(node.first) - before(due) } else { 0 };
                let behind = delivered.filter(|(_, end)| due < *end && *end <= node.first);
                let behind = behind.map(|(on, end)| (on, node.first - end));
                delivered = delivered.filter(|(_, end)| *end > node.end).or(Some((at, node.end)));
                let (first, end) = (node.first, node.end);
                let (_, to, total) = busy.last().copied().unwrap_or((0, i64::MIN, 0));
                let from = first.max(to);
                if end > from {
                    busy.push((from, end, total + (end - from)));
                }
                let node = &mut self.nodes[at];
                (node.queued, node.behind) = (queued, behind);
            }
        }
    }
}

fn counts(exchange: &Exchange) -> bool {
    exchange.group != CommandGroup::Waiting && exchange.response.last.is_some()
}

fn started(exchange: &Exchange) -> Option<Timestamp> {
    Some(exchange.request.first?.time)
}

fn handshakes(nodes: &[(CommandNode, Option<usize>)], paths: &FlowPaths, begin: Timestamp) -> Vec<CommandNode> {
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
        Some(CommandNode { trip: Some(trip), ..CommandNode::new(flow, start, start, end, end) })
    };
    first.into_iter().filter_map(handshake).collect()
}

impl CommandNode {
    fn new(flow: FlowId, start: i64, sent: i64, first: i64, end: i64) -> CommandNode {
        CommandNode {
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
            behind: None,
            lane: 0,
            task: 0,
            dependencies: Vec::new(),
            kind: None,
            group: None,
            file: None,
            opens: false,
            closes: false,
            compounded: false,
            root: flow,
            file_worked_on: None,
            negotiated: None,
            elsewhere: Elsewhere::default(),
            is_protected: false,
        }
    }

    fn from_exchange(exchange: &Exchange, paths: &FlowPaths, begin: Timestamp) -> Option<CommandNode> {
        if !counts(exchange) {
            return None;
        }
        let since = |time: Timestamp| (time - begin).0;
        let start = since(started(exchange)?);
        let end = since(exchange.response.last?.time).max(start);
        let sent = exchange.request.last.map_or(start, |stamp| since(stamp.time)).clamp(start, end);
        let first = exchange.response.first.map_or(end, |stamp| since(stamp.time)).clamp(sent, end);
        Some(CommandNode {
            key: key(exchange),
            trip: paths.get(&exchange.flow).and_then(|path| path.round_trip).map(|Nanos(trip)| trip.max(0)),
            request_bytes: exchange.request.bytes,
            response_bytes: exchange.response.bytes,
            kind: Some(exchange.command),
            group: Some(exchange.group),
            file: exchange.file_id,
            opens: is_open(exchange) && exchange.file_id.is_some(),
            closes: is_close(exchange),
            compounded: exchange.compounded,
            negotiated: exchange.dialect,
            elsewhere: Elsewhere::from_exchange(exchange),
            is_protected: exchange.signed || exchange.encrypted,
            ..CommandNode::new(exchange.flow, start, sent, first, end)
        })
    }

    pub(super) fn at(&self, event: DependencyEvent) -> i64 {
        match event {
            DependencyEvent::Started => self.start,
            DependencyEvent::Sent => self.sent,
            DependencyEvent::Ended => self.end,
        }
    }

    /// Returns the dialect. If its negotiation is unknown, SMB1 is `NT LM 0.12`.
    pub(super) fn dialect(&self) -> Option<Dialect> {
        let protocol = self.kind.map(Command::protocol);
        self.negotiated.or(protocol.filter(|protocol| *protocol == Protocol::Smb1).map(|_| Dialect::NtLm012))
    }

    pub(super) fn is_compounded_with(&self, other: &CommandNode) -> bool {
        self.compounded && other.compounded && self.flow == other.flow && self.start == other.start
    }
}
