//! The SQLite store through its public face.

mod backup;
mod contract;
mod durable;
mod handles;
mod money;
mod same_as_memory;
mod schema;
mod support;
mod tampered;
mod trouble;
