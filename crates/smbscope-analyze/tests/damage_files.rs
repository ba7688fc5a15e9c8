//! Damage to capture files: packets spread over several files, truncated files, truncated records. The meaning of the
//! packets is unchanged.

use crate::common::truth::{config, read_contents, read_files, renumber};
use proptest::prelude::*;
use smbscope_model::{CaptureId, PacketRef};
use smbscope_testkit::script::scripts;
use smbscope_testkit::{Packet, damage, pcap};

proptest! {
    #![proptest_config(ProptestConfig { cases: (config().cases / 4).max(1), ..config() })]

    #[test]
    fn two_files_are_as_good_as_one(
        script in scripts(),
        seed in any::<u64>(),
        dropped in prop_oneof![Just(0.0), 0.01..0.2f64],
        cut in 0.0..1.0f64,
    ) {
        let packets = damage::drop_some(&script.play().packets, seed, dropped);
        prop_assume!(packets.len() >= 2);
        let first = 1 + (cut * (packets.len() - 1) as f64) as usize;
        let (head, tail) = packets.split_at(first);
        let whole = read_files(&[packets.as_slice()]);
        let mut parts = read_files(&[head, tail]);
        let through = |at: PacketRef| match at.capture() {
            CaptureId(1) => PacketRef::new(CaptureId(0), at.number() + first as u64),
            _ => at,
        };
        parts.0.iter_mut().for_each(|exchange| renumber(exchange, through));
        prop_assert_eq!(parts, whole);
    }

    /// Each interface has its own file, and each packet is in one of them; merged by time they are complete.
    #[test]
    fn two_interfaces_with_a_file_each_are_as_good_as_one(
        script in scripts(),
        seed in any::<u64>(),
        dropped in prop_oneof![Just(0.0), 0.01..0.2f64],
        second in prop_oneof![Just(None), (0.1..0.9f64).prop_map(Some)],
    ) {
        let packets = damage::drop_some(&script.play().packets, seed, dropped);
        let (packets, interfaces) = damage::two_interfaces(&packets, seed, second);
        let of = |interface| -> Vec<usize> { (0..packets.len()).filter(|at| interfaces[*at] == interface).collect() };
        let mut files = [of(0), of(1)];
        prop_assume!(files.iter().all(|places| !places.is_empty()));
        // Files are numbered in order of their first packets.
        files.sort();
        let [first, second] = files;
        let file = |places: &[usize]| -> Vec<Packet> { places.iter().map(|at| packets[*at].clone()).collect() };
        let whole = read_files(&[packets.as_slice()]);
        let mut parts = read_files(&[&file(&first), &file(&second)]);
        let through = |at: PacketRef| {
            let places = if at.capture() == CaptureId(0) { &first } else { &second };
            PacketRef::new(CaptureId(0), places[at.number() as usize - 1] as u64 + 1)
        };
        parts.0.iter_mut().for_each(|exchange| renumber(exchange, through));
        prop_assert_eq!(parts, whole);
    }

    /// In one file, the packets of two interfaces are in the order of writing, not of capture.
    #[test]
    fn two_interfaces_in_one_file_are_put_in_time_order(
        script in scripts(),
        seed in any::<u64>(),
        second in prop_oneof![Just(None), (0.1..0.9f64).prop_map(Some)],
        late in 1usize..40,
    ) {
        let (packets, interfaces) = damage::two_interfaces(&script.play().packets, seed, second);
        let whole = read_files(&[packets.as_slice()]);
        // The second interface writes some packets later.
        let mut order: Vec<usize> = (0..packets.len()).collect();
        order.sort_by_key(|at| at + interfaces[*at] * late);
        let written: Vec<Packet> = order.iter().map(|at| packets[*at].clone()).collect();
        let on: Vec<usize> = order.iter().map(|at| interfaces[*at]).collect();
        let mut read = read_contents(&[pcap::next_generation(&written, &on)]);
        let through = |at: PacketRef| PacketRef::new(at.capture(), order[at.number() as usize - 1] as u64 + 1);
        read.0.iter_mut().for_each(|exchange| renumber(exchange, through));
        prop_assert_eq!(read.0, whole.0);
        let moved = order.windows(2).any(|pair| pair[0] > pair[1]);
        prop_assert_eq!(read.1.packets_reordered_by_time > 0, moved);
    }

    /// Everything before the cut is read. A cut inside a record is counted.
    #[test]
    fn a_file_without_its_end_gives_everything_before_the_cut(script in scripts(), cut in 0.0..1.0f64) {
        let packets = script.play().packets;
        let bytes = pcap::nanos(&packets);
        // The file header and the first record stay.
        let least = 24 + 16 + packets[0].ethernet().len();
        let length = least + ((bytes.len() - least) as f64 * cut) as usize;
        let (whole, cut_in_two) = damage::surviving(&packets, length);
        let (exchanges, quality) = read_contents(&[bytes[..length].to_vec()]);
        let expected = read_files(&[&packets[..whole]]);
        prop_assert_eq!(exchanges, expected.0);
        prop_assert_eq!((quality.truncated_captures, quality.packets), (u64::from(cut_in_two), whole as u64));
    }

    #[test]
    fn packets_cut_short_are_counted_one_by_one(script in scripts(), length in 54usize..1600) {
        let packets = script.play().packets;
        let damage::Damaged { packets, done } =
            damage::Plan { snap: Some(length), ..damage::Plan::default() }.apply(&packets);
        prop_assert_eq!(read_files(&[&packets]).1.snapped_packets, done.snapped);
    }
}
