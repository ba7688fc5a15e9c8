//! Replays the commands of an episode under other conditions.

use super::Scenario;
use super::graph::{CommandNode, Dependency, DependencyEvent, Graph, TO_CLIENT, TO_SERVER};
use super::protocol::{self, AdditionalWork, Bound};
use super::tcp::{Behavior, INITIAL_WINDOW, SEGMENT, Sender, TransferLimits};
use super::{EpisodeExchangeKey, FlowPaths};
use smbscope_model::{FlowId, Nanos};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;

#[derive(Debug, Clone, Copy)]
pub(super) struct Assumptions {
    pub(super) tcp: Behavior,
    pub(super) own: f64,
    /// Factor for the new round trip: queues and timers add to it.
    pub(super) trip: f64,
    /// Factor for the round trip in the capture: commands may have waited longer than the shortest one.
    pub(super) waited: f64,
    /// Time in which a processor of either host wakes up, in ns.
    pub(super) wakes: i64,
    /// Factor of the server's and the client's time in another dialect.
    pub(super) translated: f64,
    /// Quantile of times for the same command that hosts reach under a shorter round trip, because they sleep less.
    pub(super) warm: Option<f64>,
    pub(super) late: f64,
    /// Factor of the time that a message occupies the link.
    pub(super) link: f64,
    /// Cost of another dialect and of signatures.
    pub(super) protocol: Bound,
}

/// Share of a round trip over which senders spread a window: unpaced, and by Linux's `tcp_pacing_*_ratio` (200%, 120%).
const PACING: [f64; 3] = [0.0, 0.5, 0.83];
/// Initial window of servers that are set up for long distances, compared with RFC 6928's.
const WIDE: f64 = 2.0;
/// Window growth per acknowledged byte if slow start ends early on some connections.
const SLOWER_START: f64 = 0.75;
/// Variation of client time, server time and unchanged transfers between repetitions of a job.
const REPEATED: [f64; 2] = [0.9, 1.1];
/// Upper variation for hosts that become busy because they wait less.
const BUSIER: f64 = 1.25;
/// Lower variation for hosts that several threads kept busy, and that become less so because these wait longer.
const IDLER: f64 = 0.8;
/// Delay of hosts that wait for each other, as a share of a round trip: best estimate and upper bound.
const LATE: [f64; 2] = [0.2, 0.5];
/// Ratio of the round trip of commands to the shortest one. Without it, predictions were 2% to 6% short.
const LONGER_TRIP: f64 = 1.05;
/// Upper bound of that ratio on a busy path or host. Not derived: chosen to cover the documents of `wi_docs`.
const LONGEST_TRIP: f64 = 1.2;
/// Time in which a processor that sleeps wakes up, in ns: lower bound, best estimate and upper bound. A handshake may
/// include it, though it is the hosts'.
const WAKES: [i64; 3] = [0, 75_000, 150_000];
/// Commands that took less, in ns, found the processors awake.
const AWAKE: i64 = 1_000_000;
/// Share of that time for a slower server: its client waits only a little longer. Fitted to replays in the lab, whose
/// commands took 20 to 50 µs more than predicted without it.
const DEEPER: f64 = 1.0 / 3.0;
/// Time of server and client for the same command in another dialect: bounds. Their 20% and the 10% of repetitions are
/// independent; with the latter, these make 22%, by their squares.
const TRANSLATED: [f64; 2] = [0.862, 1.113];
/// Bounds for the time of a message on a link: a burst may pass unlimited, and other packets use a part of the link.
const LINK: [f64; 2] = [0.97, 1.05];

