//! Contents of slices, and the guarantees of the bounded table, checked against totals computed here.

use super::table::SlicerTable;
use super::*;
use proptest::prelude::*;
use smbscope_model::{CommandGroup, ExchangeOutcome, FlowId, Nanos, Subcommand};
use smbscope_testkit::exchange::read;
use std::collections::BTreeMap;

fn text(part: &SliceFieldValue) -> &str {
    match part {
        SliceFieldValue::Text(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

fn sliced(by: &[Dimension], exchanges: &[Exchange]) -> DimensionBreakdown {
    let mut slicer = Slicer::new(by);
    exchanges.iter().for_each(|exchange| slicer.record(exchange));
    slicer.finish(SliceSortKey::ResponseTime)
}

fn at_path(path: &str, response_time_ns: i64) -> Exchange {
    Exchange { path: Some(path.into()), ..read(0, response_time_ns) }
}

#[test]
fn slices_by_two_dimensions_have_a_key_of_both() {
    let of = |client: &str, group| {
        let mut one = Exchange { group, ..read(0, 100) };
        one.endpoints.client = format!("{client}:50000").parse().expect("a socket address");
        one
    };
    let exchanges =
        [of("10.0.0.1", CommandGroup::Read), of("10.0.0.2", CommandGroup::Read), of("10.0.0.1", CommandGroup::Write)];
    let slices = sliced(&[Dimension::Client, Dimension::Group], &[&exchanges[..], &exchanges[..1]].concat());
    let counts: Vec<u64> = slices.entries.iter().map(|slice| slice.figures.count).collect();
    assert_eq!((counts, slices.fields), (vec![2, 1, 1], vec![Field::Client, Field::Group]));
    assert_eq!(
        slices.entries[0].key,
        [SliceFieldValue::Address([10, 0, 0, 1].into()), SliceFieldValue::Group(CommandGroup::Read)]
    );
}

#[test]
fn extensions_are_in_lower_case_and_the_unknown_is_a_slice() {
    // The name of the fifth was truncated by the snap length.
    let exchanges =
        [at_path(r"a\B.DOCX", 5), at_path("c.docx", 4), at_path(r"a.d\plain", 3), read(0, 1), at_path("d.do…", 1)];
    let slices = sliced(&[Dimension::Extension], &exchanges);
    let sums: Vec<i128> = slices.entries.iter().map(|slice| slice.figures.response_time.sum_ns).collect();
    assert_eq!(sums, [9, 3, 2]);
    assert_eq!((text(&slices.entries[0].key[0]), text(&slices.entries[1].key[0])), ("docx", ""));
    assert_eq!(slices.entries[2].key, [SliceFieldValue::Unknown]);
}

#[test]
fn files_and_directories_are_told_apart_by_share_and_once() {
    let on = |share: &str, path| Exchange { share: Some(share.into()), ..at_path(path, 1) };
    // A leading separator depends on the dialect and is not part of the path.
    let exchanges = [on("a", r"\x\1"), on("a", r"x\1"), on("a", r"x\2"), on("b", r"x\1")];
    let by = |by: &[Dimension]| sliced(by, &exchanges).entries.iter().map(|s| s.figures.count).collect::<Vec<_>>();
    assert_eq!(by(&[Dimension::File]), [2, 1, 1]);
    assert_eq!(by(&[Dimension::Directory]), [3, 1]);
    let fields = sliced(&[Dimension::Share, Dimension::File], &[]).fields;
    assert_eq!(fields, [Field::Share, Field::File]);
}

#[test]
fn sizes_are_divided_at_powers_of_two() {
    let sized = |length| {
        let mut one = Exchange { group: CommandGroup::Write, length: Some(length), ..read(0, 1) };
        one.request.bytes = length;
        one
    };
    let exchanges = [0, 1, 4_095, 4_096, 8_191, 8_192, u64::MAX].map(sized);
    let mut slicer = Slicer::new(&[Dimension::Size]);
    exchanges.iter().for_each(|exchange| slicer.record(exchange));
    let found: Vec<(SliceFieldValue, u64)> = slicer
        .finish(SliceSortKey::Key)
        .entries
        .into_iter()
        .map(|slice| (slice.key[0].clone(), slice.figures.count))
        .collect();
    let expected = [(0, 1), (1, 1), (2_048, 1), (4_096, 2), (8_192, 1), (1 << 63, 1)];
    assert_eq!(found, expected.map(|(size, count)| (SliceFieldValue::Size(size), count)));
}

#[test]
fn what_is_no_command_of_its_own_is_in_no_slice() {
    let mut block = read(0, 1);
    block.subcommand = Some(Subcommand::AsyncPortion);
    let mut notice = read(0, 1);
    notice.outcome = ExchangeOutcome::ServerInitiated;
    assert_eq!(sliced(&[Dimension::Command], &[block, notice]).entries, []);
}

#[test]
fn every_order_puts_the_largest_first_and_what_is_absent_last() {
    // One of 90 ns; thirty of 10 ns; and one without a response.
    let mut exchanges = vec![at_path("rare.a", 90)];
    exchanges.extend((0..30).map(|_| at_path("often.b", 10)));
    exchanges.push(Exchange { outcome: ExchangeOutcome::Unanswered, ..at_path("never.c", 1) });
    let mut slicer = Slicer::new(&[Dimension::Extension]);
    exchanges.iter().for_each(|exchange| slicer.record(exchange));
    let order =
        |sort| -> String { slicer.finish(sort).entries.iter().map(|slice| text(&slice.key[0]).to_owned()).collect() };
    assert_eq!([SliceSortKey::ResponseTime, SliceSortKey::Count, SliceSortKey::Key].map(order), ["bac", "bac", "abc"]);
    assert_eq!([SliceSortKey::Mean, SliceSortKey::P50, SliceSortKey::Max].map(order), ["abc"; 3]);
    // 30 values support a 95th percentile, one does not.
    assert_eq!(order(SliceSortKey::P95), "bac");
}

#[test]
fn every_busy_slice_has_percentiles() {
    let mut slicer = Slicer::new(&[Dimension::Connection]);
    let busy = |flow: u64| (1..=300).map(move |n| Exchange { flow: FlowId(flow), ..read(0, n * 1_000) });
    (0..200).flat_map(busy).for_each(|exchange| slicer.record(&exchange));
    let slices = slicer.finish(SliceSortKey::Key);
    let with = slices.entries.iter().filter(|slice| slice.figures.response_time.p95.is_some()).count();
    assert_eq!((with, slices.entries.len()), (200, 200));
    // The median of 1,000, 2,000 … 300,000 is 150,500; a sketch is within a 64th.
    let p50 = slices.entries[0].figures.response_time.p50.map_or(0, |Nanos(ns)| ns);
    assert!((150_500 - p50).abs() <= 150_500 / 64, "{p50}");
    assert_eq!(slices.entries[0].service_time.count, 300);
}

const CAPACITY: usize = 8;
const KEPT: usize = 4;

proptest! {
    /// A few heavy keys among many light ones, in any order, in one table or in several that are merged.
    #[test]
    fn the_bounded_table_keeps_its_promises(
        stream in prop::collection::vec(prop_oneof![(0u64..3, 0i64..1_000), (3u64..40, 0i64..60)], 0..300),
        parts in 1usize..4,
    ) {
        let mut slicers = vec![Slicer::with_table(&[Dimension::Connection], SlicerTable::new(CAPACITY, KEPT)); parts];
        let mut truth: BTreeMap<u64, (u64, i128)> = BTreeMap::new();
        for (at, (key, time)) in stream.iter().enumerate() {
            slicers[at % parts].record(&Exchange { flow: FlowId(*key), ..read(0, *time) });
            let (count, sum) = truth.entry(*key).or_default();
            *count += 1;
            *sum += i128::from(*time);
        }
        let mut slicer = slicers.remove(0);
        slicers.iter().for_each(|other| slicer.merge(other));
        let slices = slicer.finish(SliceSortKey::ResponseTime);
        let total: i128 = truth.values().map(|(_, sum)| sum).sum();
        let entries: BTreeMap<u64, &SliceStatistics> = slices.entries.iter().map(|slice| match slice.key[0] {
            SliceFieldValue::Flow(FlowId(flow)) => (flow, slice),
            ref other => panic!("{other:?} is no flow"),
        }).collect();

        // The bound holds, and everything adds up.
        prop_assert!(slices.entries.len() <= CAPACITY && entries.len() == slices.entries.len());
        let all = || slices.entries.iter().chain(&slices.other);
        prop_assert_eq!(all().map(|slice| slice.figures.count).sum::<u64>(), stream.len() as u64);
        prop_assert_eq!(all().map(|slice| slice.figures.response_time.sum_ns).sum::<i128>(), total);

        // A key without an entry has at most the floor, which is at most its share of the total.
        prop_assert!(slices.missed_at_most_ns * (KEPT as i128 + 1) <= total);
        for (key, (_, sum)) in &truth {
            prop_assert!(*sum <= slices.missed_at_most_ns || entries.contains_key(key), "{} of {} lost", sum, total);
        }
        // The error of each entry is within its limit.
        for (key, slice) in &entries {
            let (said, missed) = (slice.figures.response_time.sum_ns, slice.missed_at_most_ns);
            let (count, sum) = truth[key];
            prop_assert!(said <= sum && sum <= said + missed, "{} + {} for {}", said, missed, sum);
            prop_assert!(missed <= slices.missed_at_most_ns);
            prop_assert!(missed > 0 || sum == said);
            prop_assert!(slice.figures.count <= count);
        }
        // Everything is exact if the keys fit.
        if truth.len() <= CAPACITY {
            prop_assert_eq!((slices.other, slices.missed_at_most_ns), (None, 0));
        }
    }
}

#[test]
fn long_names_make_fewer_slices_and_no_command_is_lost() {
    // 32 MiB hold 8,192 paths of 4 KiB. Beyond that, half of it stays: 16 MiB hold 4,096.
    let exchanges: Vec<Exchange> = (0..8_193).map(|n| at_path(&format!("{n:04096}"), n)).collect();
    let slices = sliced(&[Dimension::File], &exchanges);
    let given_up = slices.other.as_ref().map(|other| other.figures.count);
    assert_eq!((slices.entries.len(), given_up), (4_097, Some(4_096)));
    // The longest response times stay: 8,191 down to 4,096 ns, and the most recent key.
    assert_eq!(slices.missed_at_most_ns, 4_095);
    assert_eq!(sliced(&[Dimension::File], &exchanges[..8_192]).other, None);
}

#[test]
fn parts_are_one_whole_whoever_counts_them() {
    // Three parts with more keys in total than are kept. Consecutive parts share keys, and each part has one order.
    let of_part =
        |part: i64| (0..9_000).map(move |n| at_path(&format!("{}", n + 4_500 * part), 100 + (n * part) % 977));
    let counted = |whole: &mut PartSlicers, part: i64| {
        whole.turn_to(part as usize);
        of_part(part).for_each(|exchange| whole.record(&exchange));
    };
    let mut one = PartSlicers::new(&[Dimension::File]);
    (0..3).for_each(|part| counted(&mut one, part));
    let [mut left, mut right] = [(); 2].map(|()| PartSlicers::new(&[Dimension::File]));
    [2, 0].into_iter().for_each(|part| counted(&mut left, part));
    counted(&mut right, 1);
    let mut turned = right.clone();
    turned.merge(left.clone());
    left.merge(right);
    let whole = one.finish(SliceSortKey::ResponseTime);
    assert_eq!(
        (&left.finish(SliceSortKey::ResponseTime), &turned.finish(SliceSortKey::ResponseTime)),
        (&whole, &whole)
    );
    // All 18,000 keys are kept, with their complete sums.
    let sum = |slices: &DimensionBreakdown| {
        slices.entries.iter().map(|slice| slice.figures.response_time.sum_ns).sum::<i128>()
    };
    let all: i128 = (0..3).flat_map(|part| (0..9_000).map(move |n| i128::from(100 + (n * part) % 977))).sum();
    assert_eq!((whole.entries.len(), sum(&whole), whole.missed_at_most_ns), (18_000, all, 0));
}

#[test]
fn parts_with_more_keys_than_are_kept_add_up_to_everything() {
    let mut parts = PartSlicers::new(&[Dimension::File]);
    for n in 0..30_000_u32 {
        parts.turn_to(n as usize / 10_000);
        parts.record(&at_path(&n.to_string(), 1 + i64::from(n % 3)));
    }
    let slices = parts.finish(SliceSortKey::Count);
    let others = slices.other.as_ref().map_or(0, |other| other.figures.count);
    assert_eq!(slices.entries.iter().map(|slice| slice.figures.count).sum::<u64>() + others, 30_000);
    assert!(slices.entries.len() <= SLICES_MAX && (1..=6).contains(&slices.missed_at_most_ns), "{slices:?}");
}
