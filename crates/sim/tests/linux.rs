//! The simulator's TCP against what real Linux TCP did (Debian's 6.1 under virtual time: tbf bottleneck, netem on the way
//! back, one bulk flow). Utilisation is payload over link rate after the first quarter of the run, RTT the mean of it.

mod common;

use common::*;
use paceline_net::{Buffer, LinkSpec};
use paceline_sim::{PacketSizes, Stack, TcpOptions};

/// One row of the reference: controller, buffer in packets, utilisation, mean SRTT in ms, cwnd least and largest, drops.
const REFERENCE: [(&str, u64, f64, f64, f64, f64, u64); 4] = [
    ("reno", 33, 0.911, 47.143, 51.0, 96.0, 62),
    ("reno", 267, 0.952, 162.353, 173.0, 334.0, 337),
    ("cubic", 33, 0.957, 56.000, 81.0, 100.0, 14),
    ("cubic", 267, 0.955, 172.142, 237.0, 333.0, 28),
];

#[test]
fn reno_and_cubic_agree_with_linux() {
    for (name, buffer, utilisation, rtt, least, largest, drops) in REFERENCE {
        // tbf's limit holds the packet that waits for tokens; ours leaves out the one in service.
        let limited = Buffer { bytes: Some((buffer - 1) * 1514), ..Buffer::default() };
        let forward = LinkSpec { buffer: limited, ..bottleneck(20e6, 0.0, 0) };
        let profile = (name == "cubic").then_some("linux");
        let mut flow = tcp(registered(name, profile, &[]));
        flow.stack =
            Stack::Tcp(TcpOptions { delayed_ack_ps: Some(40 * MS), ..TcpOptions::default() });
        flow.packets = PacketSizes { data_bytes: 1514, header_bytes: 66, ack_bytes: 66 };
        let outcome = run_checked(plan(vec![forward, delay(40.0)], vec![flow], 30.0, 7.5));
        let flow = &outcome.flows[0];
        let (got, mean) = (flow.goodput_bps / 20e6, flow.rtt_ms.unwrap().mean);
        let cwnd = flow.cwnd_bytes.unwrap();
        println!(
            "{name}, {buffer} packets: utilisation {got:.3} (Linux {utilisation}), RTT {mean:.1} ms ({rtt}), \
             cwnd {:.0}-{:.0} ({least}-{largest}), drops {} ({drops})",
            cwnd.min / 1514.0,
            cwnd.max / 1514.0,
            outcome.links[0].drops,
        );
        assert!((got - utilisation).abs() <= 0.02, "utilisation {got}, Linux {utilisation}");
        assert_near(mean, rtt, 0.10);
    }
}
