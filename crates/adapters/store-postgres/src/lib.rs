//! The store in PostgreSQL (15 or newer).
//!
//! Batches go to lanes: each is one task with one connection, and a shard's batches go to the same
//! one. A lane commits one group while the next gathers. A group that can be checked against what
//! the store remembers goes out whole in one flight, with assertions in place of reads; when one of
//! them fails, or money moves, a second way locks and reads first and then decides batch by batch
//! by the rules that all stores share ([`wharf_ports::plan`]).
//!
//! What is reported as committed is committed: when the connection breaks at the wrong moment, the
//! lane's row tells what became of the group. Nobody writes a shard without its newest epoch,
//! because the epoch is asserted in the same transaction.

mod admin;
mod connect;
mod error;
mod import;
mod lease;
pub mod migrations;
mod months;
mod number;
mod options;
mod packed;
mod pool;
mod read;
mod shred;
mod store;
mod tls;
mod writer;

pub use admin::{Ready, StoreFiles, integrity_check, ready, verify_audit};
pub use import::PostgresImport;
pub use options::PostgresOptions;
pub use store::PostgresStore;
