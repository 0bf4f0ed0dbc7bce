//! Random networks, flows and impairments: whatever the plan, the run ends, packets are conserved, a finite transfer that says it
//! is complete has delivered its bytes, and a second run is equal.

mod common;

use common::draft::draft;
use common::*;
use paceline_sim::run;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_plan_runs_conserves_and_repeats(draft in draft()) {
        let outcome = run_checked(draft.plan());
        for (flow, drawn) in outcome.flows.iter().zip(&draft.flows) {
            prop_assert!(flow.retransmitted_packets <= flow.sent_packets);
            if let (Some(_), Some(size), true) = (flow.completion_s, drawn.size, drawn.tcp) {
                prop_assert!(flow.delivered_packets >= size.div_ceil(1448));
            }
            let rtt = flow.rtt_ms.map_or(0.0, |rtt| rtt.min);
            prop_assert!(rtt.is_finite() && rtt >= 0.0);
        }
        for link in &outcome.links {
            prop_assert!(link.throughput_bps.is_finite());
        }
        let again = run(draft.plan()).expect("as before");
        prop_assert_eq!(format!("{outcome:?}"), format!("{again:?}"));
    }
}
