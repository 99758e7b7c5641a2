//! Which resources a client wants to be told of.
//!
//! A session's are kept with it; those of a stream are here, together with the wish that each
//! server behind is told of. A server tells of a resource only while there is a stream on which a
//! client can be told. All that is kept is counted, for each grant and in all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use wharf_domain::Caller;
use wharf_vocab::{Code, Fault, GrantId, ProviderId, Verb};
use wharf_wire::mcp_v1::McpError;

use super::feed::Change;
use crate::faults::McpRefusal;
use crate::news::{McpNews, UpstreamNews, UpstreamWish};
use crate::server::door::McpContext;
use crate::server::files::FileUri;
use crate::server::resources::missing;
use crate::server::upstream;

/// Resources that one session or one request may want to be told of.
pub(super) const WISHES_MAX: usize = 1_024;
/// Resources that the clients of one grant may want to be told of.
const WISHES_PER_GRANT_MAX: usize = 8 * WISHES_MAX;
/// Resources that all clients may want to be told of.
const WISHES_IN_ALL_MAX: usize = 64 * WISHES_MAX;
/// Longest address of one.
const URI_BYTES_MAX: usize = 2_048;

/// A resource, whatever a client calls it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WishTarget {
    /// A file.
    File(FileUri),
    /// A server's.
    Upstream {
        /// The server.
        provider: ProviderId,
        /// What the server calls it.
        uri: String,
    },
}

impl WishTarget {
    /// The resource that an address names, if there can be one that this client may see. A file
    /// need not be there yet.
    pub(super) fn of(cx: &McpContext, uri: &str) -> Result<Self, McpError> {
        let missing = || missing(uri, cx.revision);
        if uri.len() > URI_BYTES_MAX {
            let message = format!("An address may have {URI_BYTES_MAX} bytes here at most.");
            return Err(McpError::params(message));
        }
        if FileUri::is_meant(uri) {
            let file = FileUri::parse(uri).ok_or_else(missing)?;
            let rights = &cx.caller.rights;
            let may_see = rights.tools.is_empty() && rights.check(Verb::Read, &file.world).is_ok();
            return if may_see { Ok(Self::File(file)) } else { Err(missing()) };
        }
        let (provider, uri) = upstream::resource(cx, uri).ok_or_else(missing)?;
        Ok(Self::Upstream { provider, uri })
    }
}

/// Resources that a client is told of on one stream.
#[derive(Debug, Default)]
pub(super) struct Wishes(BTreeMap<WishTarget, Wish>);

#[derive(Debug)]
struct Wish {
    /// What the client calls it.
    uri: String,
    /// That a server is to tell of it, as long as this is here.
    _upstream: Option<UpstreamWish>,
    /// That it is counted, if it is not with its session.
    _permit: Option<WishPermit>,
}

impl Wishes {
    /// Adds a resource under the name that the client has for it.
    pub(super) fn add(
        &mut self,
        news: &McpNews,
        target: WishTarget,
        uri: &str,
        permit: Option<WishPermit>,
    ) {
        if let Some(known) = self.0.get_mut(&target) {
            uri.clone_into(&mut known.uri);
            return;
        }
        let upstream = match &target {
            WishTarget::File(_) => None,
            WishTarget::Upstream { provider, uri } => {
                Some(news.want(provider.clone(), uri.clone()))
            }
        };
        let wish = Wish { uri: uri.to_owned(), _upstream: upstream, _permit: permit };
        self.0.insert(target, wish);
    }

    /// Keeps those that the client still calls by one of these names.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.0.retain(|_, wish| is_wanted(&wish.uri));
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// What the client calls those that changed.
    pub(super) fn concerned(&self, change: &Change) -> Vec<String> {
        let target = match change {
            Change::File(file) => WishTarget::File(file.clone()),
            Change::Upstream(UpstreamNews::ResourceUpdated { provider, uri }) => {
                WishTarget::Upstream { provider: provider.clone(), uri: uri.clone() }
            }
            Change::Missed => return self.0.values().map(|wish| wish.uri.clone()).collect(),
            Change::Upstream(_) | Change::Catalog(_) => return Vec::new(),
        };
        self.0.get(&target).map(|wish| wish.uri.clone()).into_iter().collect()
    }
}

