//! From a scenario file to validated types, to a run in a world, to a record on disk.

mod congestion;
pub mod events;
pub mod record;
pub mod scenario;
pub mod vm;
pub mod world;
