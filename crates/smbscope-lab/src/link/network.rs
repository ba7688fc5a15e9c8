//! Private network: the server in a network namespace, an interface of this machine that leads to it, and between
//! them, in a namespace of its own, a wire ([`carry`]) or, if nothing has to be slow, a bridge.
//!
//! ```text
//! this machine            between                 the server's
//! smbl… 198.18.x.y ─veth─ pc ── wire ── ps ─veth─ eth0 198.18.x.y+1
//! ```
//!
//! Each namespace is held by an idle process that ends when ours does; the kernel then removes the interfaces. No
//! route or address other than the new interface's changes. Addresses come from the range for benchmarks (RFC 2544,
//! RFC 6890), a pair per server, and the server only answers the other end of its pair.

use super::SERVER_INTERFACE;
use super::lane::{Carrier, LinkImpairments, StopPipe, is_no_failure, read_with_arrival, wake_in_time};
use crate::command_for;
use crate::process::{self, LabProcessRole};
use crate::tools;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, SockaddrLike, bind, setsockopt, socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// 198.18.0.0/15, divided into networks of four addresses, using the middle two.
const FIRST_ADDRESS: u32 = 0xc612_0000;
const PAIRS: u32 = 1 << 15;
const TRIES: u32 = 16;
/// Receive buffer of a packet socket, for frames that arrive while the thread is not running.
const SOCKET_BUFFER: usize = 8 << 20;

#[derive(Debug)]
pub(crate) struct EmulatedNetwork {
    pub(crate) interface: String,
    pub(crate) client: Ipv4Addr,
    pub(crate) server: Ipv4Addr,
    ip: PathBuf,
    /// Closing this pipe stops the wire. Absent before the start and with a bridge.
    running: Option<PipeWriter>,
    servers: Namespace,
    between: Namespace,
}

impl EmulatedNetwork {
    pub(crate) fn make(folder: &Path, shape: LinkImpairments) -> Result<EmulatedNetwork, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can make a network that delays packets".to_owned());
        }
        let tool = |name: &str, package: &str| {
            tools::find(name).ok_or_else(|| format!("{name} is not installed (Debian, Ubuntu: apt install {package})"))
        };
        let (ip, ethtool) = (tool("ip", "iproute2")?, tool("ethtool", "ethtool")?);
        let unshare = tool("unshare", "util-linux")?;
        let client = free_pair(&ip)?;
        let server = Ipv4Addr::from(u32::from(client) + 1);
        let servers = Namespace::make(&unshare, folder)?;
        let between = Namespace::make(&unshare, folder)?;
        let interface = format!("smbl{:08x}", random()?);
        let mut network = EmulatedNetwork { interface, client, server, ip, running: None, servers, between };
        network.connect(&ethtool)?;
        network.start(shape)?;
        Ok(network)
    }

    /// Runs a closure in the server's namespace, on a separate thread. Child processes stay in the namespace.
    pub(crate) fn at_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.servers.inside(work)
    }

    fn connect(&self, ethtool: &Path) -> Result<(), String> {
        let ip = |line: &str| run(&self.ip, line);
        let own = &self.interface;
        ip(&format!("link add {own} type veth peer name pc netns {}", self.between.holder.id()))?;
        ip(&format!("link set {own} addrgenmode none"))?;
        ip(&format!("addr add {}/30 dev {own}", self.client))?;
        plain(ethtool, own)?;
        ip(&format!("link set {own} up"))?;
        self.between.run(|| {
            let servers = self.servers.holder.id();
            ip(&format!("link add ps type veth peer name {SERVER_INTERFACE} netns {servers}"))?;
            for port in ["pc", "ps"] {
                ip(&format!("link set {port} addrgenmode none"))?;
                plain(ethtool, port)?;
                ip(&format!("link set {port} up"))?;
            }
            Ok(())
        })?;
        self.servers.run(|| {
            ip("link set lo up")?;
            ip(&format!("link set {SERVER_INTERFACE} addrgenmode none"))?;
            ip(&format!("addr add {}/30 dev {SERVER_INTERFACE}", self.server))?;
            plain(ethtool, SERVER_INTERFACE)?;
            ip(&format!("link set {SERVER_INTERFACE} up"))
        })
    }

    fn start(&mut self, shape: LinkImpairments) -> Result<(), String> {
        if shape.is_plain() {
            return self.bridge();
        }
        let sockets = self.between.run(|| Ok([packets_of("pc")?, packets_of("ps")?]))?;
        let (stop, running) = io::pipe().map_err(|error| error.to_string())?;
        let stop = StopPipe::new(stop);
        let carry = move || carry(&sockets, &shape, &stop);
        thread::Builder::new().name("lab-wire".to_owned()).spawn(carry).map_err(|error| error.to_string())?;
        self.running = Some(running);
        Ok(())
    }

    fn bridge(&self) -> Result<(), String> {
        let ip = |line: &str| run(&self.ip, line);
        self.between.run(|| {
            ip("link add br0 type bridge")?;
            ip("link set br0 addrgenmode none up")?;
            ["pc", "ps"].iter().try_for_each(|port| ip(&format!("link set {port} master br0")))
        })
    }
}

