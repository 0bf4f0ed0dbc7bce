//! Slow start, shared by the window-based controllers: by how much an ACK grows the window, and when to leave before a loss.
//!
//! Four ways: plain (RFC 5681 §3.1), HyStart++ (RFC 9406), the HyStart of Linux's CUBIC (Ha and Rhee 2011, with Linux's
//! constants), and limited (RFC 3742), which slows down instead. ACKs in, growth in packets and "leave now" out; the controller then sets ssthresh = cwnd.

use crate::event::AckSample;
use crate::round::Round;

const MS: u64 = 1_000_000;
/// Samples a round needs before its minimum RTT counts (RFC 9406 N_RTT_SAMPLE; Linux HYSTART_MIN_SAMPLES).
const MIN_SAMPLES: u32 = 8;
/// RFC 9406 L: an unpaced sender grows by at most this many packets per ACK.
const MAX_GROWTH_UNPACED: f64 = 8.0;
/// RFC 9406 CSS_GROWTH_DIVISOR.
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// RFC 9406 CSS_ROUNDS; the partial round in which CSS begins counts.
const CSS_ROUNDS: u32 = 5;
/// Linux hystart_low_window, packets.
const HYSTART_LOW_WINDOW: f64 = 16.0;
/// RFC 3742 max_ssthresh, packets: up to here the window doubles per round trip.
const MAX_SSTHRESH: f64 = 100.0;
/// Linux hystart_ack_delta: ACKs this close belong to one train.
const ACK_TRAIN_GAP_NS: u64 = 2 * MS;

/// How slow start ends when no loss ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartKind {
    /// Only by loss or by reaching ssthresh.
    Standard,
    /// HyStart++ (RFC 9406).
    HyStartPlusPlus,
    /// HyStart as Linux's CUBIC has it.
    HyStart,
    /// Limited slow start (RFC 3742): at most 50 packets more per round trip above a window of 100. Ends like `Standard`.
    Limited,
}

impl SlowStartKind {
    /// The words for a parameter of kind `Choice`, in the order of [`SlowStartKind::from_word`].
    pub const WORDS: &'static [&'static str] = &["standard", "hystart++", "hystart", "limited"];

    /// The kind a parameter's word means; plain slow start for any other word.
    pub fn from_word(word: &str) -> Self {
        match word {
            "hystart++" => Self::HyStartPlusPlus,
            "hystart" => Self::HyStart,
            "limited" => Self::Limited,
            _ => Self::Standard,
        }
    }
}

/// What one ACK does in slow start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowStartStep {
    /// Add this many packets to the window.
    pub growth_packets: f64,
    /// Then leave: ssthresh = cwnd.
    pub exit: bool,
}

/// By how much the minimum RTT of a round must exceed the base before it counts as a queue, ns: an eighth of the base, at
/// least 4 ms, at most 16 ms. RFC 9406 §4.2 MIN_RTT_THRESH, MIN_RTT_DIVISOR, MAX_RTT_THRESH; Linux has the same numbers.
pub fn delay_threshold_ns(base_rtt_ns: u64) -> u64 {
    (base_rtt_ns / 8).clamp(4 * MS, 16 * MS)
}

/// State of slow start.
#[derive(Clone, Copy, Debug)]
pub struct SlowStart {
    way: Way,
    /// Whether the host paces, which spaces the ACK train and makes the limit L unnecessary.
    paced: bool,
    round: Round,
    round_min_ns: u64,
    samples: u32,
}

/// A [`SlowStartKind`] and what it alone has to know: every flow of many pays for the largest.
#[derive(Clone, Copy, Debug)]
enum Way {
    Standard,
    /// Applies to the first slow start only (RFC 9406 §4.3).
    HyStartPlusPlus {
        last_round_min_ns: u64,
        /// Minimum RTT when conservative slow start began, and rounds in it; [`OUTSIDE_CSS`] outside.
        css_baseline_ns: u64,
        css_rounds: u32,
    },
    HyStart(HyStart),
    Limited,
}

