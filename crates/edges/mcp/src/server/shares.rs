//! What one grant may hold at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault, GrantId};

/// Requests of one grant that may be under way at once.
const CALLS_MAX: usize = 256;
/// Streams of one grant that may be open at once.
const STREAMS_MAX: usize = 1_024;

/// What the clients of one grant hold now, and of those that were narrowed from it.
#[derive(Debug, Default)]
struct GrantShare {
    calls: AtomicUsize,
    streams: AtomicUsize,
}

/// What all grants hold.
#[derive(Debug, Default)]
pub(crate) struct McpShares(Mutex<HashMap<GrantId, Weak<GrantShare>>>);

/// A request that is under way, for as long as this lives.
#[derive(Debug)]
pub(crate) struct CallPermit(Arc<GrantShare>);

/// A stream that is open, for as long as this lives.
#[derive(Debug)]
pub(crate) struct StreamPermit(Arc<GrantShare>);

impl McpShares {
    /// Room for one more request of a caller.
    pub(crate) fn call(&self, caller: &Caller) -> Result<CallPermit, Fault> {
        let share = self.share(caller);
        match take(&share.calls, CALLS_MAX) {
            true => Ok(CallPermit(share)),
            false => Err(busy("Too many requests of this token are under way.")),
        }
    }

    /// Room for one more stream of a caller.
    pub(crate) fn stream(&self, caller: &Caller) -> Result<StreamPermit, Fault> {
        let share = self.share(caller);
        match take(&share.streams, STREAMS_MAX) {
            true => Ok(StreamPermit(share)),
            false => Err(busy("Too many streams of this token are open; close some first.")),
        }
    }

    /// Tokens that were narrowed from one have their share together with it: whoever has a token
    /// can make any number of those.
    fn share(&self, caller: &Caller) -> Arc<GrantShare> {
        let whose = caller.links.first().unwrap_or(&caller.grant);
        let mut known = self.0.lock();
        if let Some(share) = known.get(whose).and_then(Weak::upgrade) {
            return share;
        }
        known.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(GrantShare::default());
        known.insert(whose.clone(), Arc::downgrade(&share));
        share
    }
}

fn take(count: &AtomicUsize, max: usize) -> bool {
    let more = |held| (held < max).then_some(held + 1);
    count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
}

fn busy(message: &str) -> Fault {
    Fault::new(Code::CoreBusy, message)
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::grant::Rights;

    #[test]
    fn m078_a_grant_has_so_many_calls_and_streams_together_with_those_narrowed_from_it() {
        let shares = McpShares::default();
        let one = Caller::token("one", Rights::all());
        let mut narrowed = Caller::token("narrowed", Rights::all());
        narrowed.links.insert(0, one.grant.clone());
        let mut calls: Vec<CallPermit> =
            (0..CALLS_MAX).map(|_| shares.call(&one).expect("there is room")).collect();
        assert!(shares.call(&narrowed).is_err_and(|fault| fault.is(Code::CoreBusy)));
        let other = Caller::token("two", Rights::all());
        shares.call(&other).expect("others have their own");
        calls.pop();
        let last = shares.call(&narrowed).expect("there is room again");
        assert!(shares.call(&one).is_err());
        drop((calls, last));
        let streams: Vec<StreamPermit> =
            (0..STREAMS_MAX).map(|_| shares.stream(&one).expect("there is room")).collect();
        assert!(shares.stream(&one).is_err());
        shares.call(&one).expect("streams are counted by themselves");
        drop(streams);
        shares.stream(&one).expect("there is room again");
        shares.call(&other).expect("there is room");
        assert!(shares.0.lock().len() <= 2, "who holds nothing is forgotten");
    }
}
