//! Recordings: what the kernel's buffers hold, into a file.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapFlags, MapHandle, RingBufferBuilder};
use paceline_cc::event_log;

use crate::loaded::{self, Loaded};
use crate::{Error, Result};

/// Between two looks at the buffers.
const PAUSE: Duration = Duration::from_millis(10);
/// Written at once, bytes.
const CHUNK: usize = 1 << 16;

/// What a recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Records written.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records that found the kernel's buffer full.
    pub lost: u64,
}

/// Writes what the controllers that record do to `out`: of the controller called `name`, or of all; until `duration` has passed or
/// `stop` says so. What the buffers hold already comes first.
///
/// # Errors
/// Nothing is loaded that records, another recording is under way, the file cannot be written.
pub fn record(
    name: Option<&str>,
    out: &Path,
    duration: Option<Duration>,
    stop: &dyn Fn() -> bool,
) -> Result<Recorded> {
    let controllers = recording(name)?;
    let mut locks = Vec::new();
    let (mut rings, mut losts) = (Vec::new(), Vec::new());
    for controller in &controllers {
        let Some((ring, lost)) = controller.recording else { continue };
        locks.push(lock(controller, ring)?);
        rings.push(controller.map(ring)?);
        losts.push(controller.map(lost)?);
    }
    let failed = |error: io::Error| Error::Input(format!("{}: {error}", out.display()));
    let mut head = Vec::new();
    event_log::put_head(&mut head);
    let sink = RefCell::new(Sink {
        file: File::create(out).map_err(failed)?,
        pending: head,
        recorded: Recorded::default(),
        error: None,
    });
    let mut builder = RingBufferBuilder::new();
    for ring in &rings {
        // Less than 0 ends the look.
        let take = |record: &[u8]| -i32::from(!sink.borrow_mut().take(record));
        builder.add(ring, take).map_err(Error::kernel("read the records"))?;
    }
    let buffer = builder.build().map_err(Error::kernel("read the records"))?;
    let began = Instant::now();
    // Once more after the end: what the flows said until then.
    loop {
        let last = stop() || duration.is_some_and(|duration| began.elapsed() >= duration);
        let looked = buffer.consume();
        sink.borrow_mut().written().map_err(failed)?;
        looked.map_err(Error::kernel("read the records"))?;
        if last {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    drop(buffer);
    let mut sink = sink.into_inner();
    sink.recorded.lost = losts.iter().map(count).sum();
    event_log::put_closed(sink.recorded.lost, &mut sink.pending);
    sink.flush().map_err(failed)?;
    Ok(sink.recorded)
}

/// Whole records on their way to the file.
struct Sink {
    file: File,
    pending: Vec<u8>,
    recorded: Recorded,
    error: Option<io::Error>,
}

impl Sink {
    /// Whether it could.
    fn take(&mut self, record: &[u8]) -> bool {
        self.pending.extend_from_slice(record);
        self.recorded.records += 1;
        self.recorded.bytes += record.len() as u64;
        if self.pending.len() >= CHUNK {
            self.error = self.flush().err();
        }
        self.error.is_none()
    }

    /// What went wrong, once.
    fn written(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

/// The controllers that record, one of them at least.
fn recording(name: Option<&str>) -> Result<Vec<Loaded>> {
    let mut controllers = match name {
        Some(name) => loaded::called(name)?,
        None => loaded::loaded()?,
    };
    controllers.retain(Loaded::records);
    if controllers.is_empty() {
        let what = name.map_or_else(
            || "no controller is loaded to record".to_owned(),
            |name| format!("\"{name}\" is not loaded to record"),
        );
        return Err(Error::Input(format!("{what} (paceline kernel load CONTROLLER --record)")));
    }
    Ok(controllers)
}

/// Two readers would take each other's records. A name that only one process can have, and that goes with it.
fn lock(controller: &Loaded, ring: u32) -> Result<UnixListener> {
    let address = SocketAddr::from_abstract_name(format!("paceline-record-{ring}"));
    address.and_then(|address| UnixListener::bind_addr(&address)).map_err(|_| {
        Error::Input(format!(
            "{} is being recorded already: a record is read once",
            controller.name
        ))
    })
}

/// How many records did not fit.
fn count(map: &MapHandle) -> u64 {
    let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
    value.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}