impl Assumptions {
    /// Returns the likely assumptions, and others, whose durations bound the prediction. True stands for dependencies
    /// that are tight.
    pub(super) fn varied(graph: &Graph, scenario: &Scenario) -> (Assumptions, [(bool, Assumptions); 5]) {
        let ([none, some, most], [less, more]) = (PACING, REPEATED);
        let is_faster = scenario.server.is_some_and(|factor| factor < 1.0);
        let [least, usual, longest] = WAKES;
        let [quick, slow] = TRANSLATED.map(|factor| if scenario.dialect.is_some() { factor } else { 1.0 });
        let tcp = |pacing, growth| Behavior { initial: INITIAL_WINDOW, is_open: false, pacing, growth };
        let wide = Behavior { initial: WIDE * INITIAL_WINDOW, is_open: true, ..tcp(none, 1.0) };
        let best = Assumptions {
            tcp: tcp(some, 1.0),
            own: 1.0,
            trip: LONGER_TRIP,
            waited: LONGER_TRIP,
            wakes: usual,
            translated: 1.0,
            warm: Some(0.5),
            late: LATE[0],
            link: 1.0,
            protocol: Bound::Best,
        };
        let is_shared =
            graph.lanes.len() > 1 && scenario.is_slower(graph.nodes.iter().filter_map(|node| node.trip).max());
        let short = Assumptions {
            own: if is_shared { IDLER } else { less },
            trip: 1.0,
            // The more of the time is the server's, the more a faster one saves.
            wakes: if is_faster { longest } else { least },
            translated: quick,
            warm: Some(0.1),
            late: LATE[1],
            link: LINK[0],
            protocol: Bound::Low,
            ..best
        };
        let is_much_shorter = |node: &CommandNode| {
            node.trip.zip(scenario.round_trip).is_some_and(|(captured, changed)| changed.0 < captured / 2)
        };
        let long = Assumptions {
            own: if graph.nodes.iter().any(is_much_shorter) { BUSIER } else { more },
            trip: LONGEST_TRIP,
            waited: 1.0,
            wakes: if is_faster { least } else { longest },
            translated: slow,
            warm: None,
            link: LINK[1],
            protocol: Bound::High,
            ..best
        };
        let others = [
            (false, Assumptions { tcp: wide, ..short }),
            (false, Assumptions { tcp: tcp(most, 1.0), ..short }),
            (false, Assumptions { tcp: tcp(none, 1.0), ..long }),
            (false, Assumptions { tcp: tcp(most, SLOWER_START), ..long }),
            (true, long),
        ];
        (best, others)
    }
}

const SAMPLES_LEAST: usize = 8;

#[derive(Debug, Clone, Copy)]
pub(super) struct Conditions<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) cached: &'a HashSet<EpisodeExchangeKey>,
    pub(super) ahead: &'a HashSet<EpisodeExchangeKey>,
    pub(super) assumptions: Assumptions,
}

pub(super) fn duration(graph: &Graph, paths: &FlowPaths, conditions: Conditions<'_>) -> i64 {
    let transfers = match conditions.scenario.replays_transfers() {
        true => {
            let mut found = explained(graph, paths, conditions.assumptions.tcp);
            if let Some(quantile) = conditions.assumptions.warm {
                quicken(graph, conditions, &mut found, quantile);
            }
            found
        }
        false => Vec::new(),
    };
    Simulation::new(graph, paths, conditions, &transfers).run()
}

/// Returns the duration if nothing changes. It differs from the captured one as far as the graph is wrong.
pub(super) fn duration_as_captured(graph: &Graph, paths: &FlowPaths) -> i64 {
    let (scenario, none) = (Scenario::default(), HashSet::new());
    let (assumptions, _) = Assumptions::varied(graph, &scenario);
    duration(graph, paths, Conditions { scenario: &scenario, cached: &none, ahead: &none, assumptions })
}

/// Bytes of the link for each segment: Ethernet, IP and TCP with timestamps.
const HEADERS: f64 = 66.0;

#[derive(Debug, Clone, Copy, Default)]
struct Explained {
    /// ns per byte in addition to the round trips of a window.
    byte: f64,
    trips: f64,
}

/// Fits the transfers of each command: time not explained by slow start and window is attributed to bandwidth.
fn explained(graph: &Graph, paths: &FlowPaths, tcp: Behavior) -> Vec<[Explained; 2]> {
    let mut found = vec![[Explained::default(); 2]; graph.nodes.len()];
    for direction in [TO_SERVER, TO_CLIENT] {
        let mut order: Vec<usize> = (0..graph.nodes.len()).collect();
        order.sort_by_key(|at| (measured(&graph.nodes[*at], direction).first, *at));
        let mut senders: HashMap<FlowId, Sender> = HashMap::new();
        for at in order {
            let node = &graph.nodes[at];
            let Some(trip) = node.trip else { continue };
            let sender = senders.entry(node.flow).or_insert_with(|| sender(graph, node.flow, paths, direction, tcp));
            let MeasuredTransfer { first, last, bytes } = measured(node, direction);
            let took = last - first;
            let (from, to) = sender.clone().transfer(first, bytes, TransferLimits { byte: 0.0, trip });
            let modelled = to - from;
            let trips = if modelled > took { took as f64 / modelled as f64 } else { 1.0 };
            let rest = (took - modelled).max(0) as f64;
            let byte = if bytes as f64 > SEGMENT { rest / (bytes as f64 - SEGMENT) } else { 0.0 };
            found[at][direction] = Explained { byte, trips };
            sender.transfer(first, bytes, TransferLimits { byte, trip: (trip as f64 * trips) as i64 });
            sender.ends_at(last);
        }
    }
    found
}

