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
    /// By place.
    times: Box<[Group]>,
    /// The place that wins in each group.
    winners: Box<[u32]>,
    /// If there are several groups, the levels above them up to the one that has one group.
    above: Box<[Level]>,
    first: Entry,
}

/// Each entry of a level stands for a group of the one below.
struct Level {
    times: Box<[Group]>,
    /// The place that wins in each group.
    winners: Box<[u32]>,
}

type Group = [Picos; GROUP];

/// As many times as a cache line holds.
const GROUP: usize = 8;

impl Tournament {
    /// With `places`, all of them [`NEVER`].
    pub(crate) fn new(places: u32) -> Self {
        let (mut above, mut width) = (Vec::new(), GROUP as u32);
        let mut groups = places.div_ceil(width);
        let level = |groups: u32, width: u32| Level {
            times: vec![[NEVER; GROUP]; groups as usize].into(),
            winners: (0..groups).map(|group| group * width).collect(),
        };
        let Level { times, winners } = level(groups, width);
        while groups > 1 {
            groups = groups.div_ceil(GROUP as u32);
            width *= GROUP as u32;
            above.push(level(groups, width));
        }
        Self { times, winners, above: above.into(), first: Entry { time: NEVER, id: 0 } }
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
        self.times[place / GROUP][place % GROUP]
    }

    /// Gives `place` a time.
    #[inline]
    pub(crate) fn set(&mut self, place: u32, time: Picos) {
        let (slot, group) = (place as usize % GROUP, place as usize / GROUP);
        let entries = &mut self.times[group];
        entries[slot] = time;
        let (entry, time) = least(entries);
        let first = Entry { time, id: (group * GROUP + entry) as u32 };
        if self.above.is_empty() {
            self.first = first;
        } else {
            self.pass_on(place, group, first);
        }
    }

    /// `first` now wins in `group`, after `place` was given a time.
    #[inline(never)]
    fn pass_on(&mut self, place: u32, mut group: usize, mut first: Entry) {
        let mut below = &mut self.winners;
        for Level { times, winners } in &mut self.above {
            if below[group] == first.id && first.id != place {
                return;
            }
            below[group] = first.id;
            let (slot, above) = (group % GROUP, group / GROUP);
            let entries = &mut times[above];
            entries[slot] = first.time;
            let (entry, time) = least(entries);
            first = Entry { time, id: below[above * GROUP + entry] };
            (group, below) = (above, winners);
        }
        self.first = first;
    }
}

/// The least of a group, and the first entry that has it.
#[inline]
fn least(times: &Group) -> (usize, Picos) {
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

/// When an end will be called next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alarm(Picos);

impl Default for Alarm {
    fn default() -> Self {
        Self(NEVER)
    }
}

impl Alarm {
    /// Whether it goes off no later than at `deadline`.
    #[inline]
    pub(crate) fn is_by(&self, deadline: Picos) -> bool {
        self.0 <= deadline
    }

    /// Sets it for an end that has something to do at `deadline`. When it is to go off, or `None` if it does so early enough already.
    #[inline]
    pub(crate) fn until(&mut self, deadline: Picos, now: Picos) -> Option<Picos> {
        let time = deadline.max(now + 1);
        let earlier = deadline != NEVER && time < self.0;
        earlier.then(|| {
            self.0 = time;
            time
        })
    }

    /// The end has been called at `now`.
    #[inline]
    pub(crate) fn goes_off(&mut self, now: Picos) {
        if self.0 == now {
            self.0 = NEVER;
        }
    }
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
