//! The states of live flows, read out of the kernel and told by the algorithm's own source.

use std::io::Read;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use libbpf_rs::{Iter, MapCore, ObjectBuilder};

use crate::load::Log;
use crate::loaded::Loaded;
use crate::{Error, Result, objects};

/// struct cc_endpoints and struct cc_host of bpf/include/flow.h.
const ENDPOINTS_BYTES: usize = 40;
const HOST_BYTES: usize = 584;
const NONE: u64 = u64::MAX;

/// A flow that uses a controller. Bytes are those of whole packets, IP headers included, as the controller sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// This end.
    pub local: SocketAddr,
    /// The other.
    pub remote: SocketAddr,
    /// Window, bytes.
    pub cwnd_bytes: u64,
    /// Rate asked for, before the cap, bytes/s; `None` = unpaced.
    pub pacing_bytes_per_s: Option<u64>,
    /// Cap, bytes/s of payload unless the queueing discipline paces; `None` = none.
    pub cap_bytes_per_s: Option<u64>,
    /// When the controller took over and when the last ACK came, ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// See there.
    pub acked_ns: u64,
    /// Delivered since the start.
    pub delivered_bytes: u64,
    /// In flight after the last ACK.
    pub in_flight_bytes: u64,
    /// Packets found lost, without those of timeouts.
    pub lost_packets: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// Smoothed RTT, ns; 0 = none yet.
    pub srtt_ns: u64,
    /// Smallest RTT (of the last minutes, as the kernel keeps it), ns; 0 = none yet.
    pub min_rtt_ns: u64,
    /// Size of a full packet and of its payload, bytes.
    pub packet_bytes: u32,
    /// See there.
    pub payload_bytes: u32,
    /// One value per field of the algorithm's table; NaN = none yet.
    pub observed: Vec<f64>,
}

/// The flows of `controller`, in no order.
///
/// # Errors
/// It has gone, or the kernel does not let its flows be read.
pub fn flows(controller: &Loaded) -> Result<Vec<Flow>> {
    let map = controller.map(controller.flows)?;
    let value_bytes = map.value_size() as usize;
    let bytes = read(&map, value_bytes).map_err(Error::kernel("read the flows"))?;
    let parse = |record: &[u8]| parse(controller, record);
    let flows: Option<Vec<Flow>> = bytes.chunks(ENDPOINTS_BYTES + value_bytes).map(parse).collect();
    flows.ok_or_else(|| {
        Error::Unavailable(format!(
            "{} was loaded by another version: its flows read otherwise",
            controller.name
        ))
    })
}

/// Runs flows.bpf.c over the map.
fn read(map: &impl MapCore, value_bytes: usize) -> libbpf_rs::Result<Vec<u8>> {
    let _quiet = Log::begin();
    let bytes = objects::find(objects::FLOWS).map_err(|e| std::io::Error::other(e.to_string()))?;
    let mut object = ObjectBuilder::default().name(objects::FLOWS)?.open_memory(bytes)?;
    for mut map in object.maps_mut() {
        if let Some(settings) = map.initial_value_mut() {
            settings.copy_from_slice(&(value_bytes as u32).to_ne_bytes());
        }
    }
    let object = object.load()?;
    let program = object.progs_mut().next().ok_or_else(|| std::io::Error::other("no program"))?;
    let link = program.attach_iter(map.as_fd())?;
    let mut written = Vec::new();
    Iter::new(&link)?.read_to_end(&mut written)?;
    Ok(written)
}

/// Reads numbers one after the other.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_at_checked(N)?;
        self.0 = rest;
        taken.try_into().ok()
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn address(&mut self) -> Option<IpAddr> {
        Some(Ipv6Addr::from(self.take::<16>()?).to_canonical())
    }
}

fn parse(controller: &Loaded, record: &[u8]) -> Option<Flow> {
    let (endpoints, value) = record.split_at_checked(ENDPOINTS_BYTES)?;
    let (host, state) = value.split_at_checked(HOST_BYTES)?;
    let mut cursor = Cursor(endpoints);
    let (local, remote) = (cursor.address()?, cursor.address()?);
    let (local_port, remote_port) = (cursor.u32()? as u16, u16::from_be(cursor.u32()? as u16));
    let mut cursor = Cursor(host);
    let mut next = || cursor.u64();
    let (cwnd_bytes, pacing) = (next()?, next()?);
    let (_quantum, _timer, _timeout) = (next()?, next()?, next()?);
    let (started_ns, acked_ns, _episode_ns) = (next()?, next()?, next()?);
    let (delivered_bytes, in_flight_bytes, lost_packets, timeouts) =
        (next()?, next()?, next()?, next()?);
    let (srtt_ns, min_rtt_ns, cap) = (next()?, next()?, next()?);
    let (_table_cap, _table_due) = (next()?, next()?);
    let (packet_bytes, payload_bytes) = (cursor.u32()?, cursor.u32()?);
    Some(Flow {
        local: SocketAddr::new(local, local_port),
        remote: SocketAddr::new(remote, remote_port),
        cwnd_bytes,
        pacing_bytes_per_s: Some(pacing).filter(|rate| *rate != NONE),
        cap_bytes_per_s: Some(cap).filter(|rate| *rate != NONE),
        started_ns,
        acked_ns,
        delivered_bytes,
        in_flight_bytes,
        lost_packets,
        timeouts,
        srtt_ns,
        min_rtt_ns,
        packet_bytes,
        payload_bytes,
        // The value may end in padding.
        observed: controller.algorithm.observe(state.get(..controller.algorithm.state_bytes())?)?,
    })
}
