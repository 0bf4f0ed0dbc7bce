//! Recordings: what is written is read, and what is wrong is refused with its place.

use paceline_cc::event_log::{self, Entry, HEAD_BYTES, RECORD_BYTES};
use proptest::collection::vec;
use proptest::prelude::*;

#[path = "drive/events.rs"]
mod drive;

/// A recording of some length, of the first algorithm.
fn sample() -> Vec<u8> {
    let bytes: Vec<u8> =
        (0..3000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    drive::recorded(&[&[0], &bytes[..]].concat())
}

/// Where each record begins, the last being the one that ends the file.
fn places(bytes: &[u8]) -> Vec<usize> {
    let log = event_log::parse(bytes).unwrap();
    let mut places: Vec<usize> = log.flows[0].entries().map(|(position, _)| position).collect();
    places.push(bytes.len() - RECORD_BYTES - 8);
    places
}

fn refused(bytes: &[u8]) -> (usize, String) {
    let error = event_log::parse(bytes).expect_err("something is wrong");
    (error.position, error.reason)
}

#[test]
fn what_is_written_is_read() {
    let bytes = sample();
    let log = event_log::parse(&bytes).unwrap();
    assert_eq!((log.flows.len(), log.lost), (1, Some(0)));
    let flow = &log.flows[0];
    assert!(flow.released && flow.recorded() > 100, "{}", flow.recorded());
    assert_eq!((flow.missing, flow.after_gap), (0, 0));
    let mut again = Vec::new();
    event_log::put_head(&mut again);
    for (sequence, (_, entry)) in flow.entries().enumerate() {
        event_log::put_entry(flow.flow, sequence as u32, &entry, &mut again);
    }
    event_log::put_closed(0, &mut again);
    assert_eq!(again, bytes);
}

#[test]
fn a_gap_ends_what_can_be_told() {
    let bytes = sample();
    let places = places(&bytes);
    let gap = [&bytes[..places[20]], &bytes[places[23]..]].concat();
    let log = event_log::parse(&gap).unwrap();
    let flow = &log.flows[0];
    assert_eq!((flow.entries().count(), flow.missing), (20, 3));
    assert_eq!(flow.after_gap as usize, places.len() - 1 - 23);
    // Without its start a flow tells nothing.
    let headless = [&bytes[..HEAD_BYTES], &bytes[places[1]..]].concat();
    let log = event_log::parse(&headless).unwrap();
    assert!(log.flows[0].start.is_none());
    assert_eq!(log.flows[0].entries().count(), 0);
    // Nor is a file refused that was not ended, at the end of a record.
    assert_eq!(event_log::parse(&bytes[..places[20]]).unwrap().lost, None);
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let bytes = sample();
    let places = places(&bytes);
    let changed = |place: usize, with: &[u8]| {
        let mut changed = bytes.clone();
        changed[place..place + with.len()].copy_from_slice(with);
        refused(&changed)
    };
    assert_eq!(refused(b"").0, 0);
    assert_eq!(refused(b"time,bytes\n1,2\n").0, 0);
    let (place, reason) = changed(8, &0x0102_0304_u32.swap_bytes().to_ne_bytes());
    assert_eq!((place, reason.contains("byte order")), (8, true), "{reason}");
    let (place, reason) = changed(12, &2_u32.to_ne_bytes());
    assert_eq!((place, reason.contains("version 2")), (12, true), "{reason}");
    // Every cut within a record.
    for cut in (places[20] + 1..places[21]).chain([places[0] + 50]) {
        let (place, reason) = refused(&bytes[..cut]);
        let known = if cut > places[20] { places[20] } else { places[0] };
        assert_eq!((place, reason.contains("cut off")), (known, true), "{cut}: {reason}");
    }
    let kind = RECORD_BYTES - 4;
    let (place, reason) = changed(places[5] + kind, &77_u32.to_ne_bytes());
    assert_eq!((place, reason.contains("77 is no kind")), (places[5], true), "{reason}");
    let name = places[0] + RECORD_BYTES + 64;
    let (place, reason) = changed(name, b"cubic\0\0");
    assert_eq!((place, reason.contains("cubic")), (places[0], true), "{reason}");
    let (place, reason) = changed(name + 16, &2_u64.to_ne_bytes());
    assert_eq!((place, reason.contains("2 parameters")), (places[0], true), "{reason}");
    let (place, reason) = changed(name + 24, &u64::MAX.to_ne_bytes());
    assert_eq!((place, reason.contains("allowed: ")), (places[0], true), "{reason}");
    let port = places[0] + RECORD_BYTES + 56;
    assert!(changed(port, &70_000_u32.to_ne_bytes()).1.contains("no port"));
    // A sequence number behind, a second start, a record after the end.
    let (place, reason) = changed(places[9] + 8, &3_u32.to_ne_bytes());
    assert_eq!((place, reason.contains("comes after")), (places[9], true), "{reason}");
    let twice = [&bytes[..places[1]], &bytes[places[0]..]].concat();
    assert_eq!(refused(&twice).0, places[1]);
    let last = places.len() - 1;
    let more = [&bytes[..], &bytes[places[9]..places[10]]].concat();
    assert_eq!(refused(&more).0, bytes.len());
    let released = [&bytes[..places[last]], &bytes[places[last - 1]..]].concat();
    assert_eq!(refused(&released).0, places[last]);
    // Time that goes back.
    let log = event_log::parse(&bytes).unwrap();
    let timed = |(place, entry)| match entry {
        Entry::Event(event) => event.now_ns().filter(|now| *now > 0).map(|_| place),
        _ => None,
    };
    let late: Vec<usize> = log.flows[0].entries().filter_map(timed).collect();
    let (place, reason) = changed(late[1] + RECORD_BYTES, &0_u64.to_ne_bytes());
    assert_eq!((place, reason.contains("time goes back")), (late[1], true), "{reason}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..2000)) {
        drive::any(&bytes);
    }
}
