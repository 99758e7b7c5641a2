//! What the edge remembers of browsers at the console: the links that sign them in, who failed to,
//! and the name of their cookie.

mod cookie;
mod failures;
mod links;

use std::collections::HashSet;

use parking_lot::Mutex;
use wharf_domain::Caller;
use wharf_vocab::{Digest, Fault, GrantId};

use crate::answer::internal;
pub(crate) use cookie::{CookieName, check_size};
pub(crate) use failures::{Failures, address_of};
pub(crate) use links::Links;

/// What the edge remembers of browsers that sign in.
#[derive(Debug)]
pub(crate) struct Console {
    pub(crate) cookie: CookieName,
    pub(crate) links: Links,
    pub(crate) failures: Failures,
    /// Sessions whose use is being written down.
    pub(crate) touching: Mutex<HashSet<GrantId>>,
}

/// Somebody who is about to be signed in, and what sealed their token.
#[derive(Debug, Clone)]
pub(crate) struct Bearer {
    pub(crate) caller: Caller,
    pub(crate) sealed_by: Digest,
}

impl Console {
    pub(crate) fn new(home_id: &str) -> Self {
        Self {
            cookie: CookieName::of(home_id),
            links: Links::default(),
            failures: Failures::default(),
            touching: Mutex::default(),
        }
    }
}

/// A text that nobody can guess, without letters that must be encoded.
pub(crate) fn random() -> Result<String, Fault> {
    use base64::Engine as _;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| internal())?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}
