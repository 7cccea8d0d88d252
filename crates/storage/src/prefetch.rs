//! Hints to the processor: what will be read soon is fetched into its cache meanwhile. Without effect where there is no such instruction.

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// The processor sees by itself where longer reads go on.
const LINES_MAX: usize = 4;

/// The bytes, of long ones the first, are read soon.
#[inline]
pub fn prefetch(bytes: &[u8]) {
    for line in bytes.chunks(LINE).take(LINES_MAX) {
        prefetch_line(line.as_ptr());
    }
}

/// All of the bytes are read soon, in another order than theirs.
pub(crate) fn prefetch_all(bytes: &[u8]) {
    for line in bytes.chunks(LINE) {
        prefetch_line(line.as_ptr());
    }
}

/// The cache line of an address is read soon.
#[inline]
pub(crate) fn prefetch_line(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    let _ = address;
}
