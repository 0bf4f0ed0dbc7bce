//! Names inside: the resolvers of this host that only this host can ask are asked by us, at the link's own address.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::forward::Stop;

const CONFIGURATION: &str = "/etc/resolv.conf";
const PORT: u16 = 53;
/// Questions without an answer yet, and for how long.
const MOST_OPEN: usize = 256;
const PATIENCE: Duration = Duration::from_secs(10);

/// What is to be done so that names resolve inside.
pub struct Names {
    /// The configuration for the program.
    pub configuration: Vec<u8>,
    /// Where it sends its questions.
    socket: UdpSocket,
    /// Whom they are passed on to.
    resolver: SocketAddr,
}

/// A question that has been passed on.
struct Open {
    socket: UdpSocket,
    from: SocketAddr,
    since: Instant,
}

impl Names {
    /// `None` where the program can ask this host's resolvers by itself. `own` is this host's address on the link.
    pub fn new(own: Ipv4Addr) -> Option<Self> {
        let text = fs::read_to_string(CONFIGURATION).ok()?;
        let (configuration, resolver) = translate(&text, own)?;
        // A resolver of this host that listens at every address is there already.
        let socket = UdpSocket::bind((own, PORT)).ok()?;
        let configuration = configuration.into_bytes();
        Some(Self { configuration, socket, resolver: SocketAddr::new(resolver, PORT) })
    }

    /// Passes questions and answers on, until `stop`.
    pub fn serve(&self, stop: &Stop) -> io::Result<()> {
        self.socket.set_nonblocking(true)?;
        let mut open: Vec<Open> = Vec::new();
        let mut room = vec![0; 1 << 16];
        loop {
            let mut files = vec![
                PollFd::new(stop.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
            ];
            files.extend(open.iter().map(|one| PollFd::new(one.socket.as_fd(), PollFlags::POLLIN)));
            poll(&mut files, PollTimeout::from(1000u16))?;
            if files[0].any() == Some(true) {
                return Ok(());
            }
            let answered: Vec<bool> =
                files[2..].iter().map(|file| file.any() == Some(true)).collect();
            let mut answered = answered.into_iter();
            open.retain(|one| {
                let is_answered = answered.next() == Some(true);
                if is_answered && let Ok(len) = one.socket.recv(&mut room) {
                    let _ = self.socket.send_to(&room[..len], one.from);
                }
                !is_answered && one.since.elapsed() < PATIENCE
            });
            while let Ok((len, from)) = self.socket.recv_from(&mut room) {
                if open.len() < MOST_OPEN
                    && let Ok(socket) = self.ask(&room[..len])
                {
                    open.push(Open { socket, from, since: Instant::now() });
                }
            }
        }
    }

    fn ask(&self, question: &[u8]) -> io::Result<UdpSocket> {
        let any: IpAddr = match self.resolver {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.set_nonblocking(true)?;
        socket.connect(self.resolver)?;
        socket.send(question)?;
        Ok(socket)
    }
}

/// The configuration `text` with `own` in the place of the resolvers that a program inside cannot ask, and the first of those;
/// `None` if there are none.
fn translate(text: &str, own: Ipv4Addr) -> Option<(String, IpAddr)> {
    let mut first = None;
    let mut any = false;
    let mut out = String::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let address = match (words.next(), words.next()) {
            (Some("nameserver"), Some(address)) => address.parse::<IpAddr>().ok(),
            _ => None,
        };
        any |= address.is_some();
        match address {
            Some(address) if address.is_loopback() || address.is_ipv6() => {
                if first.replace(first.unwrap_or(address)).is_none() {
                    out += &format!("nameserver {own}\n");
                }
            }
            _ => out += &format!("{line}\n"),
        }
    }
    if !any {
        // What the resolver library does then.
        first = Some(Ipv4Addr::LOCALHOST.into());
        out += &format!("nameserver {own}\n");
    }
    Some((out, first?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

    #[test]
    fn resolvers_that_only_this_host_reaches_are_replaced() {
        let text =
            "# stub\nsearch example.org\nnameserver ::1\nnameserver 127.0.0.53\noptions edns0\n";
        let (out, first) = translate(text, OWN).unwrap();
        assert_eq!(out, "# stub\nsearch example.org\nnameserver 198.18.0.1\noptions edns0\n");
        assert_eq!(first, Ipv6Addr::LOCALHOST);
        let (out, first) = translate("nameserver 127.0.0.1\nnameserver 9.9.9.9", OWN).unwrap();
        assert_eq!(out, "nameserver 198.18.0.1\nnameserver 9.9.9.9\n");
        assert_eq!(first, Ipv4Addr::LOCALHOST);
    }

    #[test]
    fn others_stay() {
        assert_eq!(translate("nameserver 9.9.9.9\n", OWN), None);
        let (out, first) = translate("search x\n", OWN).unwrap();
        assert_eq!(
            (out.as_str(), first),
            ("search x\nnameserver 198.18.0.1\n", Ipv4Addr::LOCALHOST.into())
        );
    }
}
