//! Files of runs against real servers on loopback and real folders.

mod egress;
mod embedded;
mod fetching;
mod local;
mod memory;
mod settling;
mod support;
mod writing;
