//! The registry holds what it promises: tables, profiles and fields agree with the algorithms.

use std::collections::BTreeSet;

use paceline_cc::{Kind, Needs, ParamError, PathInfo, registry};

const PATH: PathInfo =
    PathInfo { now_ns: 0, packet_bytes: 1500, initial_window_packets: 10, seed: 1 };

#[test]
fn names_are_unique() {
    let names: BTreeSet<_> = registry::all().iter().map(|s| s.name).collect();
    assert_eq!(names.len(), registry::all().len());
    for name in ["window", "aimd", "reno", "cubic", "latte", "mpc-2020"] {
        assert_eq!(registry::find(name).map(|s| s.name), Some(name));
    }
    assert!(registry::find("no-such-controller").is_none());
}

#[test]
fn tables_are_complete() {
    for spec in registry::all() {
        assert!(!spec.title.is_empty() && !spec.source.is_empty(), "{}", spec.name);
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

/// A row that changes nothing is a promise not kept: each differs from the default in some run.
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
