//! What is read, each on a connection of the pool.
//!
//! Lists that go forward by position are read up to the oldest transaction that still goes on:
//! what lies beyond may be followed by a smaller position that comes late, and a reader who went
//! on from there would miss it.

mod asks;
mod books;
mod costs;
mod files;
mod runs;
mod stats;
mod streams;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;
use wharf_ports::StoreError;

pub(crate) use asks::{decided_asks, open_asks};
pub(crate) use books::{account, audit, find_audit, heads, holds, prices, record_rows};
pub(crate) use costs::costs;
pub(crate) use files::{all_files, files, folder_sizes, is_here, trace, usage};
pub(crate) use runs::{count_runs, runs};
pub(crate) use stats::run_stats;
pub(crate) use streams::{closed, history, load, load_open, open_children};

use crate::error::from_postgres;
use crate::number::first_position;
use crate::pool::{Pool, Pooled};
use crate::writer::LaneShared;

/// How long a reader waits until what this core has committed is settled, when somebody else's
/// transaction on the same server goes on and on.
const SETTLING: Duration = Duration::from_secs(1);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Reads what is stored.
#[derive(Debug, Clone)]
pub(crate) struct Reader {
    pub(crate) pool: Pool,
    pub(crate) shared: Arc<LaneShared>,
}

impl Reader {
    pub(crate) async fn get(&self) -> Result<Pooled, StoreError> {
        self.pool.get().await
    }

    /// The position below which everything is settled. What this core has committed is below it,
    /// unless somebody's transaction goes on for too long.
    pub(crate) async fn settled(&self, client: &mut Pooled) -> Result<i64, StoreError> {
        let until = Instant::now() + SETTLING;
        let written = self.shared.written.load(Ordering::Acquire);
        loop {
            let sql = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint";
            let oldest: i64 =
                client.query_one(sql, &[]).await?.try_get(0).map_err(from_postgres)?;
            if oldest > written || Instant::now() >= until {
                return Ok(first_position(self.shared.base, oldest));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
