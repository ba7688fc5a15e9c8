//! Predictions for users, compared with closed forms of queueing theory.

use super::*;
use smbscope_stats::Random;
use smbscope_testkit::exchange::read;

const MS: f64 = 1e6;

/// Mean response time in ms of users at a single server with exponential service times, from the probability that the
/// server is idle (the machine repairman model: Jain, The Art of Computer Systems Performance Analysis, 1991, box 31.7
/// with a finite population). Independent of the recursion of mean value analysis.
fn machine_repairman(users: u32, service: f64, think: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for waiting in 0..users {
        term *= f64::from(users - waiting) * service / think;
        sum += term;
    }
    let throughput = (1.0 - 1.0 / sum) / service;
    f64::from(users) / throughput - think
}

#[test]
fn mean_value_analysis_agrees_with_arithmetic_and_with_the_machine_repairman() {
    let solved = ClosedNetwork { think: 95.0, delay: 0.0, queue: 5.0 }.solve(20);
    // One user: 5 ms. It is at the server for 5/100 of the time, so the second one waits 0.05 × 5 ms. Two users are there
    // for 2 × 5.25/100.25 of it, so the third waits 0.104738 × 5 ms.
    for (users, expected) in [(1.0, 5.0), (2.0, 5.25), (3.0, 5.0 + 5.0 * 2.0 * 5.25 / 100.25)] {
        assert!((solved.response_time(users) - expected).abs() < 1e-9, "{users}: {}", solved.response_time(users));
    }
    for users in [10, 20] {
        let (found, expected) = (solved.response_time(f64::from(users)), machine_repairman(users, 5.0, 95.0));
        assert!((found - expected).abs() < 1e-9, "{users}: {found} instead of {expected}");
    }
    assert!((solved.response_time(2.5) - 0.5 * (solved.response_time(2.0) + solved.response_time(3.0))).abs() < 1e-12);
    // Utilization law: ten users send 10/(95 + R) commands per ms, of 5 ms each.
    let busy = 10.0 * 5.0 / (95.0 + machine_repairman(10, 5.0, 95.0));
    assert!((solved.utilization(10.0) - busy).abs() < 1e-9);
}

/// Exchanges of users who think and wait in turn, at a server with this many processors. Times in ms.
fn simulated(users: u32, processors: usize, service: impl Fn(&mut Random) -> f64, think: f64) -> Vec<Exchange> {
    const COMMANDS: usize = 20_000;
    let mut random = Random::of_stream(7, users.into());
    let mut next: Vec<f64> = (0..users).map(|_| think * random.exponential()).collect();
    let mut free = vec![0.0f64; processors];
    let exchange = |_| {
        let (user, begin) = least(&next);
        let (processor, idle) = least(&free);
        let end = begin.max(idle) + service(&mut random);
        free[processor] = end;
        next[user] = end + think * random.exponential();
        let mut exchange = read((begin * MS) as i64, ((end - begin) * MS) as i64);
        exchange.endpoints.client = ([10, 0, 1, user as u8], 50_000).into();
        exchange
    };
    (0..COMMANDS).map(exchange).collect()
}

fn least(times: &[f64]) -> (usize, f64) {
    let least = times.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    least.expect("there is one")
}

fn predicted(exchanges: &[Exchange], users: &[u32]) -> UsersPrediction {
    let found = predict_users(exchanges, TimeSample::default(), None, users).expect("it can be predicted");
    for UsersPoint { response_time_ns: Bounded { low, best, high }, .. } in &found.users {
        assert!(low <= high && best.is_none_or(|best| (*low..=*high).contains(&best)), "{found:?}");
    }
    found
}

#[track_caller]
fn assert_within(found: &UsersPoint, expected: f64, tolerance: f64) {
    let Bounded { low, best, high } = found.response_time_ns.map(|Nanos(time)| time as f64 / MS);
    assert!(low <= expected && expected <= high, "{expected} ms is outside of {low} to {high} ms");
    let off = best.map_or(0.0, |best| best / expected - 1.0);
    assert!(off.abs() <= tolerance, "{best:?} instead of {expected} ms with {} users", found.users);
}

