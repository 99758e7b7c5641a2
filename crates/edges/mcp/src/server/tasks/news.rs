//! Notices of tasks that change.

use futures::StreamExt as _;
use futures::stream::{self, BoxStream, SelectAll};
use tokio::sync::broadcast::{self, error::RecvError};
use wharf_domain::Run;
use wharf_engine::{AskFeed, AskNews, Watch};
use wharf_ports::{HistoryItem, RunQuery};
use wharf_vocab::{AskId, GrantId, RunKey, RunStatus, Seq};
use wharf_wire::mcp_v1::{McpEra, McpNotification, McpOpen};

use super::is_of_11;
use super::state::TaskState;
use crate::server::door::McpContext;

/// Tasks that one stream is told of.
const TASKS_MAX: usize = 256;
/// New tasks that may wait for one stream.
const NEW_MAX: usize = 64;

/// Tasks of 2025-11-25 as they begin, for the streams that tell of them.
#[derive(Debug)]
pub(crate) struct NewTasks(broadcast::Sender<(GrantId, RunKey)>);

impl Default for NewTasks {
    fn default() -> Self {
        Self(broadcast::channel(NEW_MAX).0)
    }
}

impl NewTasks {
    /// A run of a grant is a task from now on.
    pub(super) fn add(&self, grant: &GrantId, run: &RunKey) {
        // Without streams there is nobody to tell.
        let _ = self.0.send((grant.clone(), run.clone()));
    }
}

/// Notices of one task, beginning with how it is.
pub(super) async fn of_task(
    cx: &McpContext,
    run: &Run,
) -> Option<BoxStream<'static, McpNotification>> {
    TaskNews::of(cx, &run.key, None).await.map(TaskNews::into_stream)
}

/// Notices of all tasks of a grant that are open, and of those that begin. What is known already is
/// not told.
pub(super) async fn of_grant(cx: &McpContext) -> BoxStream<'static, McpNotification> {
    let mut all = GrantNews {
        begun: cx.shared.new_tasks.0.subscribe(),
        cx: cx.clone(),
        tasks: SelectAll::new(),
    };
    for status in [RunStatus::Queued, RunStatus::Running, RunStatus::Waiting] {
        let query = RunQuery {
            grant: Some(cx.caller.grant.clone()),
            statuses: vec![status],
            limit: TASKS_MAX,
            ..RunQuery::default()
        };
        // What cannot be read now the client asks for anyway.
        let found = cx.shared.handle.run_lists().list(query).await.unwrap_or_default();
        for summary in found.runs {
            all.add(&summary.key).await;
        }
    }
    let news = stream::unfold(all, |mut all| async move {
        let told = all.next().await?;
        Some((told, all))
    });
    news.boxed()
}

struct GrantNews {
    cx: McpContext,
    begun: broadcast::Receiver<(GrantId, RunKey)>,
    tasks: SelectAll<BoxStream<'static, McpNotification>>,
}

impl GrantNews {
    async fn next(&mut self) -> Option<McpNotification> {
        loop {
            tokio::select! {
                begun = self.begun.recv() => match begun {
                    Ok((grant, run)) if grant == self.cx.caller.grant => self.add(&run).await,
                    // Of one that is missed nothing is told; its client asks.
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
                Some(told) = self.tasks.next(), if !self.tasks.is_empty() => return Some(told),
            }
        }
    }

    async fn add(&mut self, run: &RunKey) {
        if self.tasks.len() >= TASKS_MAX {
            return;
        }
        let Ok(run) = self.cx.shared.handle.runs().get(run).await else { return };
        if !is_of_11(&run) {
            return;
        }
        let known = TaskState::begun(&self.cx, &run);
        if let Some(news) = TaskNews::of(&self.cx, &run.key, Some(known)).await {
            self.tasks.push(news.into_stream());
        }
    }
}

/// Notices of one task.
struct TaskNews {
    cx: McpContext,
    run: RunKey,
    watch: Watch,
    asks: AskFeed,
    again: broadcast::Receiver<AskId>,
    /// What the client knows.
    told: Option<TaskState>,
    is_over: bool,
}

impl TaskNews {
    async fn of(cx: &McpContext, run: &RunKey, told: Option<TaskState>) -> Option<Self> {
        let handle = &cx.shared.handle;
        let (asks, again) = (handle.asks().news(), cx.shared.wrong_answers.news());
        let watch = Box::pin(handle.run_events().watch(run, Seq(0))).await.ok()?;
        let (cx, run) = (cx.clone(), run.clone());
        Some(Self { cx, run, watch, asks, again, told, is_over: false })
    }

    fn into_stream(self) -> BoxStream<'static, McpNotification> {
        let news = stream::unfold(self, |mut news| async move {
            let told = Box::pin(news.next()).await?;
            Some((told, news))
        });
        news.boxed()
    }

    async fn next(&mut self) -> Option<McpNotification> {
        while !self.is_over {
            let run = self.cx.shared.handle.runs().get(&self.run).await.ok()?;
            self.is_over = run.is_over();
            let state = TaskState::of(&self.cx, &run);
            if !self.told.as_ref().is_some_and(|told| state.says_same_as(told)) {
                self.told = Some(state);
                return Some(self.notice(&run).await);
            }
            if !self.is_over {
                self.change().await;
            }
        }
        None
    }

    async fn notice(&self, run: &Run) -> McpNotification {
        match self.cx.revision.era() {
            McpEra::Modern => {
                let task = TaskState::whole(&self.cx, run).await.of_extension();
                McpNotification::Task(McpOpen::boxed(task))
            }
            McpEra::Legacy => {
                let task = TaskState::of(&self.cx, run).of_11();
                McpNotification::TaskOf11(McpOpen::boxed(task))
            }
        }
    }

    /// Waits until the task may be another than before.
    async fn change(&mut self) {
        loop {
            tokio::select! {
                record = self.watch.next() => match record {
                    Some(Ok(record)) if matches!(record.item, HistoryItem::Progress(_)) => {}
                    _ => return,
                },
                news = self.asks.next() => match news {
                    Some(AskNews::Raised(ask)) if self.cx.shared.handle.asks().is_of(&ask, &self.run) => return,
                    // Of one that is over it is not known any more whose it was.
                    Some(AskNews::Over(_) | AskNews::Missed) => return,
                    Some(_) => {}
                    None => std::future::pending().await,
                },
                again = self.again.recv() => match again {
                    Ok(_) | Err(RecvError::Lagged(_)) => return,
                    Err(RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }
}
