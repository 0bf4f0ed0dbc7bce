//! stub

pub mod record;
