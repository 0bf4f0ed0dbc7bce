//! Delivery-opportunity traces (mahimahi's format).

/// A trace: the milliseconds at which one opportunity of 1504 bytes occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Non-decreasing, last one > 0.
    pub opportunities_ms: Vec<u32>,
}

/// A trace that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("stub")]
pub struct TraceError;
