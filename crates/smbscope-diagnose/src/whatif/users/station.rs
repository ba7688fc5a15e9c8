//! Queue of a server, as a capture shows it: the server's time without other commands, and the part of it that grows
//! with them.

use super::captured::UserCommand;
use crate::whatif::PredictionError;
use smbscope_model::CommandGroup;
use std::collections::BTreeMap;

/// Blocks of commands whose differences give the uncertainty (delete-a-block jackknife: Efron, The Annals of Statistics
/// 9(3), 1981).
const BLOCKS: usize = 20;
/// Quantile of Student's distribution with 19 degrees of freedom for 95%.
const STUDENT: f64 = 2.093;
/// Undisturbed commands that a mean needs.
const UNDISTURBED_MIN: usize = 20;
/// Commands that must have met others at the server before their effect is estimated.
const OVERLAPPING_MIN: usize = 50;
/// Share of the commands that must have met as many others for the server to have worked on them in parallel.
const REACHED: f64 = 0.05;

/// A command as it reaches the server. Times in ns.
#[derive(Debug, Clone, Copy)]
struct ServerArrival {
    group: CommandGroup,
    block: usize,
    /// Commands that the server had then.
    others: usize,
    server_time: f64,
    /// Time until the next command arrives.
    until_next: f64,
}

/// Estimate and its 95% interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StationFigure {
    pub(super) low: f64,
    pub(super) best: f64,
    pub(super) high: f64,
}

/// The server as one queueing station and a delay. Times in ns per command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerStation {
    pub(super) server_time: f64,
    /// Server time of a command that the server has alone.
    pub(super) unloaded: StationFigure,
    /// Part of the unloaded time in which the server handles one command at a time. Use `best` only if the queue is
    /// known.
    pub(super) queue: StationFigure,
    pub(super) is_queue_known: bool,
    /// Commands that met others at the server.
    pub(super) overlapping: usize,
    /// Most commands at the server at one time.
    pub(super) outstanding_max: usize,
}

impl ServerStation {
    /// Estimates the station from commands in the order of their arrival. `time` is the captured time in ns.
    pub(super) fn new(commands: &[UserCommand], time: f64) -> Result<ServerStation, PredictionError> {
        let arrivals = arrivals(commands);
        let undisturbed = UndisturbedTimes::new(&arrivals);
        let whole = QueueEstimate::new(&arrivals, &undisturbed, None).ok_or(PredictionError::NeverAlone)?;
        let without = (0..BLOCKS).filter_map(|block| QueueEstimate::new(&arrivals, &undisturbed, Some(block)));
        let without: Vec<QueueEstimate> = without.collect();
        let figure = |of: fn(&QueueEstimate) -> f64| jackknife(of(&whole), without.iter().map(of));
        let (unloaded, waited) = (figure(|part| part.unloaded), figure(|part| part.waited));
        let (random, regular) = (figure(|part| part.random), figure(|part| part.regular));
        let overlapping = arrivals.iter().filter(|arrival| arrival.others > 0).count();
        // No more than the whole unloaded time can queue, and the server has had the captured throughput.
        let most = unloaded.high.min(time / commands.len() as f64);
        let (low, high) = if overlapping < OVERLAPPING_MIN {
            (0.0, most)
        } else {
            (random.low, regular.high.max(unloaded.best / reached(&arrivals) as f64).min(most))
        };
        let low = low.clamp(0.0, high);
        Ok(ServerStation {
            server_time: whole.server_time,
            unloaded,
            queue: StationFigure { low, best: (0.5 * (random.best + regular.best)).clamp(low, high), high },
            is_queue_known: overlapping >= OVERLAPPING_MIN && waited.low > 0.0,
            overlapping,
            outstanding_max: arrivals.iter().map(|arrival| arrival.others + 1).max().unwrap_or(0),
        })
    }
}

