//! How a core fares: what it has now, and what it did lately.
//!
//! What it did is kept in memory, step by step: an hour by ten seconds and a day by minutes. A core
//! that starts anew begins anew, which shows as a gap.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use wharf_engine::{Handle, RunTotals};
use wharf_vocab::limits::{
    BODY_BYTES_MAX, CONSOLE_SESSIONS_MAX, FILE_BYTES_MAX, HELD_BYTES_MAX, TOKENS_MAX, WORLDS_MAX,
};
use wharf_vocab::{DateTime, SeriesRange, Timestamp};
use wharf_wire::rest_v1 as wire;

/// What only the program around the edges can see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vitals {
    /// The memory of the process.
    pub memory_bytes: Option<u64>,
    /// The size of the database.
    pub database_bytes: Option<u64>,
    /// What is free on the disk of the home.
    pub disk_free_bytes: Option<u64>,
    /// The size of that disk.
    pub disk_total_bytes: Option<u64>,
}

/// Looks at the vitals.
pub type LookAtVitals = Arc<dyn Fn() -> Vitals + Send + Sync>;

/// What is known of a core as a whole.
pub struct CoreStatus {
    handle: Handle,
    started_at: Timestamp,
    home_id: String,
    node: Option<String>,
    vitals: LookAtVitals,
    hour: Mutex<Ring>,
    day: Mutex<Ring>,
}

impl std::fmt::Debug for CoreStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CoreStatus").field("home_id", &self.home_id).finish_non_exhaustive()
    }
}

impl CoreStatus {
    /// Begins to keep what a core does, until its engine ends.
    #[must_use]
    pub fn begin(
        handle: Handle,
        home_id: String,
        node: Option<String>,
        vitals: LookAtVitals,
    ) -> Arc<Self> {
        let started_at = handle.now();
        let (hour, day) = (Ring::new(SeriesRange::Hour), Ring::new(SeriesRange::Day));
        let (hour, day) = (Mutex::new(hour), Mutex::new(day));
        let status = Arc::new(Self { handle, started_at, home_id, node, vitals, hour, day });
        let kept = Arc::clone(&status);
        tokio::spawn(async move {
            tokio::select! {
                () = kept.keep() => {}
                () = kept.handle.ended() => {}
            }
        });
        status
    }

    async fn keep(&self) {
        let step = SeriesRange::Hour.step_ms();
        loop {
            let wait = step - self.handle.now().0 % step;
            tokio::time::sleep(Duration::from_millis(wait)).await;
            self.sample(self.handle.now());
        }
    }

    /// Remembers the steps that have ended.
    fn sample(&self, now: Timestamp) {
        let totals = self.handle.run_lists().totals();
        let (runs_open, asks_open) = (self.runs_open(), self.asks_open());
        let memory_bytes = (self.vitals)().memory_bytes;
        for ring in [&self.hour, &self.day] {
            ring.lock().end_step(now, &totals, |point| wire::SystemPoint {
                runs_open,
                asks_open,
                memory_bytes,
                ..point
            });
        }
    }

    fn runs_open(&self) -> u64 {
        self.handle.run_lists().open_count() as u64
    }

    fn asks_open(&self) -> u64 {
        self.handle.asks().open_count() as u64
    }

    /// What the core is and has now. It looks at files, which may take a while.
    #[must_use]
    pub fn now(&self) -> wire::System {
        let vitals = (self.vitals)();
        let (length, limit) = self.handle.messages_waiting();
        let queue =
            |name: &str, length, limit| wire::SystemQueue { name: name.to_owned(), length, limit };
        wire::System {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: DateTime(self.started_at),
            uptime_ms: self.handle.now().ms_since(self.started_at),
            home_id: self.home_id.clone(),
            node: self.node.clone(),
            pid: std::process::id(),
            runs_open: self.runs_open(),
            attempts_running: self.handle.run_lists().running_count() as u64,
            asks_open: self.asks_open(),
            queues: vec![
                queue("inputs", length as u64, limit as u64),
                queue("memory_of_runs_bytes", self.handle.held_bytes(), HELD_BYTES_MAX),
            ],
            limits: limits(),
            memory_bytes: vitals.memory_bytes,
            database_bytes: vitals.database_bytes,
            disk_free_bytes: vitals.disk_free_bytes,
            disk_total_bytes: vitals.disk_total_bytes,
        }
    }

