//! Packets of an interface, from the ring that libpcap maps between the kernel and this process.
//!
//! A program that writes packets to a pipe costs a system call and two copies for each. libpcap is loaded when it is
//! needed: without it, or without the right to capture, everything else still works.

#![allow(unsafe_code)]

use crate::reader::NANOSECOND_MAGIC;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::io::{self, Read};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The name on Debian, and on other systems.
const LIBRARIES: [&str; 2] = ["libpcap.so.0.8", "libpcap.so.1"];
/// Snap length of `tcpdump -s 0`, the largest that libpcap accepts.
const WHOLE_PACKET: u32 = 256 << 10;
/// After this time, the kernel hands over a block that is not full yet.
const BLOCK_TIMEOUT_MS: c_int = 100;
/// Wait if the kernel has no full block.
const IDLE: Duration = Duration::from_millis(10);
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// PCAP_ERRBUF_SIZE.
const ERROR_LENGTH: usize = 256;
/// PCAP_ERROR, PCAP_ERROR_BREAK, PCAP_ERROR_PERM_DENIED and PCAP_ERROR_PROMISC_PERM_DENIED.
const ERROR: c_int = -1;
const INTERRUPTED: c_int = -2;
const NOT_PERMITTED: [c_int; 2] = [-8, -11];
/// PCAP_TSTAMP_PRECISION_NANO.
const NANOSECONDS: c_int = 1;
/// PCAP_NETMASK_UNKNOWN.
const NO_NETMASK: u32 = u32::MAX;
/// Version of pcap files.
const VERSION: [u16; 2] = [2, 4];

/// pcap_t: opaque.
type PcapHandle = *mut c_void;

/// pcap_pkthdr, with its timeval.
#[repr(C)]
struct PacketHeader {
    seconds: c_long,
    nanoseconds: c_long,
    captured: u32,
    length: u32,
}

/// bpf_program.
#[repr(C)]
struct FilterProgram {
    length: u32,
    instructions: *mut c_void,
}

/// pcap_stat.
#[repr(C)]
#[derive(Default)]
struct PcapStatistics {
    received: u32,
    dropped: u32,
    dropped_by_interface: u32,
}

type Deliver = unsafe extern "C" fn(*mut u8, *const PacketHeader, *const u8);
type SetNumber = unsafe extern "C" fn(PcapHandle, c_int) -> c_int;

struct Libpcap {
    create: unsafe extern "C" fn(*const c_char, *mut c_char) -> PcapHandle,
    set_snaplen: SetNumber,
    set_promisc: SetNumber,
    set_timeout: SetNumber,
    set_buffer_size: SetNumber,
    set_tstamp_precision: SetNumber,
    activate: unsafe extern "C" fn(PcapHandle) -> c_int,
    setnonblock: unsafe extern "C" fn(PcapHandle, c_int, *mut c_char) -> c_int,
    datalink: unsafe extern "C" fn(PcapHandle) -> c_int,
    compile: unsafe extern "C" fn(PcapHandle, *mut FilterProgram, *const c_char, c_int, u32) -> c_int,
    setfilter: unsafe extern "C" fn(PcapHandle, *mut FilterProgram) -> c_int,
    freecode: unsafe extern "C" fn(*mut FilterProgram),
    dispatch: unsafe extern "C" fn(PcapHandle, c_int, Deliver, *mut u8) -> c_int,
    breakloop: unsafe extern "C" fn(PcapHandle),
    stats: unsafe extern "C" fn(PcapHandle, *mut PcapStatistics) -> c_int,
    geterr: unsafe extern "C" fn(PcapHandle) -> *const c_char,
    statustostr: unsafe extern "C" fn(c_int) -> *const c_char,
    close: unsafe extern "C" fn(PcapHandle),
    /// The functions are valid while it lives.
    _library: Library,
}