fn arrivals(commands: &[UserCommand]) -> Vec<ServerArrival> {
    let mut left: Vec<i64> = commands.iter().map(|command| command.left).collect();
    left.sort_unstable();
    let mut gone = 0;
    let arrival = |(at, command): (usize, &UserCommand)| {
        while left.get(gone).is_some_and(|left| *left <= command.arrived) {
            gone += 1;
        }
        let next = commands.get(at + 1).map_or(i64::MAX, |next| next.arrived);
        ServerArrival {
            group: command.group,
            block: at * BLOCKS / commands.len(),
            others: at.saturating_sub(gone),
            server_time: (command.left - command.arrived) as f64,
            until_next: next.saturating_sub(command.arrived) as f64,
        }
    };
    commands.iter().enumerate().map(arrival).collect()
}

/// Returns the number of commands that the server worked on at the same time, at least, for a noticeable part of them.
fn reached(arrivals: &[ServerArrival]) -> usize {
    let mut others: Vec<usize> = arrivals.iter().map(|arrival| arrival.others).collect();
    others.sort_unstable();
    others[((1.0 - REACHED) * (others.len() - 1) as f64) as usize] + 1
}

/// Server times of commands that arrived while the server had no other, ascending, by group. They are censored when the
/// next command arrives, which may slow them down.
struct UndisturbedTimes(BTreeMap<CommandGroup, Vec<CensoredTime>>);

#[derive(Debug, Clone, Copy)]
struct CensoredTime {
    time: f64,
    is_whole: bool,
    block: usize,
}

impl UndisturbedTimes {
    fn new(arrivals: &[ServerArrival]) -> UndisturbedTimes {
        let mut by_group: BTreeMap<CommandGroup, Vec<CensoredTime>> = BTreeMap::new();
        for arrival in arrivals.iter().filter(|arrival| arrival.others == 0) {
            let is_whole = arrival.server_time <= arrival.until_next;
            let time = arrival.server_time.min(arrival.until_next);
            by_group.entry(arrival.group).or_default().push(CensoredTime { time, is_whole, block: arrival.block });
        }
        for times in by_group.values_mut() {
            times.sort_by(|a, b| a.time.total_cmp(&b.time).then(b.is_whole.cmp(&a.is_whole)));
        }
        UndisturbedTimes(by_group)
    }

    fn mean(&self, group: CommandGroup, without: Option<usize>) -> Option<f64> {
        let times = self.0.get(&group)?.iter().filter(|time| Some(time.block) != without).copied();
        mean_of_censored(&times.collect::<Vec<_>>())
    }
}

/// Returns the mean of ascending times, some of them only known to be longer (Kaplan and Meier, Journal of the
/// American Statistical Association 53, 1958). None with fewer than 20 whole ones.
fn mean_of_censored(times: &[CensoredTime]) -> Option<f64> {
    if times.iter().filter(|time| time.is_whole).count() < UNDISTURBED_MIN {
        return None;
    }
    let (mut surviving, mut mean, mut last) = (1.0, 0.0, 0.0);
    for (at, time) in times.iter().enumerate() {
        mean += surviving * (time.time - last);
        last = time.time;
        if time.is_whole {
            surviving *= 1.0 - 1.0 / (times.len() - at) as f64;
        }
    }
    Some(mean)
}

/// Means of a part of the commands, and what they say about the queue. Times in ns.
#[derive(Debug, Clone, Copy)]
struct QueueEstimate {
    server_time: f64,
    unloaded: f64,
    /// Time that commands spend at the server because of others.
    waited: f64,
    /// Queueing part of the unloaded time if service times are exponential, or commands share a processor.
    random: f64,
    /// Queueing part if service times are constant: on average, half of the command in service is done.
    regular: f64,
}

