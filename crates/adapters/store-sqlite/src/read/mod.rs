//! What is read, each on one unchanging view of the database.

mod asks;
mod books;
mod costs;
mod counts;
mod files;
mod pieces;
mod runs;
mod stats;
mod streams;

pub(crate) use asks::{decided_asks, open_asks};
pub(crate) use books::{account, audit, find_audit, heads, holds, prices};
pub(crate) use costs::costs;
pub(crate) use counts::count_runs;
pub(crate) use files::{all_files, files, folder_sizes, trace, usage};
pub(crate) use runs::runs;
pub(crate) use stats::run_stats;
pub(crate) use streams::{closed, history, load, load_open, open_children};
