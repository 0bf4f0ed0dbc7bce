//! CAIA Delay-Gradient, CDG (Hayes and Armitage 2011): back off when the RTT grows, at random and the likelier the faster it
//! grows, whatever the RTT itself is; fall back on losses where others do not listen to delay.
//!
//! Where the paper is silent, its authors' FreeBSD module is followed. The profile "linux" has Linux's reading
//! (`variant = "linux"`); each difference is named at its line.

use crate::controller::Controller;
use crate::event::{AckSample, PathInfo, Resume};
use crate::random::SplitMix64;
use crate::registry::Params;
use crate::reno_window::RenoWindow;
use crate::round::RoundCounter;
use crate::window_law::{self, Signal, WindowLaw};

mod gradient;
mod hystart;
mod params;

use gradient::{Gradients, RttRange};
use hystart::HybridSlowStart;
pub(crate) use params::SPEC;

/// Linux: a backoff was effectual when the gradients of a window sum up to less than this, ms.
const EFFECTUAL_MS: f64 = -0.032;
/// §3.2, b': backoffs left out once those before had no effect.
const HELD_BACKOFFS: u32 = 5;
/// Smallest window and threshold after a reduction, packets.
const MIN_WINDOW: f64 = 2.0;

/// What the gradients tell of the bottleneck's queue (§3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Unknown,
    /// Neither full nor empty, or it cannot be told.
    Between,
    Empty,
    Full,
}

/// A reduction under way: for a round trip the window does not grow.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    from: f64,
    to: f64,
    /// Packets delivered since.
    delivered: f64,
    /// Ends with data sent when this had been delivered.
    ends_at_delivered: u64,
}

impl Reduction {
    fn is_ended_by(&self, ack: &AckSample) -> bool {
        ack.prior_delivered_total_bytes >= self.ends_at_delivered
    }
}

fn build(params: &Params, path: &PathInfo) -> Box<dyn Controller> {
    let linux = params.get_choice("variant") == "linux";
    let window = RenoWindow::from_params(params, path).in_whole_packets(linux);
    let law = Cdg {
        linux,
        scale_ms: params.get("scale") * 1e3,
        beta_delay: params.get("beta_delay"),
        beta_loss: params.get("beta_loss"),
        ineffectual: params.get("ineffectual") as u32,
        has_shadow: params.get_bool("shadow"),
        tolerates_loss: params.get_bool("loss_tolerance"),
        random: SplitMix64::new(path.seed),
        rounds: RoundCounter::default(),
        rtt: RttRange::default(),
        previous: None,
        gradients: Gradients::new(params.get("smoothing") as usize),
        last_gradient_ms: f64::NAN,
        queue: Queue::Unknown,
        backoffs: 0,
        shadow: window.cwnd,
        reduction: None,
        was_repairing: false,
        hybrid: HybridSlowStart::default(),
    };
    window_law::controller(law, window)
}

struct Cdg {
    linux: bool,
    /// G, ms.
    scale_ms: f64,
    beta_delay: f64,
    beta_loss: f64,
    ineffectual: u32,
    has_shadow: bool,
    tolerates_loss: bool,
    random: SplitMix64,
    rounds: RoundCounter,
    /// Smallest and largest RTT of this round and of the last one that counts.
    rtt: RttRange,
    previous: Option<RttRange>,
    gradients: Gradients,
    /// The gradient last judged, ms per round.
    last_gradient_ms: f64,
    queue: Queue,
    /// Delay backoffs called for since one had an effect.
    backoffs: u32,
    /// Shadow window s, packets: what Reno would have.
    shadow: f64,
    reduction: Option<Reduction>,
    was_repairing: bool,
    hybrid: HybridSlowStart,
}

