//! A link between two parts of this very process: sockets made inside and outside instead of a command.
//!
//! A socket stays in the network namespace of the thread that made it, whichever thread uses it. So the outer part is made in
//! the caller's namespace, the inner one on a thread of its own in a new one, and nothing has to be started. When the process
//! ends, however it does, the kernel takes namespace and devices away with the last descriptor.

use std::net::Ipv4Addr;
use std::thread;
use std::time::Instant;

use nix::sched::{CloneFlags, unshare};

use crate::Error;
use crate::address::claim;
use crate::branch::Branches;
use crate::counts::Counts;
use crate::devices::Wiring;
use crate::forward::{Forwarder, Stop, carry};
use crate::link::{Emulation, Ended, no_priority};
use crate::observer::Observer;
use crate::outside::Reach;
use crate::sys;

/// The two ends of a link.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Address of the end in the caller's network namespace.
    pub outside: Ipv4Addr,
    /// Address of the end in the namespace of its own.
    pub inside: Ipv4Addr,
    /// Time 0 of the link.
    pub start: Instant,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Hosted<T> {
    /// What the inner part returned.
    pub result: T,
    /// From inside to outside.
    pub up: Counts,
    /// From outside to inside.
    pub down: Counts,
}

/// Runs `inside` on a thread whose sockets are behind the link, with what `outside` has made in the caller's namespace. What is
/// under way when it returns may still arrive, for a second at most.
///
/// `observers` see the uplink (from inside to outside) and the downlink, whose flows may have `branches`. Logs of the emulation are
/// not written.
///
/// # Errors
/// See [`Error`]. What was set up by then is gone.
pub fn host<O: Send, T: Send>(
    emulation: Emulation,
    observers: [Option<Box<dyn Observer>>; 2],
    branches: [Option<Branches>; 2],
    outside: impl FnOnce(&Ends) -> Result<O, Error>,
    inside: impl FnOnce(&Ends, O) -> T + Send,
) -> Result<Hosted<T>, Error> {
    let claim = claim()?;
    let wiring = Wiring::new(claim.block, Reach::Host, 1);
    let device = wiring.make_outside()?;
    let (address, far) = (claim.block.outside(), claim.block.inside(0));
    let ends = |start| Ends { outside: address, inside: far, start };
    let outer = outside(&ends(Instant::now()))?;
    let guest = move || {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|error| Error::system("make a network namespace", error))?;
        let inner = wiring.make_inside(0)?;
        let Emulation { up, down, seed, realtime } = emulation;
        let [up_observer, down_observer] = observers;
        let [up_branches, down_branches] = branches;
        let up = Forwarder::new(inner.another()?, device.another()?, up, (seed, 0), None);
        let down = Forwarder::new(device, inner, down, (seed, 1), None);
        let up = up.with_branches(up_branches).observed_by(up_observer);
        let down = down.with_branches(down_branches).observed_by(down_observer);
        let stop = Stop::new()?;
        let ends = ends(Instant::now());
        thread::scope(|scope| {
            let stop = &stop;
            let _ended = Ended(stop);
            let carrier = |name: &str, forwarder| {
                let thread = thread::Builder::new().name(name.into());
                let thread = thread.spawn_scoped(scope, move || {
                    if realtime {
                        sys::set_realtime(true).map_err(no_priority)?;
                    }
                    Ok(carry(forwarder, ends.start, stop))
                });
                thread.map_err(|error| Error::system("start a thread", error))
            };
            let up = carrier("paceline-up", up)?;
            let down = carrier("paceline-down", down)?;
            let result = inside(&ends, outer);
            stop.now();
            let counts = |thread: thread::ScopedJoinHandle<'_, Result<Counts, Error>>| {
                // A panic there is a bug; it has been printed.
                thread.join().unwrap_or(Err(Error::Killed))
            };
            Ok(Hosted { result, up: counts(up)?, down: counts(down)? })
        })
    };
    // A namespace is entered for good, so by a thread of its own.
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("paceline-inside".into());
        let thread = thread.spawn_scoped(scope, guest);
        let thread = thread.map_err(|error| Error::system("start a thread", error))?;
        thread.join().unwrap_or(Err(Error::Killed))
    })
}
