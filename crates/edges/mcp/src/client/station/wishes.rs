//! What clients and the core want to be told of, passed on to one server.
//!
//! A legacy server is asked to tell of each resource that somebody wants to know about, and tells of
//! its lists by itself. A modern one is asked for everything with one request that stays open; when
//! that ends it is made again, and what may have been missed meanwhile is read.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use wharf_protocol::mcp::McpAnswer;
use wharf_vocab::{Backoff, ProviderId};
use wharf_wire::mcp_v1::{McpEra, McpFilter, McpListen, McpOpen, McpRequest, McpResourceUri, code};

use super::super::McpServers;
use super::super::upstream::{CallEnd, CallEvent, CallOptions, Upstream, UpstreamCall};
use super::CatalogRefresh;
use crate::news::McpNews;

/// Resources of one server that it is asked to tell of.
const RESOURCES_MAX: usize = 1_000;
/// How long a server may take to take note of one.
const TAKEN_NOTE_MAX: Duration = Duration::from_secs(30);
/// Pauses before a request that ended is made again.
const LISTEN_PAUSE: Duration = Duration::from_secs(1);
const LISTEN_PAUSE_MAX: Duration = Duration::from_secs(60);
/// A request that was open so long did not end because of what it asked.
const LISTEN_STEADY: Duration = Duration::from_secs(30);

/// Keeps a server told of what is wanted of it, until the answer is dropped.
pub(super) fn keep(
    servers: &McpServers,
    provider: &ProviderId,
    upstream: &Upstream,
    refresh: &CatalogRefresh,
) -> DropGuard {
    let stop = CancellationToken::new();
    let news = servers.options.news.clone();
    let keeper = WishKeeper {
        changes: news.wanted_changes(),
        news,
        provider: provider.clone(),
        upstream: upstream.clone(),
        refresh: refresh.clone(),
    };
    let stopped = stop.clone();
    servers.host.tasks().spawn_until_end("telling a server what is wanted", async move {
        stopped.run_until_cancelled_owned(keeper.run()).await;
    });
    stop.drop_guard()
}

struct WishKeeper {
    news: McpNews,
    changes: watch::Receiver<u64>,
    provider: ProviderId,
    upstream: Upstream,
    refresh: CatalogRefresh,
}

/// Why a request that stays open is not held any more.
enum ListenEnd {
    /// Something else is wanted.
    Changed,
    /// It ended.
    Ended(CallEnd),
}

impl WishKeeper {
    async fn run(self) {
        match self.upstream.era() {
            McpEra::Legacy => self.subscribe().await,
            McpEra::Modern => self.listen().await,
        }
    }

    fn tells_of_resources(&self) -> bool {
        let resources = self.upstream.peer.capabilities.resources.as_ref();
        resources.is_some_and(|resources| resources.subscribe == Some(true))
    }

    /// The resources that somebody wants to be told of and the server can tell of.
    fn wanted(&self) -> BTreeSet<String> {
        if !self.tells_of_resources() {
            return BTreeSet::new();
        }
        self.news.wanted(&self.provider).into_iter().take(RESOURCES_MAX).collect()
    }

