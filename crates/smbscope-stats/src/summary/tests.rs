use super::*;
use proptest::prelude::*;

fn summary(limit: SummaryPrecision, values: &[i64]) -> Summary {
    let mut summary = Summary::new(limit);
    values.iter().for_each(|value| summary.record(Nanos(*value)));
    summary
}

fn above(exact: usize, beyond: Beyond) -> SummaryPrecision {
    SummaryPrecision { exact, beyond }
}

fn exact(values: &[i64]) -> DurationStatistics {
    summary(SummaryPrecision::ROW, values).figures()
}

#[test]
fn nothing_has_no_figures() {
    assert_eq!(exact(&[]), DurationStatistics::default());
}

#[test]
fn one_value_has_no_standard_deviation() {
    let figures = exact(&[13_900_000]);
    let all = [figures.min, figures.max, figures.mean, figures.p50];
    assert_eq!(all, [Some(Nanos(13_900_000)); 4]);
    assert_eq!((figures.stddev, figures.p90), (None, None));
}

#[test]
fn moments_are_those_computed_by_hand() {
    // Mean (2+4+4+4+5+5+7+9)/8 = 5; squares of deviations 9+1+1+1+0+0+4+16 = 32; √(32/7) = 2.138…
    let figures = exact(&[2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000]);
    assert_eq!((figures.mean, figures.stddev), (Some(Nanos(5_000)), Some(Nanos(2_138))));
}

#[test]
fn the_median_of_an_even_count_is_the_mean_of_the_middle_two() {
    assert_eq!(exact(&[40, 10, 30, 20]).p50, Some(Nanos(25)));
    // (20 + 31) / 2 = 25.5, rounded to 26.
    assert_eq!(exact(&[40, 10, 31, 20]).p50, Some(Nanos(26)));
}

#[test]
fn percentiles_agree_with_numpy() {
    // numpy.percentile(arange(1, 101) * 1000, [50, 90, 95, 99]) = 50500, 90100, 95050, 99010.
    let values: Vec<i64> = (1..=100).map(|n| n * 1_000).collect();
    let figures = exact(&values);
    let shown = [figures.p50, figures.p90, figures.p95, figures.p99, figures.p999];
    assert_eq!(shown, [Some(Nanos(50_500)), Some(Nanos(90_100)), Some(Nanos(95_050)), Some(Nanos(99_010)), None]);
}

#[test]
fn a_percentile_needs_enough_values() {
    let present = |n: i64| {
        let figures = exact(&(0..n).collect::<Vec<_>>());
        [figures.p50, figures.p90, figures.p95, figures.p99, figures.p999].map(|p| p.is_some())
    };
    assert_eq!(present(9), [true, false, false, false, false]);
    assert_eq!(present(10), [true, true, false, false, false]);
    assert_eq!(present(20), [true, true, true, false, false]);
    assert_eq!(present(99), [true, true, true, false, false]);
    assert_eq!(present(100), [true, true, true, true, false]);
    assert_eq!(present(1_000), [true; 5]);
}

#[test]
fn the_ten_thousandth_value_is_exact_and_the_next_is_not() {
    let mut summary = summary(SummaryPrecision::ROW, &(1..=10_000).map(|n| n * 1_000_003).collect::<Vec<_>>());
    // Rank 9,999 · 0.5 = 4999.5: between the 5,000th and the 5,001st value: 5000.5 · 1,000,003 = 5,000,515,001.5.
    assert_eq!(summary.figures().p50, Some(Nanos(5_000_515_002)));
    assert!(!summary.figures().approximate);
    summary.record(Nanos(10_001 * 1_000_003));
    let figures = summary.figures();
    assert!(figures.approximate);
    // Now the 5,001st value, within three significant digits.
    let error = (figures.p50.expect("enough values").0 - 5_001 * 1_000_003).abs();
    assert!(error <= 5_001 * 1_000_003 / 1_000, "{error}");
    // Moments stay exact: mean 5,001 · 1,000,003.
    assert_eq!((figures.mean, figures.max), (Some(Nanos(5_001_015_003)), Some(Nanos(10_001 * 1_000_003))));
}

#[test]
fn negative_values_are_kept_exactly_and_count_as_zero_in_a_histogram() {
    let small = above(2, Beyond::Histogram);
    assert_eq!(summary(small, &[-50, 10]).figures().p50, Some(Nanos(-20)));
    let figures = summary(small, &[-50, -50, -50]).figures();
    // The histogram holds zeros, outside of the recorded range; the exact minimum and maximum clamp the percentile.
    assert_eq!((figures.min, figures.p50, figures.mean), (Some(Nanos(-50)), Some(Nanos(-50)), Some(Nanos(-50))));
}

#[test]
fn extreme_values_do_not_panic() {
    for limit in [SummaryPrecision::ROW, above(1, Beyond::Histogram), above(1, Beyond::Sketch)] {
        let figures = summary(limit, &[i64::MIN, i64::MAX, i64::MIN, i64::MAX, i64::MAX]).figures();
        assert_eq!((figures.min, figures.max), (Some(Nanos(i64::MIN)), Some(Nanos(i64::MAX))));
        // The sum of squares overflowed: better no standard deviation than a wrong one.
        assert_eq!(figures.stddev, None);
    }
}

