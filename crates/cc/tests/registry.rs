//! The registry holds what it promises: tables, profiles and fields agree with the algorithms.

use std::collections::BTreeSet;

use paceline_cc::{
    Ack, AckSample, IntHop, Kind, Loss, Needs, ParamError, Params, PathInfo, Spec, Timeout,
    registry,
};

const PATH: PathInfo =
    PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 1 };

#[test]
fn names_are_unique() {
    let names: BTreeSet<_> = registry::all().iter().map(|s| s.name).collect();
    assert_eq!(names.len(), registry::all().len());
    for name in [
        "window", "reno", "cubic", "bbr1", "bbr3", "ledbat++", "latte", "mpc-2019", "dctcp",
        "prague", "horizon",
    ] {
        assert_eq!(registry::find(name).map(|s| s.name), Some(name));
    }
    assert!(registry::find("no-such-controller").is_none());
}

#[test]
fn tables_are_complete() {
    for spec in registry::all() {
        assert!(!spec.title.is_empty() && !spec.source.is_empty(), "{}", spec.name);
        assert!(!spec.about.is_empty() && spec.about.lines().count() <= 60, "{}", spec.name);
        let mut keys = BTreeSet::new();
        for row in spec.params {
            let what = format!("{}.{}", spec.name, row.name);
            assert!(keys.insert(row.name), "{what} twice");
            assert!(!row.doc.is_empty() && !row.unit.is_empty(), "{what} is not described");
            assert!((row.min..=row.max).contains(&row.default), "{what}: default out of range");
            if let Kind::Choice(words) = row.kind {
                assert_eq!((row.min, row.max), (0.0, (words.len() - 1) as f64), "{what}");
            }
        }
        let mut keys = BTreeSet::new();
        for field in spec.fields {
            assert!(keys.insert(field.name), "{}.{} twice", spec.name, field.name);
            assert!(!field.doc.is_empty() && !field.unit.is_empty(), "{}", field.name);
        }
    }
}

/// First the idea, then the equations, then what the profiles change and where it departs from its source.
#[test]
fn texts_are_alike() {
    for spec in registry::all() {
        let parts: Vec<&str> = spec.about.split("\n\n").collect();
        let equations = parts.iter().position(|part| part.starts_with("    "));
        assert_eq!(equations, Some(1), "{}: the idea, then the equations", spec.name);
        for profile in spec.profiles {
            let said = parts[2..].iter().any(|part| part.contains(&format!("`{}`", profile.name)));
            assert!(said, "{}: nothing of the profile {}", spec.name, profile.name);
        }
    }
}

#[test]
fn profiles_are_valid() {
    for spec in registry::all() {
        for profile in spec.profiles {
            assert!(!profile.source.is_empty(), "{} {}", spec.name, profile.name);
            let params = spec.params(Some(profile.name)).unwrap_or_else(|e| panic!("{e}"));
            (spec.build)(&params, &PATH);
        }
        assert!(matches!(spec.params(Some("?")), Err(ParamError::UnknownProfile { .. })));
    }
}

/// Every algorithm builds, answers and observes at its defaults and at both ends of every range.
#[test]
fn every_range_can_be_built() {
    for spec in registry::all() {
        let mut settings = vec![spec.params(None).unwrap()];
        for row in spec.params {
            for value in [row.min, row.max] {
                let mut params = spec.params(None).unwrap();
                params.set(row.name, value).unwrap();
                settings.push(params);
            }
        }
        for params in &settings {
            let controller = (spec.build)(params, &PATH);
            let control = controller.control();
            assert!(control.cwnd_bytes >= 1500 && control.pacing_bytes_per_s > 0, "{}", spec.name);
            // Every field is written: NaN is a value, the marker is not.
            let mut out = vec![-12345.0; spec.fields.len()];
            controller.observe(&mut out);
            assert!(out.iter().all(|v| *v != -12345.0), "{}: {out:?}", spec.name);
        }
    }
}

/// A row that changes nothing is a promise not kept: from the defaults, a profile or another choice, some value of every
/// parameter changes what the controller does or shows.
#[test]
fn every_parameter_is_read() {
    for spec in registry::all() {
        let mut bases = vec![spec.params(None).unwrap()];
        bases.extend(spec.profiles.iter().map(|p| spec.params(Some(p.name)).unwrap()));
        for row in spec.params.iter().filter(|r| matches!(r.kind, Kind::Choice(_))) {
            for word in 0..=row.max as u32 {
                let mut params = spec.params(None).unwrap();
                params.set(row.name, f64::from(word)).unwrap();
                bases.push(params);
            }
        }
        for row in spec.params {
            let matters = bases.iter().any(|base| {
                SCRIPTS.iter().any(|told| {
                    let usual = said(spec, base, told);
                    [row.min, row.max].iter().any(|value| {
                        let mut params = base.clone();
                        params.set(row.name, *value).unwrap();
                        said(spec, &params, told) != usual
                    })
                })
            });
            assert!(matters, "{}.{} changes nothing", spec.name, row.name);
        }
    }
}

/// What a controller is told: 30 s of ACKs whose RTT stays at its base for a while, rises by 35 ms and falls again, and jumps at
/// times, with losses at once, early, late, soon after two timeouts and in the end all the time.
struct Script {
    /// Packets acknowledged by an ACK.
    packets: u64,
    base_rtt_ns: u64,
    /// How far the RTT jumps.
    jump_ns: u64,
    /// Packets that it is told are in flight.
    in_flight_packets: u64,
    /// One second in four the path delivers half as much.
    outages: bool,
    /// One ACK in seven reports a mark.
    marks: bool,
    /// How much longer the RTT gets with every ACK, so that no minimum is seen twice; 0.2 ms over the run.
    drift_ns: u64,
}

