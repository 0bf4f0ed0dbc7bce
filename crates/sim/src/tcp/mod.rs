//! The TCP endpoint: a reliable stream of equal segments, with SACK, fast retransmit, RTO and delayed ACKs.
//!
//! It is sans-I/O: the engine hands in packets and the time, and polls for packets to send.

mod receiver;
mod scoreboard;
mod sender;

pub(crate) use receiver::{Arrived, TcpReceiver};
pub(crate) use sender::TcpSender;