impl Drop for EmulatedNetwork {
    fn drop(&mut self) {
        // Otherwise the kernel removes it some time after the namespaces have ended.
        remove(&self.interface);
    }
}

pub(crate) fn remove(interface: &str) {
    let Some(ip) = tools::find("ip") else { return };
    let _ = run(&ip, &format!("link del {interface}"));
}

#[derive(Debug)]
struct Namespace {
    holder: Child,
    file: File,
}

impl Namespace {
    fn make(unshare: &Path, folder: &Path) -> Result<Namespace, String> {
        let mut command = command_for(unshare);
        command.args(["--net", "cat"]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        process::mark(&mut command, folder, LabProcessRole::Network);
        let mut holder = command.spawn().map_err(|error| format!("cannot run unshare: {error}"))?;
        let asked = holder.stdin.as_mut().map(|input| input.write_all(b"\n"));
        let answered = holder.stdout.as_mut().map(|output| output.read_exact(&mut [0]));
        if !matches!((asked, answered), (Some(Ok(())), Some(Ok(())))) {
            let mut said = String::new();
            let _ = holder.kill();
            let _ = holder.stderr.as_mut().map(|errors| errors.read_to_string(&mut said));
            let _ = holder.wait();
            let said = said.lines().next().unwrap_or("it ended at once").to_owned();
            return Err(format!("network namespaces can't be made here ({said})"));
        }
        let file = File::open(format!("/proc/{}/ns/net", holder.id())).map_err(|error| error.to_string())?;
        Ok(Namespace { holder, file })
    }

    fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        inside(&self.file, work)
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
        self.inside(work).map_err(|error| format!("a network namespace can't be entered here ({error})"))?
    }
}

/// Runs a closure in the network namespace of a process, on a separate thread. Child processes stay there.
pub(crate) fn in_network_of<T: Send>(pid: u32, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    inside(&File::open(format!("/proc/{pid}/ns/net"))?, work)
}

fn inside<T: Send>(namespace: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let enter = || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(work())
    };
    thread::scope(|scope| match thread::Builder::new().spawn_scoped(scope, enter)?.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Runs a command of ip(8). No word may contain blanks.
fn run(ip: &Path, line: &str) -> Result<(), String> {
    tools::run(command_for(ip).args(line.split(' ')), "").map(drop).map_err(|error| format!("{error} (ip {line})"))
}

/// Turns off segmentation and checksum offload, so that captures look like those on a cable.
fn plain(ethtool: &Path, interface: &str) -> Result<(), String> {
    let off = ["-K", interface, "tso", "off", "gso", "off", "gro", "off", "tx", "off"];
    tools::run(command_for(ethtool).args(off), "").map(drop).map_err(|error| error.to_string())
}

fn packets_of(interface: &str) -> Result<OwnedFd, String> {
    let failed = |what: &str| format!("packets of {interface} can't be carried ({what})");
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll);
    let socket = socket.map_err(|error| failed(error.desc()))?;
    // Without it the default size is sufficient, except for bursts.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER);
    let addresses = getifaddrs().map_err(|error| failed(error.desc()))?;
    let links = addresses.filter(|entry| entry.interface_name == interface).filter_map(|entry| entry.address);
    let link = links.filter_map(|address| address.as_link_addr().copied()).next();
    let link = link.ok_or_else(|| failed("it has no link address"))?;
    debug_assert_eq!(link.family(), Some(AddressFamily::Packet));
    bind(socket.as_raw_fd(), &link).map_err(|error| failed(error.desc()))?;
    setsockopt(&socket, ReceiveTimestampns, &true).map_err(|error| failed(error.desc()))?;
    Ok(socket)
}

fn free_pair(ip: &Path) -> Result<Ipv4Addr, String> {
    let taken =
        tools::run(command_for(ip).args(["-o", "-4", "addr", "show"]), "").map_err(|error| error.to_string())?;
    for _ in 0..TRIES {
        let first = Ipv4Addr::from(FIRST_ADDRESS + (random()? % PAIRS) * 4 + 1);
        if !taken.contains(&format!(" {first}/")) {
            return Ok(first);
        }
    }
    Err("no addresses of 198.18.0.0/15 are free".to_owned())
}

