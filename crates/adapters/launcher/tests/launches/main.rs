//! Launches of real programs. Two tests that count what their process holds are files of their own.

mod bombs;
mod core_death;
mod end;
mod groups;
mod hidden;
mod inbound;
mod interpreters;
mod limits;
mod logs;
mod modes;
mod open_files;
mod outrun;
mod sandbox;
mod sandbox_end;
mod sandbox_gifts;
mod sandbox_start;
mod start;
mod support;
