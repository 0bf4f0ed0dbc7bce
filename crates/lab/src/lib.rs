//! From a scenario file to validated types, to a run in a world, to a record on disk.

pub mod record;
pub mod scenario;
pub mod world;
