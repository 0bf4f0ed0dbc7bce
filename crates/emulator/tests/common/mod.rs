//! What tests with real links share.

use std::fs;
use std::io::Write as _;
use std::sync::{Mutex, MutexGuard};

/// One at a time: they would disturb each other, and some look for what others would leave behind.
static TURN: Mutex<()> = Mutex::new(());

/// The turn of `test`; `None`, and a word, where there can be no link.
pub fn turn(test: &str) -> Option<MutexGuard<'static, ()>> {
    if let Some(why) = missing() {
        // Not by a macro: the test runner would keep it to itself.
        let line = format!("\nSKIPPED {test}: {why}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
        return None;
    }
    Some(TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// What is missing for a link.
fn missing() -> Option<&'static str> {
    /// CAP_NET_ADMIN and CAP_SYS_ADMIN.
    const NEEDED: u64 = 1 << 12 | 1 << 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    if effective.unwrap_or_default() & NEEDED != NEEDED {
        return Some("needs root (CAP_NET_ADMIN and CAP_SYS_ADMIN)");
    }
    let tun = fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    tun.err().map(|_| "needs /dev/net/tun")
}
