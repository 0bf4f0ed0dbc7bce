//! A link reduced to its formula: for one that drops nothing and of which nobody asks what waits.

use crate::Picos;
use crate::link::{Buffer, Capacity, LinkSpec};
use crate::queue::QueueSpec;
use crate::service::ConstantService;

/// A directed link without limits, loss, jitter, reordering and changes: when a packet arrives depends on when it entered and on the
/// packet before it, and is all there is to know. Does what [`crate::Link`] would, at a fraction of the work and memory.
#[derive(Clone, Debug)]
pub struct PlainLink {
    /// `None`: no service time.
    service: Option<ConstantService>,
    delay_ps: Picos,
}

impl PlainLink {
    /// The link of `spec`; `None` if it is more than plain.
    pub fn new(spec: &LinkSpec) -> Option<Self> {
        let service = match spec.capacity {
            Capacity::Unlimited => None,
            Capacity::Constant(rate_bps) if spec.buffer == Buffer::default() => {
                Some(ConstantService::new(rate_bps))
            }
            _ => return None,
        };
        let plain = spec.queue == QueueSpec::DropTail
            && spec.delay_trace.is_none()
            && spec.loss.is_none()
            && spec.jitter.is_none()
            && spec.reorder.is_none();
        plain.then_some(Self { service, delay_ps: spec.delay_ps })
    }

    /// Whether every packet takes the same time, whatever came before it.
    pub fn is_pure_delay(&self) -> bool {
        self.service.is_none()
    }

    /// The time over which no packet gets here faster, ps; for a pure delay, what every packet takes. At least 1.
    pub fn least_ps(&self) -> Picos {
        self.delay_ps.max(1)
    }

    /// When a packet of `bytes` that enters at `now` reaches the far end. With a rate, times must not decrease from call to
    /// call. Always after `now`.
    #[inline]
    pub fn arrival(&mut self, now: Picos, bytes: u32) -> Picos {
        match &mut self.service {
            None => now.saturating_add(self.least_ps()),
            Some(service) => {
                let departs = service.serve(now, bytes);
                departs.saturating_add(self.delay_ps).max(now.saturating_add(1))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DelayTrace, Jitter, Link, LossModel, PS_PER_US, Reorder, Verdict};
    use proptest::prelude::*;

    fn spec(capacity: Capacity, delay_ps: Picos) -> LinkSpec {
        LinkSpec { capacity, delay_ps, ..LinkSpec::default() }
    }

    #[test]
    fn only_plain_specs_are_taken() {
        let plain = spec(Capacity::Constant(1e9), 5);
        assert!(PlainLink::new(&plain).is_some_and(|link| !link.is_pure_delay()));
        assert!(PlainLink::new(&spec(Capacity::Unlimited, 0)).is_some_and(|l| l.is_pure_delay()));
        let buffer = Buffer { packets: Some(1000), ..Buffer::default() };
        let jitter = Some(Jitter { mean_ps: 1, max_ps: 2, reorder: false });
        let reorder = Some(Reorder { probability: 0.1, extra_ps: 1 });
        let changes = DelayTrace::parse(b"0 1", "t").unwrap();
        for more in [
            LinkSpec { buffer, ..plain.clone() },
            LinkSpec { queue: QueueSpec::Codel(Default::default()), ..plain.clone() },
            LinkSpec { jitter, ..plain.clone() },
            LinkSpec { delay_trace: Some(changes.into()), ..plain.clone() },
            LinkSpec { reorder, ..plain.clone() },
            LinkSpec { loss: Some(LossModel::Bernoulli(0.1)), ..plain },
        ] {
            assert!(PlainLink::new(&more).is_none());
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_link(
            rate in prop::option::of(1e3f64..1e13),
            delay_us in 0u64..50_000,
            packets in prop::collection::vec((0u64..2_000_000, 40u32..9000), 1..60),
        ) {
            let spec = spec(rate.map_or(Capacity::Unlimited, Capacity::Constant), delay_us * PS_PER_US);
            let mut plain = PlainLink::new(&spec).expect("plain");
            let mut link = Link::new(spec, 1, 2);
            let mut now = 0;
            for (gap, bytes) in packets {
                now += gap;
                let Verdict::Pass { arrives, .. } = link.enqueue(now, bytes) else {
                    panic!("nothing to drop it");
                };
                prop_assert_eq!(plain.arrival(now, bytes), arrives);
            }
        }
    }
}
