//! The engine against the reference: the same plan, the same outcome.

#[path = "../tests/common/mod.rs"]
mod common;

use common::draft::draft;
use common::*;
use paceline_cc::registry;
use paceline_net::{Buffer, Capacity, LinkSpec};
use proptest::prelude::*;

use crate::outcome::{EngineStats, Outcome};
use crate::plan::{DatagramOptions, Plan, Stack, TcpOptions};
use crate::{FlowPlan, NamedLink, PlanError};

/// Everything but what the engine says of itself.
fn comparable(outcome: Outcome) -> String {
    format!("{:?}", Outcome { engine: EngineStats::default(), ..outcome })
}

fn assert_same(plan: impl Fn() -> Plan) {
    let engine = comparable(crate::run(plan()).expect("a valid plan"));
    let reference = comparable(super::run(plan()));
    if engine != reference {
        let at = engine.bytes().zip(reference.bytes()).take_while(|(a, b)| a == b).count();
        let from = at.saturating_sub(300);
        let part = |s: &str| s.get(from..(at + 100).min(s.len())).unwrap_or_default().to_string();
        panic!(
            "the outcomes differ:\n  engine    …{}\n  reference …{}",
            part(&engine),
            part(&reference)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_plan_has_the_outcome_of_the_reference(draft in draft()) {
        assert_same(|| draft.plan());
    }
}
