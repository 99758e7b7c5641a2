//! When a schedule is due: moments from a pattern, a length of time or one moment. Nothing here
//! reads a clock, and time zones come from the database that is compiled in, so that every core
//! plans the same.
//!
//! Patterns are compared with the time on the wall of a zone. Where the clocks are put forward or
//! back, a pattern whose hour is fixed keeps to the wall: once in an hour that comes twice, and at
//! the end of a gap for times inside it. A pattern whose hour begins with `*` keeps to time as it
//! passes.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Serialize};
use wharf_vocab::{DateTime, Fault, Timestamp};

/// The shortest time between two times of a schedule.
pub const EVERY_MS_MIN: u64 = 1_000;
/// The longest.
pub const EVERY_MS_MAX: u64 = 366 * 86_400_000;
/// Longest pattern.
const PATTERN_BYTES_MAX: usize = 256;
/// Changes of a zone's clocks that are looked across for the next time of a pattern.
const CHANGES_MAX: usize = 64;
/// Times that passed are counted up to here.
pub const MISSED_MAX: u64 = 1_000;

/// When a schedule is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedulePlan {
    /// Whenever the wall of a zone shows a time that fits.
    Cron {
        /// Minute, hour, day of the month, month, day of the week.
        pattern: String,
        /// The zone.
        tz: String,
    },
    /// Again and again after so many milliseconds, from when it was made.
    Every {
        /// How many.
        ms: u64,
    },
    /// Once.
    At {
        /// When.
        at: Timestamp,
        /// The zone that its maker thinks in.
        tz: String,
    },
}

/// Times that have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTimes {
    /// The last of them.
    pub last: Timestamp,
    /// How many came before that one, up to [`MISSED_MAX`].
    pub before: u64,
}

/// A plan that was read.
#[derive(Debug)]
pub struct Planner(PlannerKind);

#[derive(Debug)]
enum PlannerKind {
    Wall { cron: Box<Cron>, zone: TimeZone, fixed: bool },
    Every { ms: u64, from: Timestamp },
    At(Timestamp),
}

impl SchedulePlan {
    /// Reads the plan of a schedule that was made at `from`.
    pub fn planner(&self, from: Timestamp) -> Result<Planner, Fault> {
        Ok(Planner(match self {
            Self::Cron { pattern, tz } => {
                let cron = Box::new(read_pattern(pattern)?);
                PlannerKind::Wall { cron, zone: zone(tz)?, fixed: has_fixed_hour(pattern) }
            }
            Self::Every { ms } if !(EVERY_MS_MIN..=EVERY_MS_MAX).contains(ms) => {
                let message = "The field `every_ms` must be from 1000 (a second) to a year.";
                return Err(Fault::invalid("every_ms", message));
            }
            Self::Every { ms } => PlannerKind::Every { ms: *ms, from },
            Self::At { at, tz } => {
                zone(tz)?;
                PlannerKind::At(*at)
            }
        }))
    }

    /// The zone in which its maker thinks.
    pub fn tz(&self) -> &str {
        match self {
            Self::Cron { tz, .. } | Self::At { tz, .. } => tz,
            Self::Every { .. } => "UTC",
        }
    }

    /// What is wrong with a plan that has no time left.
    pub fn never(&self) -> Fault {
        match self {
            Self::At { .. } => Fault::invalid("at", "The field `at` must be a time to come."),
            Self::Cron { .. } | Self::Every { .. } => {
                Fault::invalid("cron", "The field `cron` must be a time that comes.")
            }
        }
    }

    /// A moment from a text: with an offset, or as the wall of a zone shows it.
    pub fn moment(text: &str, tz: &str) -> Result<Timestamp, Fault> {
        let zone = zone(tz)?;
        if let Ok(at) = text.parse::<DateTime>() {
            return Ok(at.0);
        }
        let message = "The field `at` must be a time such as 2026-12-24T18:00 or \
                       2026-12-24T18:00:00Z.";
        let wrong = || Fault::invalid("at", message);
        let wall: civil::DateTime = text.parse().map_err(|_| wrong())?;
        on_wall(&zone, wall).ok_or_else(wrong)
    }

