//! The engine against the reference: the same plan, the same outcome.

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "reference_plans.rs"]
mod plans;
#[path = "reference_shapes.rs"]
mod shapes;

use common::draft::draft;
use proptest::prelude::*;

use crate::outcome::{EngineStats, Outcome};
use crate::plan::Plan;

/// Everything but what the engine says of itself.
fn comparable(outcome: Outcome) -> String {
    format!("{:?}", Outcome { engine: EngineStats::default(), ..outcome })
}

fn assert_same(name: &str, plan: impl Fn() -> Plan) {
    let engine = crate::run(plan()).expect("a valid plan");
    let reference = super::run(plan());
    println!("{name}: {} packets, {} events", engine.engine.packets, engine.engine.events);
    assert_eq!(engine.engine.packets, reference.engine.packets, "{name}: packets delivered");
    let (engine, reference) = (comparable(engine), comparable(reference));
    if engine != reference {
        let at = engine.bytes().zip(reference.bytes()).take_while(|(a, b)| a == b).count();
        let from = at.saturating_sub(300);
        let part = |s: &str| s.get(from..(at + 100).min(s.len())).unwrap_or_default().to_string();
        panic!(
            "{name}: the outcomes differ:\n  engine    …{}\n  reference …{}",
            part(&engine),
            part(&reference)
        );
    }
}

#[test]
fn plans_made_for_the_fast_paths_have_the_outcome_of_the_reference() {
    for (name, plan) in plans::CASES {
        assert_same(name, plan);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_plan_has_the_outcome_of_the_reference(draft in draft()) {
        assert_same("draft", || draft.plan());
    }

    #[test]
    fn any_shape_has_the_outcome_of_the_reference(shape in shapes::shape()) {
        assert_same("shape", || shape.plan());
    }
}