/// How many resources all clients want to be told of.
#[derive(Debug, Clone, Default)]
pub(crate) struct WishBudget(Arc<Mutex<HashMap<GrantId, usize>>>);

/// One of them, for as long as this lives.
#[derive(Debug)]
pub(crate) struct WishPermit {
    budget: WishBudget,
    whose: GrantId,
}

impl WishBudget {
    /// Room for one more, if there is any.
    pub(crate) fn take(&self, caller: &Caller) -> Result<WishPermit, McpRefusal> {
        // Tokens that were narrowed from one have their share together with it.
        let whose = caller.links.first().unwrap_or(&caller.grant).clone();
        let mut held = self.0.lock();
        let all: usize = held.values().sum();
        let own = held.get(&whose).copied().unwrap_or(0);
        if all >= WISHES_IN_ALL_MAX || own >= WISHES_PER_GRANT_MAX {
            let message = "Too many resources are subscribed to; unsubscribe from some first.";
            return Err(Fault::new(Code::CoreBusy, message).into());
        }
        held.insert(whose.clone(), own + 1);
        drop(held);
        Ok(WishPermit { budget: self.clone(), whose })
    }
}

impl Drop for WishPermit {
    fn drop(&mut self) {
        let mut held = self.budget.0.lock();
        if let Some(own) = held.get_mut(&self.whose) {
            *own -= 1;
            if *own == 0 {
                held.remove(&self.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use wharf_domain::grant::Rights;
    use wharf_domain::scope::WorldPath;
    use wharf_vocab::WorldId;

    use super::*;

    fn file(path: &str) -> FileUri {
        let world = WorldId::new("lab").expect("an id");
        FileUri { world, path: WorldPath::parse(path).expect("a path") }
    }

    #[test]
    fn m041_only_what_is_wished_for_is_told_under_the_name_the_client_has_for_it() {
        let news = McpNews::default();
        let server = ProviderId::new("srv").expect("an id");
        let mut wishes = Wishes::default();
        let upstream = || WishTarget::Upstream { provider: server.clone(), uri: "a:1".to_owned() };
        wishes.add(&news, WishTarget::File(file("/a b")), "world://lab/a%20b", None);
        wishes.add(&news, upstream(), "wharf+mcp://srv/a%3A1", None);
        wishes.add(&news, upstream(), "wharf+mcp://srv/a%3a1", None);
        assert_eq!(wishes.len(), 2);
        assert_eq!(wishes.concerned(&Change::File(file("/a b"))), ["world://lab/a%20b"]);
        assert!(wishes.concerned(&Change::File(file("/a"))).is_empty());
        let updated = |uri: &str| {
            let (provider, uri) = (server.clone(), uri.to_owned());
            Change::Upstream(UpstreamNews::ResourceUpdated { provider, uri })
        };
        assert_eq!(wishes.concerned(&updated("a:1")), ["wharf+mcp://srv/a%3a1"]);
        assert!(wishes.concerned(&updated("a:2")).is_empty());
        assert_eq!(wishes.concerned(&Change::Missed).len(), 2);
        assert_eq!(news.wanted(&server), ["a:1".to_owned()].into());
        wishes.keep(|uri| uri.starts_with("world:"));
        assert!(news.wanted(&server).is_empty(), "the server need not tell any more");
        assert_eq!(wishes.len(), 1);
    }

    #[test]
    fn m078_what_is_kept_for_one_grant_is_bounded() {
        let budget = WishBudget::default();
        let one = Caller::token("one", Rights::all());
        let mut held: Vec<WishPermit> =
            (0..WISHES_PER_GRANT_MAX).map(|_| budget.take(&one).expect("there is room")).collect();
        assert!(budget.take(&one).is_err());
        let other = budget.take(&Caller::token("two", Rights::all())).expect("others have room");
        held.pop();
        held.push(budget.take(&one).expect("there is room again"));
        drop((held, other));
        assert!(budget.0.lock().is_empty());
    }
}
