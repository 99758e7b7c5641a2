//! What servers say by themselves, on its way to clients, and what clients want to be told of, on
//! its way to servers. Both halves hold one; nothing of it is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{broadcast, watch};
use wharf_vocab::ProviderId;

/// News that may wait for one reader.
const NEWS_MAX: usize = 1_024;

/// Something that a server said by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UpstreamNews {
    /// One of its resources changed.
    ResourceUpdated {
        /// The server.
        provider: ProviderId,
        /// The resource, as the server calls it.
        uri: String,
    },
    /// The list of its resources changed.
    ResourcesChanged {
        /// The server.
        provider: ProviderId,
    },
    /// The list of its prompts changed.
    PromptsChanged {
        /// The server.
        provider: ProviderId,
    },
}

/// The way between both halves. Clones are the same one.
#[derive(Debug, Clone)]
pub struct McpNews(Arc<NewsState>);

#[derive(Debug)]
struct NewsState {
    news: broadcast::Sender<UpstreamNews>,
    /// How many clients want to be told of each resource, by server.
    wanted: Mutex<BTreeMap<ProviderId, BTreeMap<String, usize>>>,
    wanted_changes: watch::Sender<u64>,
}

impl Default for McpNews {
    fn default() -> Self {
        Self(Arc::new(NewsState {
            news: broadcast::channel(NEWS_MAX).0,
            wanted: Mutex::default(),
            wanted_changes: watch::channel(0).0,
        }))
    }
}

impl McpNews {
    /// A server said something.
    pub(crate) fn tell(&self, news: UpstreamNews) {
        // Nobody may be there to be told.
        let _ = self.0.news.send(news);
    }

    /// What servers say from now on.
    pub(crate) fn listen(&self) -> broadcast::Receiver<UpstreamNews> {
        self.0.news.subscribe()
    }

    /// Somebody wants to be told of a resource, until the answer is dropped.
    pub(crate) fn want(&self, provider: ProviderId, uri: String) -> UpstreamWish {
        let mut wanted = self.0.wanted.lock();
        *wanted.entry(provider.clone()).or_default().entry(uri.clone()).or_default() += 1;
        drop(wanted);
        self.0.wanted_changes.send_modify(|number| *number += 1);
        UpstreamWish { news: self.clone(), provider, uri }
    }

    /// The resources of a server that somebody wants to be told of.
    pub(crate) fn wanted(&self, provider: &ProviderId) -> BTreeSet<String> {
        let wanted = self.0.wanted.lock();
        wanted.get(provider).into_iter().flat_map(BTreeMap::keys).cloned().collect()
    }

    /// Changes whenever what is wanted does.
    pub(crate) fn wanted_changes(&self) -> watch::Receiver<u64> {
        self.0.wanted_changes.subscribe()
    }
}

/// That somebody wants to be told of a resource of a server.
#[derive(Debug)]
pub(crate) struct UpstreamWish {
    news: McpNews,
    provider: ProviderId,
    uri: String,
}

impl Drop for UpstreamWish {
    fn drop(&mut self) {
        let mut wanted = self.news.0.wanted.lock();
        if let Some(of_provider) = wanted.get_mut(&self.provider) {
            if let Some(count) = of_provider.get_mut(&self.uri) {
                *count -= 1;
                if *count == 0 {
                    of_provider.remove(&self.uri);
                }
            }
            if of_provider.is_empty() {
                wanted.remove(&self.provider);
            }
        }
        drop(wanted);
        self.news.0.wanted_changes.send_modify(|number| *number += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn m041_what_is_wanted_of_a_server_lasts_as_long_as_somebody_wants_it() {
        let news = McpNews::default();
        let mut changes = news.wanted_changes();
        let server = ProviderId::new("srv").expect("an id");
        let first = news.want(server.clone(), "a:1".to_owned());
        let second = news.want(server.clone(), "a:1".to_owned());
        let other = news.want(server.clone(), "a:2".to_owned());
        changes.changed().await.expect("told");
        assert_eq!(news.wanted(&server).len(), 2);
        drop((first, other));
        assert_eq!(news.wanted(&server), ["a:1".to_owned()].into());
        drop(second);
        assert!(news.wanted(&server).is_empty());

        let mut heard = news.listen();
        let said = UpstreamNews::ResourcesChanged { provider: server };
        news.tell(said.clone());
        assert_eq!(heard.recv().await.expect("told"), said);
    }
}