impl Cdg {
    /// §3.1, eq. (1)-(3): the gradient to back off from at the end of a round, ms per round; `None` where there is none yet.
    fn gradient(&mut self, slow_start: bool) -> Option<f64> {
        let previous = self.previous.replace(self.rtt)?;
        let raw = self.rtt.since(&previous);
        let mean = self.gradients.add(raw, self.linux);
        if self.linux {
            // Linux looks at sums over the window.
            let window = self.gradients.window() as f64;
            let sum = self.gradients.sum();
            if sum.min_ms <= EFFECTUAL_MS || sum.max_ms <= EFFECTUAL_MS {
                self.backoffs = 0;
            }
            let gradient = if sum.min_ms > 0.0 { mean.min_ms } else { mean.max_ms };
            self.judge_queue(sum.min_ms / window, sum.max_ms / window);
            return Some(gradient);
        }
        if mean.min_ms < 0.0 || mean.max_ms < 0.0 {
            self.backoffs = 0;
        }
        self.judge_queue(mean.min_ms, mean.max_ms);
        // §3.4: in slow start the queue builds up too fast for a mean.
        [(slow_start, raw.min_ms), (true, mean.min_ms), (slow_start, raw.max_ms)]
            .into_iter()
            .find_map(|(counts, gradient)| (counts && gradient > 0.0).then_some(gradient))
            .or(Some(mean.max_ms))
    }

    /// §3.3: the largest RTT stops growing before the smallest when the queue is full, and stops falling after it when it is
    /// empty.
    fn judge_queue(&mut self, min_ms: f64, max_ms: f64) {
        if min_ms > 0.0 && max_ms <= 0.0 {
            self.queue = Queue::Full;
        } else if min_ms >= 0.0 && max_ms < 0.0 {
            self.queue = Queue::Empty;
            if !self.linux {
                self.shadow = 0.0;
            }
        } else if (min_ms > 0.0 && max_ms > 0.0) || (min_ms < 0.0 && max_ms < 0.0) {
            self.queue = Queue::Between;
        }
    }

    /// §3.1, eq. (4): P[backoff] = 1 - exp(-g / G).
    fn draws_backoff(&mut self, gradient_ms: f64) -> bool {
        self.random.uniform() >= libm::exp(-gradient_ms / self.scale_ms)
    }

    /// The end of a round. Whether the window was reduced.
    fn finish_round(&mut self, ack: &AckSample, window: &mut RenoWindow) -> bool {
        let Some(gradient_ms) = self.gradient(window.in_slow_start()) else { return false };
        self.last_gradient_ms = gradient_ms;
        if gradient_ms <= 0.0 || !self.draws_backoff(gradient_ms) {
            return false;
        }
        // §3.2: backoffs without effect mean that others fill the queue.
        if self.ineffectual > 0 {
            self.backoffs = self.backoffs.saturating_add(1);
        }
        let holds = self.backoffs > self.ineffectual && self.ineffectual > 0;
        if self.linux && holds {
            // Until one has an effect.
            return false;
        }
        if !self.linux {
            if self.backoffs >= self.ineffectual + HELD_BACKOFFS {
                self.backoffs = 0;
            }
            // The effect shows in the round after the next.
            self.previous = None;
        }
        self.shadow = self.shadow.max(window.cwnd);
        if holds {
            return false;
        }
        let from = window.cwnd;
        window.reduce(window.fraction(self.beta_delay), ack.now_ns);
        self.begin_reduction(from, ack, window);
        true
    }

    /// The window has been reduced from `from`.
    fn begin_reduction(&mut self, from: f64, ack: &AckSample, window: &mut RenoWindow) {
        let ends_at_delivered = ack.delivered_total_bytes;
        let to = window.cwnd;
        self.reduction = Some(Reduction { from, to, delivered: 0.0, ends_at_delivered });
        if self.linux {
            window.cwnd = from.max(to);
        }
    }

    /// Goes on with a reduction. Whether this ACK still belongs to it.
    ///
    /// Linux comes down over a round trip, by proportional rate reduction (RFC 9937 §6); the authors' module at once.
    fn continue_reduction(&mut self, ack: &AckSample, window: &mut RenoWindow) -> bool {
        let Some(mut reduction) = self.reduction else { return false };
        let Reduction { from, to, .. } = reduction;
        if reduction.is_ended_by(ack) {
            self.reduction = None;
            if self.linux {
                window.set(to);
                self.complete_reduction(ack);
            }
            return false;
        }
        reduction.delivered += f64::from(ack.acked_packets);
        if self.linux && from > to {
            let delivered = reduction.delivered.min(from);
            let sent = libm::ceil(delivered * to / from);
            window.cwnd = (from - delivered + sent).max(to);
        }
        self.reduction = Some(reduction);
        self.linux
    }