fn random() -> Result<u32, String> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|error| format!("no randomness: {error}"))?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Maximum frame size. With segmentation offload off, frames should not exceed 1,500 bytes.
const FRAME_MAX: usize = 65_700;
/// Router queue in front of the link. Further frames are dropped.
const QUEUE_MAX: Duration = Duration::from_millis(100);
/// Minimum size of that queue in bytes, for slow links.
const QUEUE_BYTES_MIN: usize = 64 << 10;
/// Maximum bytes in flight per direction: 1 Gbit/s for half a second. Further frames are dropped.
const UNDER_WAY_MAX: usize = 64 << 20;
const BURST_MAX: usize = 64;
/// EtherTypes of IPv4 and IPv6, the only frames to drop: a lost ARP request would cost a second.
const IP: [[u8; 2]; 2] = [[0x08, 0x00], [0x86, 0xdd]];

#[derive(Debug)]
pub(super) struct WireDirection {
    delay: Duration,
    carrier: Option<Carrier>,
    loss: f64,
    chance: Chance,
    frames: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
}

impl WireDirection {
    /// Creates a direction: 0 towards the server, 1 towards the client. It alone determines which frames are lost.
    pub(super) fn new(shape: &LinkImpairments, direction: usize) -> WireDirection {
        let carrier = shape.rate_of(direction).map(Carrier::new);
        let loss = if shape.impaired[direction] { shape.loss } else { 0.0 };
        let (frames, bytes) = (VecDeque::new(), 0);
        let chance = Chance(direction as u64 + 1);
        WireDirection { delay: shape.delay[direction], carrier, loss, chance, frames, bytes }
    }

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

    pub(super) fn arrived(&mut self, now: Instant) -> Option<Vec<u8>> {
        let (due, _) = self.frames.front()?;
        if *due > now {
            return None;
        }
        let (_, frame) = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.frames.front().map(|(due, _)| *due)
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1u64 << 53) as f64
    }
}

pub(super) fn carry(sockets: &[OwnedFd; 2], shape: &LinkImpairments, stop: &StopPipe) {
    // Without it, frames arrive a little later.
    let _ = wake_in_time();
    let mut directions = [0, 1].map(|direction| WireDirection::new(shape, direction));
    let mut buffer = vec![0; FRAME_MAX];
    loop {
        let mut failed = false;
        for (side, direction) in directions.iter_mut().enumerate() {
            for _ in 0..BURST_MAX {
                match read_with_arrival(&sockets[side], &mut buffer) {
                    Ok((length, arrived)) => direction.take(arrived, &buffer[..length]),
                    Err(error) => {
                        failed = !is_no_failure(&error);
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

/// Waits for a frame or the next arrival; false when the wire ends. Pauses after errors: the interface may be gone.
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

    fn frame(length: usize) -> Vec<u8> {
        let mut frame = vec![0; length];
        frame[12..14].copy_from_slice(&IP[0]);
        frame
    }

    fn shape(delay: Duration, rate: Option<u64>, loss: f64) -> LinkImpairments {
        LinkImpairments { delay: [delay; 2], rate: rate.map(Rate::from_bits), loss, impaired: [true; 2] }
    }

    #[test]
    fn a_frame_arrives_a_delay_after_it_entered_and_in_order() {
        let start = Instant::now();
        let mut direction = WireDirection::new(&shape(20 * MS, None, 0.0), 0);
        direction.take(start, &frame(60));
        direction.take(start + MS, &frame(61));
        assert_eq!((direction.next_due(), direction.arrived(start + 19 * MS)), (Some(start + 20 * MS), None));
        assert_eq!(direction.arrived(start + 21 * MS).map(|frame| frame.len()), Some(60));
        assert_eq!(direction.arrived(start + 21 * MS).map(|frame| frame.len()), Some(61));
        assert_eq!(direction.next_due(), None);
    }

    /// 1,250 bytes at 10 Mbit/s take 1 ms each. 100 ms of them queue after the one in transit; the others are dropped.
    #[test]
    fn frames_leave_at_the_rate_and_a_full_queue_loses_them() {
        let start = Instant::now();
        let mut direction = WireDirection::new(&shape(Duration::ZERO, Some(10_000_000), 0.0), 0);
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
        let run = |which| {
            let mut direction = WireDirection::new(&shape(Duration::ZERO, None, 0.03), which);
            let arrives = |_| {
                direction.take(start, &frame(60));
                direction.arrived(start).is_some()
            };
            (0..100_000).map(arrives).collect::<Vec<bool>>()
        };
        let lost = run(0).iter().filter(|arrived| !**arrived).count();
        assert!((2_730..=3_270).contains(&lost), "{lost}");
        assert_eq!((run(0) == run(0), run(0) == run(1)), (true, false));
        // ARP (0x0806) always arrives.
        let mut all_lost = WireDirection::new(&shape(Duration::ZERO, None, 1.0), 0);
        let mut arp = frame(42);
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        all_lost.take(start, &frame(60));
        all_lost.take(start, &arp);
        assert_eq!(all_lost.arrived(start), Some(arp));
    }
}
