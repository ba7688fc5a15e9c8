//! Memory-mapped files. Beside `prefetch`, the one place in the workspace that needs `unsafe`.
//!
//! A file that another process cuts short while it is mapped has no bytes behind its new end: touching them raises
//! SIGBUS. The handler here puts zeros in their place and notes it, so that reading goes on to an error in words.

#![allow(unsafe_code)]

use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A file's bytes, mapped read-only.
#[derive(Debug)]
pub(super) struct Map {
    // Goes before the bytes do: fields are dropped in this order.
    #[cfg(unix)]
    _guard: Option<guard::Guard>,
    bytes: Mmap,
    /// Set once bytes were missing.
    cut_short: Arc<AtomicBool>,
}

impl Map {
    /// Maps the file as long as it is now.
    pub(super) fn new(file: &File) -> io::Result<Map> {
        // SAFETY: the map is read-only and nothing in this process writes to the file. Another process that rewrites
        // the file changes bytes under our hands: the parsers read each byte they rely on through checked accessors
        // and stay memory safe whatever the bytes are. Another process that cuts the file short makes its last pages
        // read as zeros, by the guard below.
        let bytes = unsafe { Mmap::map(file)? };
        // Advice may be refused, and nothing depends on it.
        let _ = bytes.advise(Advice::Sequential);
        let cut_short = Arc::default();
        #[cfg(unix)]
        let _guard = guard::Guard::new(&bytes, &cut_short);
        Ok(Map {
            #[cfg(unix)]
            _guard,
            bytes,
            cut_short,
        })
    }

    /// Whether the file was cut short while it was read, to be asked now and later.
    pub(super) fn cut_short(&self) -> &Arc<AtomicBool> {
        &self.cut_short
    }

    /// Gives pages back that have been read, so that a long capture does not count as memory in use. They are read
    /// from the file again when they are touched again.
    pub(super) fn release(&self, offset: usize, length: usize) {
        let is_whole = !self.cut_short.load(Ordering::Relaxed);
        if cfg!(target_os = "linux") && is_whole && offset.saturating_add(length) <= self.bytes.len() {
            // SAFETY: MADV_DONTNEED on a shared read-only map of a file drops no data: the next access reads the page
            // from the file, as the first one did.
            let _ = unsafe { self.bytes.unchecked_advise_range(UncheckedAdvice::DontNeed, offset, length) };
        }
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The handler of SIGBUS and the maps that it looks after.
#[cfg(unix)]
mod guard {
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, OnceLock, PoisonError};

    /// Maps that are looked after; further ones are as unsafe to cut short as they are in every program.
    const MAX_GUARDED_MAPS: usize = 4096;

    /// A map: where it is, and where it is noted that it was cut short. `start` is zero where there is none.
    struct Region {
        start: AtomicUsize,
        end: AtomicUsize,
        cut_short: AtomicPtr<AtomicBool>,
    }

    static REGIONS: [Region; MAX_GUARDED_MAPS] = [const {
        Region { start: AtomicUsize::new(0), end: AtomicUsize::new(0), cut_short: AtomicPtr::new(ptr::null_mut()) }
    }; MAX_GUARDED_MAPS];
    /// Held while a region is taken.
    static TAKING: Mutex<()> = Mutex::new(());
    /// What was in place before.
    static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
    static PAGE: AtomicUsize = AtomicUsize::new(0);

    /// Keeps a map under guard as long as it lives; it has to go before the map does.
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
            // What makes it count comes last.
            slot.start.store(start, Ordering::Release);
            Some(Guard { region, _cut_short: Arc::clone(cut_short) })
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            REGIONS[self.region].start.store(0, Ordering::Release);
        }
    }

    /// Puts the handler in place, once.
    fn install() -> Option<()> {
        let _lock = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if PREVIOUS.get().is_some() {
            return Some(());
        }
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: an action of zeros is a valid one (the default, no flags, an empty mask); sysconf and sigaction get
        // valid pointers; the handler has the signature that SA_SIGINFO asks for and is safe in a signal (see there).
        let installed = unsafe {
            PAGE.store(libc::sysconf(libc::_SC_PAGESIZE).try_into().ok()?, Ordering::Release);
            let action = action.assume_init_mut();
            action.sa_sigaction = handle as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, action, previous.as_mut_ptr()) == 0
        };
        // SAFETY: sigaction has filled it in, and zeros are valid if not.
        installed.then(|| PREVIOUS.set(unsafe { previous.assume_init() }).ok()).flatten()
    }

    /// Replaces what is left of a map that was cut short with zeros, and notes it. Any other SIGBUS is left to whoever
    /// was there before. Only atomics and the system calls mmap and sigaction are used, which are safe in a signal.
    extern "C" fn handle(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel passes a valid pointer with SA_SIGINFO.
        let address = unsafe { (*info).si_addr() } as usize;
        for region in &REGIONS {
            let start = region.start.load(Ordering::Acquire);
            let end = region.end.load(Ordering::Acquire);
            if start == 0 || !(start..end).contains(&address) {
                continue;
            }
            let page = address & !(PAGE.load(Ordering::Acquire) - 1);
            // SAFETY: the pages from the one that was touched to the end of the map belong to the map, whose owner is
            // reading from it and so keeps it alive; they are replaced in place and stay mapped read-only.
            let replaced = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                libc::mmap(page as *mut libc::c_void, end - page, libc::PROT_READ, flags, -1, 0)
            };
            if replaced != libc::MAP_FAILED {
                // SAFETY: the guard that entered the pointer keeps what it points to alive until the region is free.
                unsafe { (*region.cut_short.load(Ordering::Acquire)).store(true, Ordering::Release) };
                return;
            }
        }
        if let Some(previous) = PREVIOUS.get() {
            // SAFETY: the action is the one that sigaction returned. The signal comes again and goes its way.
            unsafe { libc::sigaction(libc::SIGBUS, previous, ptr::null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bytes_behind_the_new_end_of_a_file_read_as_zeros_and_it_is_noted() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&[7; 64 << 10]).expect("room for 64 KiB");
        let (map, other) = (Map::new(&file).expect("a map"), Map::new(&file).expect("a map"));
        assert_eq!((map[0], map[60_000]), (7, 7));
        file.set_len(5_000).expect("it can be cut short");
        // The page of the new end is there, with zeros behind it; the next one is not.
        assert_eq!((map[4_999], map[40_000], map[65_535]), (7, 0, 0));
        assert!(map.cut_short().load(Ordering::Relaxed));
        assert!(!other.cut_short().load(Ordering::Relaxed), "only what was touched is noted");
        drop(map);
        assert_eq!(other[50_000], 0);
        assert!(other.cut_short().load(Ordering::Relaxed));
    }
}
