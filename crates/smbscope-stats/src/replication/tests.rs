use super::*;

/// Normally distributed with mean 0 and standard deviation 1 (Box–Muller).
fn normal(random: &mut Random) -> f64 {
    (2.0 * random.exponential()).sqrt() * (std::f64::consts::TAU * random.unit()).cos()
}

/// Log-normal values with this standard deviation of the logarithm.
fn runs(random: &mut Random, count: usize, level: f64, deviation: f64) -> Vec<f64> {
    (0..count).map(|_| level * (deviation * normal(random)).exp()).collect()
}

fn pairs(random: &mut Random, count: usize, ratio: f64, deviation: f64) -> Vec<(f64, f64)> {
    // The level drifts by 30% between blocks, which must not matter.
    let drift: Vec<f64> = runs(random, count, 5e6, 0.3);
    drift.iter().zip(runs(random, count, ratio, deviation)).map(|(level, ratio)| (*level, level * ratio)).collect()
}

fn quick(seed: u64) -> ReplicationSettings {
    ReplicationSettings { resamples: 2_000, seed, ..ReplicationSettings::default() }
}

/// Upper bound for the number of false positives at a rate of 5% (binomial, 99.9%).
fn allowed(tries: usize) -> usize {
    let expected = tries as f64 * 0.05;
    (expected + 3.1 * (expected * 0.95).sqrt()).ceil() as usize
}

#[test]
fn equal_servers_differ_in_no_more_than_a_twentieth_of_all_tries() {
    const TRIES: usize = 400;
    let mut random = Random::new(&[14]);
    for count in [5, 8, 20] {
        let mut alarms = [0, 0];
        for seed in 0..TRIES as u64 {
            let blocks = pairs(&mut random, count, 1.0, 0.15);
            alarms[0] += usize::from(paired(&blocks, &quick(seed)).answer.differs());
            let (base, other) = (runs(&mut random, count, 3.0, 0.15), runs(&mut random, count, 3.0, 0.05));
            alarms[1] += usize::from(unpaired(&base, &other, &quick(seed)).answer.differs());
        }
        assert!(alarms.iter().all(|alarms| *alarms <= allowed(TRIES)), "{alarms:?} of {TRIES} with {count} runs");
    }
}

#[test]
fn skewed_runs_differ_in_no_more_than_a_twentieth_of_all_tries() {
    const TRIES: usize = 400;
    let mut random = Random::new(&[15]);
    let skewed = |random: &mut Random| -> Vec<f64> { (0..10).map(|_| 1.0 + 0.3 * random.exponential()).collect() };
    let alarms = (0..TRIES as u64)
        .filter(|seed| unpaired(&skewed(&mut random), &skewed(&mut random), &quick(*seed)).answer.differs());
    let alarms = alarms.count();
    assert!(alarms <= allowed(TRIES), "{alarms} of {TRIES}");
}

#[test]
fn a_server_slower_by_a_tenth_is_found_with_the_runs_that_were_asked_for() {
    const TRIES: usize = 200;
    for (deviation, is_paired) in [(0.05, true), (0.1, true), (0.2, true), (0.05, false), (0.1, false)] {
        let mut random = Random::new(&[16, is_paired.into()]);
        let (mut found, mut ran) = (0, 0);
        for seed in 0..TRIES as u64 {
            let mut count = REPETITIONS_MIN;
            let (mut blocks, mut base, mut other) = (Vec::new(), Vec::new(), Vec::new());
            // Repeat as often as the verdict suggests, at most twice, as a user would.
            for _ in 0..3 {
                let further = count - blocks.len().max(base.len());
                let figure = if is_paired {
                    blocks.extend(pairs(&mut random, further, 1.1, deviation));
                    paired(&blocks, &quick(seed))
                } else {
                    base.extend(runs(&mut random, further, 2.0, deviation));
                    other.extend(runs(&mut random, further, 2.2, deviation));
                    unpaired(&base, &other, &quick(seed))
                };
                match figure.answer {
                    DifferenceVerdict::Undecided { repetitions_needed: Some(needed) } => {
                        assert!(needed as usize > count, "{needed} after {count}");
                        count = needed as usize;
                    }
                    answer => {
                        found += usize::from(answer == DifferenceVerdict::Higher);
                        break;
                    }
                }
            }
            ran += count;
        }
        println!("deviation {deviation}, paired {is_paired}: {found} of {TRIES}, {} runs on average", ran / TRIES);
        assert!(found * 20 >= TRIES * 19, "{found} of {TRIES} with a deviation of {deviation}, paired: {is_paired}");
    }
}

