//! The simulator's TCP against what real Linux TCP did (Debian's 6.1 under virtual time: tbf bottleneck, netem on the way
//! back, one bulk flow). Utilisation is payload over link rate after the first quarter of the run, RTT the mean of it.

mod common;

use common::*;
use paceline_net::{Buffer, LinkSpec, PS_PER_S};
use paceline_sim::{PacketSizes, Stack, TcpOptions};

/// One row of the reference: controller, buffer in packets, utilisation, mean SRTT in ms, cwnd least and largest at the
/// seconds, drops.
struct Row(&'static str, u64, f64, f64, f64, f64, u64);

/// How near a controller must come: utilisation in absolute terms, mean RTT, ends of the cwnd range (if held) by share.
struct Tolerance {
    utilisation: f64,
    rtt: f64,
    cwnd: Option<f64>,
}

const USUAL: Tolerance = Tolerance { utilisation: 0.03, rtt: 0.10, cwnd: Some(0.15) };
/// Ours and Linux's cycles are sampled once a second where they differ in phase.
const MEANS: Tolerance = Tolerance { utilisation: 0.02, rtt: 0.10, cwnd: None };

const REFERENCE: [(Row, Tolerance); 14] = [
    (Row("reno", 33, 0.911, 47.143, 51.0, 96.0, 62), MEANS),
    (Row("reno", 267, 0.952, 162.353, 173.0, 334.0, 337), MEANS),
    (Row("cubic", 33, 0.957, 56.000, 81.0, 100.0, 14), MEANS),
    (Row("cubic", 267, 0.955, 172.142, 237.0, 333.0, 28), MEANS),
    (Row("bic", 33, 0.958, 58.016, 81.0, 100.0, 86), USUAL),
    (Row("bic", 267, 0.957, 188.737, 279.0, 344.0, 903), USUAL),
    (Row("hstcp", 33, 0.939, 49.208, 58.0, 99.0, 65), USUAL),
    (Row("hstcp", 267, 0.972, 165.470, 207.0, 331.0, 339), USUAL),
    (Row("htcp", 33, 0.956, 52.244, 67.0, 101.0, 84), USUAL),
    (Row("htcp", 267, 0.956, 143.497, 173.0, 342.0, 406), USUAL),
    (Row("scalable", 33, 0.954, 56.896, 88.0, 100.0, 134), USUAL),
    (Row("scalable", 267, 0.957, 189.971, 295.0, 331.0, 988), USUAL),
    (Row("westwood", 33, 0.947, 51.734, 66.0, 100.0, 64), USUAL),
    (Row("westwood", 267, 0.953, 142.875, 148.0, 307.0, 334), USUAL),
];

#[test]
fn loss_based_controllers_agree_with_linux() {
    for (row, tolerance) in REFERENCE {
        let Row(name, buffer, utilisation, rtt, least, largest, drops) = row;
        // tbf's limit holds the packet that waits for tokens; ours leaves out the one in service.
        let limited = Buffer { bytes: Some((buffer - 1) * 1514), ..Buffer::default() };
        let forward = LinkSpec { buffer: limited, ..bottleneck(20e6, 0.0, 0) };
        let profile = (name != "reno").then_some("linux");
        let mut flow = tcp(registered(name, profile, &[]));
        flow.stack =
            Stack::Tcp(TcpOptions { delayed_ack_ps: Some(40 * MS), ..TcpOptions::default() });
        flow.packets = PacketSizes { data_bytes: 1514, header_bytes: 66, ack_bytes: 66 };
        let mut plan = plan(vec![forward, delay(40.0)], vec![flow], 30.0, 7.5);
        plan.sample_ps = PS_PER_S;
        let outcome = run_checked(plan);
        let flow = &outcome.flows[0];
        let (got, mean) = (flow.goodput_bps / 20e6, flow.rtt_ms.unwrap().mean);
        let cwnd = flow.cwnd_bytes.unwrap();
        let (cwnd_min, cwnd_max) = (cwnd.min / 1514.0, cwnd.max / 1514.0);
        println!(
            "{name}, {buffer} packets: utilisation {got:.3} (Linux {utilisation}), RTT {mean:.1} ms ({rtt}), \
             cwnd {cwnd_min:.0}-{cwnd_max:.0} ({least}-{largest}), drops {} ({drops})",
            outcome.links[0].drops,
        );
        if std::env::var("X").is_ok() {
            let v = &flow.series.columns.iter().find(|c| c.name == "cwnd_bytes").unwrap().values;
            println!("{:?}", v.iter().map(|x| (x / 1514.0) as u32).collect::<Vec<_>>());
            continue;
        }
        let error = (got - utilisation).abs();
        assert!(error <= tolerance.utilisation, "utilisation {got}, Linux {utilisation}");
        assert_near(mean, rtt, tolerance.rtt);
        if let Some(share) = tolerance.cwnd {
            assert_near(cwnd_min, least, share);
            assert_near(cwnd_max, largest, share);
        }
    }
}
