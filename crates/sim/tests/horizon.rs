//! Horizon on links of fixed rate, where its balance can be derived by hand, and through an outage.

mod common;

use common::*;
use paceline_cc::registry;
use paceline_sim::{DatagramOptions, FlowPlan, PacketSizes, Stack};

fn horizon() -> FlowPlan {
    let spec = registry::find("horizon").expect("registered");
    FlowPlan {
        needs: spec.needs,
        fields: spec.fields.to_vec(),
        stack: Stack::Datagram(DatagramOptions::default()),
        packets: PacketSizes { data_bytes: 1500, header_bytes: 0, ack_bytes: 40 },
        ..tcp(registered("horizon", None, &[]))
    }
}

#[test]
fn explore() {
    for mbps in [1.0, 4.0, 12.0, 50.0, 100.0, 400.0] {
        for buffer in [10_000, 50] {
            let links = vec![bottleneck(mbps * 1e6, 20.0, buffer), delay(20.0)];
            let o = run_checked(plan(links, vec![horizon()], 60.0, 20.0));
            let f = &o.flows[0];
            println!(
                "{mbps} Mbit/s buffer {buffer}: util {:.4} rtt mean {:.2} min {:.2} max {:.2} lost {}",
                o.links[0].utilization.unwrap(),
                f.rtt_ms.unwrap().mean,
                f.rtt_ms.unwrap().min,
                f.rtt_ms.unwrap().max,
                f.lost_packets
            );
        }
    }
    for (n, gap) in [(2, 0), (2, 10), (4, 5)] {
        for mbps in [12.0, 100.0] {
            let links = vec![bottleneck(mbps * 1e6, 20.0, 10_000), delay(20.0)];
            let flows =
                (0..n).map(|i| FlowPlan { start_ps: i * gap * 1000 * MS, ..horizon() }).collect();
            let o = run_checked(plan(links, flows, 120.0, 60.0));
            println!(
                "{n} flows {mbps} gap {gap}: {:?} rtt {:?}",
                o.flows
                    .iter()
                    .map(|f| (f.throughput_bps / 1e4).round() / 100.0)
                    .collect::<Vec<_>>(),
                o.flows.iter().map(|f| f.rtt_ms.unwrap().mean.round()).collect::<Vec<_>>()
            );
        }
    }
    for buffer in [42u64, 84, 410] {
        let links = vec![bottleneck(12e6, 20.0, buffer), delay(20.0)];
        let o = run_checked(plan(links, vec![horizon(), flow("cubic", &[0], &[1])], 120.0, 60.0));
        println!(
            "cubic buffer {buffer}: {:?}",
            o.flows.iter().map(|f| (f.throughput_bps / 1e4).round() / 100.0).collect::<Vec<_>>()
        );
    }
    for mbps in [12.0, 100.0] {
        let links = vec![bottleneck(mbps * 1e6, 20.0, 1000), delay(20.0)];
        let o = run_checked(plan(links, vec![flow("horizon", &[0], &[1])], 60.0, 20.0));
        println!(
            "tcp {mbps}: util {:.3} rtt {:.2}",
            o.links[0].utilization.unwrap(),
            o.flows[0].rtt_ms.unwrap().mean
        );
    }
}
