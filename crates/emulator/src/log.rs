//! Writes a direction's log, on a thread of its own: what is slow about a file must not delay packets.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender};

use paceline_net::log::{LogEvent, LogHeader, LogWriter};
use paceline_net::{LinkSpec, PS_PER_MS, Picos};

use crate::Error;

/// A log in mahimahi's format that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Where; what is there is replaced.
    pub path: PathBuf,
    /// The capacity of the link in words, for the first comment.
    pub capacity: String,
    /// How all of this was started, for the second.
    pub command_line: String,
}

impl LogFile {
    /// Makes the file.
    pub(crate) fn create(&self) -> Result<File, Error> {
        let failed = |reason| Error::Log { path: self.path.clone(), reason };
        File::create(&self.path).map_err(failed)
    }

    /// The comments of the log of `link`, "Uplink" or "Downlink".
    pub(crate) fn header(&self, link: &str, start_ms: u64) -> LogHeader {
        LogHeader {
            link: link.into(),
            capacity: self.capacity.clone(),
            file: self.path.display().to_string(),
            command_line: self.command_line.clone(),
            start_ms,
        }
    }
}

/// Events are handed on in batches of so many …
const BATCH: usize = 1024;
/// … or when so much time has passed since the first of them.
const BATCH_TIME: Picos = 100 * PS_PER_MS;

/// The forwarder's end.
pub struct Log {
    to: Sender<Vec<LogEvent>>,
    batch: Vec<LogEvent>,
    /// Time of the first event in the batch, or of the last hand-over.
    since: Picos,
}

impl Log {
    pub fn new(to: Sender<Vec<LogEvent>>) -> Self {
        Self { to, batch: Vec::with_capacity(BATCH), since: 0 }
    }

    /// Something happened, and it is `now`.
    pub fn add(&mut self, now: Picos, event: LogEvent) {
        self.batch.push(event);
        if self.batch.len() >= BATCH || now - self.since >= BATCH_TIME {
            self.hand_on(now);
        }
    }

    /// Nothing will happen any more.
    pub fn end(mut self, now: Picos) {
        self.batch.push(LogEvent::Passed { time: now });
        self.hand_on(now);
    }

    fn hand_on(&mut self, now: Picos) {
        self.since = now;
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // A writer that has failed says so itself, at the end.
        let _ = self.to.send(batch);
    }
}

/// The other end: writes until there is nothing more to come.
pub fn write(
    events: &Receiver<Vec<LogEvent>>,
    file: impl io::Write,
    header: &LogHeader,
    spec: &LinkSpec,
) -> io::Result<()> {
    let mut log = LogWriter::new(file, header, spec);
    log.flush()?;
    for batch in events {
        for event in batch {
            log.add(event)?;
        }
        log.flush()?;
    }
    Ok(())
}