    /// What the core did lately.
    #[must_use]
    pub fn series(&self, range: SeriesRange) -> wire::SystemSeries {
        let ring = match range {
            SeriesRange::Hour => &self.hour,
            SeriesRange::Day => &self.day,
        };
        wire::SystemSeries {
            range: range.as_str().to_owned(),
            step_ms: range.step_ms(),
            started_at: DateTime(self.started_at),
            points: ring.lock().points.iter().cloned().collect(),
        }
    }
}

fn limits() -> Vec<wire::SystemLimit> {
    let limit = |name: &str, value| wire::SystemLimit { name: name.to_owned(), value };
    vec![
        limit("body_bytes", BODY_BYTES_MAX as u64),
        limit("file_bytes", FILE_BYTES_MAX),
        limit("memory_of_runs_bytes", HELD_BYTES_MAX),
        limit("worlds", WORLDS_MAX as u64),
        limit("tokens", TOKENS_MAX as u64),
        limit("console_sessions", CONSOLE_SESSIONS_MAX as u64),
    ]
}

/// The steps of one series.
#[derive(Debug)]
struct Ring {
    range: SeriesRange,
    points: VecDeque<wire::SystemPoint>,
    /// What had happened when the step that is under way began.
    before: RunTotals,
    /// When the last step ended; none before the first.
    ended: Option<u64>,
}

impl Ring {
    fn new(range: SeriesRange) -> Self {
        Self { range, points: VecDeque::new(), before: RunTotals::default(), ended: None }
    }

    /// Ends the step that is under way if its time is over.
    fn end_step(
        &mut self,
        now: Timestamp,
        totals: &RunTotals,
        complete: impl FnOnce(wire::SystemPoint) -> wire::SystemPoint,
    ) {
        let step = self.range.step_ms();
        let end = now.0 - now.0 % step;
        if self.ended.is_some_and(|ended| end <= ended) {
            return;
        }
        self.ended = Some(end);
        let before = std::mem::replace(&mut self.before, totals.clone());
        let took = totals.took.since(&before.took);
        self.points.push_back(complete(wire::SystemPoint {
            at: DateTime(Timestamp(end.saturating_sub(step))),
            created: totals.created.saturating_sub(before.created),
            runs: wire::EndedRuns {
                succeeded: totals.succeeded.saturating_sub(before.succeeded),
                failed: totals.failed.saturating_sub(before.failed),
                refused: totals.refused.saturating_sub(before.refused),
                canceled: totals.canceled.saturating_sub(before.canceled),
            },
            p50_ms: took.percentile(50),
            p99_ms: took.percentile(99),
            cost_micro: totals.cost_micro.saturating_sub(before.cost_micro),
            runs_open: 0,
            asks_open: 0,
            memory_bytes: None,
        }));
        while self.points.len() > self.range.points_max() {
            self.points.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c019_a_series_keeps_its_last_steps_and_a_gap_stays_a_gap() {
        let mut ring = Ring::new(SeriesRange::Hour);
        let mut totals = RunTotals::default();
        let mut end = |ring: &mut Ring, at: u64| {
            totals.created += 1;
            totals.succeeded += 1;
            ring.end_step(Timestamp(at), &totals, |point| point);
        };
        end(&mut ring, 20_003);
        end(&mut ring, 29_999);
        assert_eq!(ring.points.len(), 1, "the step is not over");
        end(&mut ring, 30_000);
        // The machine slept.
        end(&mut ring, 90_001);
        let at: Vec<u64> = ring.points.iter().map(|point| point.at.0.0).collect();
        assert_eq!(at, [10_000, 20_000, 80_000]);
        let created: Vec<u64> = ring.points.iter().map(|point| point.created).collect();
        assert_eq!(created, [1, 2, 1]);
        for n in 10..1_000 {
            end(&mut ring, n * 10_000);
        }
        assert_eq!(ring.points.len(), 360);
        assert_eq!(SeriesRange::parse("2h"), None);
    }
}