    /// A moment as the wall of its zone shows it, with the offset.
    pub fn shown(&self, at: Timestamp) -> String {
        let shown = || {
            let at = jiff::Timestamp::from_millisecond(i64::try_from(at.0).ok()?).ok()?;
            let at = at.to_zoned(zone(self.tz()).ok()?);
            Some(at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
        };
        shown().unwrap_or_else(|| DateTime(at).to_string())
    }
}

impl Planner {
    /// The first time after a moment; none if there is none any more.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.0 {
            PlannerKind::At(at) => (*at > after).then_some(*at),
            PlannerKind::Every { ms, from } => {
                let steps = after.ms_since(*from) / ms + 1;
                Some(from.plus_ms(steps.checked_mul(*ms)?))
            }
            PlannerKind::Wall { cron, zone, fixed: true } => next_on_wall(cron, zone, after),
            PlannerKind::Wall { cron, zone, fixed: false } => next_as_it_passes(cron, zone, after),
        }
    }

    /// The times after one moment and up to another; none if there is none.
    pub fn due(&self, after: Timestamp, now: Timestamp) -> Option<DueTimes> {
        let mut last = self.next(after).filter(|at| *at <= now)?;
        if let PlannerKind::Every { ms, from } = &self.0 {
            let steps = now.ms_since(*from) / ms;
            let before = (now.ms_since(last) / ms).min(MISSED_MAX);
            return Some(DueTimes { last: from.plus_ms(steps * ms), before });
        }
        let mut before = 0;
        while let Some(next) = self.next(last).filter(|at| *at <= now) {
            (last, before) = (next, before + 1);
            if before == MISSED_MAX {
                return Some(DueTimes { last: self.last_up_to(now).unwrap_or(last), before });
            }
        }
        Some(DueTimes { last, before })
    }

    /// The last of many times up to a moment, looked for ever further back.
    fn last_up_to(&self, now: Timestamp) -> Option<Timestamp> {
        [3_600_000, 86_400_000, 7 * 86_400_000, 31 * 86_400_000, 366 * 86_400_000]
            .into_iter()
            .find_map(|ms: u64| {
                let mut last = None;
                let mut at = Timestamp(now.0.saturating_sub(ms));
                while let Some(next) = self.next(at).filter(|at| *at <= now) {
                    (last, at) = (Some(next), next);
                }
                last
            })
    }
}

