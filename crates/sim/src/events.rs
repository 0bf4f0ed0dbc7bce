//! Ordered times: who is first of a fixed number ([`Tournament`]), and of the junctions ([`Schedule`]).

use paceline_net::Picos;

/// "Nothing due."
pub(crate) const NEVER: Picos = Picos::MAX;

/// A time and whose it is. Equal times go to the lowest id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) time: Picos,
    pub(crate) id: u32,
}

/// A time for each of a fixed number of places, and at hand the one that is first.
///
/// A tree of groups: to change a time is to look through a cache line on each level, and leaves nothing behind.
pub(crate) struct Tournament {
    /// From the places up; the last has one group.
    levels: Box<[Level]>,
    first: Entry,
}

/// Each entry of a level stands for a group of the one below; those of the lowest are the places.
struct Level {
    times: Box<[[Picos; GROUP]]>,
    /// The place that wins in each group.
    winners: Box<[u32]>,
}

/// As many times as a cache line holds.
const GROUP: usize = 8;

impl Tournament {
    /// With `places`, all of them [`NEVER`].
    pub(crate) fn new(places: u32) -> Self {
        let (mut levels, mut entries, mut width) = (Vec::new(), places, 1);
        while entries > 1 || (levels.is_empty() && entries > 0) {
            entries = entries.div_ceil(GROUP as u32);
            width *= GROUP as u32;
            let times = vec![[NEVER; GROUP]; entries as usize].into();
            let winners = (0..entries).map(|group| group * width).collect();
            levels.push(Level { times, winners });
        }
        Self { levels: levels.into(), first: Entry { time: NEVER, id: 0 } }
    }

    /// The least time, and the lowest place that has it.
    #[inline]
    pub(crate) fn first(&self) -> Entry {
        self.first
    }

    /// The time of `place`.
    #[inline]
    pub(crate) fn time(&self, place: u32) -> Picos {
        let place = place as usize;
        self.levels[0].times[place / GROUP][place % GROUP]
    }

    /// Gives `place` a time.
    #[inline]
    pub(crate) fn set(&mut self, place: u32, time: Picos) {
        let (mut at, mut first) = (place as usize, Entry { time, id: place });
        let mut below: &[u32] = &[];
        for Level { times, winners } in &mut self.levels {
            let (slot, group) = (at % GROUP, at / GROUP);
            let entries = &mut times[group];
            entries[slot] = first.time;
            let (entry, time) = least(entries);
            let entry = group * GROUP + entry;
            let winner = if below.is_empty() { entry as u32 } else { below[entry] };
            let same = winners[group] == winner && winner != place;
            winners[group] = winner;
            if same {
                return;
            }
            (at, first, below) = (group, Entry { time, id: winner }, winners);
        }
        self.first = first;
    }
}

/// The least of a group, and the first place that has it.
#[inline]
fn least(times: &[Picos; GROUP]) -> (usize, Picos) {
    let mut best = (0, times[0]);
    for (entry, &time) in times.iter().enumerate().skip(1) {
        // Which one is least cannot be foreseen: so no branches.
        best = if time < best.1 { (entry, time) } else { best };
    }
    best
}

/// For each of a fixed number of ids, when it is next due.
pub(crate) struct Schedule(Tournament);

impl Schedule {
    pub(crate) fn new(ids: u32) -> Self {
        Self(Tournament::new(ids))
    }

    /// Makes `id` due at `time`, unless it already is at that time or before.
    #[inline]
    pub(crate) fn arm(&mut self, id: u32, time: Picos) {
        if time < self.due(id) {
            self.0.set(id, time);
        }
    }

    /// When `id` is due.
    #[inline]
    pub(crate) fn due(&self, id: u32) -> Picos {
        self.0.time(id)
    }

    /// Makes `id` due at `time`, whatever it was.
    #[inline]
    pub(crate) fn renew(&mut self, id: u32, time: Picos) {
        self.0.set(id, time);
    }

    /// What is due first, if that is not after `end`. To be renewed when it has been handled.
    #[inline]
    pub(crate) fn next(&self, end: Picos) -> Option<Entry> {
        Some(self.0.first()).filter(|first| first.time <= end)
    }
}

/// When to be called, for something with a `deadline` that is to be called at `armed` already: `None` if that is early enough.
#[inline]
pub(crate) fn alarm(armed: &mut Picos, deadline: Picos, now: Picos) -> Option<Picos> {
    let time = deadline.max(now + 1);
    let earlier = deadline != NEVER && time < *armed;
    earlier.then(|| {
        *armed = time;
        time
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ties_go_to_the_lowest_id() {
        let mut schedule = Schedule::new(4);
        for id in [3, 1, 2, 0] {
            schedule.arm(id, 7);
        }
        for id in 0..4 {
            assert_eq!(schedule.next(7), Some(Entry { time: 7, id }));
            schedule.renew(id, NEVER);
        }
        assert_eq!(schedule.next(7), None);
    }

    #[test]
    fn an_earlier_time_replaces_a_later_one_and_a_later_one_is_ignored() {
        let mut schedule = Schedule::new(1);
        schedule.arm(0, 10);
        schedule.arm(0, 5);
        schedule.arm(0, 8);
        assert_eq!(schedule.next(100), Some(Entry { time: 5, id: 0 }));
        schedule.renew(0, 8);
        assert_eq!((schedule.next(7), schedule.due(0)), (None, 8));
    }

    proptest! {
        /// Against a list: the first of equals wins, whatever the number of places.
        #[test]
        fn the_winner_is_the_first_of_the_least(
            places in 1_u32..200, sets in prop::collection::vec((0_u32..200, 0_u64..20), 1..400),
        ) {
            let mut tournament = Tournament::new(places);
            let mut model = vec![NEVER; places as usize];
            for (place, time) in sets {
                let place = place % places;
                model[place as usize] = time;
                let first = (0..).zip(&model).map(|(id, time)| Entry { time: *time, id }).min();
                tournament.set(place, time);
                prop_assert_eq!(Some(tournament.first()), first);
                prop_assert_eq!(tournament.time(place), time);
            }
        }
    }
}
