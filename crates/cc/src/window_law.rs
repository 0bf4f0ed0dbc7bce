//! Controllers that stand on Reno's window and bring a law of their own: how fast it grows in congestion avoidance, and what a
//! congestion signal leaves of it. The law is a [`WindowLaw`]; all else is here, once.

use crate::controller::{Control, Controller};
use crate::event::{Ack, AckSample, Loss, PathInfo, Resume, Timeout, Undo};
use crate::reno_window::{RenoWindow, Repair};

/// Why a window comes down. It does so once per window of data (RFC 5681 §4.3).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal<'a> {
    /// A loss that opens an episode; the host repairs it.
    Loss(&'a Loss),
    /// A congestion-experienced mark that opens one (RFC 3168 §6.1.2): a loss without a retransmission.
    Mark(&'a AckSample),
    /// The first expiry of the timer since an ACK (RFC 5681 §3.1). Whatever is kept is for ssthresh; the window is one packet.
    Timeout(&'a Timeout),
}

impl Signal<'_> {
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Self::Loss(loss) => loss.now_ns,
            Self::Mark(ack) => ack.now_ns,
            Self::Timeout(timeout) => timeout.now_ns,
        }
    }
}

/// What an algorithm adds to Reno. Called in this order: `measure` on every ACK; then, while losses are being repaired,
/// `repairing`, and on the first ACK after that `repaired`; then `keep` and `reduced` if the ACK brings a mark, else `advance`.
pub(crate) trait WindowLaw: Send {
    /// Hears every ACK, before the window moves.
    fn measure(&mut self, _ack: &AckSample, _window: &RenoWindow) {}
    /// Losses are being repaired: the window stands.
    fn repairing(&mut self, _window: &RenoWindow) {}
    /// The losses of the last episode are repaired.
    fn repaired(&mut self, _ack: &AckSample, _window: &mut RenoWindow) {}
    /// Moves the window: slow start, then congestion avoidance.
    fn advance(&mut self, ack: &AckSample, window: &mut RenoWindow);
    /// What a congestion signal leaves of the window, packets.
    fn keep(&mut self, signal: &Signal<'_>, window: &RenoWindow) -> f64;
    /// The window has come down from `before` to what was kept.
    fn reduced(&mut self, _signal: &Signal<'_>, _before: f64, _window: &mut RenoWindow) {}
    /// Any expiry of the timer, after the window has become one packet.
    fn timed_out(&mut self, _window: &RenoWindow) {}
    /// The last signal was none.
    fn undo(&mut self, window: &mut RenoWindow) {
        window.undo();
    }
    /// The first packet after silence.
    fn resume(&mut self, resume: &Resume, window: &mut RenoWindow) {
        window.on_resume(resume);
    }
    /// Another path: what was measured is void.
    fn path_changed(&mut self, _path: &PathInfo, _window: &RenoWindow) {}
    /// Writes the algorithm's fields.
    fn observe(&self, window: &RenoWindow, out: &mut [f64]);
}

/// The controller that `law` makes of `window`.
pub(crate) fn controller<L: WindowLaw + 'static>(
    law: L,
    window: RenoWindow,
) -> Box<dyn Controller> {
    Box::new(RenoWith { law, window })
}

struct RenoWith<L> {
    law: L,
    window: RenoWindow,
}

impl<L: WindowLaw> RenoWith<L> {
    /// The one place where a window is reduced for congestion, be it for a loss, a mark or a timeout.
    fn reduce(&mut self, signal: &Signal<'_>) {
        let kept = self.law.keep(signal, &self.window);
        let before = self.window.cwnd;
        self.window.reduce(kept, signal.now_ns());
        self.law.reduced(signal, before, &mut self.window);
    }
}

impl<L: WindowLaw> Controller for RenoWith<L> {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.law.measure(ack, &self.window);
        match self.window.on_ack(ack) {
            Repair::UnderWay => return self.law.repairing(&self.window),
            Repair::Over => self.law.repaired(ack, &mut self.window),
            Repair::None => {}
        }
        if self.window.is_marked(ack) {
            self.reduce(&Signal::Mark(ack));
        } else {
            self.law.advance(ack, &mut self.window);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.starts_episode() {
            self.reduce(&Signal::Loss(loss));
            self.window.on_loss();
        }
    }

    fn on_rto(&mut self, timeout: &Timeout) {
        // RFC 5681 §3.1: only the first expiry lowers ssthresh.
        if timeout.consecutive <= 1 {
            self.reduce(&Signal::Timeout(timeout));
        }
        self.window.on_rto(timeout.now_ns);
        self.law.timed_out(&self.window);
    }

    fn on_spurious_loss(&mut self, _undo: &Undo) {
        self.law.undo(&mut self.window);
    }

    fn on_resume(&mut self, resume: &Resume) {
        self.law.resume(resume, &mut self.window);
    }

    fn on_path_change(&mut self, path: &PathInfo) {
        self.window.on_path_change(path);
        self.law.path_changed(path, &self.window);
    }

    fn control(&self) -> Control {
        Control::window(self.window.bytes())
    }

    fn observe(&self, out: &mut [f64]) {
        self.law.observe(&self.window, out);
    }
}

#[cfg(test)]
#[path = "window_law_tests.rs"]
mod tests;
