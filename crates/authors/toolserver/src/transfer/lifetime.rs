//! How long a presigned address is good for, as far as it says so itself.

use std::time::{Duration, SystemTime};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use reqwest::Url;

/// When an address ends, if it says so.
pub(super) fn ends_at(url: &Url) -> Option<SystemTime> {
    let field = |wanted: &str| {
        let mut fields = url.query_pairs();
        fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
    };
    let lifetime_s: u64 = field("X-Amz-Expires")?.parse().ok()?;
    let date = DateTime::strptime("%Y%m%dT%H%M%SZ", field("X-Amz-Date")?.as_ref()).ok()?;
    let signed = date.to_zoned(TimeZone::UTC).ok()?;
    let since_epoch = u64::try_from(signed.timestamp().as_second()).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since_epoch.checked_add(lifetime_s)?))
}

/// Whether an address is good no more, as far as it says so.
pub(super) fn is_over(url: &Url, after: Duration) -> bool {
    ends_at(url).is_some_and(|end| SystemTime::now() + after >= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t029_the_lifetime_of_an_address_is_read_from_it() {
        let at = |query: &str| {
            let url = Url::parse(&format!("https://s3.example/x?{query}")).expect("an address");
            let end = ends_at(&url)?;
            Some(end.duration_since(SystemTime::UNIX_EPOCH).expect("later").as_secs())
        };
        let signed = "X-Amz-Date=20260102T030405Z&X-Amz-Expires=3600";
        assert_eq!(at(signed), Some(1_767_323_045 + 3_600));
        assert_eq!(at("x-amz-expires=60&x-amz-date=19700101T000000Z"), Some(60));
        for none in [
            "",
            "X-Amz-Expires=3600",
            "X-Amz-Date=20260102T030405Z",
            "X-Amz-Date=yesterday&X-Amz-Expires=1",
            "X-Amz-Date=20261302T030405Z&X-Amz-Expires=1",
            "X-Amz-Date=20260102T030405Z&X-Amz-Expires=-1",
            "X-Amz-Date=20260102T030405Z&X-Amz-Expires=99999999999999999999",
            "X-Amz-Date=20260102T030405Z&X-Amz-Expires=18446744073709551615",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
    }
}
