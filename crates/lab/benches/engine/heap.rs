//! The yardstick: what a textbook simulator pays for each packet and hop before it has done anything, one push and one pop of a
//! binary heap that holds every packet in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use super::thread_cpu_s;

/// Operations timed at a stretch.
const OPERATIONS: u32 = 1_000_000;

/// CPU time of a pop and a push on a heap of `pending` entries of 16 bytes, time and number, in ns; the best of `repeat` times.
///
/// The hold model: the earliest entry leaves and comes back later by a random time, uniform and on average so that the whole
/// heap turns over once in a round. The generator's share is about a nanosecond and is in the figure.
pub fn push_pop_ns(pending: u64, repeat: u32) -> f64 {
    let pending = pending.max(1);
    let mut random = Xorshift(0x9E37_79B9_7F4A_7C15);
    // Neighbours are 1000 time units apart on average.
    let spread = 2000 * pending;
    let mut heap: BinaryHeap<Reverse<(u64, u64)>> =
        (0..pending).map(|number| Reverse((random.below(spread), number))).collect();
    let mut best = f64::INFINITY;
    hold(&mut heap, &mut random, spread);
    for _ in 0..repeat {
        let cpu = thread_cpu_s();
        hold(&mut heap, &mut random, spread);
        best = best.min(thread_cpu_s() - cpu);
    }
    black_box(heap.peek());
    best * 1e9 / f64::from(OPERATIONS)
}

fn hold(heap: &mut BinaryHeap<Reverse<(u64, u64)>>, random: &mut Xorshift, spread: u64) {
    for _ in 0..OPERATIONS {
        if let Some(Reverse((time, number))) = heap.pop() {
            heap.push(Reverse((time + random.below(spread), number)));
        }
    }
}

/// Marsaglia's xorshift64: cheap, and random enough to order a heap.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}