#[test]
fn equal_servers_are_called_equal_with_the_runs_that_were_asked_for() {
    let mut random = Random::new(&[17]);
    let tries = 100;
    let mut equal = 0;
    for seed in 0..tries {
        let mut blocks = pairs(&mut random, 6, 1.0, 0.08);
        if let DifferenceVerdict::Undecided { repetitions_needed: Some(needed) } = paired(&blocks, &quick(seed)).answer
        {
            blocks.extend(pairs(&mut random, needed as usize - 6, 1.0, 0.08));
        }
        equal += u32::from(paired(&blocks, &quick(seed)).answer == DifferenceVerdict::Equal);
    }
    // Planned with a power of 0.8.
    assert!(equal >= 75, "{equal} of {tries}");
}

/// Intervals of a run with autocorrelated response times (a first-order autoregressive process).
fn course(random: &mut Random, count: usize, level: f64, memory: f64) -> Vec<f64> {
    let mut state = normal(random) / (1.0 - memory * memory).sqrt();
    let mut next = || {
        state = memory * state + normal(random);
        level * (0.1 * state).exp()
    };
    (0..count).map(|_| next()).collect()
}

fn within(base: &[f64], other: &[f64], seed: u64) -> BaselineRatio {
    let figure = |series: &[f64]| {
        let series = series.to_vec();
        move |places: &[usize]| Some(places.iter().map(|at| series[*at]).sum::<f64>() / places.len() as f64)
    };
    let (before, after) = (figure(base), figure(other));
    let courses = [Course { series: base, figure: &before }, Course { series: other, figure: &after }];
    within_run(
        &courses[0],
        &courses[1],
        &ReplicationSettings { resamples: 1_000, seed, ..ReplicationSettings::default() },
    )
}

#[test]
fn neighbours_that_depend_on_each_other_raise_no_more_alarms_within_a_run() {
    const TRIES: usize = 300;
    let mut random = Random::new(&[18]);
    for (memory, count) in [(0.0, 60), (0.5, 120), (0.8, 300)] {
        let (mut alarms, mut known) = (0, 0);
        for seed in 0..TRIES as u64 {
            let (base, other) = (course(&mut random, count, 1e6, memory), course(&mut random, count, 1e6, memory));
            let figure = within(&base, &other, seed);
            assert_eq!(figure.scope, Scope::WithinRun);
            known += usize::from(figure.interval.is_some());
            alarms += usize::from(figure.answer.differs());
        }
        println!("memory {memory}: {alarms} alarms, {known} intervals in {TRIES}");
        assert!(alarms <= allowed(TRIES), "{alarms} of {TRIES} with {memory}");
        assert!(known * 2 > TRIES, "{known} of {TRIES} have an interval with {memory}");
        let slower = course(&mut random, count, 2e6, memory);
        assert_eq!(within(&course(&mut random, count, 1e6, memory), &slower, 1).answer, DifferenceVerdict::Higher);
    }
}

#[test]
fn blocks_are_as_long_as_the_memory_of_the_series() {
    let mut random = Random::new(&[19]);
    let mean_length = |random: &mut Random, memory: f64| {
        (0..50).map(|_| block_length(&course(random, 500, 1.0, memory))).sum::<f64>() / 50.0
    };
    let lengths = [0.0, 0.5, 0.8].map(|memory| mean_length(&mut random, memory));
    // The optimum for an autoregressive process is (2·(2φ/(1−φ²))²/2·…)^⅓·n^⅓: with G/g(0) = 2φ/(1−φ²), 9.6 and 21.4.
    assert!(lengths[0] < 3.0 && (6.0..15.0).contains(&lengths[1]) && (14.0..32.0).contains(&lengths[2]), "{lengths:?}");
    for dull in [&[][..], &[1.0], &[2.0; 50], &[f64::NAN; 50], &[f64::INFINITY; 50]] {
        assert_eq!(block_length(dull), 1.0);
    }
}