fn read_pattern(text: &str) -> Result<Cron, Fault> {
    let wrong = |why: &str| {
        let message = format!(
            "The field `cron` must be five fields such as `0 3 * * 1-5`: minute, hour, day, month, \
             weekday; {why}."
        );
        Fault::invalid("cron", message)
    };
    if text.len() > PATTERN_BYTES_MAX || text.chars().any(char::is_control) {
        return Err(wrong("this one is too long"));
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    parser.parse(text).map_err(|_| wrong("this one cannot be read"))
}

fn zone(name: &str) -> Result<TimeZone, Fault> {
    TimeZoneDatabase::bundled().get(name).map_err(|_| {
        let shown = wharf_vocab::shown(name, 60);
        let message =
            format!("The field `tz` must be a time zone such as Europe/Berlin, not {shown}.");
        Fault::invalid("tz", message)
    })
}

/// Whether a pattern says which hours, instead of leaving them open.
fn has_fixed_hour(pattern: &str) -> bool {
    // Short forms: those of a day and more say midnight.
    if pattern.trim_start().starts_with('@') {
        return !pattern.trim().eq_ignore_ascii_case("@hourly");
    }
    pattern.split_whitespace().nth(1).is_some_and(|hour| !hour.starts_with(['*', '?']))
}

/// The next time of a pattern that keeps to the wall.
fn next_on_wall(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut wall = civil_of(zone, after)?;
    loop {
        wall = cron.find_next_occurrence(&wall, false).ok()?;
        // Of a time that comes twice the first counts; those inside a gap are one.
        if let Some(at) = on_wall(zone, wall).filter(|at| *at > after) {
            return Some(at);
        }
    }
}

/// The next time of a pattern that keeps to time as it passes.
fn next_as_it_passes(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let (mut from, mut inclusive) = (instant(after)?, false);
    for _ in 0..CHANGES_MAX {
        let offset = zone.to_offset(from);
        let wall = cron.find_next_occurrence(&offset.to_datetime(from), inclusive).ok()?;
        let found = offset.to_timestamp(wall).ok()?;
        match zone.following(from).next().map(|change| change.timestamp()) {
            Some(change) if change <= found => (from, inclusive) = (change, true),
            _ => return moment_of(found),
        }
    }
    None
}

/// When the wall of a zone shows a time: the first time that it does, or when the clocks jump over
/// it.
fn on_wall(zone: &TimeZone, wall: civil::DateTime) -> Option<Timestamp> {
    match zone.to_ambiguous_timestamp(wall).offset() {
        AmbiguousOffset::Unambiguous { offset } => moment_of(offset.to_timestamp(wall).ok()?),
        AmbiguousOffset::Fold { before, .. } => moment_of(before.to_timestamp(wall).ok()?),
        AmbiguousOffset::Gap { after, .. } => {
            let just_before = after.to_timestamp(wall).ok()?;
            moment_of(zone.following(just_before).next()?.timestamp())
        }
    }
}

fn civil_of(zone: &TimeZone, at: Timestamp) -> Option<civil::DateTime> {
    let at = instant(at)?;
    Some(zone.to_offset(at).to_datetime(at))
}

fn instant(at: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(i64::try_from(at.0).ok()?).ok()
}

fn moment_of(at: jiff::Timestamp) -> Option<Timestamp> {
    u64::try_from(at.as_millisecond()).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: &str = "2026-01-01T00:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse::<DateTime>().expect("a time").0
    }

    fn cron(pattern: &str, tz: &str) -> Planner {
        let plan = SchedulePlan::Cron { pattern: pattern.to_owned(), tz: tz.to_owned() };
        plan.planner(at(MADE)).expect("a plan")
    }

    fn next(planner: &Planner, after: &str, many: usize) -> Vec<String> {
        let mut from = at(after);
        let times = std::iter::from_fn(|| {
            from = planner.next(from)?;
            Some(DateTime(from).to_string().replace(":00.000Z", "Z"))
        });
        times.take(many).collect()
    }

    #[test]
    fn f030_a_pattern_is_read_on_the_wall_of_its_zone() {
        let nightly = cron("0 3 * * 1-5", "Europe/Berlin");
        let times = next(&nightly, "2026-01-01T12:00:00Z", 3);
        assert_eq!(times, ["2026-01-02T02:00Z", "2026-01-05T02:00Z", "2026-01-06T02:00Z"]);
        let summer = next(&nightly, "2026-07-01T12:00:00Z", 1);
        assert_eq!(summer, ["2026-07-02T01:00Z"]);
        assert_eq!(next(&cron("0 0 29 2 *", "UTC"), MADE, 1), ["2028-02-29T00:00Z"]);
    }

    #[test]
    fn f031_a_fixed_hour_fires_once_in_a_fold() {
        // On 25 October 2026 02:00–03:00 comes twice in Berlin: 00:00Z and 01:00Z.
        let half_past = cron("30 2 * * *", "Europe/Berlin");
        let times = next(&half_past, "2026-10-24T12:00:00Z", 2);
        assert_eq!(times, ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]);
        let quarters = cron("0,30 2 * * *", "Europe/Berlin");
        let times = next(&quarters, "2026-10-24T12:00:00Z", 3);
        assert_eq!(times, ["2026-10-25T00:00Z", "2026-10-25T00:30Z", "2026-10-26T01:00Z"]);
        // Asked for in the second of the two hours, it is not told of again.
        assert_eq!(next(&half_past, "2026-10-25T01:10:00Z", 1), ["2026-10-26T01:30Z"]);
    }

    #[test]
    fn f031_a_fixed_hour_fires_at_the_end_of_a_gap() {
        // On 29 March 2026 02:00–03:00 does not come in Berlin; 03:00 is 01:00Z.
        let half_past = cron("30 2 * * *", "Europe/Berlin");
        let times = next(&half_past, "2026-03-28T12:00:00Z", 2);
        assert_eq!(times, ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]);
        // Several times inside the gap are one.
        let many = cron("*/10 2 * * *", "Europe/Berlin");
        let times = next(&many, "2026-03-28T12:00:00Z", 2);
        assert_eq!(times, ["2026-03-29T01:00Z", "2026-03-30T00:00Z"]);
    }

    #[test]
    fn f031_an_open_hour_follows_time_as_it_passes() {
        let every_half_hour = cron("*/30 * * * *", "Europe/Berlin");
        let times = next(&every_half_hour, "2026-10-25T00:20:00Z", 4);
        assert_eq!(
            times,
            ["2026-10-25T00:30Z", "2026-10-25T01:00Z", "2026-10-25T01:30Z", "2026-10-25T02:00Z"]
        );
        let times = next(&every_half_hour, "2026-03-29T00:20:00Z", 3);
        assert_eq!(times, ["2026-03-29T00:30Z", "2026-03-29T01:00Z", "2026-03-29T01:30Z"]);
        let hourly = cron("@hourly", "Europe/Berlin");
        let times = next(&hourly, "2026-10-25T00:00:00Z", 2);
        assert_eq!(times, ["2026-10-25T01:00Z", "2026-10-25T02:00Z"]);
        // A zone whose clocks move by half an hour.
        let lord_howe = next(&cron("0 * * * *", "Australia/Lord_Howe"), "2026-04-04T13:10:00Z", 3);
        assert_eq!(lord_howe, ["2026-04-04T14:00Z", "2026-04-04T15:30Z", "2026-04-04T16:30Z"]);
    }

    #[test]
    fn f030_lengths_of_time_begin_when_it_was_made() {
        let every = SchedulePlan::Every { ms: 900_000 }
            .planner(at("2026-01-01T00:01:00Z"))
            .expect("a plan");
        let times = next(&every, "2026-01-01T00:30:00Z", 2);
        assert_eq!(times, ["2026-01-01T00:31Z", "2026-01-01T00:46Z"]);
        for wrong in [0, 999, EVERY_MS_MAX + 1] {
            assert!(SchedulePlan::Every { ms: wrong }.planner(at(MADE)).is_err());
        }
    }

    #[test]
    fn f030_one_moment_is_due_once() {
        let text = "2026-12-24T18:00";
        let moment = SchedulePlan::moment(text, "Europe/Berlin").expect("a moment");
        assert_eq!(moment, at("2026-12-24T17:00:00Z"));
        assert_eq!(
            SchedulePlan::moment("2026-12-24T18:00:00+02:00", "UTC"),
            Ok(at("2026-12-24T16:00:00Z"))
        );
        let plan = SchedulePlan::At { at: moment, tz: "Europe/Berlin".to_owned() };
        let planner = plan.planner(at(MADE)).expect("a plan");
        assert_eq!(planner.next(at(MADE)), Some(moment));
        assert_eq!(planner.next(moment), None);
        assert_eq!(plan.shown(moment), "2026-12-24T18:00:00+01:00");
        for wrong in ["tomorrow", "", "2026-13-01T00:00"] {
            assert!(SchedulePlan::moment(wrong, "UTC").is_err(), "{wrong}");
        }
    }

    #[test]
    fn f030_what_cannot_be_read_is_named() {
        let plan = |pattern: &str, tz: &str| {
            let plan = SchedulePlan::Cron { pattern: pattern.to_owned(), tz: tz.to_owned() };
            plan.planner(at(MADE)).map(|_| ()).expect_err("refused")
        };
        for wrong in ["", "* * * *", "61 * * * *", "* * * * * *", "a b c d e", &"* ".repeat(200)] {
            let fault = plan(wrong, "UTC");
            assert_eq!(fault.details["field"], "cron", "{wrong}");
        }
        assert_eq!(plan("* * * * *", "Europe/Atlantis").details["field"], "tz");
        // A day that never comes is no error, and no endless search.
        assert_eq!(cron("0 0 30 2 *", "UTC").next(at(MADE)), None);
    }

    #[test]
    fn f031_times_that_passed_are_counted() {
        let hourly = cron("0 * * * *", "UTC");
        let due = |planner: &Planner, after: &str, now: &str| planner.due(at(after), at(now));
        assert_eq!(due(&hourly, MADE, "2026-01-01T00:59:00Z"), None);
        let some = due(&hourly, MADE, "2026-01-01T03:10:00Z").expect("due");
        assert_eq!((some.last, some.before), (at("2026-01-01T03:00:00Z"), 2));
        let many = due(&hourly, MADE, "2029-01-01T03:10:00Z").expect("due");
        assert_eq!((many.last, many.before), (at("2029-01-01T03:00:00Z"), MISSED_MAX));
        let yearly = due(&cron("0 0 1 1 *", "UTC"), MADE, "2029-06-01T00:00:00Z").expect("due");
        assert_eq!((yearly.last, yearly.before), (at("2029-01-01T00:00:00Z"), 2));
        let every = SchedulePlan::Every { ms: 1_000 }.planner(at(MADE)).expect("a plan");
        let seconds = due(&every, MADE, "2026-01-01T00:00:10Z").expect("due");
        assert_eq!((seconds.last, seconds.before), (at("2026-01-01T00:00:10Z"), 9));
    }
}
