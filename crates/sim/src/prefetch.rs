//! Asking for memory before it is needed. With thousands of flows nothing of a flow is in the cache when its next packet
//! arrives, but which packets arrive next is known: their flows' state can be on its way while others are worked on.

/// Size of a cache line, bytes.
const LINE_BYTES: usize = 64;

/// Lets the processor fetch the lines of `value`; has no effect but on time.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    prefetch_bytes(std::ptr::from_ref(value).cast(), size_of::<T>());
}

/// As [`prefetch`], for a value that may begin anywhere in a line: steps of a line from there may stop short of the last.
#[inline(always)]
pub(crate) fn prefetch_unaligned<T>(value: &T) {
    prefetch(value);
    let start: *const u8 = std::ptr::from_ref(value).cast();
    prefetch_bytes(start.wrapping_add(size_of::<T>().saturating_sub(1)), 1);
}

/// As [`prefetch`], for `bytes` bytes from `start` on.
#[inline(always)]
pub(crate) fn prefetch_bytes(start: *const u8, bytes: usize) {
    let mut offset = 0;
    while offset < bytes {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: the instruction accesses nothing and never faults; SSE is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = start;
        offset += LINE_BYTES;
    }
}