#[test]
fn few_runs_have_a_range_or_nothing() {
    let runs = [(2.0, 3.0), (2.0, 4.0), (2.0, 2.0), (2.0, 5.0)];
    let figure = |count: usize| paired(&runs[..count], &ReplicationSettings::default());
    assert_eq!(figure(0), BaselineRatio::unknown(0));
    assert_eq!((figure(1).ratio, figure(1).range, figure(1).interval), (Some(1.5), None, None));
    assert_eq!(figure(2).range, None);
    let (low, high) = figure(4).range.expect("four have one");
    assert!((low - 1.0).abs() < 1e-12 && (high - 2.5).abs() < 1e-12, "{low} {high}");
    assert!(figure(4).interval.is_none() && figure(4).p_value.is_none());
    assert!(matches!(figure(4).answer, DifferenceVerdict::Undecided { repetitions_needed: Some(5..) }));
    // 4 and 5 over 2 and 8: from a half to two and a half times.
    let (low, high) =
        unpaired(&[2.0, 8.0, 4.0], &[4.0, 5.0, 4.5], &ReplicationSettings::default()).range.expect("three have one");
    assert!((low - 0.5).abs() < 1e-12 && (high - 2.5).abs() < 1e-12, "{low} {high}");
}

#[test]
fn values_without_a_ratio_are_no_figure_and_no_panic() {
    for bad in [0.0, -1.0, f64::INFINITY, f64::NEG_INFINITY] {
        let mut blocks = vec![(1.0, 2.0); 6];
        blocks.push((bad, 1.0));
        assert_eq!(paired(&blocks, &ReplicationSettings::default()), BaselineRatio::unknown(7));
        assert_eq!(unpaired(&[1.0; 6], &[1.0, bad, 1.0], &ReplicationSettings::default()), BaselineRatio::unknown(3));
    }
    // Runs without a value are not counted.
    let blocks = [(1.0, 2.0), (f64::NAN, 2.0), (1.0, f64::NAN), (1.0, 2.0)];
    assert_eq!(paired(&blocks, &ReplicationSettings::default()).repetitions, 2);
    assert_eq!(unpaired(&[], &[1.0], &ReplicationSettings::default()), BaselineRatio::unknown(0));
    // Invalid settings must not panic either.
    let odd = ReplicationSettings { margin: f64::NAN, confidence: 2.0, power: -1.0, resamples: 0, seed: 0 };
    let blocks: Vec<(f64, f64)> = (1..9).map(|n| (f64::from(n), f64::from(n * n))).collect();
    assert!(paired(&blocks, &odd).ratio.is_some());
}

#[test]
fn values_that_never_vary_differ_or_are_equal() {
    let figure = |ratio: f64| paired(&[(8.0, 8.0 * ratio); 5], &ReplicationSettings::default());
    assert_eq!((figure(1.0).answer, figure(1.0).interval), (DifferenceVerdict::Equal, Some((1.0, 1.0))));
    assert_eq!((figure(2.0).answer, figure(2.0).interval), (DifferenceVerdict::Higher, Some((2.0, 2.0))));
    assert_eq!(figure(0.5).answer, DifferenceVerdict::Lower);
    assert_eq!(figure(2.0).p_value, Some(0.0));
}

#[test]
fn an_interval_excludes_one_where_its_probability_is_below_a_twentieth() {
    let mut random = Random::new(&[20]);
    for seed in 0..300 {
        let figure = paired(&pairs(&mut random, 12, 1.07, 0.1), &ReplicationSettings { margin: 0.0, ..quick(seed) });
        let (low, high) = figure.interval.expect("twelve have one");
        let excluded = low > 1.0 || high < 1.0;
        let p = figure.p_value.expect("with an interval");
        // Near the limit, the random resamples decide.
        assert!(excluded == (p < 0.05) || (0.045..0.055).contains(&p), "{figure:?}");
        assert!(low <= figure.ratio.unwrap() && figure.ratio.unwrap() <= high);
    }
}

#[test]
fn rows_are_adjusted_as_published() {
    // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") and "BH".
    let p = [Some(0.01), None, Some(0.04), Some(0.03), Some(0.005)];
    let close = |found: Vec<Option<f64>>, expected: [Option<f64>; 5]| {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found.unwrap_or(-1.0) - expected.unwrap_or(-1.0)).abs() < 1e-12, "{found:?} {expected:?}");
        }
    };
    close(holm(&p), [Some(0.03), None, Some(0.06), Some(0.06), Some(0.02)]);
    close(benjamini_hochberg(&p), [Some(0.02), None, Some(0.04), Some(0.04), Some(0.02)]);
    assert!(holm(&[]).is_empty() && benjamini_hochberg(&[None, Some(f64::NAN)]).iter().all(Option::is_none));
}
