//! Live captures of the loopback interface: what a socket sent is the reference.

use smbscope_capture::live::{LiveCapture, LiveError, PacketDrops};
use smbscope_capture::reader::CaptureSet;
use smbscope_testkit::skip;
use std::io::Read;
use std::net::UdpSocket;
use std::time::Duration;

/// Holds all that a test sends, also if it is not read at once.
const BUFFER: u32 = 64 << 20;
/// Bytes before the first record of a pcap file.
const FILE_HEADER: usize = 24;
/// Headers of Ethernet, IPv4 and UDP.
const HEADERS: usize = 14 + 20 + 8;

/// Sockets of a sender and of the port that it sends to, which is captured.
fn sockets() -> (UdpSocket, UdpSocket) {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    sender.connect(receiver.local_addr().expect("an address")).expect("it is there");
    (sender, receiver)
}

fn capture(receiver: &UdpSocket, buffer: u32) -> Option<LiveCapture> {
    let port = receiver.local_addr().expect("an address").port();
    match LiveCapture::open("lo", 0, buffer, &[format!("udp dst port {port}")]) {
        Ok(capture) => Some(capture),
        Err(LiveError::NoLibrary) => {
            skip::missing("libpcap is not installed");
            None
        }
        Err(LiveError::NotPermitted(why)) => {
            skip::unable(format!("only root may capture on the loopback interface: {why}"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Content of a datagram: its number, and a length that differs from its neighbours'.
fn content(number: u32) -> Vec<u8> {
    let length = 4 + (number as usize * 7_919) % 9_000;
    number.to_le_bytes().iter().copied().cycle().take(length).collect()
}

/// Reads a few bytes at a time.
struct Trickle(LiveCapture);

impl Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = buffer.len().min(1_000);
        self.0.read(&mut buffer[..length])
    }
}

#[test]
fn every_packet_is_there_once_whole_and_in_order() {
    const SENT: u32 = 2_000;
    for trickles in [false, true] {
        let (sender, receiver) = sockets();
        let Some(live) = capture(&receiver, BUFFER) else { return };
        let status = live.status();
        let source: Box<dyn Read + Send> = if trickles { Box::new(Trickle(live)) } else { Box::new(live) };
        let before = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970").as_nanos() as i64;
        let sending = std::thread::spawn(move || {
            for number in 0..SENT {
                sender.send(&content(number)).expect("it is sent");
            }
        });
        let mut set = CaptureSet::from_reader("lo", source).expect("a capture");
        let mut last = before;
        for number in 0..SENT {
            let packet = set.next_packet().expect("readable").expect("one more");
            assert!(packet.data[HEADERS..] == content(number), "{number} differs, {:?}", status.dropped());
            assert!(packet.stamp.time.0 >= last - 1_000_000, "{number}: {} after {last}", packet.stamp.time.0);
            last = packet.stamp.time.0;
        }
        sending.join().expect("it ends");
        status.stop();
        assert_eq!(set.next_packet().expect("readable").map(|packet| packet.data.len()), None);
        assert_eq!((status.dropped(), status.failure()), (PacketDrops::default(), None));
    }
}

/// More is sent than the ring holds, before it is read. Each packet passes the loopback interface twice, out and in; the
/// kernel counts both, and libpcap leaves out the first.
#[test]
fn dropped_packets_are_counted() {
    const SENT: u64 = 3_000;
    let (sender, receiver) = sockets();
    let Some(mut live) = capture(&receiver, 2 << 20) else { return };
    let status = live.status();
    for _ in 0..SENT {
        sender.send(&[7; 8_000]).expect("it is sent");
    }
    // Losses are counted once a second. In the rest of the time, the whole ring is read.
    let stop = live.status();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(2));
        stop.stop();
    });
    let mut bytes = Vec::new();
    live.read_to_end(&mut bytes).expect("it is read");
    const RECORD: usize = 16 + HEADERS + 8_000;
    let received = ((bytes.len() - FILE_HEADER) / RECORD) as u64;
    assert_eq!((bytes.len() - FILE_HEADER) % RECORD, 0);
    assert!(received > 10, "{received}");
    assert_eq!(2 * received + status.dropped().kernel, 2 * SENT, "{received} received");
}

#[test]
fn what_cannot_be_captured_is_an_error() {
    let (_sender, receiver) = sockets();
    if capture(&receiver, BUFFER).is_none() {
        return;
    }
    let open = |interface: &str, filters: &[&str]| {
        let filters: Vec<String> = filters.iter().map(|filter| (*filter).to_owned()).collect();
        LiveCapture::open(interface, 0, BUFFER, &filters).map(drop)
    };
    for (interface, filter, why) in [
        ("no-such-interface", "tcp", "such device"),
        ("lo\0", "tcp", "nul byte"),
        ("lo", "tcp prot 445", "syntax error"),
        ("lo", "tcp\0", "nul byte"),
        // More than libpcap's longest name.
        (&"x".repeat(100_000), "tcp", ""),
    ] {
        match open(interface, &[filter]) {
            Err(LiveError::Refused(said)) => assert!(said.contains(why), "{said}"),
            other => panic!("{interface:?} {filter:?}: {other:?}"),
        }
    }
    // `any` has no VLAN headers to filter by: the second filter applies.
    assert_eq!(open("any", &["vlan and tcp", "tcp"]), Ok(()));
    assert!(open("any", &["vlan and tcp"]).is_err());
}
