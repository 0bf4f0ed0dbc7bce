//! What the controllers of a run hear and answer, as the recording that `paceline replay` reads.

use std::sync::{Arc, Mutex, PoisonError};

use paceline_cc::event_log::{put_closed, put_head};
use paceline_cc::{Params, Portable, Recording};
use paceline_sim::{FlowPlan, Stack};

use crate::scenario::Scenario;

/// A recording in the making: of the flows whose controllers are integer C and run in this process.
pub struct Events {
    log: Arc<Mutex<Vec<u8>>>,
    /// Of each flow, in the order of the plan.
    flows: Vec<Option<(Portable, Params)>>,
    /// How many flows [`Self::record`] has seen.
    seen: usize,
}

impl Events {
    /// For a run of `scenario`, in which a kernel carries the TCP flows if `kernel_tcp`. `None` if there is nothing to record.
    pub fn of(scenario: &Scenario, kernel_tcp: bool) -> Option<Self> {
        let flows: Vec<_> = scenario
            .flows()
            .iter()
            .map(|flow| {
                let choice = &flow.controller;
                // A guest may have the name of one of ours.
                let portable = Portable::find(choice.spec().name)
                    .filter(|portable| std::ptr::eq(portable.spec(), choice.spec()))?;
                let elsewhere = kernel_tcp && matches!(flow.stack, Stack::Tcp(_));
                (!elsewhere).then(|| (portable, choice.params().clone()))
            })
            .collect();
        let any = flows.iter().any(Option::is_some);
        let mut log = Vec::new();
        put_head(&mut log);
        any.then(|| Self { log: Arc::new(Mutex::new(log)), flows, seen: 0 })
    }

    /// Has the next flow of the plan recorded, if it can be. To be called with each, in order.
    pub fn record(&mut self, plan: &mut FlowPlan) {
        let flow = self.flows.get_mut(self.seen).and_then(Option::take);
        self.seen += 1;
        let Some((algorithm, params)) = flow else { return };
        let (log, number) = (Arc::clone(&self.log), self.seen as u64);
        plan.controller =
            Box::new(move |path| Box::new(Recording::new(algorithm, &params, path, number, log)));
    }

    /// The whole file, once the run is over.
    pub fn finish(self) -> Vec<u8> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        put_closed(0, &mut log);
        std::mem::take(&mut *log)
    }
}
