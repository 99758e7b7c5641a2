//! How often somebody may fail to sign in: ten times a minute from one address.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use axum::http::request::Parts;
use parking_lot::Mutex;
use wharf_vocab::{Code, Fault, Timestamp};

/// Failures of one address within a minute after which it must wait.
const FAILURES_MAX: usize = 10;
const MINUTE_MS: u64 = 60_000;
/// Addresses that are remembered at once; beyond it, all others wait.
const ADDRESSES_MAX: usize = 4_096;

/// Whose failures are counted: whoever connects, or, if all come through a proxy, whom it names.
/// Only what the proxy itself has added counts, which is the last name; those before it were sent
/// by anybody.
pub(crate) fn address_of(parts: &Parts, peer: SocketAddr, behind_proxy: bool) -> IpAddr {
    if !behind_proxy {
        return peer.ip();
    }
    let last = parts.headers.get_all("x-forwarded-for").iter().next_back();
    let name = last.and_then(|all| all.to_str().ok()).and_then(|all| all.rsplit(',').next());
    let name = name.unwrap_or_default().trim();
    let with_port = name.parse::<SocketAddr>().map(|named| named.ip());
    name.parse::<IpAddr>().or(with_port).unwrap_or(peer.ip())
}

/// The failures of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<IpAddr, VecDeque<Timestamp>>>);

impl Failures {
    /// Whether somebody may try now; how long to wait when not.
    pub(crate) fn check(&self, peer: IpAddr, now: Timestamp) -> Result<(), Fault> {
        let mut known = self.0.lock();
        known.retain(|_, times| {
            times.retain(|at| at.plus_ms(MINUTE_MS) > now);
            !times.is_empty()
        });
        let oldest = match known.get(&peer) {
            Some(times) if times.len() >= FAILURES_MAX => times.front().copied(),
            None if known.len() >= ADDRESSES_MAX => Some(now),
            _ => None,
        };
        let Some(oldest) = oldest else { return Ok(()) };
        let wait = oldest.plus_ms(MINUTE_MS).ms_since(now);
        let message = "Too many attempts to sign in failed; wait a minute, then try again.";
        Err(Fault::new(Code::AuthRateLimited, message).with("retry_after_ms", wait))
    }

    /// Remembers that somebody failed.
    pub(crate) fn note(&self, peer: IpAddr, now: Timestamp) {
        let mut known = self.0.lock();
        if known.len() >= ADDRESSES_MAX && !known.contains_key(&peer) {
            return;
        }
        let times = known.entry(peer).or_default();
        times.push_back(now);
        if times.len() > FAILURES_MAX {
            times.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u32) -> IpAddr {
        IpAddr::from(n.to_be_bytes())
    }

    #[test]
    fn c006_ten_failures_a_minute_then_nobody_is_looked_at() {
        let failures = Failures::default();
        for n in 0..10 {
            assert!(failures.check(peer(1), Timestamp(n)).is_ok());
            failures.note(peer(1), Timestamp(n));
        }
        let refused = failures.check(peer(1), Timestamp(10)).expect_err("too often");
        assert!(refused.is(Code::AuthRateLimited));
        assert_eq!(refused.details.get("retry_after_ms"), Some(&serde_json::json!(59_990)));
        assert!(failures.check(peer(2), Timestamp(10)).is_ok(), "others may");
        assert!(failures.check(peer(1), Timestamp(59_999)).is_err());
        assert!(failures.check(peer(1), Timestamp(60_000)).is_ok(), "one is forgotten");
    }

    #[test]
    fn c006_what_is_remembered_of_failures_is_bounded() {
        let failures = Failures::default();
        for n in 0..ADDRESSES_MAX as u32 + 10 {
            failures.note(peer(n), Timestamp(0));
        }
        assert_eq!(failures.0.lock().len(), ADDRESSES_MAX);
        assert!(failures.check(peer(u32::MAX), Timestamp(1)).is_err());
        assert!(failures.check(peer(u32::MAX), Timestamp(MINUTE_MS)).is_ok());
        for n in 0..100 {
            failures.note(peer(1), Timestamp(n));
        }
        assert_eq!(failures.0.lock()[&peer(1)].len(), FAILURES_MAX);
    }
}
