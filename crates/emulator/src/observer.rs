//! Whoever measures what a direction does.

use paceline_net::Picos;

/// Is shown what happens in one direction of a link, as it happens, in times of the model: ps since [`crate::Ends::start`].
pub trait Observer: Send {
    /// The number of the flow that an IP packet belongs to, or any other of the caller's choice. Of a packet that stands for
    /// several, it is that of all of them.
    fn flow_of(&mut self, packet: &[u8]) -> u32;
    /// A packet of `flow` comes to the link.
    fn on_entered(&mut self, now: Picos, flow: u32, bytes: u32);
    /// A packet of the branch `branch` that came at `entered` leaves, or will leave, the link at `departs`; `marked` by its queue.
    fn on_departure(
        &mut self,
        branch: u32,
        entered: Picos,
        departs: Picos,
        bytes: u32,
        marked: bool,
    );
    /// A packet of `flow` is dropped.
    fn on_dropped(&mut self, now: Picos, flow: u32, bytes: u32);
    /// A packet of `flow` that came at `entered` has reached the far end of the link at `now`; behind it there may be a delay to
    /// the packet's host. Where the flows of [`crate::host`] have branches, it has reached the end of its branch.
    fn on_delivered(&mut self, now: Picos, flow: u32, bytes: u32, entered: Picos);
    /// The device at the far end did not take a packet of `flow`.
    fn on_unwritable(&mut self, flow: u32);
    /// The time of the last sample, and that of the next, if there is to be one.
    fn next_sample(&self) -> Option<(Picos, Picos)>;
    /// It is `now`, the time of the next sample. The link could have carried `offered` bytes since the last one (`None`:
    /// unlimited), and has `waiting` bytes in its queue.
    fn on_sample(&mut self, now: Picos, offered: Option<f64>, waiting: u64);
    /// From when to when [`Self::on_end`] is told what the link could have carried.
    fn window(&self) -> [Picos; 2];
    /// It is `now`, and nothing more will happen. The link could have carried `offered` bytes in the window; `None`: unlimited.
    fn on_end(self: Box<Self>, now: Picos, offered: Option<f64>);
}