/// Under a shorter round trip, caps the cost per byte of large transfers at a quantile of the capture's.
fn quicken(graph: &Graph, Conditions { scenario, .. }: Conditions<'_>, found: &mut [[Explained; 2]], quantile: f64) {
    let is_shorter =
        |node: &CommandNode| matches!((scenario.round_trip, node.trip), (Some(new), Some(old)) if new.0 < old);
    for direction in [TO_SERVER, TO_CLIENT] {
        let large: Vec<usize> = (0..graph.nodes.len())
            .filter(|at| measured(&graph.nodes[*at], direction).bytes as f64 >= LARGE && is_shorter(&graph.nodes[*at]))
            .collect();
        if large.len() >= SAMPLES_LEAST {
            let mut costs: Vec<f64> = large.iter().map(|at| found[*at][direction].byte).collect();
            costs.sort_by(f64::total_cmp);
            let cost = costs[(costs.len() as f64 * quantile) as usize];
            large.into_iter().for_each(|at| found[at][direction].byte = found[at][direction].byte.min(cost));
        }
    }
}

const LARGE: f64 = 10.0 * SEGMENT;

struct MeasuredTransfer {
    first: i64,
    last: i64,
    bytes: u64,
}

fn measured(node: &CommandNode, direction: usize) -> MeasuredTransfer {
    match direction {
        TO_SERVER => MeasuredTransfer { first: node.start, last: node.sent, bytes: node.request_bytes },
        _ => MeasuredTransfer { first: node.first, last: node.end, bytes: node.response_bytes },
    }
}

fn sender(graph: &Graph, flow: FlowId, paths: &FlowPaths, direction: usize, tcp: Behavior) -> Sender {
    let filled = paths.get(&flow).and_then(|path| path.filled_windows[direction]);
    Sender::new(tcp, filled, graph.begins_with_new_window(flow, direction))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SimulationEvent {
    Ends,
    Answers,
    Starts,
}

#[derive(Debug, Clone, Default)]
struct Played {
    missing: usize,
    ready: i64,
    waiting: Vec<(usize, DependencyEvent, i64)>,
    flow: Option<FlowId>,
    has_started: bool,
    /// End of the response.
    delivered: Option<i64>,
    /// Commands whose responses are ready and follow this one's, with the time since when.
    followers: Vec<(usize, i64)>,
}

#[derive(Debug, Clone, Copy)]
struct Usual {
    think: i64,
    server: i64,
}

impl Usual {
    const UNKNOWN: Usual = Usual { think: i64::MAX, server: i64::MAX };
}

fn usual(graph: &Graph, conditions: Conditions<'_>) -> Vec<Usual> {
    let mut found = vec![Usual::UNKNOWN; graph.nodes.len()];
    let Some(quantile) = conditions.assumptions.warm.filter(|_| conditions.scenario.round_trip.is_some()) else {
        return found;
    };
    let is_first = |at: usize| graph.tasks[graph.nodes[at].task].nodes.first() == Some(&at);
    let mut kinds: HashMap<_, Vec<usize>> = HashMap::new();
    for at in 0..graph.nodes.len() {
        kinds.entry((graph.nodes[at].kind, is_first(at))).or_default().push(at);
    }
    for kind in kinds.into_values().filter(|kind| kind.len() >= SAMPLES_LEAST) {
        let at_quantile = |mut values: Vec<i64>| {
            values.sort_unstable();
            values.get((values.len() as f64 * quantile) as usize).copied().unwrap_or(i64::MAX)
        };
        let server = at_quantile(kind.iter().map(|at| server_time(&graph.nodes[*at], conditions)).collect());
        let think = at_quantile(kind.iter().filter_map(|at| graph.think(*at)).collect());
        kind.into_iter().for_each(|at| found[at] = Usual { think, server });
    }
    found
}

/// Round trip within the command's service time, which may be longer than the shortest.
fn waited_trip(node: &CommandNode, Conditions { scenario, assumptions, .. }: Conditions<'_>) -> i64 {
    let service = node.first - node.sent;
    let trip = node.trip.unwrap_or(0);
    let longest = if scenario.round_trip.is_some() { assumptions.waited } else { 1.0 };
    let hosts = if scenario.server.is_some() { assumptions.wakes.min(trip / 2) } else { 0 };
    ((trip as f64 * longest) as i64 - hosts).min(service)
}

fn server_time(node: &CommandNode, conditions: Conditions<'_>) -> i64 {
    (node.first - node.sent - waited_trip(node, conditions) - node.queued).max(0)
}

struct Simulation<'a> {
    graph: &'a Graph,
    paths: &'a FlowPaths,
    conditions: Conditions<'a>,
    explained: &'a [[Explained; 2]],
    played: Vec<Played>,
    left: Vec<usize>,
    lane_of: Vec<usize>,
    bound: Vec<VecDeque<usize>>,
    pools: Vec<VecDeque<usize>>,
    usual: Vec<Usual>,
    additional: Vec<AdditionalWork>,
    /// Times at which a connection has signed what it was given, by direction.
    signers: [HashMap<FlowId, i64>; 2],
    senders: [HashMap<FlowId, Sender>; 2],
    /// Times at which the link of a client, if its bandwidth is changed, has sent what it was given.
    links: [HashMap<Option<IpAddr>, i64>; 2],
    steps: BinaryHeap<Reverse<(i64, SimulationEvent, usize)>>,
    last: i64,
}

