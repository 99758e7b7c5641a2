//! Agents made with the SDK, served over real sockets by a core that tests drive by hand.

mod calls;
mod children;
mod core;
mod faces;
mod files;
mod keys;
mod life;
mod steps;
mod streams;
mod tools;
