//! Query parameters, of which unknown ones are ignored, the named segments of paths, and the trace
//! that a request says it belongs to.

use std::convert::Infallible;
use std::ops::RangeInclusive;
use std::time::Duration;

use axum::extract::{FromRequestParts, Query, RawPathParams};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use wharf_vocab::limits::{
    LOG_LINES_SHOWN_DEFAULT, LOG_LINES_SHOWN_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX,
};
use wharf_vocab::{Fault, WorldId, quantity};

use crate::answer::{FaultResponse, invalid};
use crate::cursor::{self, CursorList, Position};

/// The most parts of a `tracestate` that are put together.
const STATES_MAX: usize = 32;

/// The parameters of a request.
#[derive(Debug, Default)]
pub struct Params(Vec<(String, String)>);

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Query::try_from_uri(&parts.uri).map_or_else(|_| Self::default(), |Query(all)| Self(all)))
    }
}

impl Params {
    /// A parameter, unless it is empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// All of them; of several with one name the first.
    #[must_use]
    pub fn first_of_each(self) -> std::collections::BTreeMap<String, String> {
        self.0.into_iter().rev().collect()
    }

    /// A parameter that is read by `parse`; the error says what was `wanted`.
    pub fn parsed<T, E>(
        &self,
        name: &str,
        wanted: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Fault> {
        self.text(name)
            .map(parse)
            .transpose()
            .map_err(|_| invalid(name, format!("The parameter `{name}` must be {wanted}.")))
    }

    /// A whole number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Fault> {
        self.parsed(name, "a whole number", str::parse)
    }

    /// The world that is named, if one is.
    pub fn world(&self) -> Result<Option<WorldId>, Fault> {
        self.parsed("world", "a world id", |text| WorldId::new(text))
    }

    /// How many items a page may have.
    pub fn limit(&self) -> Result<usize, Fault> {
        self.within("limit", 1..=PAGE_ITEMS_MAX, PAGE_ITEMS_DEFAULT)
    }

    /// How many lines of a log are wanted.
    pub fn lines(&self) -> Result<usize, Fault> {
        self.within("lines", 0..=LOG_LINES_SHOWN_MAX, LOG_LINES_SHOWN_DEFAULT)
    }

    /// A number in a range, or the usual one.
    fn within(
        &self,
        name: &str,
        range: RangeInclusive<usize>,
        usual: usize,
    ) -> Result<usize, Fault> {
        let wanted = format!("a number from {} to {}", range.start(), range.end());
        let read = |text: &str| text.parse().ok().filter(|it| range.contains(it)).ok_or(());
        Ok(self.parsed(name, &wanted, read)?.unwrap_or(usual))
    }

    /// A switch that is off when it is not named.
    pub fn is_on(&self, name: &str) -> Result<bool, Fault> {
        Ok(self.parsed(name, "`true` or `false`", str::parse)?.unwrap_or(false))
    }

    /// Where the page begins.
    pub fn cursor(&self, list: CursorList) -> Result<Option<Position>, Fault> {
        self.text("cursor").map(|text| cursor::read(list, text)).transpose()
    }

    /// How long to wait for a run's end, if at all.
    pub fn wait(&self, max: Duration) -> Result<Option<Duration>, Fault> {
        let wanted = "a duration such as 500ms, 30s or 2m";
        let wait = self.parsed("wait", wanted, |text| {
            quantity::duration_ms(text).map(Duration::from_millis).ok_or(())
        })?;
        Ok(wait.map(|wait| wait.min(max)))
    }
}

/// The named segments of a path, decoded.
#[derive(Debug)]
pub struct Segments(RawPathParams);

impl<S: Send + Sync> FromRequestParts<S> for Segments {
    type Rejection = FaultResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, FaultResponse> {
        let found = RawPathParams::from_request_parts(parts, state).await;
        let found = found.map_err(|_| invalid("path", "The path is not valid UTF-8."))?;
        Ok(Self(found))
    }
}

impl Segments {
    /// A segment by its name in the route.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
    }
}

