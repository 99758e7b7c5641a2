//! A store in memory that keeps every promise of [`Store`](wharf_ports::Store) but that of surviving
//! the process.
//!
//! [`MemoryState`] is the whole store as a plain value: synchronous, without a clock of its own,
//! and cheap to copy, so that a simulator can step it, keep it across a simulated crash or go
//! back to an earlier moment. [`MemoryStore`] puts it behind the trait and can be told to fail
//! or to hold commits back. [`MemoryObjects`] is the same for artifacts.

mod files;
mod objects;
mod read;
mod state;
mod store;

pub use objects::MemoryObjects;
pub use state::MemoryState;
pub use store::MemoryStore;
