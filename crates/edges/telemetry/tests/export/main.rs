//! An engine that exports its traces to a collector on a real socket, which decodes what arrives.

mod runs;
mod stage;
mod trouble;