    /// A reduction or a repair is over: what was measured in it is what the next round is compared with.
    fn complete_reduction(&mut self, ack: &AckSample) {
        self.queue = Queue::Unknown;
        self.previous = (self.linux && self.rtt.is_known()).then_some(self.rtt);
        self.rtt = RttRange::default();
        self.rounds.restart(ack.delivered_total_bytes);
    }

    /// §3.2-3.3, eq. (5)-(6): the window after a congestion signal; `random` if that may have nothing to do with congestion.
    fn after_signal(&mut self, random: bool, window: &RenoWindow) -> f64 {
        if let Some(reduction) = self.reduction.take() {
            // The delay has already called for one.
            return reduction.to;
        }
        if random && self.tolerates_loss && matches!(self.queue, Queue::Empty | Queue::Between) {
            return window.cwnd;
        }
        let kept = window.fraction(self.beta_loss);
        let halved = window.rounded(self.shadow / 2.0);
        // Linux: never more than the window.
        self.shadow = if self.linux { halved.min(window.cwnd) } else { halved };
        let shadow = if self.has_shadow { self.shadow } else { 0.0 };
        kept.max(shadow).max(MIN_WINDOW)
    }

    fn forget_gradients(&mut self) {
        self.gradients.clear();
        self.previous = None;
        self.rtt = RttRange::default();
        self.queue = Queue::Unknown;
    }
}

impl WindowLaw for Cdg {
    fn measure(&mut self, ack: &AckSample, _window: &RenoWindow) {
        self.rtt.note(ack, self.linux);
    }

    fn repairing(&mut self, _window: &RenoWindow) {
        self.was_repairing = true;
    }

    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow) {
        if std::mem::take(&mut self.was_repairing) {
            self.complete_reduction(ack);
        }
        if self.continue_reduction(ack, window) {
            return;
        }
        let limited = ack.has(AckSample::CWND_LIMITED);
        if self.linux && window.in_slow_start() && self.hybrid.ends(ack.now_ns, limited, &self.rtt)
        {
            window.leave_slow_start();
        }
        if self.rounds.on_ack(ack) && self.rtt.is_known() {
            let reduced = self.finish_round(ack, window);
            self.rtt = RttRange { delayed: self.rtt.delayed, ..RttRange::default() };
            self.hybrid.begin_round();
            if reduced {
                return;
            }
        }
        if !limited {
            self.shadow = self.shadow.min(window.cwnd);
            return;
        }
        let before = window.cwnd;
        window.grow_as_reno(ack);
        // §3.2: the shadow window grows as Reno would, while there is one.
        if self.shadow > 0.0 || self.linux {
            self.shadow += window.cwnd - before;
        }
    }

    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64 {
        // RFC 3168 §5: a mark is congestion; nothing is tolerated.
        let mut random = true;
        if let Signal::Mark(ack) = signal {
            self.reduction = self.reduction.filter(|reduction| !reduction.is_ended_by(ack));
            random = false;
        }
        self.after_signal(random, window)
    }

    fn reduced(&mut self, signal: &Signal<'_>, before: f64, window: &mut RenoWindow) {
        // The shadow window may be above the window.
        window.set(window.ssthresh);
        if let Signal::Mark(ack) = signal {
            self.begin_reduction(before, ack, window);
        }
    }

    fn timed_out(&mut self, _window: &RenoWindow) {
        self.reduction = None;
        self.forget_gradients();
    }

    fn resume(&mut self, resume: &Resume, window: &mut RenoWindow) {
        window.on_resume(resume);
        self.forget_gradients();
    }

    fn path_changed(&mut self, _path: &PathInfo, _window: &RenoWindow) {
        self.forget_gradients();
        self.hybrid = HybridSlowStart::default();
    }

    fn observe(&self, window: &RenoWindow, out: &mut [f64]) {
        out.copy_from_slice(&[
            window.ssthresh_bytes(),
            self.last_gradient_ms,
            f64::from(self.backoffs),
            self.shadow,
        ]);
    }
}

#[cfg(test)]
#[path = "cdg_tests.rs"]
mod tests;