    async fn subscribe(mut self) {
        if !self.tells_of_resources() {
            return;
        }
        let mut told = BTreeSet::new();
        loop {
            self.changes.borrow_and_update();
            let wanted = self.wanted();
            for uri in told.difference(&wanted).cloned().collect::<Vec<_>>() {
                told.remove(&uri);
                // A server that does not take note tells of it in vain.
                self.ask(McpRequest::ResourcesUnsubscribe(about(uri))).await;
            }
            for uri in wanted.difference(&told).cloned().collect::<Vec<_>>() {
                if self.ask(McpRequest::ResourcesSubscribe(about(uri.clone()))).await {
                    told.insert(uri);
                }
            }
            if self.changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether a server takes note of something.
    async fn ask(&self, request: McpRequest) -> bool {
        let end = self.upstream.ask(request, TAKEN_NOTE_MAX).await;
        matches!(end, CallEnd::Answered(McpAnswer::Result { .. }))
    }

    async fn listen(mut self) {
        let mut pauses = Backoff::new(LISTEN_PAUSE, LISTEN_PAUSE_MAX);
        let mut open: Option<UpstreamCall> = None;
        let mut has_missed = false;
        loop {
            self.changes.borrow_and_update();
            let filter = self.filter();
            if filter == McpFilter::default() {
                open = None;
                if self.changes.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let listen = McpListen { notifications: filter.clone().into(), meta: None };
            let request = McpRequest::Listen(McpOpen::boxed(listen));
            let Ok(call) = self.upstream.call(request, CallOptions::default()).await else {
                return;
            };
            // The one before ends only now, so that nothing falls in between.
            let call = open.insert(call);
            if std::mem::take(&mut has_missed) {
                self.refresh.read_again().await;
            }
            let since = Instant::now();
            if let ListenEnd::Ended(end) = self.hold(&filter, call).await {
                if !may_be_made_again(&end) {
                    return;
                }
                open = None;
                has_missed = true;
                if since.elapsed() >= LISTEN_STEADY {
                    pauses.reset();
                }
                tokio::time::sleep(pauses.pause()).await;
            }
        }
    }

    /// What the core and clients want to be told of, as far as the server can tell.
    fn filter(&self) -> McpFilter {
        let can = &self.upstream.peer.capabilities;
        let yes = |can: Option<bool>| can.filter(|can| *can);
        let resources = self.wanted();
        McpFilter {
            tools_list_changed: yes(can.tools.as_ref().and_then(|it| it.list_changed)),
            prompts_list_changed: yes(can.prompts.as_ref().and_then(|it| it.list_changed)),
            resources_list_changed: yes(can.resources.as_ref().and_then(|it| it.list_changed)),
            resource_subscriptions: (!resources.is_empty())
                .then(|| resources.into_iter().collect()),
            task_ids: None,
        }
    }

    /// Waits until a request ends, or something else is to be asked.
    async fn hold(&mut self, filter: &McpFilter, call: &mut UpstreamCall) -> ListenEnd {
        loop {
            tokio::select! {
                event = call.next() => {
                    if let CallEvent::Ended(end) = event {
                        return ListenEnd::Ended(end);
                    }
                }
                changed = self.changes.changed() => {
                    if changed.is_err() || self.filter() != *filter {
                        return ListenEnd::Changed;
                    }
                }
            }
        }
    }
}

fn about(uri: String) -> Box<McpOpen<McpResourceUri>> {
    McpOpen::boxed(McpResourceUri { uri, meta: None })
}

/// Whether a request that ended like this may have another end next time.
fn may_be_made_again(end: &CallEnd) -> bool {
    match end {
        CallEnd::Answered(McpAnswer::Error(error)) => {
            !matches!(error.code, code::METHOD_NOT_FOUND | code::INVALID_PARAMS)
        }
        CallEnd::Answered(McpAnswer::Refused(status)) => !(400..=499).contains(status),
        CallEnd::Answered(_) | CallEnd::Unsent(_) | CallEnd::Lost => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::sync::mpsc;
    use wharf_protocol::mcp::McpPeer;
    use wharf_wire::mcp_v1::{McpError, McpResultType, McpRevision};

    use super::super::super::upstream::{
        CallKey, CallOrder, CallSender, UpstreamEnd, UpstreamOrder, UpstreamParts,
    };
    use super::super::StationOrder;
    use super::*;

    /// A server that a test answers for.
    struct Server {
        end: UpstreamEnd,
        news: McpNews,
        provider: ProviderId,
        refreshes: mpsc::Receiver<StationOrder>,
        keeping: tokio::task::JoinHandle<()>,
    }

    impl Server {
        fn new(revision: McpRevision, capabilities: Value) -> Self {
            let (parts, end) = UpstreamParts::new();
            let capabilities = serde_json::from_value(capabilities).expect("capabilities");
            let peer = McpPeer { revision, capabilities, info: None, instructions: None };
            let (refresh, refreshes) = mpsc::channel(1);
            let news = McpNews::default();
            let provider = ProviderId::new("srv").expect("an id");
            let keeper = WishKeeper {
                changes: news.wanted_changes(),
                news: news.clone(),
                provider: provider.clone(),
                upstream: parts.ready(peer),
                refresh: CatalogRefresh(refresh),
            };
            let keeping = tokio::spawn(keeper.run());
            Self { end, news, provider, refreshes, keeping }
        }

        /// The next thing that the server is asked: method, parameters, and who waits.
        async fn asked(&mut self) -> (String, Value, CallKey, CallSender) {
            let order = tokio::time::timeout(Duration::from_secs(300), self.end.orders.recv());
            let Ok(Some(UpstreamOrder::Call(order))) = order.await else { panic!("a call") };
            let CallOrder { key, request, tell, .. } = *order;
            let params = request.params().map_or(Value::Null, Value::Object);
            (request.method().to_owned(), params, key, tell)
        }

        fn want(&self, uri: &str) -> crate::news::UpstreamWish {
            self.news.want(self.provider.clone(), uri.to_owned())
        }
    }

    fn done() -> CallEnd {
        let (kind, result) = (McpResultType::Complete, wharf_vocab::Object::new());
        CallEnd::Answered(McpAnswer::Result { kind, result })
    }

    #[tokio::test]
    async fn m041_a_legacy_server_is_asked_to_tell_of_what_somebody_wants() {
        let can = json!({"resources": {"subscribe": true}});
        let mut server = Server::new(McpRevision::LEGACY_NEWEST, can);
        let one = server.want("a:1");
        let (method, params, _, tell) = server.asked().await;
        assert_eq!((method.as_str(), params), ("resources/subscribe", json!({"uri": "a:1"})));
        tell.end(done());
        let _two = server.want("a:2");
        let (method, params, _, tell) = server.asked().await;
        assert_eq!((method.as_str(), params), ("resources/subscribe", json!({"uri": "a:2"})));
        tell.end(done());
        drop(one);
        let (method, params, ..) = server.asked().await;
        assert_eq!((method.as_str(), params), ("resources/unsubscribe", json!({"uri": "a:1"})));
    }

    #[tokio::test]
    async fn m041_a_server_that_cannot_tell_is_not_asked() {
        let server = Server::new(McpRevision::LEGACY_NEWEST, json!({"resources": {}}));
        let _wish = server.want("a:1");
        server.keeping.await.expect("it ends");
    }

    #[tokio::test(start_paused = true)]
    async fn m057_a_modern_server_is_listened_to_with_one_request_that_is_made_again() {
        let can = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
        let mut server = Server::new(McpRevision::MODERN_NEWEST, can);
        let (method, params, first, _open) = server.asked().await;
        assert_eq!(method, "subscriptions/listen");
        assert_eq!(params["notifications"], json!({"toolsListChanged": true}));
        let _wish = server.want("a:1");
        let (_, params, _, tell) = server.asked().await;
        assert_eq!(params["notifications"]["resourceSubscriptions"], json!(["a:1"]));
        assert_eq!(server.end.unwanted.take().await, [first], "only then the other one ends");
        let mut waited = Vec::new();
        let mut tell = Some(tell);
        for _ in 0..8 {
            let at = Instant::now();
            tell.take().expect("open").end(CallEnd::Lost);
            tell = Some(server.asked().await.3);
            waited.push(at.elapsed());
            let order = server.refreshes.recv().await.expect("what was missed is read");
            let StationOrder::Read(done) = order else { panic!("nothing is dialed") };
            done.send(()).expect("waited for");
        }
        assert!(waited.iter().all(|pause| *pause <= LISTEN_PAUSE_MAX), "{waited:?}");
        assert!(waited[7] > LISTEN_PAUSE * 8, "{waited:?}");
        let no = CallEnd::Answered(McpAnswer::Error(McpError::method_not_found()));
        tell.take().expect("open").end(no);
        server.keeping.await.expect("it is not asked in vain");
    }
}
