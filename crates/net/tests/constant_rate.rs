//! Service at a constant rate: hand-computed times, exactness over long runs, extreme rates.

use paceline_net::{
    Backlog, Buffer, Capacity, DropReason, Jitter, Link, LinkSpec, LossModel, PS_PER_MS, PS_PER_NS,
    PS_PER_S, Picos, Reorder, Verdict,
};

fn spec(rate_bps: f64, buffer: Buffer) -> LinkSpec {
    LinkSpec { capacity: Capacity::Constant(rate_bps), buffer, ..LinkSpec::default() }
}

fn link(rate_bps: f64) -> Link {
    Link::new(spec(rate_bps, Buffer::default()), 0, 0)
}

fn departs(link: &mut Link, now: Picos, bytes: u32) -> Picos {
    match link.enqueue(now, bytes) {
        Verdict::Pass { departs, .. } => departs,
        Verdict::Drop(reason) => panic!("dropped: {reason:?}"),
    }
}

#[test]
fn by_hand() {
    // 12 Mbit/s: 1500 bytes last 1 ms.
    let spec = LinkSpec { delay_ps: 5 * PS_PER_MS, ..spec(12e6, Buffer::default()) };
    let mut link = Link::new(spec, 0, 0);
    let pass = |ms: u64| Verdict::Pass { departs: ms * PS_PER_MS, arrives: (ms + 5) * PS_PER_MS };
    assert_eq!(link.enqueue(0, 1500), pass(1));
    assert_eq!(link.enqueue(0, 1500), pass(2));
    assert_eq!(link.backlog(0), Backlog { packets: 1, bytes: 1500 });
    assert_eq!(link.backlog(PS_PER_MS), Backlog::default());
    assert_eq!(link.enqueue(10 * PS_PER_MS, 3000), pass(12));
    assert_eq!(link.offered_bytes(PS_PER_S, 3 * PS_PER_S), Some(3e6));
    assert_eq!(link.delay_ps(), 5 * PS_PER_MS);
}

#[test]
fn packets_at_384_gbit_per_s_last_exactly_31_25_ns() {
    let mut link = link(384e9);
    for k in 1..=3_000_000 {
        assert_eq!(departs(&mut link, 0, 1500), k * 31_250);
    }
}

#[test]
fn fractions_of_a_picosecond_are_carried() {
    // 9.7 Gbit/s: 1500 bytes last 1,237,113.402… ps = 12e15 / 9.7e9.
    let mut link = link(9.7e9);
    for k in 1..=2_000_000u128 {
        assert_eq!(
            u128::from(departs(&mut link, 0, 1500)),
            k * 12_000 * 1_000_000_000_000 / 9_700_000_000
        );
    }
}

#[test]
fn slow_links_do_not_overflow() {
    // 1 kbit/s: 12 s a packet; 213 days hold 1,537,228 of them.
    let mut slow = link(1000.0);
    for k in 1..=1_537_228 {
        assert_eq!(departs(&mut slow, 0, 1500), k * 12 * PS_PER_S);
    }
    for _ in 0..10 {
        assert_eq!(departs(&mut slow, 0, 1500), Picos::MAX);
    }
    for rate in [1e-300, 0.0, -5.0, f64::NAN] {
        let mut never = link(rate);
        assert_eq!(departs(&mut never, 3, 1), Picos::MAX);
        assert_eq!(departs(&mut never, 3, u32::MAX), Picos::MAX);
    }
    assert_eq!(departs(&mut link(f64::INFINITY), 3, u32::MAX), 3);
}

#[test]
fn the_packet_in_service_does_not_count() {
    // 1 packet in service, 2 waiting, the fourth refused; a ms later one has moved up.
    let limit = Buffer { packets: Some(2), ..Buffer::default() };
    let mut link = Link::new(spec(12e6, limit), 0, 0);
    for k in 1..=3 {
        assert_eq!(departs(&mut link, 0, 1500), k * PS_PER_MS);
    }
    assert_eq!(link.enqueue(PS_PER_MS - 1, 1), Verdict::Drop(DropReason::Buffer));
    assert_eq!(departs(&mut link, PS_PER_MS, 1500), 4 * PS_PER_MS);
    assert_eq!(link.enqueue(PS_PER_MS, 1), Verdict::Drop(DropReason::Buffer));
}

#[test]
fn without_any_buffer_an_idle_link_still_serves() {
    for limit in [
        Buffer { packets: Some(0), ..Buffer::default() },
        Buffer { bytes: Some(0), ..Buffer::default() },
        Buffer { wait_ps: Some(0), ..Buffer::default() },
    ] {
        let mut link = Link::new(spec(12e6, limit), 0, 0);
        assert_eq!(departs(&mut link, 0, 1500), PS_PER_MS);
        assert_eq!(link.enqueue(PS_PER_MS - 1, 1500), Verdict::Drop(DropReason::Buffer));
        assert_eq!(departs(&mut link, PS_PER_MS, 1500), 2 * PS_PER_MS);
    }
}

