//! Digests of files.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// SHA-256 in lower-case hex (FIPS 180-4).
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
