//! What the connections of one token take up together, so that none leaves nothing to others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault, GrantId};

/// What the bearers of one grant, and of those that were made from it, take up now.
#[derive(Default)]
pub(crate) struct Share {
    peers: AtomicUsize,
    /// Bytes of events that are kept for readers.
    pub(crate) bytes: AtomicUsize,
}

/// All who take up something.
pub(crate) struct Shares {
    places: Arc<Semaphore>,
    each_max: usize,
    known: Mutex<HashMap<GrantId, Weak<Share>>>,
}

/// A place for a connection or a session, for as long as this lives.
pub(crate) struct SharePermit {
    pub(crate) share: Arc<Share>,
    _permit: OwnedSemaphorePermit,
}

impl Shares {
    pub(crate) fn new(peers_max: usize, each_max: usize) -> Self {
        let places = Arc::new(Semaphore::new(peers_max));
        Self { places, each_max, known: Mutex::default() }
    }

    /// A place for a caller, if there is one left.
    pub(crate) fn place(&self, caller: &Caller) -> Result<SharePermit, Fault> {
        let share = self.share(caller);
        let busy = |message: &str| Fault::new(Code::CoreBusy, message);
        let mine = share.peers.fetch_add(1, Ordering::SeqCst);
        let permit = Arc::clone(&self.places).try_acquire_owned();
        let refused = match permit {
            Ok(permit) if caller.person || mine < self.each_max => {
                return Ok(SharePermit { share, _permit: permit });
            }
            Ok(_) => busy("Too many connections are open with this token; close some first."),
            Err(_) => busy("Too many connections are open; try again in a moment."),
        };
        share.peers.fetch_sub(1, Ordering::SeqCst);
        Err(refused)
    }

    /// Tokens that were narrowed from one have their share together with it: whoever has a token
    /// can make any number of those.
    fn share(&self, caller: &Caller) -> Arc<Share> {
        let whose = caller.links.first().unwrap_or(&caller.grant);
        let mut known = self.known.lock();
        if let Some(share) = known.get(whose).and_then(Weak::upgrade) {
            return share;
        }
        known.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Share::default());
        known.insert(whose.clone(), Arc::downgrade(&share));
        share
    }
}

impl Drop for SharePermit {
    fn drop(&mut self) {
        self.share.peers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::grant::Rights;

    #[test]
    fn k030_one_token_does_not_take_all_places_and_those_made_from_it_share() {
        let shares = Shares::new(3, 2);
        let one = Caller::token("one", Rights::all());
        let mut narrowed = Caller::token("narrowed", Rights::all());
        narrowed.links.insert(0, one.grant.clone());
        let first = shares.place(&one).expect("there is room");
        let second = shares.place(&narrowed).expect("there is room");
        assert!(shares.place(&one).is_err_and(|fault| fault.is(Code::CoreBusy)));
        let other = shares.place(&Caller::token("two", Rights::all())).expect("there is room");
        assert!(shares.place(&Caller::token("three", Rights::all())).is_err(), "all are taken");
        drop((first, other));
        let again = shares.place(&narrowed).expect("there is room");
        let all: Vec<SharePermit> =
            (0..1).filter_map(|_| shares.place(&Caller::owner()).ok()).collect();
        assert_eq!(all.len(), 1);
        drop((second, again, all));
        assert_eq!(shares.share(&one).peers.load(Ordering::SeqCst), 0);
    }
}
