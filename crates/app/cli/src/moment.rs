//! Moments as people read them: the time on their own clock, and how long ago that is.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use wharf_vocab::DateTime;

/// A moment of the API in local time and relative to now.
pub(crate) fn shown(at: DateTime) -> String {
    shown_at(at, Timestamp::now(), &TimeZone::system())
}

fn shown_at(at: DateTime, now: Timestamp, zone: &TimeZone) -> String {
    let moment = moment(at);
    let local = moment.to_zoned(zone.clone());
    let today = now.to_zoned(zone.clone()).date() == local.date();
    let format = if today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M" };
    format!("{} ({})", local.strftime(format), relative(now.duration_since(moment)))
}

/// A moment of the API relative to now.
pub(crate) fn relative_to_now(at: DateTime) -> String {
    relative(Timestamp::now().duration_since(moment(at)))
}

/// A moment of the API as a short local time of day, for lines that follow each other.
pub(crate) fn clock(at: DateTime) -> String {
    moment(at).to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// How much time lies between two moments of the API.
pub(crate) fn between(from: DateTime, to: DateTime) -> String {
    length(moment(to).duration_since(moment(from)))
}

/// How much time has passed since a moment of the API.
pub(crate) fn since(from: DateTime) -> String {
    length(Timestamp::now().duration_since(moment(from)))
}

fn moment(at: DateTime) -> Timestamp {
    let ms = i64::try_from(at.0.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

/// So many milliseconds as people read them.
pub(crate) fn length_of(ms: u64) -> String {
    length(SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX)))
}

fn length(duration: SignedDuration) -> String {
    let ms = duration.as_millis().max(0);
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}m {}s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{}h {}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

fn relative(passed: SignedDuration) -> String {
    let seconds = passed.as_secs();
    let (size, future) = (seconds.unsigned_abs(), seconds < 0);
    // What is to come is rounded: of eight hours that have just begun, eight are left.
    let whole = |unit: u64| if future { (size + unit / 2) / unit } else { size / unit };
    let text = match (size, whole(60), whole(3_600)) {
        (0..2, ..) => return "now".to_owned(),
        (2..60, ..) => format!("{size}s"),
        (_, minutes @ 0..60, _) => format!("{minutes}m"),
        (.., hours @ 0..24) => format!("{hours}h"),
        _ => format!("{}d", whole(86_400)),
    };
    if future { format!("in {text}") } else { format!("{text} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> String {
        let now = "2026-11-15T09:00:00Z".parse().expect("moment");
        shown_at(text.parse().expect("a time"), now, &TimeZone::fixed(jiff::tz::offset(2)))
    }

    #[test]
    fn a_moment_is_local_and_relative() {
        assert_eq!(at("2026-11-15T08:57:00.250Z"), "10:57:00 (2m ago)");
        assert_eq!(at("2026-11-15T09:00:00.000Z"), "11:00:00 (now)");
        assert_eq!(at("2026-11-22T09:00:00.000Z"), "2026-11-22 11:00 (in 7d)");
        assert_eq!(at("2026-11-14T20:00:00.000Z"), "2026-11-14 22:00 (13h ago)");
    }

    #[test]
    fn what_is_to_come_is_rounded() {
        for (left, expect) in [
            ("2026-11-15T16:59:59.000Z", "in 8h"),
            ("2026-11-22T08:59:58.000Z", "in 7d"),
            ("2026-11-15T09:59:50.000Z", "in 1h"),
            ("2026-11-15T09:00:59.000Z", "in 59s"),
            ("2026-11-15T09:02:20.000Z", "in 2m"),
            ("2026-11-16T08:50:00.000Z", "in 1d"),
        ] {
            assert!(at(left).ends_with(&format!("({expect})")), "{left}: {}", at(left));
        }
    }

    #[test]
    fn lengths_grow_with_their_units() {
        let at = |text: &str| text.parse().expect("a time");
        let between = |to| between(at("2026-11-15T09:00:00.000Z"), at(to));
        assert_eq!(between("2026-11-15T09:00:00.012Z"), "12ms");
        assert_eq!(between("2026-11-15T09:00:02.340Z"), "2.3s");
        assert_eq!(between("2026-11-15T09:01:05.000Z"), "1m 5s");
        assert_eq!(between("2026-11-15T12:01:05.000Z"), "3h 1m");
    }
}