impl<'a> Simulation<'a> {
    fn new(
        graph: &'a Graph,
        paths: &'a FlowPaths,
        conditions: Conditions<'a>,
        explained: &'a [[Explained; 2]],
    ) -> Simulation<'a> {
        let mut played = vec![Played { ready: i64::MIN, ..Played::default() }; graph.nodes.len()];
        for (at, node) in graph.nodes.iter().enumerate() {
            played[at].missing = node.dependencies.len();
            for Dependency { on, event, lag } in node.dependencies.iter().copied() {
                played[on].waiting.push((at, event, lag));
            }
        }
        for task in &graph.tasks {
            if let Some(first) = task.nodes.first() {
                played[*first].missing += 1;
            }
        }
        Simulation {
            graph,
            paths,
            conditions,
            explained,
            played,
            left: graph.tasks.iter().map(|task| task.nodes.len()).collect(),
            lane_of: vec![0; graph.tasks.len()],
            bound: graph.lanes.iter().map(|lane| lane.bound.iter().copied().collect()).collect(),
            pools: graph.pools.iter().map(|pool| pool.iter().copied().collect()).collect(),
            usual: usual(graph, conditions),
            additional: protocol::of_dialect(graph, conditions.scenario, conditions.assumptions.protocol, |node| {
                server_time(node, conditions)
            }),
            signers: [HashMap::new(), HashMap::new()],
            senders: [HashMap::new(), HashMap::new()],
            links: [HashMap::new(), HashMap::new()],
            steps: BinaryHeap::new(),
            last: 0,
        }
    }

    fn run(mut self) -> i64 {
        for lane in 0..self.graph.lanes.len() {
            self.next_task(lane, None);
        }
        while let Some(Reverse((time, step, at))) = self.steps.pop() {
            match step {
                SimulationEvent::Starts => self.start(at, time),
                SimulationEvent::Answers => self.answer(at, time),
                SimulationEvent::Ends => self.end(at, time),
            }
        }
        self.last
    }

    /// Starts the next task of a lane that became free at this time, or at the start of the episode.
    fn next_task(&mut self, lane: usize, free: Option<i64>) {
        let next = self.bound[lane].pop_front();
        let next = next.or_else(|| self.graph.lanes[lane].pool.and_then(|pool| self.pools[pool].pop_front()));
        let Some(task) = next else { return };
        self.lane_of[task] = lane;
        let of_task = &self.graph.tasks[task];
        for at in of_task.nodes.iter().copied() {
            self.played[at].flow = Some(self.graph.flow(at, lane));
        }
        let Some(first) = of_task.nodes.first().copied() else { return };
        let ready = match (free, of_task.lag) {
            (Some(free), Some(lag)) => free.saturating_add(self.think(first, lag)),
            _ => i64::MIN,
        };
        self.comes(first, ready);
    }

    fn think(&self, at: usize, lag: i64) -> i64 {
        let own = self.own(self.warm(at, lag, self.usual[at].think));
        (own as f64 * self.conditions.assumptions.translated) as i64
    }

    fn warm(&self, at: usize, time: i64, usual: i64) -> i64 {
        let (Some(old), Some(new)) = (self.graph.nodes[at].trip, self.conditions.scenario.round_trip) else {
            return time;
        };
        let most = (old.saturating_sub(new.0).max(0) as f64 * self.conditions.assumptions.late) as i64;
        time - time.saturating_sub(usual).clamp(0, most)
    }

    fn own(&self, time: i64) -> i64 {
        (time as f64 * self.conditions.assumptions.own) as i64
    }

    fn comes(&mut self, at: usize, ready: i64) {
        let played = &mut self.played[at];
        played.missing = played.missing.saturating_sub(1);
        played.ready = played.ready.max(ready);
        if played.missing == 0 {
            // A command without dependencies starts when it did in the capture.
            let time = if played.ready == i64::MIN { self.graph.nodes[at].start } else { played.ready };
            self.steps.push(Reverse((time, SimulationEvent::Starts, at)));
        }
    }

    fn happens(&mut self, at: usize, event: DependencyEvent, time: i64) {
        let waiting = std::mem::take(&mut self.played[at].waiting);
        for (other, on, lag) in waiting.iter().copied() {
            if on == event {
                self.comes(other, time.saturating_add(self.think(other, lag)));
            }
        }
        self.played[at].waiting = waiting;
    }

    fn start(&mut self, at: usize, time: i64) {
        let node = &self.graph.nodes[at];
        self.played[at].has_started = true;
        self.happens(at, DependencyEvent::Started, time);
        if node.key.is_some_and(|key| self.conditions.cached.contains(&key)) {
            self.happens(at, DependencyEvent::Sent, time);
            self.deliver(at, time);
            return;
        }
        let sent = self.transfer(at, TO_SERVER, time, i64::MIN);
        self.happens(at, DependencyEvent::Sent, sent);
        let AdditionalWork { trips, server } = self.additional.get(at).copied().unwrap_or_default();
        let trips = (self.trip(node) as f64 * (1.0 + trips)) as i64;
        let server = self.server(at).saturating_add(self.scaled(server)).saturating_add(self.wakes(node));
        let answers = sent.saturating_add(trips).saturating_add(server);
        self.steps.push(Reverse((answers, SimulationEvent::Answers, at)));
    }

    /// Sends the response. One that followed another on its connection still does.
    fn answer(&mut self, at: usize, time: i64) {
        let is_beside = |on: &usize| self.played[*on].flow == self.played[at].flow && self.played[*on].has_started;
        let behind = self.graph.nodes[at].behind.filter(|(on, _)| is_beside(on));
        let free = match behind.map(|(on, gap)| (on, gap, self.played[on].delivered)) {
            Some((on, _, None)) => return self.played[on].followers.push((at, time)),
            Some((_, gap, Some(delivered))) => delivered.saturating_add(self.scaled(gap)),
            None => i64::MIN,
        };
        let end = self.transfer(at, TO_CLIENT, time, free);
        self.deliver(at, end);
    }

    fn deliver(&mut self, at: usize, end: i64) {
        self.played[at].delivered = Some(end);
        self.steps.push(Reverse((end, SimulationEvent::Ends, at)));
        for (follower, ready) in std::mem::take(&mut self.played[at].followers) {
            self.steps.push(Reverse((ready, SimulationEvent::Answers, follower)));
        }
    }

    fn end(&mut self, at: usize, time: i64) {
        self.last = self.last.max(time);
        self.happens(at, DependencyEvent::Ended, time);
        let task = self.graph.nodes[at].task;
        self.left[task] -= 1;
        if self.left[task] == 0 {
            self.next_task(self.lane_of[task], Some(time));
        }
    }

    /// Returns the time in which processors wake up that were awake in the capture, because the wait was short.
    fn wakes(&self, node: &CommandNode) -> i64 {
        let Conditions { scenario, assumptions, .. } = self.conditions;
        match scenario.bandwidth {
            _ if node.end - node.start >= AWAKE => 0,
            Some(_) => assumptions.wakes,
            None if scenario.server.is_some_and(|factor| factor > 1.0) => (assumptions.wakes as f64 * DEEPER) as i64,
            None => 0,
        }
    }

    fn trip(&self, node: &CommandNode) -> i64 {
        let Conditions { scenario, ahead, assumptions, .. } = self.conditions;
        let waited = waited_trip(node, self.conditions);
        match (scenario.round_trip, node.trip) {
            _ if node.key.is_some_and(|key| ahead.contains(&key)) => 0,
            (Some(new), Some(old)) if new.0 > old => {
                waited.saturating_add(((new.0 - old) as f64 * assumptions.trip) as i64)
            }
            (Some(new), Some(old)) => (waited as f64 * (new.0 as f64 / old.max(1) as f64)) as i64,
            _ => waited,
        }
    }

    fn server(&self, at: usize) -> i64 {
        let time = server_time(&self.graph.nodes[at], self.conditions);
        let group = self.graph.nodes[at].group;
        let slower = self.conditions.scenario.slower.iter().filter(|(slower, _)| Some(*slower) == group);
        let additional: i64 = slower.map(|(_, Nanos(time))| *time).fold(0, i64::saturating_add);
        self.scaled(self.warm(at, time, self.usual[at].server)).saturating_add(additional)
    }

    fn scaled(&self, time: i64) -> i64 {
        let factor = self.conditions.scenario.server.unwrap_or(1.0) * self.conditions.assumptions.translated;
        self.own((time as f64 * factor) as i64)
    }

    /// Returns when a message is signed and checked. Both ends do so one message after the other, in half the time each.
    fn signed(&mut self, at: usize, direction: usize, ready: i64) -> i64 {
        let node = &self.graph.nodes[at];
        if !self.conditions.scenario.signing || node.is_protected {
            return ready;
        }
        let flow = self.played[at].flow.unwrap_or(node.flow);
        let dialect = self.conditions.scenario.dialect.or(node.dialect());
        let algorithm = self.paths.get(&flow).and_then(|path| path.signing_algorithm);
        let per_byte = protocol::signing_time(dialect, algorithm, self.conditions.assumptions.protocol);
        let took = (measured(node, direction).bytes as f64 * per_byte) as i64;
        let free = self.signers[direction].entry(flow).or_insert(i64::MIN);
        let begin = ready.max(*free);
        *free = begin.saturating_add(took / 2);
        begin.saturating_add(took)
    }

    /// Returns when a message has come that was ready at this time, but waited until `free`.
    fn transfer(&mut self, at: usize, direction: usize, ready: i64, free: i64) -> i64 {
        let ready = self.signed(at, direction, ready).max(free);
        let node = &self.graph.nodes[at];
        let MeasuredTransfer { first, last, bytes } = measured(node, direction);
        let flow = self.played[at].flow.unwrap_or(node.flow);
        let (paths, tcp) = (self.paths, self.conditions.assumptions.tcp);
        let as_captured = self.own(last - first);
        let sender =
            self.senders[direction].entry(flow).or_insert_with(|| sender(self.graph, flow, paths, direction, tcp));
        let small = bytes as f64 <= SEGMENT;
        let scenario = self.conditions.scenario;
        // ns per byte of the link, headers included.
        let link = scenario.bandwidth.map(|bits| 8e9 / bits as f64);
        let begin = ready.max(sender.free());
        let end = match self.explained.get(at) {
            Some(explained) if node.key.is_some() && !small => {
                let Explained { byte, trips } = explained[direction];
                let trip = match scenario.round_trip {
                    // The kernel acknowledges: a busy host delays that less than commands.
                    Some(new) => new.0 as f64 * self.conditions.assumptions.trip.min(LONGER_TRIP),
                    None => node.trip.unwrap_or(0) as f64,
                };
                let byte = byte
                    .max(link.map_or(0.0, |link| link * (1.0 + HEADERS / SEGMENT) * self.conditions.assumptions.link));
                sender.transfer(ready, bytes, TransferLimits { byte, trip: (trip * trips) as i64 }).1
            }
            _ => begin.saturating_add(as_captured),
        };
        let end = match link {
            Some(link) if node.key.is_some() => {
                let client = paths.get(&flow).and_then(|path| path.client);
                let link = link * self.conditions.assumptions.link;
                let segments = (bytes as f64 / SEGMENT).ceil();
                let mut occupies = |direction: usize, wire: f64| {
                    let free = self.links[direction].entry(client).or_insert(i64::MIN);
                    *free = begin.max(*free).saturating_add((wire * link) as i64);
                    *free
                };
                let carried = occupies(direction, bytes as f64 + segments * HEADERS);
                // Every other segment is acknowledged; the last acknowledgment comes with the next message.
                occupies(1 - direction, (segments / 2.0).floor() * HEADERS);
                end.max(carried)
            }
            _ => end,
        };
        sender.ends_at(end);
        end
    }
}
