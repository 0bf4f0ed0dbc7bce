//! Room for packets: read into, referred to, given back.
//!
//! A read must offer room for the largest packet, most packets are small, and a packet of many segments is given back piece by
//! piece. So packets lie one after the other in chunks, and a chunk is used again when the last piece of it has been given
//! back. Nothing is copied between the read and the write.

/// Bytes in a chunk.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks kept for later when nothing lies in them.
const SPARE_CHUNKS: usize = 16;

/// Where some bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    chunk: u32,
    /// First byte in the chunk.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

#[derive(Default)]
struct Chunk {
    /// Empty when its memory has been given back.
    bytes: Box<[u8]>,
    /// Pieces that lie in it.
    pieces: u32,
}

/// The chunks of one direction.
#[derive(Default)]
pub struct Arena {
    chunks: Vec<Chunk>,
    /// The chunk that is being filled …
    current: usize,
    /// … up to here.
    filled: usize,
    /// Chunks in which nothing lies, their memory still there.
    spare: Vec<usize>,
    /// Chunks without memory.
    bare: Vec<usize>,
}

impl Arena {
    /// Room for `len` bytes, at most a chunk; [`Self::keep`] keeps what was written there, the next call takes the rest back.
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        let len = len.min(CHUNK_BYTES);
        let left = self.chunks.get(self.current).map_or(0, |chunk| chunk.bytes.len() - self.filled);
        if left < len {
            self.next_chunk();
        }
        let filled = self.filled;
        &mut self.chunks[self.current].bytes[filled..filled + len]
    }

    /// Keeps the first `len` bytes of the room last given, as `pieces` pieces that will each be given back.
    pub fn keep(&mut self, len: usize, pieces: u32) -> Place {
        let place =
            Place { chunk: self.current as u32, start: self.filled as u32, len: len as u32 };
        self.chunks[self.current].pieces += pieces;
        self.filled += len;
        place
    }

    /// The bytes at `place`, of which something has not been given back.
    pub fn bytes(&self, place: Place) -> &[u8] {
        let start = place.start as usize;
        &self.chunks[place.chunk as usize].bytes[start..start + place.len as usize]
    }

    /// The same, to be changed.
    pub fn bytes_mut(&mut self, place: Place) -> &mut [u8] {
        let start = place.start as usize;
        &mut self.chunks[place.chunk as usize].bytes[start..start + place.len as usize]
    }

    /// A piece in the chunk of `place` is not needed any more.
    pub fn give_back(&mut self, place: Place) {
        let index = place.chunk as usize;
        let chunk = &mut self.chunks[index];
        chunk.pieces -= 1;
        if chunk.pieces > 0 {
            return;
        }
        if index == self.current {
            self.filled = 0;
        } else if self.spare.len() < SPARE_CHUNKS {
            self.spare.push(index);
        } else {
            chunk.bytes = Box::default();
            self.bare.push(index);
        }
    }

    fn next_chunk(&mut self) {
        // A current chunk without pieces has been emptied, and then there was room.
        self.filled = 0;
        if let Some(index) = self.spare.pop() {
            self.current = index;
            return;
        }
        self.current = self.bare.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() - 1
        });
        self.chunks[self.current].bytes = vec![0; CHUNK_BYTES].into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn what_is_kept_stays_until_it_is_given_back() {
        let mut arena = Arena::default();
        let mut kept = VecDeque::new();
        for round in 0..20_000u32 {
            let len = 1 + (round as usize * 7919) % 65_000;
            let room = arena.room(65_562);
            assert_eq!(room.len(), 65_562);
            room[..4].copy_from_slice(&round.to_le_bytes());
            kept.push_back((round, arena.keep(len.max(4), 2)));
            if kept.len() > 50 {
                let (written, place) = kept.pop_front().expect("it holds fifty");
                assert_eq!(arena.bytes(place)[..4], written.to_le_bytes());
                arena.give_back(place);
                assert_eq!(arena.bytes(place)[..4], written.to_le_bytes());
                arena.give_back(place);
            }
        }
        // Fifty packets of 32 kB on average are 2 chunks; one is being filled, and the ends of chunks are wasted.
        assert!(arena.chunks.len() < 8, "{}", arena.chunks.len());
    }

    #[test]
    fn memory_of_a_burst_is_freed() {
        let mut arena = Arena::default();
        let places: Vec<_> = (0..1000)
            .map(|_| {
                arena.room(65_000);
                arena.keep(65_000, 1)
            })
            .collect();
        places.into_iter().for_each(|place| arena.give_back(place));
        let held = arena.chunks.iter().filter(|chunk| !chunk.bytes.is_empty()).count();
        assert!(held <= SPARE_CHUNKS + 1, "{held}");
    }
}