impl QueueEstimate {
    /// Returns None if too few commands of the most frequent groups had the server alone.
    fn new(
        arrivals: &[ServerArrival],
        undisturbed: &UndisturbedTimes,
        without: Option<usize>,
    ) -> Option<QueueEstimate> {
        /// Share of the commands that must be in groups with a known mean.
        const COVERED: f64 = 0.9;
        let mut groups: BTreeMap<CommandGroup, (f64, f64)> = BTreeMap::new();
        let (mut count, mut server_time, mut others) = (0.0, 0.0, 0.0);
        for arrival in arrivals.iter().filter(|arrival| Some(arrival.block) != without) {
            let (commands, time) = groups.entry(arrival.group).or_default();
            *commands += 1.0;
            *time += arrival.server_time;
            count += 1.0;
            server_time += arrival.server_time;
            others += arrival.others as f64;
        }
        let known = groups.iter().filter_map(|(group, sums)| Some((sums, undisturbed.mean(*group, without)?)));
        let (mut covered, mut alone, mut mixed) = (0.0, 0.0, 0.0);
        for ((commands, time), mean) in known {
            covered += commands;
            alone += commands * mean;
            mixed += time;
        }
        if count == 0.0 || covered < COVERED * count || mixed <= 0.0 {
            return None;
        }
        let (server_time, others) = (server_time / count, others / count);
        // Rare groups without a mean grow as the others do.
        let unloaded = server_time * (alone / mixed).min(1.0);
        let waited = server_time - unloaded;
        let [random, regular] = queueing(waited, server_time, others).map(|queue| queue.clamp(0.0, unloaded));
        Some(QueueEstimate { server_time, unloaded, waited, random, regular })
    }
}

/// Solves the arrival theorem, `waited = queue × those in the queueing part`, for the queueing part. Of the `others` that
/// a command meets at the server, the queueing part holds the share of the server time that is spent in it:
/// `(waited + queue) / server_time`. The second solution subtracts the half of the command in service that is done.
fn queueing(waited: f64, server_time: f64, others: f64) -> [f64; 2] {
    if waited <= 0.0 || others <= 0.0 {
        return [0.0; 2];
    }
    let product = waited * server_time / others;
    [0.5 * ((waited * waited + 4.0 * product).sqrt() - waited), (waited * waited + 2.0 * product).sqrt() - waited]
}

fn jackknife(whole: f64, without: impl Iterator<Item = f64>) -> StationFigure {
    let without: Vec<f64> = without.collect();
    let count = without.len().max(1) as f64;
    let mean = without.iter().sum::<f64>() / count;
    let squares: f64 = without.iter().map(|one| (one - mean).powi(2)).sum();
    let half = STUDENT * ((count - 1.0) / count * squares).sqrt();
    StationFigure { low: (whole - half).max(0.0), best: whole, high: whole + half }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_a_station_follows_from_the_time_waited() {
        // A single station of 10 ms. Commands meet 0.5 others on average, and wait 5 ms.
        let [random, _] = queueing(5.0, 15.0, 0.5);
        assert!((random - 10.0).abs() < 1e-9, "{random}");
        // 10 ms of constant service. Of 0.75 others, 10/15 are in service and half done: 0.75 × 10 − 0.5 × 5 = 5 ms.
        let [_, regular] = queueing(5.0, 15.0, 0.75);
        assert!((regular - 10.0).abs() < 1e-9, "{regular}");
        assert_eq!((queueing(0.0, 10.0, 1.0), queueing(1.0, 10.0, 0.0)), ([0.0; 2], [0.0; 2]));
    }

    #[test]
    fn a_censored_time_moves_its_weight_to_longer_ones() {
        // 20 times of 1 and 20 of 3, and 20 that were censored at 2, which belong to the longer ones: the share above 1 is
        // 40/60, so the mean is 1 + 2 × 2/3.
        let of = |time: f64, is_whole: bool| vec![CensoredTime { time, is_whole, block: 0 }; 20];
        let mean = mean_of_censored(&[of(1.0, true), of(2.0, false), of(3.0, true)].concat());
        assert!(mean.is_some_and(|mean| (mean - (1.0 + 4.0 / 3.0)).abs() < 1e-9), "{mean:?}");
        assert_eq!(mean_of_censored(&of(1.0, true)[1..]), None);
    }
}
