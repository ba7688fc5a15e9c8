//! Wire between two interfaces that delays, throttles and drops Ethernet frames. TCP runs end to end, so that a
//! capture on either side shows the effects of a real network. Time is an argument of [`WireDirection`]; only
//! [`carry`] reads a clock.

use super::lane::Carrier;
use super::relay::StopPipe;
use super::shape::LinkImpairments;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Maximum frame size. With segmentation offload off, frames should not exceed 1,500 bytes.
const FRAME_MAX: usize = 65_700;
/// Router queue in front of the link. Further frames are dropped.
const QUEUE_MAX: Duration = Duration::from_millis(100);
/// Minimum size of that queue in bytes, for slow links.
const QUEUE_BYTES_MIN: usize = 64 << 10;
/// Maximum bytes in flight per direction: 1 Gbit/s for half a second. Further frames are dropped.
const UNDER_WAY_MAX: usize = 64 << 20;
/// Maximum frames received from one side before due frames are sent.
const BURST_MAX: usize = 64;
/// EtherTypes of IPv4 and IPv6. Only these are dropped: a lost ARP request costs a second, which a distant network
/// never causes.
const IP: [[u8; 2]; 2] = [[0x08, 0x00], [0x86, 0xdd]];

#[derive(Debug)]
pub(super) struct WireDirection {
    delay: Duration,
    carrier: Option<Carrier>,
    loss: f64,
    chance: Chance,
    frames: VecDeque<(Instant, Vec<u8>)>,
    /// Total bytes in `frames`.
    bytes: usize,
}

impl WireDirection {
    /// Creates a direction. The seed alone determines which frames are lost.
    pub(super) fn new(shape: &LinkImpairments, seed: u64) -> WireDirection {
        let carrier = shape.rate.map(Carrier::new);
        let (frames, bytes) = (VecDeque::new(), 0);
        WireDirection { delay: shape.delay, carrier, loss: shape.loss, chance: Chance(seed), frames, bytes }
    }

    /// Accepts or drops a frame.
    pub(super) fn take(&mut self, now: Instant, frame: &[u8]) {
        let is_ip = frame.get(12..14).is_some_and(|kind| IP.iter().any(|ip| ip == kind));
        if (is_ip && self.chance.next() < self.loss) || self.bytes + frame.len() > UNDER_WAY_MAX {
            return;
        }
        let left = match &mut self.carrier {
            None => now,
            Some(carrier) if carrier.backlog(now) > carrier.time_for(QUEUE_BYTES_MIN).max(QUEUE_MAX) => return,
            Some(carrier) => carrier.take(now, frame.len()),
        };
        self.bytes += frame.len();
        self.frames.push_back((left + self.delay, frame.to_vec()));
    }

    /// Returns a frame that has arrived.
    pub(super) fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        let (due, _) = self.frames.front()?;
        if *due > now {
            return None;
        }
        let (_, frame) = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    /// Returns the next arrival time.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.frames.front().map(|(due, _)| *due)
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    /// Returns a number from 0 inclusive to 1 exclusive.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Carries frames between two packet sockets until the pipe closes.
pub(super) fn carry(sockets: &[OwnedFd; 2], shape: &LinkImpairments, stop: &StopPipe) {
    let mut directions = [WireDirection::new(shape, 1), WireDirection::new(shape, 2)];
    let mut buffer = vec![0; FRAME_MAX];
    loop {
        let mut failed = false;
        for (side, direction) in directions.iter_mut().enumerate() {
            for _ in 0..BURST_MAX {
                match recv(&sockets[side], &mut buffer[..], RecvFlags::DONTWAIT) {
                    Ok((length, _)) => direction.take(Instant::now(), &buffer[..length]),
                    Err(Errno::AGAIN) => break,
                    Err(error) => {
                        failed = error != Errno::INTR;
                        break;
                    }
                }
            }
            let now = Instant::now();
            while let Some(frame) = direction.arrived(now) {
                // The queue is full or the interface is going away: the frame is lost, as on any wire.
                let _ = send(&sockets[1 - side], &frame, SendFlags::DONTWAIT);
            }
        }
        if !wait(sockets, &directions, stop, failed) {
            return;
        }
    }
}

/// Waits for a frame or the next arrival time. Returns false when the wire ends. After a failed receive it pauses, so
/// that a removed interface does not cause a busy loop.
fn wait(sockets: &[OwnedFd; 2], directions: &[WireDirection; 2], stop: &StopPipe, failed: bool) -> bool {
    let due = directions.iter().filter_map(WireDirection::next_due).min();
    let mut patience = due.map(|due| due.saturating_duration_since(Instant::now()));
    let mut descriptors = vec![stop.poll()];
    if failed {
        patience = Some(patience.unwrap_or(Duration::MAX).min(Duration::from_millis(10)));
    } else {
        descriptors.extend(sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)));
    }
    let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
    let _ = poll(&mut descriptors, timeout.as_ref());
    !stop.came(&descriptors)
}

