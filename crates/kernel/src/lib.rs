//! Paceline's controllers in this machine's TCP.
//!
//! An algorithm of `bpf/algorithms` becomes a TCP congestion control through `bpf/include/cc_kernel.h`; this crate hands the compiled
//! object to the kernel ([`load`]), finds again what is loaded ([`loaded`], [`unload`]), caps flows while they run ([`set_cap`]) and
//! reads their states ([`flows`]). Nothing is pinned to a file system: what is loaded is found by asking the kernel, and a process
//! that dies before the last step of [`load`] leaves nothing behind; one that dies while it [`hold`]s a controller does not either,
//! since Linux 6.4. What flows hear and answer can be recorded ([`record`]) and repeated, natively and as BPF ([`Replayer`]).

mod caps;
mod error;
mod flow;
mod kernel;
mod load;
mod loaded;
mod objects;
mod record;
mod replay;

pub use caps::{Cap, caps, set_cap};
pub use error::Error;
pub use flow::{Flow, flows};
pub use kernel::check;
pub use load::{Held, Request, hold, load};
pub use loaded::{Loaded, ProgramCost, loaded, unload};
pub use objects::algorithms;
pub use record::{Recorded, record};
pub use replay::{Difference, FlowReplay, Replayed, Replayer};

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;
