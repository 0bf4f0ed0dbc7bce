//! The smallest RTT (§5.3.4.3): of ten seconds for the bandwidth-delay product, of five to say when ProbeRTT is due.

use crate::event::AckSample;

#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// min_rtt and when it was seen, ns.
    min_rtt_ns: Option<u64>,
    stamp_ns: u64,
    /// probe_rtt_min_delay and when it was seen, ns.
    recent_ns: Option<u64>,
    recent_stamp_ns: u64,
}

impl MinRtt {
    pub(super) fn new(now_ns: u64) -> Self {
        Self { min_rtt_ns: None, stamp_ns: now_ns, recent_ns: None, recent_stamp_ns: now_ns }
    }

    pub(super) fn ns(&self) -> Option<u64> {
        self.min_rtt_ns
    }

    /// UpdateMinRTT; true when no RTT as small as the smallest was seen for `interval_ns`.
    pub(super) fn update(&mut self, ack: &AckSample, interval_ns: u64, window_ns: u64) -> bool {
        let older = |stamp_ns: u64, age_ns| ack.now_ns.saturating_sub(stamp_ns) > age_ns;
        let due = older(self.recent_stamp_ns, interval_ns);
        if ack.rtt_ns > 0 && (due || self.recent_ns.is_none_or(|recent| ack.rtt_ns < recent)) {
            self.recent_ns = Some(ack.rtt_ns);
            self.recent_stamp_ns = ack.now_ns;
        }
        if let Some(recent) = self.recent_ns
            && (older(self.stamp_ns, window_ns) || self.min_rtt_ns.is_none_or(|min| recent < min))
        {
            self.min_rtt_ns = Some(recent);
            self.stamp_ns = self.recent_stamp_ns;
        }
        due
    }

    /// A ProbeRTT has ended: the next is due after an interval.
    pub(super) fn on_probed(&mut self, now_ns: u64) {
        self.recent_stamp_ns = now_ns;
    }
}
