//! The engine as a user of its handle meets it, with the built-in tools on a store in memory.

mod doubt;
mod life;
mod many;
mod restart;
mod support;
