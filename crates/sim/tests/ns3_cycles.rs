//! scratch
mod common;

use common::*;
use paceline_cc::{Needs, registry};
use paceline_net::LinkSpec;
use paceline_sim::{Outcome, PacketSizes, Series, Stack, TcpOptions};

fn dumbbell(name: &str, profile: Option<&str>, values: &[(&str, f64)], buffer: u64, seconds: f64) -> Outcome {
    let access = |ms: f64| LinkSpec { capacity: paceline_net::Capacity::Constant(1e9), ..delay(ms) };
    let links = vec![
        access(5.0), bottleneck(100e6, 10.0, buffer), access(5.0),
        access(5.0), LinkSpec { capacity: paceline_net::Capacity::Constant(100e6), ..delay(10.0) }, access(5.0),
    ];
    let mut flow = tcp(registered(name, profile, values));
    flow.needs = Needs::PACING.and(Needs::RATE_SAMPLE);
    flow.fields = registry::find(name).unwrap().fields.to_vec();
    flow.forward = vec![0, 1, 2];
    flow.reverse = vec![3, 4, 5];
    flow.packets = PacketSizes { data_bytes: 1502, header_bytes: 54, ack_bytes: 54 };
    flow.stack = Stack::Tcp(TcpOptions { delayed_ack_ps: Some(200 * MS), ..TcpOptions::default() });
    let mut plan = plan(links, vec![flow], seconds, 0.0);
    plan.sample_ps = MS;
    run_checked(plan)
}

fn column<'a>(series: &'a Series, name: &str) -> &'a [f64] {
    &series.columns.iter().find(|c| c.name == name).unwrap_or_else(|| panic!("{name}: {:?}", series.columns.iter().map(|c| c.name).collect::<Vec<_>>())).values
}

#[test]
fn look() {
    for (name, profile, values, seconds) in [
        ("reno", None, &[][..], 60.0), ("cubic", Some("ns-3"), &[][..], 60.0), ("bbr1", Some("ns-3"), &[][..], 60.0), ("bbr1", Some("linux"), &[][..], 60.0), ("bbr1", None, &[][..], 60.0)] {
        for (bdp, buffer) in [(0.25, 83), (1.0, 333), (4.0, 1333)] {
            let seconds = if bdp == 4.0 && name == "reno" { 300.0 } else { seconds };
            let outcome = dumbbell(name, profile, values, buffer, seconds);
            let series = &outcome.flows[0].series;
            let link = &outcome.links[1];
            let drops = column(&link.series, "drops");
            let queue = column(&link.series, "queue_bytes");
            let cwnd = column(series, "cwnd_bytes");
            println!("{name} {profile:?} {bdp}: drops {} util {:?}", link.drops, link.utilization);
            let offset = cwnd.len() as isize - drops.len() as isize;
            let mut last = 0.0;
            let mut shown = 0;
            let mut last_t = 0.0;
            for (i, d) in drops.iter().enumerate() {
                if *d > last {
                    let t = link.series.time_s[i];
                    let j = (i as isize + offset).max(0) as usize;
                    if shown < 30 && t > 5.0 && t - last_t > 0.2 { println!("  t {t:.3} +{} cwnd {:.1} queue {:.1}", d - last, cwnd[j] / 1502.0, queue[i] / 1502.0); shown += 1; }
                    last = *d; last_t = t;
                }
            }
            let from = link.series.time_s.partition_point(|t| *t < 11.0);
            let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64 / 1502.0;
            println!("  from 11 s: queue {:.1} cwnd {:.1} max {:.1}", mean(&queue[from..]), mean(&cwnd[from..]), cwnd[from..].iter().copied().fold(0.0, f64::max) / 1502.0);
        }
    }
}
