//! Notices of changes: the own stream of a legacy session, and `subscriptions/listen`.
//!
//! A stream tells that a list changed at most a few times a second, whatever happened meanwhile,
//! and only of what its client may see. One that is too slow is told that everything may have
//! changed. Nothing of it is stored: a session that outlived a restart is told on its first stream
//! that all lists may have changed.

mod feed;
mod wishes;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use wharf_domain::grant::Rights;
use wharf_vocab::{Object, ProviderId, ToolId, WorldId};
use wharf_wire::mcp_v1::{
    McpFilter, McpListen, McpNoParams, McpNotification, McpOpen, McpResourceUri,
};

pub(crate) use self::feed::ChangeFeed;
use self::feed::{Change, ChangeReader, ListCounts, ListKind};
use self::wishes::{WISHES_MAX, WishTarget, Wishes};
pub(crate) use self::wishes::{WishBudget, WishPermit};
use super::door::{McpContext, McpReply, StreamItem, StreamSaid};
use super::files;
use super::session::LiveSession;
use super::tasks;
use crate::hidden::HiddenTool;
use crate::news::UpstreamNews;

/// How long changes are gathered before they are told.
const GATHERED: Duration = Duration::from_millis(400);
/// Tasks that one `subscriptions/listen` may be told of.
const TASKS_MAX: usize = 256;

/// What all streams of changes share.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    feed: ChangeFeed,
    /// How many resources clients may want to be told of.
    pub(crate) budget: WishBudget,
}

/// What is in memory of the streams of one session.
#[derive(Debug, Default)]
pub(crate) struct SessionStreams(Mutex<StreamsState>);

#[derive(Debug, Default)]
struct StreamsState {
    /// Streams that are open, the newest last. Only the newest is told anything.
    open: Vec<u64>,
    /// The number of the last one that was opened.
    last: u64,
    /// How often each list had changed when the client was last told.
    told: Option<ListCounts>,
}

/// `resources/subscribe`
pub(crate) async fn subscribe(cx: McpContext, params: McpOpen<McpResourceUri>) -> McpReply {
    let subscribed = || {
        WishTarget::of(&cx, &params.uri)?;
        let Some(session) = &cx.session else { return Ok(()) };
        let live = cx.shared.sessions.of(session)?;
        let permit = cx.shared.changes.budget.take(&cx.caller)?;
        Ok(live.subscribe(&params.uri, permit)?)
    };
    match subscribed() {
        Ok(()) => McpReply::result(Object::new()),
        Err(refusal) => McpReply::Now(Err(refusal)),
    }
}

/// `resources/unsubscribe`
pub(crate) async fn unsubscribe(cx: McpContext, params: McpOpen<McpResourceUri>) -> McpReply {
    let live = cx.session.as_ref().and_then(|session| cx.shared.sessions.known(session));
    if let Some(live) = live {
        live.unsubscribe(&params.uri);
    }
    McpReply::result(Object::new())
}

/// The own stream of a legacy session.
pub(crate) async fn get_stream(cx: McpContext) -> McpReply {
    let Some(session) = cx.session else { return McpReply::result(Object::new()) };
    let live = match cx.shared.sessions.of(&session) {
        Ok(live) => live,
        Err(fault) => return McpReply::refused(fault),
    };
    let mut stream = NoticeStream::new(cx, ListKind::ALL.into());
    let counts = stream.cx.shared.changes.feed.counts();
    let missed = live.streams.missed(counts, session.began_here);
    stream.pending.lists.extend(missed);
    stream.gather();
    stream.session = Some(SessionStream::new(live, counts));
    stream.take_subscriptions();
    if stream.cx.revision.has_core_tasks() {
        let statuses = tasks::statuses(&stream.cx).await;
        stream.tasks.push(statuses);
    }
    McpReply::Stream(stream.into_items())
}