proptest! {
    #[test]
    fn summaries_of_any_partition_merge_to_the_whole(
        values in prop::collection::vec((-5i64..10_000_000, 0usize..3), 0..120),
        sketch: bool,
    ) {
        // A small limit, so that parts and wholes lie on both sides of it.
        let limit = above(20, if sketch { Beyond::Sketch } else { Beyond::Histogram });
        let all: Vec<i64> = values.iter().map(|(value, _)| *value).collect();
        let whole = summary(limit, &all);
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut merged = Summary::new(limit);
            for part in order {
                let part: Vec<i64> = values.iter().filter(|(_, p)| *p == part).map(|(value, _)| *value).collect();
                merged.merge(&summary(limit, &part));
            }
            prop_assert_eq!(&merged, &whole);
            prop_assert_eq!(merged.figures(), whole.figures());
        }
    }

    #[test]
    fn a_histogram_is_within_a_thousandth_of_the_exact_percentile(
        values in prop::collection::vec(0i64..1_000_000_000, 100..400)
    ) {
        let exact = summary(SummaryPrecision::ROW, &values).figures();
        let approximate = summary(above(10, Beyond::Histogram), &values).figures();
        for (a, b) in [(exact.p50, approximate.p50), (exact.p95, approximate.p95), (exact.p99, approximate.p99)] {
            let (a, b) = (a.expect("100 values").0, b.expect("100 values").0);
            prop_assert!((a - b).abs() <= a.max(b) / 1_000 + 1, "{} against {}", a, b);
        }
    }

    #[test]
    fn a_sketch_is_within_a_64th_of_the_exact_percentile(
        exponents in prop::collection::vec(0.0f64..9.5, 100..400)
    ) {
        // From a nanosecond to three seconds, equally many in each decade.
        let values: Vec<i64> = exponents.iter().map(|exponent| 10f64.powf(*exponent) as i64).collect();
        let exact = summary(SummaryPrecision::ROW, &values).figures();
        let approximate = summary(above(10, Beyond::Sketch), &values).figures();
        for (a, b) in [(exact.p50, approximate.p50), (exact.p95, approximate.p95), (exact.p99, approximate.p99)] {
            let (a, b) = (a.expect("100 values").0, b.expect("100 values").0);
            prop_assert!((a - b).abs() <= a.max(b) / 63 + 1, "{} against {}", a, b);
        }
    }
}

#[test]
fn a_histogram_holds_every_value_in_either_form() {
    for limit in [SummaryPrecision::ROW, above(2, Beyond::Histogram), above(2, Beyond::Sketch)] {
        let mut summary = Summary::new(limit);
        [5, 700, 90_000].into_iter().for_each(|value| summary.record(Nanos(value)));
        let histogram = summary.histogram();
        // Three significant digits or a 64th: 90,000 is within 1,407.
        let near = |value: u64| histogram.count_between(value - value / 64, value + value / 64);
        assert_eq!((histogram.len(), histogram.min(), near(700), near(90_000)), (3, 5, 1, 1));
    }
}

fn sketch(values: &[i64]) -> Sketch {
    let mut sketch = Sketch::default();
    values.iter().for_each(|value| sketch.record(*value));
    sketch
}

#[test]
fn buckets_follow_each_other_without_a_gap() {
    // Below 64 each value has its own bucket; from 64 to 127 two share one, from 128 to 255 four.
    assert_eq!([0, 31, 32, 63, 64, 65, 66, 127, 128].map(bucket), [0, 31, 32, 63, 64, 64, 65, 95, 96]);
    assert_eq!([63, 64, 95, 96].map(middle), [63, 65, 127, 130]);
    assert!(bucket(u64::MAX) < 1 << (64 - COUNT_BITS));
}

#[test]
fn the_middle_of_a_bucket_is_within_a_64th_of_each_of_its_values() {
    for octave in BITS..63 {
        let (first, last) = (1u64 << octave, (1u64 << (octave + 1)) - 1);
        for value in [first, first + 1, first + first / 3, last] {
            assert!(middle(bucket(value)).abs_diff(value) <= value / 64 + 1, "{value}");
        }
    }
}

proptest! {
    #[test]
    fn merges_are_those_of_the_whole_in_any_order_and_grouping(
        parts in prop::array::uniform3(prop::collection::vec(-5i64..20_000_000_000, 0..60))
    ) {
        let [a, b, c] = parts.each_ref().map(|part| sketch(part));
        let merged = |first: &Sketch, second: &Sketch| {
            let mut all = first.clone();
            all.merge(second);
            all
        };
        let whole = sketch(&parts.concat());
        prop_assert_eq!(&merged(&merged(&a, &b), &c), &whole);
        prop_assert_eq!(&merged(&a, &merged(&b, &c)), &whole);
        prop_assert_eq!(&merged(&merged(&c, &a), &b), &whole);
        prop_assert_eq!(whole.iter().map(|(_, count)| count).sum::<u64>(), parts.concat().len() as u64);
    }
}