const PLAIN: Script = Script {
    packets: 2,
    base_rtt_ns: 25_000_000,
    jump_ns: 40_000_000,
    in_flight_packets: 0,
    outages: false,
    marks: false,
    drift_ns: 33,
};

const SCRIPTS: [Script; 5] = [
    PLAIN,
    Script { jump_ns: 90_000_000, outages: true, ..PLAIN },
    Script { packets: 200, in_flight_packets: 4000, ..PLAIN },
    Script { base_rtt_ns: 5_000_000, in_flight_packets: 20, marks: true, ..PLAIN },
    Script { drift_ns: 0, ..PLAIN },
];

/// What it says then: window, timeout, rate, burst, and bits of its fields.
fn said(spec: &Spec, params: &Params, told: &Script) -> Vec<u64> {
    let mut controller = (spec.build)(params, &PATH);
    let mut fields = vec![0.0; spec.fields.len()];
    let mut said = Vec::new();
    let mut delivered = 0;
    for n in 0..6000_u64 {
        let now_ns = (n + 40) * 5_000_000;
        let (phase, flags) = (n % 400, AckSample::CWND_LIMITED | AckSample::CUMULATIVE);
        let jump_ns = if n % 97 > 93 { told.jump_ns } else { 0 };
        let rise_ns = phase.min(400 - phase).saturating_sub(60) * 250_000;
        let rtt_ns = told.base_rtt_ns + rise_ns + jump_ns + n * told.drift_ns;
        let packets = if told.outages && n % 800 >= 600 { told.packets / 2 } else { told.packets };
        delivered += packets * 1500;
        let window = 20 * told.packets * 1500;
        let loss = Loss {
            now_ns,
            lost_bytes: 1500,
            newest_lost_sent_ns: now_ns - 1000,
            prior_in_flight_bytes: window,
            lost_packets: 1,
            flags: Loss::EPISODE_START,
            tx_in_flight_bytes: window,
            lost_since_sent_bytes: 1500,
            ..Loss::default()
        };
        let repairs = (12..24).contains(&n);
        match n {
            12 | 80 | 85 | 90 | 2200 | 2210 | 4010 | 5190 => controller.on_loss(&loss),
            5300.. if n % 20 == 0 => controller.on_loss(&loss),
            4000 | 4001 => controller.on_rto(&Timeout {
                now_ns,
                in_flight_bytes: window,
                consecutive: (n - 3999) as u32,
                ..Timeout::default()
            }),
            _ => {}
        }
        let sample = AckSample {
            now_ns,
            acked_bytes: packets * 1500,
            acked_packets: packets as u32,
            ce_packets: u32::from(told.marks && n % 7 == 0),
            in_flight_bytes: told.in_flight_packets * 1500,
            prior_in_flight_bytes: told.in_flight_packets * 1500,
            rtt_ns,
            srtt_ns: rtt_ns,
            min_rtt_ns: told.base_rtt_ns,
            sent_ns: now_ns - rtt_ns,
            delivered_bytes: 10 * told.packets * 1500,
            interval_ns: rtt_ns,
            delivered_total_bytes: delivered,
            prior_delivered_total_bytes: delivered.saturating_sub(10 * told.packets * 1500),
            tx_in_flight_bytes: window,
            lost_since_sent_bytes: if repairs { 1500 } else { 0 },
            flags: flags | if repairs { AckSample::IN_RECOVERY } else { 0 },
            ..AckSample::default()
        };
        // Two links, of 10 Mbit/s and of 8, that send what is delivered: the second has a queue while the RTT rises, the first while it
        // falls.
        let hop = |hop_id, link_bytes_per_s, queue_bytes| IntHop {
            hop_id,
            queue_bytes,
            tx_bytes: delivered,
            timestamp_ns: now_ns - rtt_ns / 2,
            link_bytes_per_s,
        };
        let queues = if phase < 200 { [0, rise_ns / 1000] } else { [rise_ns / 200, 0] };
        let hops = [hop(0, 1_250_000, queues[0]), hop(1, 1_000_000, queues[1])];
        controller.on_ack(&Ack { sample, hops: &hops });
        let control = controller.control();
        controller.observe(&mut fields);
        said.extend([control.cwnd_bytes, control.timeout_ns]);
        said.extend([control.pacing_bytes_per_s, control.send_quantum_bytes]);
        said.extend(fields.iter().map(|v| v.to_bits()));
    }
    said
}

#[test]
fn values_outside_the_range_are_refused_with_the_range() {
    for spec in registry::all() {
        for row in spec.params {
            let mut params = spec.params(None).unwrap();
            for value in [row.min - 1.0, row.max + 1.0, f64::NAN, f64::INFINITY] {
                let error = params.set(row.name, value).unwrap_err().to_string();
                assert!(error.contains(row.name) && error.contains(&row.allowed()), "{error}");
            }
            if matches!(row.kind, Kind::Integer | Kind::Bool | Kind::Choice(_)) && row.max > row.min
            {
                assert!(params.set(row.name, row.min + 0.5).is_err(), "{}", row.name);
            }
        }
    }
}

#[test]
fn a_host_is_told_what_it_lacks() {
    let mpc = registry::find("mpc-2020").unwrap();
    assert_eq!(mpc.needs.missing_from(Needs::PACING), ["rate-sample"]);
}