/// `subscriptions/listen`
pub(crate) async fn listen(cx: McpContext, params: McpOpen<McpListen>) -> McpReply {
    let wanted = &params.notifications;
    if wanted.task_ids.is_some()
        && let Err(refusal) = tasks::declared(&cx)
    {
        return McpReply::refused(refusal);
    }
    let yes = |wanted: Option<bool>| wanted.filter(|wanted| *wanted);
    let mut honoured = McpFilter {
        tools_list_changed: yes(wanted.tools_list_changed),
        prompts_list_changed: yes(wanted.prompts_list_changed),
        resources_list_changed: yes(wanted.resources_list_changed),
        ..McpFilter::default()
    };
    let lists = [
        (ListKind::Tools, honoured.tools_list_changed),
        (ListKind::Prompts, honoured.prompts_list_changed),
        (ListKind::Resources, honoured.resources_list_changed),
    ];
    let lists = lists.into_iter().filter(|(_, wanted)| wanted.is_some()).map(|(list, _)| list);
    let mut stream = NoticeStream::new(cx, lists.collect());
    if let Some(uris) = &wanted.resource_subscriptions {
        honoured.resource_subscriptions = Some(stream.wish_for(uris));
    }
    if let Some(ids) = &wanted.task_ids {
        honoured.task_ids = Some(stream.follow_tasks(ids).await);
    }
    stream.ready.push_back(StreamItem::plain(StreamSaid::Acknowledge(honoured)));
    stream.is_answered = true;
    McpReply::Stream(stream.into_items())
}

/// A stream of notices to one client.
struct NoticeStream {
    cx: McpContext,
    sight: Sight,
    reader: ChangeReader,
    wishes: Wishes,
    tasks: SelectAll<BoxStream<'static, McpNotification>>,
    /// The session, of a legacy client.
    session: Option<SessionStream>,
    /// Whether it ends with an answer.
    is_answered: bool,
    pending: PendingNotices,
    /// When what is pending is told.
    due: Option<Instant>,
    ready: VecDeque<StreamItem>,
    is_over: bool,
}

/// What is to be told.
#[derive(Debug, Default)]
struct PendingNotices {
    lists: BTreeSet<ListKind>,
    updated: BTreeSet<String>,
}

impl NoticeStream {
    fn new(cx: McpContext, lists: BTreeSet<ListKind>) -> Self {
        Self {
            sight: Sight::of(&cx, lists),
            reader: ChangeFeed::read(&cx.shared),
            cx,
            wishes: Wishes::default(),
            tasks: SelectAll::new(),
            session: None,
            is_answered: false,
            pending: PendingNotices::default(),
            due: None,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    fn into_items(self) -> BoxStream<'static, StreamItem> {
        futures::stream::unfold(self, |mut stream| async move {
            let item = stream.next().await?;
            Some((item, stream))
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<StreamItem> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(item);
            }
            if self.is_over {
                return None;
            }
            self.wait().await;
        }
    }

    /// Waits for something to happen, and takes it in.
    async fn wait(&mut self) {
        let due = self.due.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            () = self.cx.closing.cancelled() => self.end(),
            () = self.cx.shared.stop.cancelled() => self.end(),
            event = of_session(self.session.as_mut()) => match event {
                SessionEvent::Ended => self.is_over = true,
                SessionEvent::Resubscribed => self.take_subscriptions(),
            },
            () = tokio::time::sleep_until(due), if self.due.is_some() => self.tell(),
            change = self.reader.next() => match change {
                Some((counts, change)) => self.take(counts, &change),
                None => self.end(),
            },
            Some(told) = self.tasks.next() => {
                if self.session.as_ref().is_none_or(SessionStream::is_newest) {
                    self.say(told);
                }
            }
        }
    }

    /// A graceful end is answered, where there is a request to answer.
    fn end(&mut self) {
        self.is_over = true;
        if self.is_answered {
            let answer = StreamSaid::Answer(Ok(Object::new()));
            self.ready.push_back(StreamItem::plain(answer));
        }
    }

