//! Every registered controller keeps its word under random events: no panic, a window of at least one packet, a positive
//! pacing rate, finite fields, and no change without an event.

mod drive;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use paceline_cc::{
    Ack, Control, Controller, Family, Field, Loss, Needs, Params, PathInfo, Spec, Timeout,
};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    // A case is up to some hundred events for every algorithm.
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_controller_survives_any_events(bytes in vec(any::<u8>(), 0..6000)) {
        for spec in paceline_cc::registry::all() {
            drive::one(spec, &bytes);
        }
    }
}

/// The entry of the fuzz target takes any input, the empty one too.
#[test]
fn the_shortest_inputs_run() {
    drive::any(&[]);
    (0..=u8::MAX).for_each(|first| drive::any(&[first, 1, 2, 3]));
}

/// A registry entry that is not in the registry.
fn entry(build: fn(&Params, &PathInfo) -> Box<dyn Controller>) -> &'static Spec {
    Box::leak(Box::new(Spec {
        name: "test",
        title: "",
        family: Family::Guest,
        source: "",
        about: "",
        needs: Needs::NONE,
        params: &[],
        profiles: &[],
        fields: &[Field { name: "value", unit: "1", doc: "" }],
        build,
    }))
}

/// Inputs without a pattern, the same in every run.
fn random_inputs(count: u64) -> impl Iterator<Item = Vec<u8>> {
    // SplitMix64 (Steele, Lea and Flood 2014).
    let byte = |state: u64| {
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 56) as u8
    };
    let step = 0x9e37_79b9_7f4a_7c15_u64;
    (0..count).map(move |n| (0..3000).map(|k| byte(step.wrapping_mul(n * 3000 + k + 1))).collect())
}

#[test]
fn a_broken_word_is_noticed() {
    /// Does everything right but one thing, from the first loss on.
    struct Faulty<const FAULT: u8> {
        packet_bytes: u64,
        lost: bool,
        asked: Cell<u64>,
    }

    impl<const FAULT: u8> Controller for Faulty<FAULT> {
        fn on_ack(&mut self, ack: &Ack<'_>) {
            assert!(!(FAULT == 7 && self.lost && ack.rtt_ns == 0), "no sample");
        }
        fn on_loss(&mut self, _: &Loss) {
            self.lost = true;
        }
        fn on_rto(&mut self, _: &Timeout) {}
        fn on_path_change(&mut self, path: &PathInfo) {
            self.packet_bytes = u64::from(path.packet_bytes).max(1);
        }
        fn control(&self) -> Control {
            self.asked.set(self.asked.get() + 1);
            let sound = Control::window(self.packet_bytes);
            match FAULT {
                _ if !self.lost => sound,
                1 => Control::window(self.packet_bytes - 1),
                2 => Control::window(u64::MAX),
                3 => Control { pacing_bytes_per_s: 0, ..sound },
                4 => Control { pacing_bytes_per_s: u64::MAX - 1, ..sound },
                5 => Control::window(self.packet_bytes + self.asked.get()),
                _ => sound,
            }
        }
        fn observe(&self, out: &mut [f64]) {
            out[0] = if FAULT == 6 && self.lost { f64::INFINITY } else { f64::NAN };
        }
    }

    fn noticed<const FAULT: u8>() -> bool {
        let spec = entry(|_, path| {
            let packet_bytes = u64::from(path.packet_bytes).max(1);
            Box::new(Faulty::<FAULT> { packet_bytes, lost: false, asked: Cell::new(0) })
        });
        random_inputs(1).any(|b| catch_unwind(AssertUnwindSafe(|| drive::one(spec, &b))).is_err())
    }

    assert!(!noticed::<0>());
    let faults = [noticed::<1>, noticed::<2>, noticed::<3>, noticed::<4>, noticed::<5>];
    for (number, noticed) in faults.iter().chain(&[noticed::<6>, noticed::<7>]).enumerate() {
        assert!(noticed(), "fault {}", number + 1);
    }
}

/// What the events of [`random_inputs`] hold, by a controller that looks.
#[test]
fn events_are_as_hostile_as_they_claim() {
    static SEEN: Mutex<BTreeMap<&str, u32>> = Mutex::new(BTreeMap::new());

    fn note(what: &'static str, seen: bool) {
        let mut all = SEEN.lock().expect("nobody panics with it");
        *all.entry(what).or_default() += u32::from(seen);
    }

    struct Witness {
        now_ns: u64,
        sent_ns: u64,
        losses_at_once: u32,
        packet_bytes: u32,
    }

    impl Witness {
        fn at(&mut self, now_ns: u64) {
            assert!(now_ns >= self.now_ns, "time goes one way");
            note("jump of an hour", now_ns - self.now_ns > 3_600_000_000_000);
            if now_ns > self.now_ns {
                self.losses_at_once = 0;
            }
            self.now_ns = now_ns;
        }
    }

    impl Controller for Witness {
        fn on_ack(&mut self, ack: &Ack<'_>) {
            self.at(ack.now_ns);
            note("reordered ACK", ack.sent_ns < self.sent_ns);
            note("stretched ACK", ack.acked_packets > 2);
            note("RTT of 0", ack.rtt_ns == 0);
            self.sent_ns = ack.sent_ns;
        }
        fn on_loss(&mut self, loss: &Loss) {
            self.at(loss.now_ns);
            self.losses_at_once += 1;
            note("burst of losses", self.losses_at_once == 3);
        }
        fn on_rto(&mut self, timeout: &Timeout) {
            self.at(timeout.now_ns);
            note("storm of timeouts", timeout.consecutive == 5);
        }
        fn on_path_change(&mut self, path: &PathInfo) {
            note("another packet size", path.packet_bytes != self.packet_bytes);
            self.packet_bytes = path.packet_bytes;
        }
        fn control(&self) -> Control {
            Control::window(u64::from(self.packet_bytes).max(1))
        }
    }

    let spec = entry(|_, path| {
        let packet_bytes = path.packet_bytes;
        Box::new(Witness { now_ns: 0, sent_ns: 0, losses_at_once: 0, packet_bytes })
    });
    random_inputs(100).for_each(|input| drive::one(spec, &input));
    let seen = SEEN.lock().expect("nobody panics with it");
    assert_eq!(seen.len(), 7);
    assert!(seen.values().all(|count| *count >= 100), "in a hundred inputs: {seen:?}");
}
