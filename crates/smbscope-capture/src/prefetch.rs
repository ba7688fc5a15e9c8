//! Prefetch hints to the processor.
//!
//! An ordinary read would also load the cache line, but instructions retire in order, so everything after it would
//! stall until the data arrives.

pub(crate) const CACHE_LINE: usize = 64;

#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has this instruction; it has no architectural effect and can't fault on any
        // address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
