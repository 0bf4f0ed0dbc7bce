//! Memory that guest and host share: how far the run is, and in the end what came of it.
//!
//! Of 64-bit words: the time reached, ps; the length of the answer, bytes, 0 until it is complete; then the answer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use paceline_live::Finished;
use paceline_net::Picos;
use serde::{Deserialize, Serialize};

/// Size of the memory, bytes: a power of two, as the device wants it.
pub const BYTES: usize = 64 << 20;
const HEAD_BYTES: usize = 16;

/// What the guest is to do; the file `/job` of its root.
#[derive(Serialize, Deserialize)]
pub struct Job {
    /// The scenario, whose traces lie beside it.
    pub scenario: String,
    /// Its seed.
    pub seed: u64,
    /// Kernel modules to load, in order.
    pub modules: Vec<String>,
}

/// What the guest answers.
#[derive(Serialize, Deserialize)]
pub enum Answer {
    /// The run came to its end.
    Finished(Box<Finished>),
    /// What the scenario asks for is not there.
    Unsupported(String),
    /// The run failed.
    Failed(String),
}

impl Answer {
    /// As bytes; one that is too long becomes a failure that says so.
    pub fn to_bytes(&self) -> Vec<u8> {
        let room = BYTES - HEAD_BYTES;
        let bytes = postcard::to_stdvec(self).unwrap_or_default();
        if !bytes.is_empty() && bytes.len() <= room {
            return bytes;
        }
        let why = format!("a record of {} bytes; allowed: {room} (sample less often)", bytes.len());
        postcard::to_stdvec(&Self::Failed(why)).unwrap_or_default()
    }
}

/// The guest's view: all of the memory.
pub struct Inner<'a>(pub &'a mut [u8]);

impl Inner<'_> {
    /// The run has come to `now`, ps.
    pub fn reached(&mut self, now: Picos) {
        self.0[..8].copy_from_slice(&now.to_le_bytes());
    }

    /// The run is over.
    pub fn answer(&mut self, answer: &Answer) {
        let bytes = answer.to_bytes();
        self.0[HEAD_BYTES..HEAD_BYTES + bytes.len()].copy_from_slice(&bytes);
        self.0[8..HEAD_BYTES].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    }
}

/// The host's view.
pub struct Outer<'a>(pub &'a File);

impl Outer<'_> {
    fn word(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.0.read_exact_at(&mut word, at)?;
        Ok(u64::from_le_bytes(word))
    }

    /// How far the run is, ps.
    pub fn reached(&self) -> io::Result<Picos> {
        self.word(0)
    }

    /// What came of it; `None` if the guest ended without an answer, or with one that is none.
    pub fn answer(&self) -> io::Result<Option<Answer>> {
        let length = usize::try_from(self.word(8)?).unwrap_or(usize::MAX);
        if !(1..=BYTES - HEAD_BYTES).contains(&length) {
            return Ok(None);
        }
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, HEAD_BYTES as u64)?;
        Ok(postcard::from_bytes(&bytes).ok())
    }
}

#[cfg(test)]
mod tests {
    use paceline_sim::{FlowOutcome, Outcome, Series};

    use super::*;

    #[test]
    fn what_the_guest_writes_is_what_the_host_reads() {
        let series = Series::new(
            &[0.5, 1.0],
            &[paceline_sim::Column { name: "rtt_ms", unit: "ms", values: &[40.1, f64::NAN] }],
        );
        let flow = FlowOutcome { throughput_bps: 1e6 / 3.0, series, ..FlowOutcome::default() };
        let outcome = Outcome { flows: vec![flow], ..Outcome::default() };
        let finished = Finished { outcome, packets: Vec::new(), health: Default::default() };
        let mut memory = vec![0; BYTES];
        let file =
            File::from(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        let mut inner = Inner(&mut memory);
        inner.reached(7);
        file.write_all_at(inner.0, 0).unwrap();
        assert!(Outer(&file).answer().unwrap().is_none(), "no answer yet");
        inner.answer(&Answer::Finished(Box::new(finished.clone())));
        file.write_all_at(inner.0, 0).unwrap();
        assert_eq!(Outer(&file).reached().unwrap(), 7);
        let Some(Answer::Finished(read)) = Outer(&file).answer().unwrap() else {
            panic!("an answer")
        };
        let column = |finished: &Finished| {
            let series = &finished.outcome.flows[0].series;
            let bits: Vec<u64> =
                series.column("rtt_ms").unwrap().values.iter().map(|v| v.to_bits()).collect();
            (series.time_s().to_vec(), bits)
        };
        assert_eq!(column(&read), column(&finished));
        assert_eq!(read.outcome.flows[0].throughput_bps.to_bits(), (1e6_f64 / 3.0).to_bits());
    }
}