const OUTSIDE_CSS: u64 = u64::MAX;

/// HyStart: start of the round, the last ACK of the train, and the smallest RTT, ns.
#[derive(Clone, Copy, Debug)]
struct HyStart {
    round_start_ns: u64,
    train_ns: u64,
    delay_min_ns: u64,
}

impl Way {
    fn of(kind: SlowStartKind) -> Self {
        match kind {
            SlowStartKind::Standard => Self::Standard,
            SlowStartKind::HyStartPlusPlus => Self::HyStartPlusPlus {
                last_round_min_ns: u64::MAX,
                css_baseline_ns: OUTSIDE_CSS,
                css_rounds: 0,
            },
            SlowStartKind::HyStart => {
                let (round_start_ns, train_ns, delay_min_ns) = (0, 0, u64::MAX);
                Self::HyStart(HyStart { round_start_ns, train_ns, delay_min_ns })
            }
            SlowStartKind::Limited => Self::Limited,
        }
    }
}

impl SlowStart {
    /// Slow start of a new connection, on a host that paces (`paced`) or sends on every ACK.
    pub fn new(kind: SlowStartKind, paced: bool) -> Self {
        Self {
            way: Way::of(kind),
            paced,
            round: Round::default(),
            round_min_ns: u64::MAX,
            samples: 0,
        }
    }

    /// Slow start begins anew after a timeout.
    pub fn on_rto(&mut self) {
        let kind = match self.way {
            Way::Standard | Way::HyStartPlusPlus { .. } => SlowStartKind::Standard,
            Way::HyStart(_) => SlowStartKind::HyStart,
            Way::Limited => SlowStartKind::Limited,
        };
        *self = Self::new(kind, self.paced);
    }

    /// An ACK that the window limited arrives in slow start; the window is `cwnd` packets.
    pub fn on_ack(&mut self, ack: &AckSample, cwnd: f64) -> SlowStartStep {
        // RFC 5681 (2), counting what was acknowledged (RFC 3465) so that delayed ACKs do not halve the growth.
        let acked = f64::from(ack.acked_packets);
        match self.way {
            Way::HyStartPlusPlus { .. } => self.hystart_plus_plus(ack, acked),
            Way::HyStart(_) => {
                SlowStartStep { growth_packets: acked, exit: self.hystart(ack, cwnd) }
            }
            Way::Limited if cwnd > MAX_SSTHRESH => {
                // RFC 3742 §2: K = int(cwnd / (0.5 max_ssthresh)), cwnd += MSS / K per packet acknowledged.
                let k = libm::floor(cwnd / (0.5 * MAX_SSTHRESH));
                SlowStartStep { growth_packets: acked / k, exit: false }
            }
            _ => SlowStartStep { growth_packets: acked, exit: false },
        }
    }

    /// A round begins: returns the smallest RTT of the last one.
    fn begin_round(&mut self) -> u64 {
        self.samples = 0;
        std::mem::replace(&mut self.round_min_ns, u64::MAX)
    }

    fn take_sample(&mut self, rtt_ns: u64) {
        if rtt_ns > 0 {
            self.round_min_ns = self.round_min_ns.min(rtt_ns);
            self.samples += 1;
        }
    }

