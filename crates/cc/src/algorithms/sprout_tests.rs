use super::*;
use crate::event::AckSample;

const MS: u64 = 1_000_000;

fn sprout() -> Box<dyn Controller> {
    let path = PathInfo { now_ns: 0, packet_bytes: 1000, initial_window_packets: 10, seed: 0 };
    build(&SPEC.params(None).unwrap(), &path)
}

fn observed(sprout: &dyn Controller) -> [f64; 3] {
    let mut out = [0.0; 3];
    sprout.observe(&mut out);
    out
}

fn ack(sprout: &mut dyn Controller, now_ns: u64, rtt_ns: u64) {
    let sample = AckSample {
        now_ns,
        acked_packets: 1,
        rtt_ns,
        in_flight_bytes: 20_000,
        ..AckSample::default()
    };
    sprout.on_ack(&Ack { sample, hops: &[] });
}

/// 500 packets/s, whose queue is never empty; the forecast for 100 ms is below 50 packets.
fn steady() -> Box<dyn Controller> {
    let mut sprout = sprout();
    ack(sprout.as_mut(), 40 * MS, 40 * MS);
    for n in 1..1000 {
        ack(sprout.as_mut(), 40 * MS + n * 2 * MS, 80 * MS);
    }
    sprout
}

#[test]
fn a_steady_link_is_forecast_cautiously() {
    let sprout = steady();
    let [rate, outage, forecast] = observed(sprout.as_ref());
    assert!((450.0..550.0).contains(&rate), "{rate}");
    assert!(outage < 1e-6 && (25.0..50.0).contains(&forecast), "{outage} {forecast}");
    assert_eq!(sprout.control().cwnd_bytes, forecast as u64 * 1000);
    assert_eq!(sprout.control().next_timer_ns % (20 * MS), 0);
}

/// Once a packet is overdue for a tick, the forecast falls to nothing within a few.
#[test]
fn an_outage_ends_the_forecast() {
    let mut sprout = steady();
    let last_ns = 40 * MS + 999 * 2 * MS;
    let mut forecasts = Vec::new();
    for tick in 1..12 {
        sprout.on_timer(last_ns + tick * 20 * MS);
        forecasts.push(observed(sprout.as_ref())[2]);
    }
    // 40 ms until the next is due, a tick in which it is not all the time; then four ticks.
    assert!(forecasts[1] > 15.0, "{forecasts:?}");
    assert!(forecasts[8] <= 1.0, "{forecasts:?}");
    assert!(observed(sprout.as_ref())[1] > 0.3);
    assert_eq!(sprout.control().cwnd_bytes, 1000, "one packet asks whether it is over");
    // And it ends: 100 ms later packets come again.
    for n in 1..100 {
        ack(sprout.as_mut(), last_ns + 340 * MS + n * 2 * MS, 300 * MS);
    }
    assert!(observed(sprout.as_ref())[2] > 20.0);
}

#[test]
fn silence_with_nothing_in_flight_is_no_outage() {
    let mut sprout = steady();
    let last_ns = 40 * MS + 1000 * 2 * MS;
    let sample =
        AckSample { now_ns: last_ns, acked_packets: 1, rtt_ns: 80 * MS, ..AckSample::default() };
    sprout.on_ack(&Ack { sample, hops: &[] });
    for tick in 1..12 {
        sprout.on_timer(last_ns + tick * 20 * MS);
    }
    assert!(observed(sprout.as_ref())[1] < 0.05);
    // The first packet after it is not overdue before a round trip has passed.
    sprout.on_resume(&Resume { now_ns: last_ns + 240 * MS, idle_ns: 240 * MS });
    sprout.on_timer(last_ns + 280 * MS);
    assert!(observed(sprout.as_ref())[1] < 0.05);
}

#[test]
fn losses_and_timeouts_change_nothing() {
    let mut sprout = steady();
    let before = (sprout.control(), observed(sprout.as_ref()));
    sprout.on_loss(&Loss { lost_packets: 5, flags: Loss::EPISODE_START, ..Loss::default() });
    sprout.on_rto(&Timeout { consecutive: 1, ..Timeout::default() });
    assert_eq!((sprout.control(), observed(sprout.as_ref())), before);
}
