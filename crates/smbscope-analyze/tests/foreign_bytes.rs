//! Bytes that belong to no message: window probes with a byte of their own, frames of an unknown type. They cost the
//! message that they hit and no other.

use crate::common::{analyze, times};
use smbscope_model::Timestamp;
use smbscope_testkit::{Conversation, Packet, smb1, smb2};

const STEPS: u64 = 60;

fn told(request: impl Fn(u64) -> Vec<u8>, response: impl Fn(u64) -> Vec<u8>) -> Vec<Packet> {
    let mut conversation = Conversation::new();
    for step in 0..STEPS {
        let at = 100 + step as i64 * 200;
        conversation = conversation.client_says(at, request(step)).server_says(at + 100, response(step));
    }
    conversation.client_acks(100 + STEPS as i64 * 200).packets()
}

/// Opens, reads of 3,000 bytes, and closes.
fn conversations() -> [(&'static str, Vec<Packet>); 4] {
    [
        (
            "SMB2",
            told(
                |step| match step % 3 {
                    0 => smb2::create(step, "a.txt").into(),
                    1 => smb2::read(step, 7, 0, 3000).into(),
                    _ => smb2::close(step, 7).into(),
                },
                |step| match step % 3 {
                    0 => smb2::create_response(step, 7).into(),
                    1 => smb2::read_response(step, &[5; 3000]).into(),
                    _ => smb2::close_response(step).into(),
                },
            ),
        ),
        ("SMB1", told(|step| smb1::close(step as u16, 7).into(), |step| smb1::close_response(step as u16).into())),
        (
            "encrypted",
            told(
                |step| smb2::encrypted(0x1234, [140, 113, 88][step as usize % 3]),
                |step| smb2::encrypted(0x1234, [152, 3080, 124][step as usize % 3]),
            ),
        ),
        ("echo", told(|step| smb2::echo(step).into(), |step| smb2::echo_response(step).into())),
    ]
}

/// Times of the first packets of timed requests and responses.
fn timed(packets: &[Packet]) -> Vec<[i64; 2]> {
    let exchanges = analyze(packets).exchanges;
    exchanges.iter().filter(|exchange| exchange.is_complete()).map(times).map(|times| [times[0], times[2]]).collect()
}

/// Number of exchanges with the same times as in the conversation without foreign bytes.
fn unchanged(packets: &[Packet], whole: &[Packet]) -> usize {
    let (found, truth) = (timed(packets), timed(whole));
    assert!(found.iter().all(|times| truth.contains(times)), "only what is true is timed");
    found.len()
}

/// Indices of the packets with data.
fn places(packets: &[Packet]) -> impl Iterator<Item = usize> {
    (0..packets.len()).filter(|place| !packets[*place].payload.is_empty())
}

/// A single-byte packet, slightly earlier, in place of the first byte of `next`.
fn probe(next: &Packet) -> Packet {
    Packet {
        time: Timestamp(next.time.0 - 2000),
        payload: vec![0x5a],
        ip_id: next.ip_id.wrapping_sub(1),
        ..next.clone()
    }
}

/// Inserts bytes before a packet's bytes and shifts everything after them.
fn inserted(packets: &[Packet], place: usize, bytes: &[u8]) -> Vec<Packet> {
    let mut changed = packets.to_vec();
    let length = bytes.len() as u32;
    let side = packets[place].side;
    for packet in &mut changed[place + 1..] {
        let number = if packet.side == side { &mut packet.sequence } else { &mut packet.acknowledgment };
        *number = number.wrapping_add(length);
    }
    changed[place].payload.splice(0..0, bytes.iter().copied());
    changed
}

#[test]
fn a_window_probe_with_a_byte_of_its_own_costs_nothing_and_begins_nothing() {
    // RFC 9293 §3.8.6.1: a probe takes the place of the next byte. While the window is closed the receiver drops it,
    // and the real data follows in its place.
    for (name, packets) in conversations() {
        // Before the first message, nothing indicates that a message is due.
        for place in places(&packets).skip(2) {
            let mut probed = packets.clone();
            probed.insert(place, probe(&packets[place]));
            assert_eq!(unchanged(&probed, &packets), STEPS as usize, "{name}, before packet {place}");
        }
    }
}

#[test]
fn probes_before_every_message_cost_nothing() {
    for (name, packets) in conversations() {
        let (login, rest) = packets.split_at(places(&packets).nth(2).unwrap());
        let probed = rest.iter().flat_map(|packet| {
            let probe = (!packet.payload.is_empty()).then(|| probe(packet));
            probe.into_iter().chain([packet.clone()])
        });
        let probed: Vec<Packet> = login.iter().cloned().chain(probed).collect();
        assert_eq!(unchanged(&probed, &packets), STEPS as usize, "{name}");
    }
}

#[test]
fn a_frame_of_an_unknown_type_costs_one_message_at_most() {
    // RFC 1002 §4.3.1 defines the types 0 and 0x81 to 0x85.
    for (name, packets) in conversations() {
        for bytes in [&[0x42, 0, 0, 3, 1, 2, 3][..], &[0x86, 0, 0, 0], &[0x42, 0, 0, 200]] {
            for place in places(&packets).skip(2) {
                let kept = unchanged(&inserted(&packets, place, bytes), &packets);
                assert!(kept as u64 >= STEPS - 1, "{name}, {bytes:?} before packet {place}: {kept}");
            }
        }
    }
}

#[test]
fn a_stray_byte_costs_one_message_at_most() {
    for (name, packets) in conversations() {
        for byte in [0, 1, 0x5a, 0xff] {
            for place in places(&packets).skip(2) {
                let kept = unchanged(&inserted(&packets, place, &[byte]), &packets);
                assert!(kept as u64 >= STEPS - 1, "{name}, {byte} before packet {place}: {kept}");
            }
        }
    }
}