    /// RFC 9406 §4.2.
    fn hystart_plus_plus(&mut self, ack: &AckSample, acked: f64) -> SlowStartStep {
        let finished_min_ns = self.round.on_ack(ack).then(|| self.begin_round());
        self.take_sample(ack.rtt_ns);
        let Way::HyStartPlusPlus { last_round_min_ns, css_baseline_ns, css_rounds } = &mut self.way
        else {
            return SlowStartStep { growth_packets: acked, exit: false };
        };
        let mut exit = false;
        if let Some(min_ns) = finished_min_ns {
            *last_round_min_ns = min_ns;
            if *css_baseline_ns != OUTSIDE_CSS {
                *css_rounds += 1;
                exit = *css_rounds >= CSS_ROUNDS;
            }
        }
        if self.samples >= MIN_SAMPLES {
            if *css_baseline_ns != OUTSIDE_CSS {
                if self.round_min_ns < *css_baseline_ns {
                    // The rise was jitter: resume slow start.
                    *css_baseline_ns = OUTSIDE_CSS;
                }
            } else if *last_round_min_ns != u64::MAX {
                let threshold_ns = delay_threshold_ns(*last_round_min_ns);
                if self.round_min_ns >= last_round_min_ns.saturating_add(threshold_ns) {
                    (*css_baseline_ns, *css_rounds) = (self.round_min_ns, 0);
                }
            }
        }
        let in_css = *css_baseline_ns != OUTSIDE_CSS;
        let limit = if self.paced { f64::INFINITY } else { MAX_GROWTH_UNPACED };
        let divisor = if in_css { CSS_GROWTH_DIVISOR } else { 1.0 };
        SlowStartStep { growth_packets: acked.min(limit) / divisor, exit: exit && in_css }
    }

    /// Linux: leave when the ACK train spans half the minimum RTT, or when the round's minimum RTT shows a queue.
    fn hystart(&mut self, ack: &AckSample, cwnd: f64) -> bool {
        let starts_round = self.round.on_ack(ack);
        if starts_round {
            self.begin_round();
        }
        let Way::HyStart(HyStart { round_start_ns, train_ns, delay_min_ns }) = &mut self.way else {
            return false;
        };
        if ack.rtt_ns > 0 {
            *delay_min_ns = (*delay_min_ns).min(ack.rtt_ns);
        }
        if starts_round {
            (*round_start_ns, *train_ns) = (ack.now_ns, ack.now_ns);
        }
        let delay_min_ns = *delay_min_ns;
        if cwnd < HYSTART_LOW_WINDOW || delay_min_ns == u64::MAX {
            return false;
        }
        if ack.now_ns.saturating_sub(*train_ns) <= ACK_TRAIN_GAP_NS {
            *train_ns = ack.now_ns;
            let span_ns = ack.now_ns.saturating_sub(*round_start_ns);
            // A pacer may itself stretch the train to half a round trip.
            let limit_ns = if self.paced { delay_min_ns } else { delay_min_ns / 2 };
            if span_ns > limit_ns {
                return true;
            }
        }
        self.take_sample(ack.rtt_ns);
        self.samples >= MIN_SAMPLES
            && self.round_min_ns != u64::MAX
            && self.round_min_ns > delay_min_ns.saturating_add(delay_threshold_ns(delay_min_ns))
    }
}