#[test]
fn an_unlimited_link_is_a_delay() {
    let spec =
        LinkSpec { capacity: Capacity::Unlimited, delay_ps: 9, ..spec(1.0, Buffer::default()) };
    let mut link = Link::new(spec, 0, 0);
    for now in [0, 0, 5] {
        assert_eq!(link.enqueue(now, 1500), Verdict::Pass { departs: now, arrives: now + 9 });
    }
    assert_eq!(link.offered_bytes(0, 1), None);
    assert_eq!(link.backlog(5), Backlog::default());
}

#[test]
fn lost_packets_take_no_capacity() {
    let loss = Some(LossModel::Bernoulli(0.5));
    let mut link = Link::new(LinkSpec { loss, ..spec(12e6, Buffer::default()) }, 1, 0);
    let (mut passed, mut last) = (0, 0);
    for _ in 0..1000 {
        match link.enqueue(0, 1500) {
            Verdict::Pass { departs, .. } => (passed, last) = (passed + 1, departs),
            Verdict::Drop(reason) => assert_eq!(reason, DropReason::Random),
        }
    }
    assert!((400..600).contains(&passed));
    assert_eq!(last, passed * PS_PER_MS);
}

fn impaired(seed: u64, stream: u64, jitter: bool, reorder: bool) -> Vec<Verdict> {
    let jitter =
        jitter.then_some(Jitter { mean_ps: PS_PER_MS, max_ps: 10 * PS_PER_MS, reorder: false });
    let reorder = reorder.then_some(Reorder { probability: 0.1, extra_ps: PS_PER_MS });
    let loss = Some(LossModel::Bernoulli(0.1));
    let mut link =
        Link::new(LinkSpec { loss, jitter, reorder, ..spec(1e9, Buffer::default()) }, seed, stream);
    (0..2000).map(|k| link.enqueue(k * 20 * PS_PER_NS, 1500)).collect()
}

#[test]
fn same_seed_same_link() {
    assert_eq!(impaired(1, 2, true, true), impaired(1, 2, true, true));
    assert_ne!(impaired(1, 2, true, true), impaired(2, 2, true, true));
    assert_ne!(impaired(1, 2, true, true), impaired(1, 3, true, true));
}

#[test]
fn losses_do_not_depend_on_the_other_impairments() {
    let lost = |verdicts: Vec<Verdict>| -> Vec<bool> {
        verdicts.iter().map(|v| matches!(v, Verdict::Drop(_))).collect()
    };
    let plain = lost(impaired(1, 2, false, false));
    assert_eq!(plain, lost(impaired(1, 2, true, false)));
    assert_eq!(plain, lost(impaired(1, 2, true, true)));
}

#[test]
fn order_is_kept_unless_asked_otherwise() {
    let keeps = |jitter: Option<Jitter>, reorder: Option<Reorder>| {
        LinkSpec { jitter, reorder, ..spec(1e9, Buffer::default()) }.keeps_order()
    };
    let jitter = |reorder| Some(Jitter { mean_ps: 1, max_ps: 2, reorder });
    let held_back = |probability| Some(Reorder { probability, extra_ps: 1 });
    assert!(keeps(None, None) && keeps(jitter(false), None) && keeps(None, held_back(0.0)));
    assert!(!keeps(jitter(true), None) && !keeps(None, held_back(0.1)));
}

#[test]
fn a_spec_out_of_range_names_key_value_and_range() {
    let message = |spec: LinkSpec| spec.check().expect_err("out of range").to_string();
    let good = spec(1e9, Buffer::default());
    assert_eq!(good.check(), Ok(()));
    assert_eq!(
        message(spec(-1.0, Buffer::default())),
        "capacity = -1: allowed is a positive rate in bit/s"
    );
    assert_eq!(
        message(LinkSpec { loss: Some(LossModel::Bernoulli(1.5)), ..good.clone() }),
        "loss = 1.5: allowed is a probability from 0 to 1"
    );
    let model = LossModel::GilbertElliott { p: 0.1, r: f64::NAN, loss_bad: 1.0, loss_good: 0.0 };
    assert_eq!(
        message(LinkSpec { loss: Some(model), ..good.clone() }),
        "loss.r = NaN: allowed is a probability from 0 to 1"
    );
    let reorder = Some(Reorder { probability: -0.1, extra_ps: 1 });
    assert_eq!(
        message(LinkSpec { reorder, ..good.clone() }),
        "reorder.probability = -0.1: allowed is a probability from 0 to 1"
    );
    let jitter = Some(Jitter { mean_ps: 1, max_ps: 0, reorder: false });
    assert_eq!(
        message(LinkSpec { jitter, ..good }),
        "jitter.max_ps = 0: allowed is a bound above 0"
    );
}
