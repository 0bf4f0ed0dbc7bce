//! The two ends of a datagram flow on machines of their own, over whatever network lies between: compatible on the wire with the
//! contest's programs.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use paceline_net::Picos;
use paceline_sim::hosted::{HostedDatagram, Window};
use paceline_sim::{FlowPlan, PlanError, Stats};

use crate::clock::Clock;
use crate::error::LiveError;
use crate::receive::{self, Receiver};
use crate::route;
use crate::send::{self, Driver, Ended};
use crate::sys;

/// What a sender knows in the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// How long it sent, s.
    pub duration_s: f64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets that the receiver has acknowledged.
    pub acked_packets: u64,
    /// Packets that the receiver has found missing.
    pub missing_packets: u64,
    /// Timeouts.
    pub timeouts: u64,
    /// RTT, ms; `None` without an ACK.
    pub rtt_ms: Option<Stats>,
}

/// Sends the datagram flow `flow` to `to` for `duration`, ps, or until `stop`.
///
/// # Errors
/// A controller that needs what the endpoint lacks, or a socket that cannot be had.
pub fn send(
    mut flow: FlowPlan,
    to: SocketAddrV4,
    seed: u64,
    duration: Picos,
    stop: &AtomicBool,
) -> Result<Sent, LiveError> {
    route::check_flow(&flow)?;
    route::adapt(&mut flow);
    let socket = socket_at(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(to).map_err(LiveError::system("connect a socket"))?;
    sys::set_ecn(&socket, route::ecn_field(&flow)).map_err(LiveError::system("set up a socket"))?;
    let clock = Clock::new(Instant::now());
    let window = Window { warmup: 0, end: duration.max(1), sample: duration.max(1) };
    let name = flow.name.clone();
    let host = HostedDatagram::new(flow, 0, seed, 0, window);
    let mut driver = Driver::new(host, 0, window);
    let ended = send::send(&mut driver, &socket, &clock, 0, stop);
    let now = clock.now().min(duration);
    if let Ended::Unbounded = ended {
        return Err(PlanError::Unbounded { flow: name, at_s: now as f64 / 1e12 }.into());
    }
    let (acked_packets, missing_packets) = driver.acknowledged();
    let record = driver.finish(now);
    Ok(Sent {
        duration_s: now as f64 / 1e12,
        sent_packets: record.sent_packets,
        acked_packets,
        missing_packets,
        timeouts: record.timeouts,
        rtt_ms: record.rtt_ms,
    })
}

/// Acknowledges what comes to a UDP port of this machine until `stop`. `ready` is told the port.
///
/// # Errors
/// A port that cannot be had.
pub fn receive(port: u16, ready: impl FnOnce(u16), stop: &AtomicBool) -> Result<(), LiveError> {
    let socket = socket_at(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
    let address = socket.local_addr().map_err(LiveError::system("make a socket"))?;
    ready(SocketAddr::port(&address));
    receive::receive(&mut [Receiver::new(socket)], &Clock::new(Instant::now()), stop);
    Ok(())
}

fn socket_at(address: SocketAddrV4) -> Result<UdpSocket, LiveError> {
    sys::datagram_socket(address).map_err(LiveError::system("make a socket"))
}