const _: () = assert!(size_of::<SlowStart>() == 56);

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds rounds of `per_round` ACKs, `gap_ns` apart, round `i` with `rtts_ms[i]`; returns (ACKs until exit, window).
    fn run(
        kind: SlowStartKind,
        rtts_ms: &[f64],
        per_round: u32,
        gap_ns: u64,
    ) -> (Option<usize>, f64) {
        let mut slow_start = SlowStart::new(kind, false);
        let (mut now_ns, mut delivered, mut cwnd, mut acks) = (0, 0_u64, 20.0, 0);
        for rtt_ms in rtts_ms {
            let round_start = delivered;
            now_ns += (rtt_ms * 1e6) as u64;
            for _ in 0..per_round {
                delivered += 1000;
                acks += 1;
                now_ns += gap_ns;
                let ack = AckSample {
                    now_ns,
                    acked_packets: 1,
                    rtt_ns: (rtt_ms * 1e6) as u64,
                    delivered_total_bytes: delivered,
                    prior_delivered_total_bytes: round_start,
                    ..AckSample::default()
                };
                let step = slow_start.on_ack(&ack, cwnd);
                cwnd += step.growth_packets;
                if step.exit {
                    return (Some(acks), cwnd);
                }
            }
        }
        (None, cwnd)
    }

    /// T21.
    #[test]
    fn thresholds_are_4_12_5_and_16_ms() {
        assert_eq!(delay_threshold_ns(20 * MS), 4 * MS);
        assert_eq!(delay_threshold_ns(100 * MS), 12_500_000);
        assert_eq!(delay_threshold_ns(200 * MS), 16 * MS);
    }

    #[test]
    fn hystart_plus_plus_slows_at_the_threshold_and_leaves_after_five_rounds() {
        let kind = SlowStartKind::HyStartPlusPlus;
        // Just below 100 + 12.5 ms for ever: full growth, no exit.
        let (exit, cwnd) = run(kind, &[100.0, 112.4, 112.4, 112.4, 112.4, 112.4, 112.4], 10, 1000);
        assert_eq!((exit, cwnd), (None, 90.0));
        // At the threshold: CSS from the 8th sample of round 2, left at the fifth round start after it.
        let (exit, cwnd) = run(kind, &[100.0, 112.5, 113.0, 113.0, 113.0, 113.0, 113.0], 10, 1000);
        assert_eq!(exit, Some(61));
        // 17 ACKs at 1, then 44 at 1/4.
        assert_eq!(cwnd, 20.0 + 17.0 + 44.0 / 4.0);
    }

    #[test]
    fn hystart_plus_plus_resumes_when_the_rise_was_jitter() {
        let (exit, cwnd) = run(
            SlowStartKind::HyStartPlusPlus,
            &[100.0, 115.0, 110.0, 110.0, 110.0, 110.0, 110.0, 110.0],
            10,
            1000,
        );
        assert_eq!(exit, None);
        // Conservative from ACK 18 to 27 (10 ACKs at 1/4), the 8th sample of round 3 ends it.
        assert_eq!(cwnd, 20.0 + 17.0 + 10.0 / 4.0 + 53.0);
    }

    #[test]
    fn hystart_plus_plus_limits_an_unpaced_burst_to_eight() {
        let ack = AckSample { acked_packets: 30, ..AckSample::default() };
        let growth = |paced| {
            SlowStart::new(SlowStartKind::HyStartPlusPlus, paced).on_ack(&ack, 20.0).growth_packets
        };
        assert_eq!((growth(false), growth(true)), (8.0, 30.0));
    }

    /// T22: a window of ACKs adds 50 packets above 100, and 83,000 packets take 1,665 round trips instead of 17. That is what RFC
    /// 3742's formula gives; the 836 that it prints would be with 100 per round trip.
    #[test]
    fn limited_slow_start_adds_50_packets_per_round_trip() {
        let mut slow_start = SlowStart::new(SlowStartKind::Limited, false);
        let ack = AckSample { acked_packets: 1, ..AckSample::default() };
        let mut round = |mut cwnd: f64| {
            for _ in 0..cwnd as u32 {
                cwnd += slow_start.on_ack(&ack, cwnd).growth_packets;
            }
            cwnd
        };
        assert_eq!(round(50.0), 100.0);
        for cwnd in [101.0, 150.0, 1000.0, 10_000.0] {
            assert!((round(cwnd) - cwnd - 50.0).abs() <= 1.0, "{cwnd} -> {}", round(cwnd));
        }
        let (mut cwnd, mut rounds) = (1.0, 0);
        while cwnd < 83_000.0 {
            cwnd = round(cwnd);
            rounds += 1;
        }
        assert!((1664..=1667).contains(&rounds), "{rounds}");
    }

    #[test]
    fn hystart_leaves_on_delay() {
        let kind = SlowStartKind::HyStart;
        assert_eq!(run(kind, &[100.0, 112.5, 112.5], 10, 1000).0, None);
        assert_eq!(run(kind, &[100.0, 112.6], 10, 1000).0, Some(18));
    }

    #[test]
    fn hystart_leaves_when_the_ack_train_is_half_an_rtt() {
        let kind = SlowStartKind::HyStart;
        // 1 ms apart at 40 ms: the train exceeds 20 ms at the 21st gap, that is the 22nd ACK of the round.
        assert_eq!(run(kind, &[40.0], 100, MS).0, Some(22));
        // 3 ms apart is no train.
        assert_eq!(run(kind, &[40.0], 100, 3 * MS).0, None);
    }
}