/// The header that names the place in a trace.
pub const TRACEPARENT: &str = "traceparent";
/// The header with what tracing systems add for each other.
pub const TRACESTATE: &str = "tracestate";

/// What a request says of its trace, in the headers of W3C Trace Context. Nothing is checked here:
/// whoever takes it up leaves out what cannot be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentTrace {
    /// The place in the trace; absent where the request does not say, or says two.
    pub traceparent: Option<String>,
    /// What tracing systems on the way have added.
    pub tracestate: Option<String>,
}

impl SentTrace {
    /// What the headers of a request say.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let traceparent = match (parents.next(), parents.next()) {
            (Some(parent), None) => parent.to_str().ok().map(str::to_owned),
            _ => None,
        };
        let states = headers.get_all(TRACESTATE).iter().take(STATES_MAX);
        let states: Vec<&str> = states.filter_map(|state| state.to_str().ok()).collect();
        let tracestate = (!states.is_empty()).then(|| states.join(","));
        Self { traceparent, tracestate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        let uri = format!("/x?{query}").parse().expect("a URI");
        Params(Query::try_from_uri(&uri).expect("a query").0)
    }

    #[test]
    fn durations_have_a_number_and_a_unit() {
        let max = Duration::from_secs(300);
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("2m", 120_000),
            ("99m", 300_000),
            ("1h", 300_000),
            ("1.5s", 1_500),
        ] {
            let wait = params(&format!("wait={text}")).wait(max);
            assert_eq!(wait, Ok(Some(Duration::from_millis(ms))), "{text}");
        }
        assert_eq!(params("").wait(max), Ok(None));
        for bad in ["30", "s", "-1s", "1x", "30%20s", "99999999999999999999s", "ms"] {
            let fault = params(&format!("wait={bad}")).wait(max).expect_err(bad);
            assert_eq!(fault.details["field"], "wait");
        }
    }

    #[test]
    fn a_limit_stays_in_its_range() {
        assert_eq!(params("").limit(), Ok(PAGE_ITEMS_DEFAULT));
        assert_eq!(params("limit=200").limit(), Ok(200));
        for bad in ["0", "201", "-1", "x", "1e3"] {
            assert!(params(&format!("limit={bad}")).limit().is_err(), "{bad}");
        }
    }

    #[test]
    fn lines_and_switches_are_read_strictly() {
        assert_eq!(params("").lines(), Ok(LOG_LINES_SHOWN_DEFAULT));
        assert_eq!(params("lines=0").lines(), Ok(0));
        assert_eq!(params("lines=10000").lines(), Ok(10_000));
        for bad in ["-1", "10001", "all"] {
            assert!(params(&format!("lines={bad}")).lines().is_err(), "{bad}");
        }
        assert_eq!(params("").is_on("follow"), Ok(false));
        assert_eq!(params("follow=true").is_on("follow"), Ok(true));
        assert_eq!(params("follow=false").is_on("follow"), Ok(false));
        for bad in ["1", "yes", "TRUE"] {
            assert!(params(&format!("follow={bad}")).is_on("follow").is_err(), "{bad}");
        }
    }

    #[test]
    fn empty_and_unknown_parameters_count_for_nothing() {
        let params = params("world=&zebra=1&tool=a%2Fb");
        assert_eq!(params.world(), Ok(None));
        assert_eq!(params.text("tool"), Some("a/b"));
    }

    #[test]
    fn one_parent_counts_and_states_are_put_together() {
        let sent = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().expect("a value"));
            }
            SentTrace::of(&headers)
        };
        assert_eq!(sent(&[]), SentTrace::default());
        let one =
            sent(&[("traceparent", "00-a-b-01"), ("tracestate", "a=1"), ("tracestate", "b=2")]);
        assert_eq!(one.traceparent.as_deref(), Some("00-a-b-01"));
        assert_eq!(one.tracestate.as_deref(), Some("a=1,b=2"));
        assert_eq!(sent(&[("traceparent", "a"), ("traceparent", "b")]).traceparent, None);
    }
}