impl Libpcap {
    fn get() -> Option<&'static Libpcap> {
        static LIBPCAP: OnceLock<Option<Libpcap>> = OnceLock::new();
        LIBPCAP.get_or_init(Libpcap::load).as_ref()
    }

    fn load() -> Option<Libpcap> {
        // SAFETY: initialisers of this library have no preconditions.
        let library = LIBRARIES.iter().find_map(|name| unsafe { Library::new(name) }.ok())?;
        // SAFETY: pcap(3PCAP) declares the functions like this since version 1.5.
        unsafe {
            Some(Libpcap {
                create: *library.get(b"pcap_create").ok()?,
                set_snaplen: *library.get(b"pcap_set_snaplen").ok()?,
                set_promisc: *library.get(b"pcap_set_promisc").ok()?,
                set_timeout: *library.get(b"pcap_set_timeout").ok()?,
                set_buffer_size: *library.get(b"pcap_set_buffer_size").ok()?,
                set_tstamp_precision: *library.get(b"pcap_set_tstamp_precision").ok()?,
                activate: *library.get(b"pcap_activate").ok()?,
                setnonblock: *library.get(b"pcap_setnonblock").ok()?,
                datalink: *library.get(b"pcap_datalink").ok()?,
                compile: *library.get(b"pcap_compile").ok()?,
                setfilter: *library.get(b"pcap_setfilter").ok()?,
                freecode: *library.get(b"pcap_freecode").ok()?,
                dispatch: *library.get(b"pcap_dispatch").ok()?,
                breakloop: *library.get(b"pcap_breakloop").ok()?,
                stats: *library.get(b"pcap_stats").ok()?,
                geterr: *library.get(b"pcap_geterr").ok()?,
                statustostr: *library.get(b"pcap_statustostr").ok()?,
                close: *library.get(b"pcap_close").ok()?,
                _library: library,
            })
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LiveError {
    #[error("libpcap is not installed")]
    NoLibrary,
    /// This user may not capture. A program with more rights may.
    #[error("{0}")]
    NotPermitted(String),
    #[error("{0}")]
    Refused(String),
}

/// Packets that were lost on the way to a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketDrops {
    /// Dropped by the kernel, because the capture's buffer was full.
    pub kernel: u64,
    /// Dropped by the network interface, because the machine was too slow. They may be of any traffic, and were lost for
    /// the machine, too.
    pub interface: u64,
}

impl PacketDrops {
    /// Returns the place that dropped packets, and their number.
    pub fn by_place(self) -> [(&'static str, u64); 2] {
        [("kernel", self.kernel), ("interface", self.interface)]
    }
}

/// State of a live capture, for other threads.
#[derive(Debug, Default)]
pub struct LiveStatus {
    dropped: AtomicU64,
    dropped_by_interface: AtomicU64,
    failure: OnceLock<String>,
    stop: AtomicBool,
}

impl LiveStatus {
    /// Returns the packets that were dropped since the start, as of the last second.
    pub fn dropped(&self) -> PacketDrops {
        PacketDrops {
            kernel: self.dropped.load(Ordering::Relaxed),
            interface: self.dropped_by_interface.load(Ordering::Relaxed),
        }
    }

    /// Returns why the capture ended by itself, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Ends the stream of packets.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Activated pcap_t.
struct ActiveHandle {
    libpcap: &'static Libpcap,
    handle: NonNull<c_void>,
}

// SAFETY: libpcap keeps no state of a handle in the thread that made it.
unsafe impl Send for ActiveHandle {}

impl ActiveHandle {
    fn open(interface: &CStr, snap_length: u32, buffer_bytes: u32) -> Result<ActiveHandle, LiveError> {
        let libpcap = Libpcap::get().ok_or(LiveError::NoLibrary)?;
        let mut error: [c_char; ERROR_LENGTH] = [0; ERROR_LENGTH];
        let snap_length = if snap_length == 0 { WHOLE_PACKET } else { snap_length.min(WHOLE_PACKET) };
        // SAFETY: the name and the text outlive the call, and the text is as long as libpcap demands.
        let handle = unsafe { (libpcap.create)(interface.as_ptr(), error.as_mut_ptr()) };
        let Some(handle) = NonNull::new(handle) else { return Err(LiveError::Refused(text(error.as_ptr()))) };
        let opened = ActiveHandle { libpcap, handle };
        let pcap = handle.as_ptr();
        // SAFETY: the handle was made above, and settings precede its activation. Their errors mean that it is active
        // already, or that a value is negative, except for the precision.
        let activated = unsafe {
            (libpcap.set_snaplen)(pcap, snap_length as c_int);
            (libpcap.set_promisc)(pcap, 1);
            (libpcap.set_timeout)(pcap, BLOCK_TIMEOUT_MS);
            (libpcap.set_buffer_size)(pcap, c_int::try_from(buffer_bytes).unwrap_or(c_int::MAX));
            match (libpcap.set_tstamp_precision)(pcap, NANOSECONDS) {
                0 => (libpcap.activate)(pcap),
                refused => refused,
            }
        };
        // Positive numbers are warnings.
        if activated < 0 {
            let why = opened.why(activated);
            return Err(match NOT_PERMITTED.contains(&activated) {
                true => LiveError::NotPermitted(why),
                false => LiveError::Refused(why),
            });
        }
        // SAFETY: as above.
        match unsafe { (libpcap.setnonblock)(pcap, 1, error.as_mut_ptr()) } {
            ERROR => Err(LiveError::Refused(text(error.as_ptr()))),
            _ => Ok(opened),
        }
    }

    fn filter(&self, expression: &str) -> Result<(), LiveError> {
        let expression = CString::new(expression).map_err(|error| LiveError::Refused(error.to_string()))?;
        let mut program = FilterProgram { length: 0, instructions: ptr::null_mut() };
        let (libpcap, pcap) = (self.libpcap, self.handle.as_ptr());
        // SAFETY: the handle is active, and the program is freed after its last use.
        let status = unsafe {
            match (libpcap.compile)(pcap, &mut program, expression.as_ptr(), 1, NO_NETMASK) {
                0 => {
                    let status = (libpcap.setfilter)(pcap, &mut program);
                    (libpcap.freecode)(&mut program);
                    status
                }
                failed => failed,
            }
        };
        if status == 0 { Ok(()) } else { Err(LiveError::Refused(self.why(status))) }
    }

    fn link_type(&self) -> u32 {
        // SAFETY: the handle is active.
        unsafe { (self.libpcap.datalink)(self.handle.as_ptr()) as u32 }
    }

    /// Appends the packets that the kernel has ready. Returns libpcap's status.
    fn dispatch(&self, records: &mut Records<'_>) -> c_int {
        let mut delivery = Delivery { handle: self, records };
        let delivery: *mut Delivery<'_, '_> = &mut delivery;
        // SAFETY: the handle is active and used by this thread only, and `deliver` gets a pointer that is valid during
        // the call.
        unsafe { (self.libpcap.dispatch)(self.handle.as_ptr(), -1, deliver, delivery.cast()) }
    }

    fn counts(&self) -> Option<PcapStatistics> {
        let mut counts = PcapStatistics::default();
        // SAFETY: the handle is active, and libpcap on Linux writes these three numbers.
        let status = unsafe { (self.libpcap.stats)(self.handle.as_ptr(), &mut counts) };
        (status == 0).then_some(counts)
    }

    /// Returns the reason of an error in libpcap's words.
    fn why(&self, status: c_int) -> String {
        // SAFETY: the handle is valid. Both texts are its own or static.
        let said = unsafe { text((self.libpcap.geterr)(self.handle.as_ptr())) };
        if said.is_empty() { text(unsafe { (self.libpcap.statustostr)(status) }) } else { said }
    }
}

impl Drop for ActiveHandle {
    fn drop(&mut self) {
        // SAFETY: nothing uses it afterwards.
        unsafe { (self.libpcap.close)(self.handle.as_ptr()) }
    }
}

fn text(said: *const c_char) -> String {
    // SAFETY: libpcap's texts end with a zero.
    unsafe { CStr::from_ptr(said) }.to_string_lossy().trim_end_matches('.').to_owned()
}

/// Records of a pcap file, in the buffer of a reader.
struct Records<'b> {
    buffer: &'b mut [u8],
    filled: usize,
    /// The first one that the buffer has no room for.
    next: &'b mut Vec<u8>,
}

impl Records<'_> {
    /// Returns false if the record had to be put aside.
    fn push(&mut self, header: [u8; 16], packet: &[u8]) -> bool {
        let length = header.len() + packet.len();
        match self.buffer.get_mut(self.filled..self.filled + length) {
            Some(place) if self.next.is_empty() => {
                let (first, rest) = place.split_at_mut(header.len());
                first.copy_from_slice(&header);
                rest.copy_from_slice(packet);
                self.filled += length;
                true
            }
            _ => {
                self.next.extend_from_slice(&header);
                self.next.extend_from_slice(packet);
                false
            }
        }
    }
}

struct Delivery<'d, 'b> {
    handle: &'d ActiveHandle,
    records: &'d mut Records<'b>,
}

/// # Safety
/// `delivery` must point to a [`Delivery`], and the others to a packet's header and as many bytes as it names.
unsafe extern "C" fn deliver(delivery: *mut u8, header: *const PacketHeader, packet: *const u8) {
    // SAFETY: libpcap passes the pointer that `dispatch` gave it, and a packet that stays until the end of this call.
    let (delivery, header, packet) = unsafe {
        let header = &*header;
        let packet = std::slice::from_raw_parts(packet, header.captured as usize);
        (&mut *delivery.cast::<Delivery<'_, '_>>(), header, packet)
    };
    let mut record = [0; 16];
    let fields = [header.seconds as u32, header.nanoseconds as u32, header.captured, header.length];
    for (place, field) in record.chunks_exact_mut(4).zip(fields) {
        place.copy_from_slice(&field.to_le_bytes());
    }
    if !delivery.records.push(record, packet) {
        // SAFETY: the handle is the one that delivers.
        unsafe { (delivery.handle.libpcap.breakloop)(delivery.handle.handle.as_ptr()) }
    }
}

/// Live packets of an interface as a pcap file with nanoseconds, which ends if the interface disappears.
pub struct LiveCapture {
    handle: ActiveHandle,
    /// The file's header, or a record, read up to `taken`.
    next: Vec<u8>,
    taken: usize,
    status: Arc<LiveStatus>,
    /// The latest counts, and when they were taken.
    counts: PcapStatistics,
    counted: Instant,
}

impl LiveCapture {
    /// Opens an interface with a ring of `buffer_bytes` in the kernel. Bytes beyond `snap_length` of a packet are left
    /// out; 0 keeps all. The first of the filters that suits the interface applies.
    pub fn open(
        interface: &str,
        snap_length: u32,
        buffer_bytes: u32,
        filters: &[String],
    ) -> Result<LiveCapture, LiveError> {
        let name = CString::new(interface).map_err(|error| LiveError::Refused(error.to_string()))?;
        let handle = ActiveHandle::open(&name, snap_length, buffer_bytes)?;
        let mut filtered = Ok(());
        for expression in filters {
            filtered = handle.filter(expression);
            if filtered.is_ok() {
                break;
            }
        }
        filtered?;
        let next = file_header(handle.link_type());
        let counts = PcapStatistics::default();
        Ok(LiveCapture { handle, next, taken: 0, status: Arc::default(), counts, counted: Instant::now() })
    }

    pub fn status(&self) -> Arc<LiveStatus> {
        Arc::clone(&self.status)
    }

    fn count_losses(&mut self) {
        self.counted = Instant::now();
        let Some(counts) = self.handle.counts() else { return };
        add_growth(&self.status.dropped, self.counts.dropped, counts.dropped);
        add_growth(&self.status.dropped_by_interface, self.counts.dropped_by_interface, counts.dropped_by_interface);
        self.counts = counts;
    }
}

/// Adds the growth of a count of 32 bits. The interface's shrinks when the interface is removed.
fn add_growth(sum: &AtomicU64, before: u32, now: u32) {
    let grown = i32::try_from(now.wrapping_sub(before)).unwrap_or(0);
    sum.fetch_add(grown.unsigned_abs().into(), Ordering::Relaxed);
}

fn file_header(link_type: u32) -> Vec<u8> {
    let mut header = NANOSECOND_MAGIC.to_le_bytes().to_vec();
    header.extend(VERSION.iter().flat_map(|number| number.to_le_bytes()));
    // Time zone and accuracy are always 0.
    header.extend([0, 0, WHOLE_PACKET, link_type].iter().flat_map(|field| field.to_le_bytes()));
    header
}

impl Read for LiveCapture {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let waiting = &self.next[self.taken..];
            if !waiting.is_empty() {
                let length = waiting.len().min(buffer.len());
                buffer[..length].copy_from_slice(&waiting[..length]);
                self.taken += length;
                return Ok(length);
            }
            let is_over = self.status.stop.load(Ordering::Relaxed) || self.status.failure().is_some();
            if is_over || self.counted.elapsed() >= COUNT_INTERVAL {
                self.count_losses();
            }
            if is_over {
                return Ok(0);
            }
            self.next.clear();
            self.taken = 0;
            let mut records = Records { buffer: &mut *buffer, filled: 0, next: &mut self.next };
            let status = self.handle.dispatch(&mut records);
            let filled = records.filled;
            if status < 0 && status != INTERRUPTED {
                let _ = self.status.failure.set(self.handle.why(status));
            }
            if filled > 0 {
                return Ok(filled);
            }
            if status == 0 {
                sleep(IDLE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_32_bits_may_wrap_or_start_again() {
        let sum = AtomicU64::new(0);
        for (before, now, total) in [(0, 5, 5), (u32::MAX - 1, 3, 10), (3, 3, 10), (700, 0, 10)] {
            add_growth(&sum, before, now);
            assert_eq!(sum.load(Ordering::Relaxed), total, "{before} to {now}");
        }
    }
}