    fn say(&mut self, told: McpNotification) {
        self.ready.push_back(StreamItem::plain(StreamSaid::Notify(Box::new(told))));
    }

    fn take(&mut self, counts: ListCounts, change: &Change) {
        self.pending.lists.extend(self.sight.lists_in(change));
        self.pending.updated.extend(self.wishes.concerned(change));
        match &self.session {
            // What was not told yet is told on the next stream, if this one breaks.
            Some(session) if self.pending.lists.is_empty() => session.told(counts),
            _ => {}
        }
        self.gather();
    }

    fn gather(&mut self) {
        let is_pending = !self.pending.lists.is_empty() || !self.pending.updated.is_empty();
        if is_pending && self.due.is_none() {
            self.due = Some(Instant::now() + GATHERED);
        }
    }

    /// Tells what is pending, unless the client is told on another stream of its session.
    fn tell(&mut self) {
        self.due = None;
        let PendingNotices { lists, updated } = std::mem::take(&mut self.pending);
        if let Some(session) = &self.session {
            if !session.is_newest() {
                return;
            }
            session.told(self.cx.shared.changes.feed.counts());
        }
        let nothing = || McpOpen::boxed(McpNoParams::default());
        for list in lists {
            self.say(match list {
                ListKind::Tools => McpNotification::ToolsChanged(nothing()),
                ListKind::Prompts => McpNotification::PromptsChanged(nothing()),
                ListKind::Resources => McpNotification::ResourcesChanged(nothing()),
            });
        }
        for uri in updated {
            let params = McpResourceUri { uri, meta: None };
            self.say(McpNotification::ResourceUpdated(McpOpen::boxed(params)));
        }
    }

    /// Takes over what the session subscribes to now.
    fn take_subscriptions(&mut self) {
        let Some(session) = &self.session else { return };
        let wanted = session.live.subscriptions();
        self.wishes.keep(|uri| wanted.contains(uri));
        for uri in wanted {
            // Rights may have become less since.
            if let Ok(target) = WishTarget::of(&self.cx, &uri) {
                self.wishes.add(&self.cx.shared.news, target, &uri, None);
            }
        }
    }

    /// Adds resources; those that will be told.
    fn wish_for(&mut self, uris: &[String]) -> Vec<String> {
        let mut honoured = Vec::new();
        for uri in uris {
            if self.wishes.len() >= WISHES_MAX {
                break;
            }
            let Ok(target) = WishTarget::of(&self.cx, uri) else { continue };
            let Ok(permit) = self.cx.shared.changes.budget.take(&self.cx.caller) else { break };
            self.wishes.add(&self.cx.shared.news, target, uri, Some(permit));
            honoured.push(uri.clone());
        }
        honoured
    }

    /// Adds tasks; those that will be told.
    async fn follow_tasks(&mut self, ids: &[String]) -> Vec<String> {
        let mut honoured: Vec<String> = Vec::new();
        for id in ids {
            if honoured.len() >= TASKS_MAX || honoured.contains(id) {
                continue;
            }
            if let Some(changes) = tasks::changes(&self.cx, id).await {
                self.tasks.push(changes);
                honoured.push(id.clone());
            }
        }
        honoured
    }
}

/// What happens to a session.
enum SessionEvent {
    /// It was deleted.
    Ended,
    /// The client subscribes to something else.
    Resubscribed,
}

/// What happens next to a session; nothing ever happens to none.
async fn of_session(session: Option<&mut SessionStream>) -> SessionEvent {
    let Some(session) = session else { return std::future::pending().await };
    tokio::select! {
        () = session.live.ended.cancelled() => SessionEvent::Ended,
        Ok(()) = session.changes.changed() => SessionEvent::Resubscribed,
        else => std::future::pending().await,
    }
}