#[test]
fn a_single_queue_is_recognised_with_few_users() {
    let captured = simulated(4, 1, |random| 5.0 * random.exponential(), 45.0);
    let found = predicted(&captured, &[4, 8, 16, 32]);
    assert!((found.load.users - 4.0).abs() < 0.05 && found.load.user_is == UserIdentity::Client, "{:?}", found.load);
    for point in &found.users {
        assert_within(point, machine_repairman(point.users, 5.0, 45.0), 0.15);
    }
    // 32 users want 32/50 commands per ms, and the server can do 1/5.
    assert!(found.users[3].server_busy.best.is_some_and(|busy| busy > 0.95), "{:?}", found.users[3]);
    let doubled = found.doubled_at.best.expect("it doubles");
    let expected = (1..).find(|users| machine_repairman(*users, 5.0, 45.0) >= 2.0 * machine_repairman(4, 5.0, 45.0));
    assert!(expected.is_some_and(|expected| doubled.abs_diff(expected) <= 2), "{doubled} instead of {expected:?}");
}

#[test]
fn constant_service_times_are_within_the_interval() {
    // Far beyond saturation, N users take turns: N × 5 ms less the think time.
    let found = predicted(&simulated(4, 1, |_| 5.0, 45.0), &[4, 40]);
    assert_within(&found.users[1], 40.0 * 5.0 - 45.0, 0.2);
}

#[test]
fn a_server_without_a_queue_only_has_bounds() {
    // As many processors as users. The capture shows that several work at a time, but not how many there are.
    let found = predicted(&simulated(4, 4, |random| 5.0 * random.exponential(), 45.0), &[4, 64]);
    assert_eq!((found.users[1].response_time_ns.best, found.doubled_at.best), (None, None));
    assert_within(&found.users[1], 5.0, 0.0);
    // Nor do commands that never meet: the bounds are a single queue and none.
    let alone = predicted(&simulated(2, 1, |_| 0.01, 900.0), &[2, 20_000]);
    assert_eq!(alone.users[1].response_time_ns.best, None);
    assert_within(&alone.users[1], 0.01, 0.0);
}

#[test]
fn several_processors_are_within_the_interval() {
    // Two processors of 5 ms each are one of 2.5 ms beyond saturation: 60 × 2.5 ms less the think time. Under light load,
    // commands wait for two processors less than for one of half the time, so the best estimate is too low.
    let found = predicted(&simulated(6, 2, |random| 5.0 * random.exponential(), 45.0), &[6, 60]);
    assert_within(&found.users[1], 60.0 * 2.5 - 45.0, 0.4);
}

#[test]
fn half_of_the_time_windows_give_the_same_load() {
    let captured = simulated(4, 1, |random| 5.0 * random.exponential(), 45.0);
    let sample = TimeSample::default().half();
    let half: Vec<Exchange> =
        captured.iter().filter(|exchange| exchange.start().is_some_and(|start| sample.holds(start))).cloned().collect();
    assert!(half.len() < captured.len() * 6 / 10, "{}", half.len());
    let found = predict_users(&half, sample, None, &[16]).expect("it can be predicted");
    assert!((found.load.users - 4.0).abs() < 0.2, "{:?}", found.load);
    let whole = predicted(&captured, &[16]).load;
    assert!((found.load.commands_per_s / whole.commands_per_s - 1.0).abs() < 0.05, "{:?}", found.load);
    assert_within(&found.users[0], machine_repairman(16, 5.0, 45.0), 0.2);
}

#[test]
fn what_a_capture_cannot_tell_is_refused() {
    let refused = |exchanges: &[Exchange], identity| predict_users(exchanges, TimeSample::default(), identity, &[10]);
    let captured = simulated(4, 1, |_| 5.0, 45.0);
    assert_eq!(refused(&[], None), Err(PredictionError::NoCommands));
    assert_eq!(refused(&captured[..199], None), Err(PredictionError::TooFewCommands(199)));
    let one = simulated(1, 1, |_| 5.0, 45.0);
    assert_eq!(refused(&one, None), Err(PredictionError::OneUser(UserIdentity::Account, 1.0)));
    let mut bulk = captured.clone();
    for exchange in &mut bulk {
        exchange.response.first.as_mut().expect("there is one").time.0 -= 4 * MS as i64;
    }
    assert!(matches!(refused(&bulk, None), Err(PredictionError::BulkTransfers(50..))));
    // Thirty users at a server for four of them: no command finds it idle.
    assert_eq!(refused(&simulated(30, 1, |_| 5.0, 15.0), None), Err(PredictionError::NeverAlone));
    // Users who share a client have accounts of their own.
    let mut shared = captured;
    for exchange in &mut shared {
        exchange.user = Some(exchange.endpoints.client.to_string().into());
        exchange.endpoints.client = ([10, 0, 0, 1], 50_000).into();
    }
    let found = predicted(&shared, &[10]);
    assert_eq!((found.load.user_is, found.load.users.round()), (UserIdentity::Account, 4.0));
}
