//! Every registered controller keeps its word under random events: no panic, a window of at least one packet, a positive
//! pacing rate, finite fields, and no change without an event.

mod drive;

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
