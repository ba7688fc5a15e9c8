//! Periods in which a side retransmits repeatedly and receives nothing.

use super::*;
use smbscope_model::Outage;

const SECOND: i64 = 1_000_000;

/// Builds a flow in which the client sends "abc" at 1 s and retransmits it at these times.
fn sent_again(at_us: &[i64]) -> Wire {
    let mut wire = Wire::open();
    wire.tell(client(SECOND, 1001, 5001, "abc"));
    for at_us in at_us {
        wire.tell(client(*at_us, 1001, 5001, "abc"));
    }
    wire
}

/// Returns start, end, retries and recovery of each outage; times in microseconds.
fn outages(wire: Wire) -> Vec<(i64, i64, u32, bool)> {
    let told = |outage: &Outage| (outage.from.0 / 1_000, outage.to.0 / 1_000, outage.retries, outage.recovered);
    wire.end().ends[0].outages.iter().map(told).collect()
}

#[test]
fn an_outage_lasts_from_the_first_copy_to_the_first_packet_that_passes_again() {
    let mut wire = sent_again(&[1_300_000, 1_900_000, 3_100_000]);
    wire.tell(server(3_100_040, 5001, 1004, ""));
    wire.tell(client(4 * SECOND, 1004, 5001, "def"));
    wire.tell(server(4_000_040, 5001, 1007, ""));
    assert_eq!(outages(wire), [(SECOND, 3_100_040, 3, true)]);
}

#[test]
fn an_outage_begins_after_the_last_packet_of_the_other_side() {
    let mut wire = Wire::open();
    wire.tell(client(SECOND, 1001, 5001, "abc"));
    wire.tell(server(1_100_000, 5001, 1001, ""));
    wire.tell(client(1_300_000, 1001, 5001, "abc"));
    wire.tell(client(1_900_000, 1001, 5001, "abc"));
    wire.tell(server(2_500_000, 5001, 1004, ""));
    assert_eq!(outages(wire), [(1_100_000, 2_500_000, 2, true)]);
}

#[test]
fn an_outage_that_nothing_ends_lasts_until_the_end_of_the_flow() {
    assert_eq!(outages(sent_again(&[1_300_000, 1_900_000, 3_100_000])), [(SECOND, 3_100_000, 3, false)]);
}

#[test]
fn one_retransmission_or_less_than_a_second_is_an_ordinary_loss() {
    let recovered = |at_us: &[i64], to: i64| {
        let mut wire = sent_again(at_us);
        wire.tell(server(to, 5001, 1004, ""));
        outages(wire)
    };
    assert_eq!(recovered(&[2_500_000], 2_500_040), []);
    assert_eq!(recovered(&[1_200_000, 1_600_000], 1_999_999), []);
    assert_eq!(recovered(&[1_200_000, 1_600_000], 2_000_000), [(SECOND, 2_000_000, 2, true)]);
}

#[test]
fn a_sender_that_stopped_sending_again_had_an_acknowledgment_that_the_capture_missed() {
    let mut wire = sent_again(&[1_200_000, 1_600_000]);
    wire.tell(server(60 * SECOND, 5001, 1004, "answer"));
    assert_eq!(outages(wire), []);
}

#[test]
fn without_the_other_direction_in_the_capture_nothing_is_said() {
    let mut wire = Wire::new();
    for at_us in [1, 2, 4, 8] {
        wire.tell(client(at_us * SECOND, 1001, 5001, "abc"));
    }
    assert_eq!(outages(wire), []);
}

#[test]
fn the_longest_outages_are_kept() {
    // Eleven outages of 2 s and a last one of 3 s.
    let mut wire = Wire::open();
    for n in 0..12 {
        let (at, sequence) = ((10 + 10 * i64::from(n)) * SECOND, 1001 + 2 * n);
        for later in [0, SECOND / 2, SECOND + SECOND / 2] {
            wire.tell(client(at + later, sequence, 5001, "xy"));
        }
        let length = if n == 11 { 3 } else { 2 };
        wire.tell(server(at + length * SECOND, 5001, sequence + 2, ""));
    }
    let outages = outages(wire);
    assert_eq!(outages.len(), Outage::MAX_LISTED);
    let starts: Vec<i64> = outages.iter().map(|outage| outage.0 / SECOND).collect();
    assert_eq!(starts, [10, 20, 30, 40, 50, 60, 70, 120]);
}