#[cfg(test)]
mod tests {
    use super::super::lane::Rate;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns an IPv4 frame of this length.
    fn frame(length: usize) -> Vec<u8> {
        let mut frame = vec![0; length];
        frame[12..14].copy_from_slice(&IP[0]);
        frame
    }

    fn shape(delay: Duration, rate: Option<u64>, loss: f64) -> LinkImpairments {
        LinkImpairments { delay, rate: rate.map(Rate::from_bits), loss }
    }

    #[test]
    fn a_frame_arrives_a_delay_after_it_entered_and_in_order() {
        let start = Instant::now();
        let mut direction = WireDirection::new(&shape(20 * MS, None, 0.0), 1);
        direction.take(start, &frame(60));
        direction.take(start + MS, &frame(61));
        assert_eq!((direction.next_due(), direction.arrived(start + 19 * MS)), (Some(start + 20 * MS), None));
        assert_eq!(direction.arrived(start + 21 * MS).map(|frame| frame.len()), Some(60));
        assert_eq!(direction.arrived(start + 21 * MS).map(|frame| frame.len()), Some(61));
        assert_eq!(direction.next_due(), None);
    }

    /// 1,250 bytes at 10 Mbit/s take 1 ms each. 100 ms of them queue behind the one in transit; the others are
    /// dropped.
    #[test]
    fn frames_leave_at_the_rate_and_a_full_queue_loses_them() {
        let start = Instant::now();
        let mut direction = WireDirection::new(&shape(Duration::ZERO, Some(10_000_000), 0.0), 1);
        (0..500).for_each(|_| direction.take(start, &frame(1_250)));
        let arrivals: Vec<Instant> =
            std::iter::from_fn(|| direction.next_due().inspect(|due| drop(direction.arrived(*due)))).collect();
        assert_eq!(arrivals.len(), 101);
        assert!(arrivals.windows(2).all(|pair| pair[1] - pair[0] == MS));
    }

    /// 3% of 100,000 with a standard deviation of sqrt(100,000 × 0.03 × 0.97) = 54: within five of these.
    #[test]
    fn a_share_of_the_packets_is_lost_and_the_same_ones_every_time() {
        let start = Instant::now();
        let run = |seed| {
            let mut direction = WireDirection::new(&shape(Duration::ZERO, None, 0.03), seed);
            let arrives = |_| {
                direction.take(start, &frame(60));
                direction.arrived(start).is_some()
            };
            (0..100_000).map(arrives).collect::<Vec<bool>>()
        };
        let lost = run(1).iter().filter(|arrived| !**arrived).count();
        assert!((2_730..=3_270).contains(&lost), "{lost}");
        assert_eq!((run(1) == run(1), run(1) == run(2)), (true, false));
        // ARP (0x0806) always arrives.
        let mut all_lost = WireDirection::new(&shape(Duration::ZERO, None, 1.0), 1);
        let mut arp = frame(42);
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        all_lost.take(start, &frame(60));
        all_lost.take(start, &arp);
        assert_eq!(all_lost.arrived(start), Some(arp));
    }
}