/// One of the streams of a session.
struct SessionStream {
    live: Arc<LiveSession>,
    changes: watch::Receiver<u64>,
    number: u64,
}

impl SessionStream {
    fn new(live: Arc<LiveSession>, counts: ListCounts) -> Self {
        let changes = live.changes();
        let mut streams = live.streams.0.lock();
        streams.last += 1;
        let number = streams.last;
        streams.open.push(number);
        streams.told.get_or_insert(counts);
        drop(streams);
        Self { live, changes, number }
    }

    fn is_newest(&self) -> bool {
        self.live.streams.0.lock().open.last() == Some(&self.number)
    }

    /// Remembers what the client was told.
    fn told(&self, counts: ListCounts) {
        self.live.streams.0.lock().told = Some(counts);
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        self.live.streams.0.lock().open.retain(|open| *open != self.number);
    }
}

impl SessionStreams {
    /// Lists that may have changed since the client was last told. One that was told nothing since
    /// the core started knows no more than it did before, if its session is older.
    fn missed(&self, now: ListCounts, began_here: bool) -> Vec<ListKind> {
        match self.0.lock().told {
            Some(told) => told.other_than(now),
            None if began_here => Vec::new(),
            None => ListKind::ALL.to_vec(),
        }
    }
}

/// What a client can see of changes.
#[derive(Debug)]
struct Sight {
    /// The lists it wants to know of.
    lists: BTreeSet<ListKind>,
    rights: Arc<Rights>,
    provider: Option<ProviderId>,
    world: WorldId,
    /// Whether files are among the resources.
    files: bool,
}

impl Sight {
    fn of(cx: &McpContext, lists: BTreeSet<ListKind>) -> Self {
        Self {
            lists,
            rights: Arc::clone(&cx.caller.rights),
            provider: cx.door.provider.clone(),
            world: cx.door.world.clone(),
            files: files::are_visible(cx),
        }
    }

    /// The lists that a change makes others for this client, of those that it wants to know of.
    fn lists_in(&self, change: &Change) -> Vec<ListKind> {
        let mut lists: Vec<ListKind> = match change {
            Change::Catalog(changed) => {
                let seen = changed.iter().filter(|(id, list)| self.sees(id, *list));
                seen.map(|(_, list)| *list).collect()
            }
            Change::File(file) => {
                let listed = self.files && file.world == self.world && file.path.run().is_none();
                listed.then_some(ListKind::Resources).into_iter().collect()
            }
            Change::Upstream(UpstreamNews::ResourcesChanged { provider }) => {
                let seen = self.may_use(provider, HiddenTool::ResourcesList);
                seen.then_some(ListKind::Resources).into_iter().collect()
            }
            Change::Upstream(UpstreamNews::PromptsChanged { provider }) => {
                let seen = self.may_use(provider, HiddenTool::PromptsGet);
                seen.then_some(ListKind::Prompts).into_iter().collect()
            }
            Change::Upstream(UpstreamNews::ResourceUpdated { .. }) => Vec::new(),
            Change::Missed => ListKind::ALL.to_vec(),
        };
        lists.retain(|list| self.lists.contains(list));
        lists
    }

    fn sees(&self, id: &ToolId, list: ListKind) -> bool {
        let provider = id.provider();
        match list {
            ListKind::Tools => self.is_here(&provider) && self.rights.check_tool(id).is_ok(),
            ListKind::Prompts => self.may_use(&provider, HiddenTool::PromptsGet),
            ListKind::Resources => self.may_use(&provider, HiddenTool::ResourcesRead),
        }
    }

    fn is_here(&self, provider: &ProviderId) -> bool {
        self.provider.as_ref().is_none_or(|only| only == provider)
    }

    fn may_use(&self, provider: &ProviderId, tool: HiddenTool) -> bool {
        let may = |id: ToolId| self.rights.check_tool(&id).is_ok();
        self.is_here(provider) && tool.id(provider).is_some_and(may)
    }
}
