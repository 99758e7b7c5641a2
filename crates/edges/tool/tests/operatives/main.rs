//! Operatives and principals on real sockets.

mod children;
mod costs;
mod events;
mod frames;
mod loss;
mod names;
mod outcomes;
mod pages;
mod pressure;
mod principals;
mod questions;
mod reader;
mod rights;
mod stage;
