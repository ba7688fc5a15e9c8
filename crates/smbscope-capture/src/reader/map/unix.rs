//! Advice on maps, and protection against truncation, on systems with signals.

use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Asks the system to read ahead. It may refuse; nothing depends on it.
pub(super) fn read_ahead(bytes: &Mmap) {
    let _ = bytes.advise(Advice::Sequential);
}

pub(super) fn release(bytes: &Mmap, offset: usize, length: usize) {
    if cfg!(target_os = "linux") {
        // SAFETY: MADV_DONTNEED on a shared read-only file mapping loses no data: the next access reads the page again.
        let _ = unsafe { bytes.unchecked_advise_range(UncheckedAdvice::DontNeed, offset, length) };
    }
}

/// Mapped files guarded against truncation; others raise SIGBUS.
const MAX_GUARDED_MAPS: usize = 4096;

/// Address range of a map and the flag to set if its file was truncated. `start` is zero for a free slot.
struct Region {
    start: AtomicUsize,
    end: AtomicUsize,
    cut_short: AtomicPtr<AtomicBool>,
}

static REGIONS: [Region; MAX_GUARDED_MAPS] = [const {
    Region { start: AtomicUsize::new(0), end: AtomicUsize::new(0), cut_short: AtomicPtr::new(ptr::null_mut()) }
}; MAX_GUARDED_MAPS];
static TAKING: Mutex<()> = Mutex::new(());
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// Guards a map while it lives; must be dropped before the map.
#[derive(Debug)]
pub(super) struct Guard {
    region: usize,
    _cut_short: Arc<AtomicBool>,
}

impl Guard {
    pub(super) fn new(bytes: &[u8], cut_short: &Arc<AtomicBool>) -> Option<Guard> {
        install()?;
        let _lock = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let region = REGIONS.iter().position(|region| region.start.load(Ordering::Acquire) == 0)?;
        let (start, slot) = (bytes.as_ptr() as usize, &REGIONS[region]);
        slot.end.store(start + bytes.len(), Ordering::Release);
        slot.cut_short.store(Arc::as_ptr(cut_short).cast_mut(), Ordering::Release);
        // Stored last: it makes the region valid.
        slot.start.store(start, Ordering::Release);
        Some(Guard { region, _cut_short: Arc::clone(cut_short) })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        REGIONS[self.region].start.store(0, Ordering::Release);
    }
}

fn install() -> Option<()> {
    let _lock = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if PREVIOUS.get().is_some() {
        return Some(());
    }
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: an all-zero action is valid (default action, no flags, empty mask); sysconf and sigaction get valid
    // pointers; the handler has the signature that SA_SIGINFO requires and is async-signal-safe (see there).
    let installed = unsafe {
        PAGE.store(libc::sysconf(libc::_SC_PAGESIZE).try_into().ok()?, Ordering::Release);
        let action = action.assume_init_mut();
        action.sa_sigaction = handle as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, action, previous.as_mut_ptr()) == 0
    };
    // SAFETY: sigaction has initialised it, and all-zero is valid if not.
    installed.then(|| PREVIOUS.set(unsafe { previous.assume_init() }).ok()).flatten()
}

/// Replaces the remainder of a truncated map with zero pages and sets its flag. Any other SIGBUS goes to the
/// previous action. Uses only atomics and the system calls mmap and sigaction, which are async-signal-safe.
extern "C" fn handle(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO, the kernel passes a valid pointer.
    let address = unsafe { (*info).si_addr() } as usize;
    for region in &REGIONS {
        let start = region.start.load(Ordering::Acquire);
        let end = region.end.load(Ordering::Acquire);
        if start == 0 || !(start..end).contains(&address) {
            continue;
        }
        let page = address & !(PAGE.load(Ordering::Acquire) - 1);
        // SAFETY: the pages from the touched one to the end of the map belong to the map, whose owner is reading
        // from it and so keeps it alive; they are replaced in place and stay mapped read-only.
        let replaced = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            libc::mmap(page as *mut libc::c_void, end - page, libc::PROT_READ, flags, -1, 0)
        };
        if replaced != libc::MAP_FAILED {
            // SAFETY: the guard that stored the pointer keeps its target alive until the region is free.
            unsafe { (*region.cut_short.load(Ordering::Acquire)).store(true, Ordering::Release) };
            return;
        }
    }
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: the action is the one that sigaction returned. The faulting access raises the signal again.
        unsafe { libc::sigaction(libc::SIGBUS, previous, ptr::null_mut()) };
    }
}
