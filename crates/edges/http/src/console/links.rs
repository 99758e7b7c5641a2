//! Links that sign one browser in: once, within a minute.
//!
//! They are kept in memory, by their digest: a core that starts anew knows none.

use std::collections::HashMap;

use parking_lot::Mutex;
use wharf_vocab::{Code, Digest, Fault, Timestamp};

use super::{Bearer, random};

/// How long a link is good.
const GOOD_MS: u64 = 60_000;
/// Links that may wait at once.
const LINKS_MAX: usize = 1_024;
/// Links of one token that may wait at once.
const LINKS_OF_ONE_MAX: usize = 16;

/// The links that nobody has used yet.
#[derive(Debug, Default)]
pub(crate) struct Links(Mutex<HashMap<Digest, IssuedLink>>);

#[derive(Debug)]
struct IssuedLink {
    bearer: Bearer,
    until: Timestamp,
}

impl Links {
    /// Makes a link's code and says until when it is good.
    pub(crate) fn make(
        &self,
        bearer: Bearer,
        now: Timestamp,
    ) -> Result<(String, Timestamp), Fault> {
        let code = random()?;
        let until = now.plus_ms(GOOD_MS);
        let mut waiting = self.0.lock();
        waiting.retain(|_, link| link.until > now);
        let grant = &bearer.caller.grant;
        let own = waiting.values().filter(|link| link.bearer.caller.grant == *grant).count();
        if own >= LINKS_OF_ONE_MAX || waiting.len() >= LINKS_MAX {
            let message = "Too many links wait to be used; each is gone after 60 seconds.";
            return Err(Fault::new(Code::CoreBusy, message));
        }
        waiting.insert(Digest::of(&[code.as_bytes()]), IssuedLink { bearer, until });
        Ok((code, until))
    }

    /// Who made a link, if it is good. It is used up in any case.
    pub(crate) fn take(&self, code: &str, now: Timestamp) -> Option<Bearer> {
        let link = self.0.lock().remove(&Digest::of(&[code.as_bytes()]))?;
        (link.until > now).then_some(link.bearer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::{Caller, Rights};

    fn bearer(grant: &str) -> Bearer {
        Bearer { caller: Caller::token(grant, Rights::all()), sealed_by: Digest::of(&[]) }
    }

    #[test]
    fn c006_a_link_is_good_once_and_for_a_minute() {
        let links = Links::default();
        let made = |now| links.make(bearer("g-1"), Timestamp(now)).expect("a link").0;
        let code = made(0);
        assert_eq!(code.len(), 43);
        assert!(links.take(&code, Timestamp(GOOD_MS - 1)).is_some());
        assert!(links.take(&code, Timestamp(0)).is_none(), "used up");
        let late = made(0);
        assert!(links.take(&late, Timestamp(GOOD_MS)).is_none());
        assert!(links.take(&late, Timestamp(0)).is_none(), "used up although it was late");
        assert!(links.take("", Timestamp(0)).is_none());
    }

    #[test]
    fn c006_nobody_can_have_all_the_links() {
        let links = Links::default();
        let make = |grant: &str, now| links.make(bearer(grant), Timestamp(now)).map(drop);
        for _ in 0..LINKS_OF_ONE_MAX {
            make("greedy", 0).expect("a link");
        }
        assert!(make("greedy", 0).is_err_and(|fault| fault.is(Code::CoreBusy)));
        make("other", 0).expect("a link");
        make("greedy", GOOD_MS).expect("the old ones are gone");
        let full = (0..LINKS_MAX).find(|n| make(&format!("g{n}"), GOOD_MS).is_err());
        assert_eq!(full, Some(LINKS_MAX - 1));
    }
}
