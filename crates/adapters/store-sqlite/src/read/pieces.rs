//! A time cut into whole hours and minutes, whose runs are summed up already, and what is left.

use rusqlite::Connection;
use wharf_vocab::Timestamp;

use crate::number::clamp;
use crate::writer::{HOUR_MS, HOURS, MINUTE_MS, MINUTES, MINUTES_SINCE, SumTable};

/// Less than a minute each, or what is older than the sums of minutes.
type Ends = Vec<(i64, i64)>;

/// A time in pieces. Each begins with its first moment and ends before its second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pieces {
    /// What is summed up, and where.
    pub(super) sums: Vec<(SumTable, (i64, i64))>,
    /// The rest, whose runs have to be walked over.
    pub(super) ends: Ends,
}

impl Pieces {
    /// Cuts the time from a moment on until another. Where no run is older than the one, or none
    /// as young as the other, what it lies in is as good as whole.
    pub(super) fn of(
        conn: &Connection,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> rusqlite::Result<Self> {
        let (time, minutes) = Self::reach(conn, since, until)?;
        Ok(Self::between(time, minutes))
    }

    /// Cuts the same time without using whole hours, for those who ask about less.
    pub(super) fn by_minute(
        conn: &Connection,
        since: Timestamp,
        until: Timestamp,
    ) -> rusqlite::Result<Self> {
        let (time, minutes) = Self::reach(conn, Some(since), Some(until))?;
        let mut pieces = Self { sums: Vec::new(), ends: Vec::new() };
        pieces.add_minutes(time, minutes);
        Ok(pieces)
    }

    /// The time, without an end where there are no more runs, and from when on there are sums of
    /// minutes.
    fn reach(
        conn: &Connection,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> rusqlite::Result<((i64, i64), i64)> {
        let since = since.map_or(0, |since| clamp(since.0));
        let until = until.map_or(i64::MAX, |until| clamp(until.0));
        let (oldest, youngest) = conn.prepare_cached(REACH)?.query_row((), |row| {
            Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
        })?;
        let since = if oldest.is_none_or(|oldest| since <= oldest) { 0 } else { since };
        let until = if youngest.is_none_or(|youngest| youngest < until) { i64::MAX } else { until };
        let minutes = conn.prepare_cached(MINUTES_SINCE)?.query_row((), |row| row.get(0))?;
        Ok(((since, until), minutes))
    }

    fn between((since, until): (i64, i64), minutes: i64) -> Self {
        let mut pieces = Self { sums: Vec::new(), ends: Vec::new() };
        let (first, last) = (up(since, HOUR_MS), down(until, HOUR_MS));
        if first >= last {
            pieces.add_minutes((since, until), minutes);
            return pieces;
        }
        pieces.sums.push((HOURS, (first, last)));
        pieces.add_minutes((since, first), minutes);
        pieces.add_minutes((last, until), minutes);
        pieces
    }

    /// Adds a time of which no hour is to be used.
    fn add_minutes(&mut self, (since, until): (i64, i64), minutes: i64) {
        let (first, last) = (up(since.max(minutes), MINUTE_MS), down(until, MINUTE_MS));
        let mut end = |from: i64, to: i64| {
            if from < to {
                self.ends.push((from, to));
            }
        };
        if first >= last {
            end(since, until);
            return;
        }
        end(since, first);
        end(last, until);
        self.sums.push((MINUTES, (first, last)));
    }
}

/// The next moment at which a row of sums of this length begins.
fn up(at: i64, length: i64) -> i64 {
    at.checked_add(length - 1).map_or(i64::MAX, |above| above / length * length)
}

/// The moment at which the row of sums begins that this one lies in; there is no end of all time.
fn down(at: i64, length: i64) -> i64 {
    if at == i64::MAX { at } else { at / length * length }
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

    fn h(hours: i64) -> i64 {
        hours * HOUR_MS
    }

    #[test]
    fn c045_a_time_is_cut_into_whole_hours_and_its_ends() {
        let cut = |since, until| {
            let Pieces { sums, ends } = Pieces::between((since, until), i64::MAX);
            assert!(sums.len() <= 1 && sums.iter().all(|(table, _)| *table == HOURS));
            (sums.first().map(|(_, time)| *time), ends)
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

    #[test]
    fn c045_ends_are_cut_into_whole_minutes_as_far_as_there_are_sums_of_them() {
        let m = |minutes: i64| minutes * MINUTE_MS;
        let cut = |time, minutes| {
            let Pieces { sums, mut ends } = Pieces::between(time, minutes);
            ends.sort_unstable();
            (sums, ends)
        };
        let within = (h(1) + 1, h(1) + m(3) + 1);
        let (from, to) = (h(1) + m(1), h(1) + m(3));
        assert_eq!(
            cut(within, 0),
            (vec![(MINUTES, (from, to))], vec![(within.0, from), (to, within.1)])
        );
        // What is older than the sums is walked over.
        assert_eq!(cut(within, to), (vec![], vec![within]));
        let late = h(1) + m(2);
        assert_eq!(
            cut(within, late),
            (vec![(MINUTES, (late, to))], vec![(within.0, late), (to, within.1)])
        );
        let (sums, ends) = cut((h(1) - m(2), h(4) + m(2)), 0);
        let minutes = [(MINUTES, (h(1) - m(2), h(1))), (MINUTES, (h(4), h(4) + m(2)))];
        assert_eq!(sums, [&[(HOURS, (h(1), h(4)))], &minutes[..]].concat());
        assert!(ends.is_empty());
        assert_eq!(cut((h(1) + 1, h(1) + 2), 0), (vec![], vec![(h(1) + 1, h(1) + 2)]));
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
