//! A time cut into whole hours, whose runs are summed up already, and what is left at its ends.

use rusqlite::Connection;
use wharf_vocab::Timestamp;

use crate::number::clamp;
use crate::writer::HOUR_MS;

/// A time in pieces. Each begins with its first moment and ends before its second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pieces {
    /// Whole hours, by their first moments.
    pub(super) hours: Option<(i64, i64)>,
    /// Less than an hour each, or all of a time that has no whole hour.
    pub(super) ends: Vec<(i64, i64)>,
}

impl Pieces {
    /// Cuts the time from a moment on until another. Where no run is older than the one, or none
    /// as young as the other, the hour it lies in is as good as whole.
    pub(super) fn of(
        conn: &Connection,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> rusqlite::Result<Self> {
        let since = since.map_or(0, |since| clamp(since.0));
        let until = until.map_or(i64::MAX, |until| clamp(until.0));
        let (oldest, youngest) = conn.prepare_cached(REACH)?.query_row((), |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        let since = if oldest.is_none_or(|oldest| since <= oldest) { 0 } else { since };
        let until = if youngest.is_none_or(|youngest| youngest < until) { i64::MAX } else { until };
        Ok(Self::between(since, until))
    }

    fn between(since: i64, until: i64) -> Self {
        let above = since.checked_add(HOUR_MS - 1);
        let first = above.map_or(i64::MAX, |above| above / HOUR_MS * HOUR_MS);
        let last = if until == i64::MAX { until } else { until / HOUR_MS * HOUR_MS };
        if first >= last {
            let all = (since < until).then_some((since, until));
            return Self { hours: None, ends: all.into_iter().collect() };
        }
        let ends = [(since, first), (last, until)].into_iter().filter(|(from, to)| from < to);
        Self { hours: Some((first, last)), ends: ends.collect() }
    }
}

/// The times of the oldest and the youngest run.
const REACH: &str = "
    SELECT (SELECT min(created_at) FROM streams INDEXED BY runs_by_time
            WHERE created_at IS NOT NULL),
           (SELECT max(created_at) FROM streams INDEXED BY runs_by_time
            WHERE created_at IS NOT NULL)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrations;

    #[test]
    fn c045_a_time_is_cut_into_whole_hours_and_its_ends() {
        let h = |hours: i64| hours * HOUR_MS;
        let cut = |since, until| {
            let Pieces { hours, ends } = Pieces::between(since, until);
            (hours, ends)
        };
        assert_eq!(cut(h(1), h(3)), (Some((h(1), h(3))), vec![]));
        assert_eq!(
            cut(h(1) - 1, h(3) + 1),
            (Some((h(1), h(3))), vec![(h(1) - 1, h(1)), (h(3), h(3) + 1)])
        );
        assert_eq!(cut(h(1) + 1, h(2) - 1), (None, vec![(h(1) + 1, h(2) - 1)]));
        assert_eq!(cut(h(1) + 1, h(2) + 1), (None, vec![(h(1) + 1, h(2) + 1)]));
        assert_eq!(cut(h(2), h(2)), (None, vec![]));
        assert_eq!(cut(h(3), h(2)), (None, vec![]));
        assert_eq!(cut(0, i64::MAX), (Some((0, i64::MAX)), vec![]));
        assert_eq!(cut(5, i64::MAX), (Some((h(1), i64::MAX)), vec![(5, h(1))]));
        assert_eq!(cut(i64::MAX, i64::MAX), (None, vec![]));
    }

    /// Looking for the ends of the index must not walk it.
    #[test]
    fn c045_the_oldest_and_the_youngest_run_are_looked_up() {
        let mut conn = Connection::open_in_memory().expect("opens");
        migrations::bring_up(&mut conn).expect("climbs");
        let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {REACH}")).expect("prepares");
        let plan: Vec<String> =
            explain.query_map((), |row| row.get(3)).and_then(Iterator::collect).expect("explains");
        assert!(!plan.iter().any(|step| step.contains("SCAN streams")), "{plan:?}");
    }
}
