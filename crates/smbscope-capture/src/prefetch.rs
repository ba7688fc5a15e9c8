//! Asks the processor to fetch what is needed soon, without waiting for it.
//!
//! Reading a byte of it does so too, but what comes behind in the program is then held up all the same, as the processor
//! finishes its instructions in their order.

/// Bytes that come from memory at once.
pub(crate) const CACHE_LINE: usize = 64;

/// Has the line of the cache with the beginning of a value fetched while the program goes on.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction is part of every x86-64 processor, changes nothing that a program can see and can't
        // fault, whatever the address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
