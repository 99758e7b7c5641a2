//! One lane: one connection that commits one group after the other.
//!
//! The first statement of each group counts it in the lane's row, for this session only. So when
//! the connection is lost, a new session is begun, which waits for a transaction that still holds
//! the row, and the row's count says for good whether the group was committed: a transaction that
//! comes later finds another session.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_postgres::{Client, Row};
use wharf_journal::audit::Sealer;
use wharf_ports::StoreError;
use wharf_ports::plan::Prepared;

use super::binding::{BoundStatement, Value};
use super::careful::Reads;
use super::known::{GroupView, Known, Memory};
use super::reported::Reported;
use super::statements::Statements;
use super::writes::{CommitAnswers, Decided};
use crate::connect;
use crate::error::{Failure, corrupt, from_postgres, unavailable};
use crate::options::PostgresOptions;

/// How often a group is tried when somebody was in the way.
const TRIES: u32 = 6;
/// How long it is tried to learn what became of a group whose connection was lost.
const DOUBT: Duration = Duration::from_secs(5);
/// How long the server may take for one flight before the connection counts as lost.
const FLIGHT: Duration = Duration::from_secs(30);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// What lanes of a store have in common.
#[derive(Debug)]
pub(crate) struct LaneShared {
    pub(crate) options: PostgresOptions,
    /// The core's name.
    pub(crate) node: String,
    pub(crate) sealer: Sealer,
    pub(crate) memory: Mutex<Memory>,
    pub(crate) reported: Mutex<Reported>,
    /// What is added to positions.
    pub(crate) base: i64,
    /// The last transaction that was committed here, for those who read what they have written.
    pub(crate) written: AtomicI64,
}

/// One lane.
#[derive(Debug)]
pub(crate) struct WriteLane {
    shared: Arc<LaneShared>,
    number: i16,
    /// The number of the last group that was tried.
    group_no: i64,
    /// The number of the last group that was committed, as the last session found it.
    counted: i64,
    connection: Option<LaneConnection>,
}

#[derive(Debug)]
struct LaneConnection {
    client: Client,
    statements: Statements,
    session: i64,
}

/// How an attempt to commit a group ended.
enum GroupOutcome<'a> {
    Committed(Decided<'a>),
    /// Nothing was written; try again, with a look at what is stored.
    Again(StoreError),
    /// The connection is gone. If it was lost on the way to the commit, this was decided.
    Lost(Option<Decided<'a>>),
    /// Nothing was written, and it is no use to try again at once.
    Failed(StoreError),
}

impl WriteLane {
    pub(crate) fn new(shared: Arc<LaneShared>, number: i16) -> Self {
        Self { shared, number, group_no: 0, counted: 0, connection: None }
    }

    /// Commits those batches that hold, in order; an error means that nothing of the group was
    /// committed, or that nobody knows because the database is away.
    pub(crate) async fn commit(
        &mut self,
        group: &[&Prepared],
    ) -> Result<CommitAnswers, StoreError> {
        let mut last = unavailable("the group met others again and again");
        for attempt in 0..TRIES {
            if self.connection.is_none() {
                self.connect().await?;
            }
            self.group_no += 1;
            let moves_money = group.iter().any(|batch| !batch.ledger.is_empty());
            let by_heart = attempt == 0 && !moves_money;
            match self.attempt(group, by_heart).await {
                GroupOutcome::Committed(decided) => {
                    self.shared.memory.lock().learn(&decided.view.known);
                    self.shared.reported.lock().note(&decided.view.known);
                    return Ok(decided.answers);
                }
                GroupOutcome::Again(error) => {
                    tracing::debug!(lane = self.number, %error, "a group is tried again");
                    metrics::counter!("wharf_store_groups_again_total").increment(1);
                    self.shared.memory.lock().forget(group);
                    last = error;
                    if attempt > 1 {
                        // Its row may be gone with what the database has lost, and only a new
                        // session makes it anew.
                        self.connection = None;
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                GroupOutcome::Lost(decided) => {
                    self.connection = None;
                    self.shared.memory.lock().forget(group);
                    metrics::counter!("wharf_store_lost_connections_total").increment(1);
                    if self.was_committed().await? {
                        let Some(decided) = decided else {
                            return Err(corrupt("a group was committed before it was decided"));
                        };
                        self.shared.reported.lock().note(&decided.view.known);
                        return Ok(decided.answers);
                    }
                    last = unavailable("the connection to the database was lost");
                }
                GroupOutcome::Failed(error) => {
                    self.shared.memory.lock().forget(group);
                    return Err(error);
                }
            }
        }
        Err(last)
    }

    /// Begins a new session, which nothing of an older one outlives.
    async fn connect(&mut self) -> Result<(), StoreError> {
        let client = connect::open(&self.shared.options).await?;
        let row = client
            .query_one(
                "INSERT INTO lanes AS l (node, lane, session, group_no) VALUES ($1, $2, 1, 0)
                 ON CONFLICT (node, lane) DO UPDATE SET session = l.session + 1
                 RETURNING session, group_no, pg_current_xact_id()::text::bigint",
                &[&self.shared.node, &self.number],
            )
            .await
            .map_err(from_postgres)?;
        let (session, group_no): (i64, i64) =
            (row.try_get(0).map_err(from_postgres)?, row.try_get(1).map_err(from_postgres)?);
        // Whatever the last session has committed came before.
        let xid: i64 = row.try_get(2).map_err(from_postgres)?;
        self.shared.written.fetch_max(xid, Ordering::AcqRel);
        let statements = Statements::prepare(&client).await.map_err(from_postgres)?;
        // A server that was away may have come back as another.
        self.shared.compare(&client).await.map_err(from_postgres)?;
        self.counted = group_no;
        self.group_no = self.group_no.max(group_no);
        self.connection = Some(LaneConnection { client, statements, session });
        Ok(())
    }

    /// Whether the last group was committed, as a new session finds it.
    async fn was_committed(&mut self) -> Result<bool, StoreError> {
        let until = Instant::now() + DOUBT;
        loop {
            match self.connect().await {
                Ok(()) => return Ok(self.counted == self.group_no),
                Err(error) if Instant::now() >= until => return Err(error),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn attempt<'a>(&self, group: &[&'a Prepared], by_heart: bool) -> GroupOutcome<'a> {
        let Some(connection) = &self.connection else { return GroupOutcome::Lost(None) };
        let Some(decided) = self.recall(group, by_heart) else {
            return self.carefully(connection, group).await;
        };
        if decided.writes.is_empty() {
            return GroupOutcome::Committed(decided);
        }
        let mut steps = vec![self.count_step(connection)];
        let LaneShared { sealer, base, .. } = &*self.shared;
        steps.extend(connection.statements.writes(&decided, sealer, *base));
        let flown = fly(&connection.client, &steps, Leg::Whole).await;
        let xid = flown.as_ref().ok().and_then(|rows| transaction(rows));
        self.land(flown, decided, xid)
    }

    /// Decides a group by what is remembered. Whatever that refuses is looked at again, since the
    /// memory may be old.
    fn recall<'a>(&self, group: &[&'a Prepared], by_heart: bool) -> Option<Decided<'a>> {
        let looks = |batch: &&Prepared| batch.appends.iter().any(|append| append.replaces);
        if !by_heart || group.iter().any(looks) {
            return None;
        }
        let known = self.shared.memory.lock().recall(group);
        let view = GroupView { known, complete: false };
        let decided = Decided::of(view, group, &self.shared.sealer).ok()?;
        decided.answers.iter().all(Result::is_ok).then_some(decided)
    }

    /// Locks and reads first, then decides and writes.
    async fn carefully<'a>(
        &self,
        connection: &LaneConnection,
        group: &[&'a Prepared],
    ) -> GroupOutcome<'a> {
        let (learning, mut steps): (Vec<_>, Vec<BoundStatement>) =
            Reads::of(&connection.statements, group)
                .0
                .into_iter()
                .map(|(step, learn)| (learn, step))
                .unzip();
        steps.insert(0, self.count_step(connection));
        let rows = match fly(&connection.client, &steps, Leg::First).await {
            Ok(rows) => rows,
            Err(crash) => return roll_back(connection, crash).await,
        };
        let xid = transaction(&rows);
        let mut known = Known::default();
        for (rows, learn) in rows.iter().skip(1).zip(learning) {
            for row in rows {
                if let Err(error) = learn(&mut known, row) {
                    return roll_back(connection, Crash::Failed(error)).await;
                }
            }
        }
        let behind = self.shared.reported.lock().behind(&known);
        if !behind.is_empty() {
            let error = unavailable("the database has lost what it had confirmed");
            return match roll_back(connection, Crash::Again(error)).await {
                GroupOutcome::Again(error) => match self.shared.compare(&connection.client).await {
                    Ok(()) => GroupOutcome::Again(error),
                    Err(_) => GroupOutcome::Lost(None),
                },
                other => other,
            };
        }
        let view = GroupView { known, complete: true };
        let Ok(decided) = Decided::of(view, group, &self.shared.sealer) else {
            let error = corrupt("a shard is missing from the database");
            return roll_back(connection, Crash::Failed(error)).await;
        };
        let LaneShared { sealer, base, .. } = &*self.shared;
        let steps = match decided.writes.is_empty() {
            true => Vec::new(),
            false => connection.statements.writes(&decided, sealer, *base),
        };
        self.land(fly(&connection.client, &steps, Leg::Last).await, decided, xid)
    }

    /// What a flight that was to end with the commit means for its group.
    fn land<'a>(
        &self,
        flown: Result<Vec<Vec<Row>>, Crash>,
        decided: Decided<'a>,
        xid: Option<i64>,
    ) -> GroupOutcome<'a> {
        match flown {
            Ok(_) => {
                self.shared.written.fetch_max(xid.unwrap_or(0), Ordering::AcqRel);
                GroupOutcome::Committed(decided)
            }
            Err(Crash::Again(error)) => GroupOutcome::Again(error),
            Err(Crash::Lost) => GroupOutcome::Lost(Some(decided)),
            Err(Crash::Failed(error)) => GroupOutcome::Failed(error),
        }
    }

    fn count_step(&self, connection: &LaneConnection) -> BoundStatement {
        let values: Vec<Value> = vec![
            Box::new(self.shared.node.clone()),
            Box::new(self.number),
            Box::new(connection.session),
            Box::new(self.group_no),
        ];
        BoundStatement::new(&connection.statements.lane, values)
    }
}

/// Which part of a transaction a flight is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leg {
    Whole,
    First,
    Last,
}

/// Why a flight did not land. If it was to end with the commit, nothing of its transaction is left.
enum Crash {
    Again(StoreError),
    Lost,
    Failed(StoreError),
}

/// Sends statements together, with the beginning or the end of the transaction.
async fn fly(client: &Client, steps: &[BoundStatement], leg: Leg) -> Result<Vec<Vec<Row>>, Crash> {
    let plain = |sql: &'static str| {
        async move { client.batch_execute(sql).await.map(|()| Vec::new()) }.boxed()
    };
    let mut flights = Vec::with_capacity(steps.len() + 2);
    if leg != Leg::Last {
        flights.push(plain("BEGIN"));
    }
    flights.extend(steps.iter().map(|step| step.send(client)));
    if leg != Leg::First {
        flights.push(plain("COMMIT"));
    }
    let Ok(landed) = tokio::time::timeout(FLIGHT, together(flights)).await else {
        return Err(Crash::Lost);
    };
    // The first to fail says why; those behind it only say that it did. A commit behind it has
    // undone everything.
    let rows: Result<Vec<Vec<Row>>, _> = landed.into_iter().collect();
    rows.map(|mut rows| {
        if leg != Leg::Last {
            rows.remove(0);
        }
        rows
    })
    .map_err(|error| match Failure::of(&error) {
        Failure::Again => Crash::Again(from_postgres(error)),
        Failure::Lost => Crash::Lost,
        Failure::Other => Crash::Failed(from_postgres(error)),
    })
}

/// Ends a transaction that goes no further.
async fn roll_back<'a>(connection: &LaneConnection, crash: Crash) -> GroupOutcome<'a> {
    let undone = match crash {
        Crash::Lost => return GroupOutcome::Lost(None),
        _ => connection.client.batch_execute("ROLLBACK").await,
    };
    match (undone, crash) {
        (Err(_), _) | (_, Crash::Lost) => GroupOutcome::Lost(None),
        (_, Crash::Again(error)) => GroupOutcome::Again(error),
        (_, Crash::Failed(error)) => GroupOutcome::Failed(error),
    }
}

/// The number of the transaction, which the first statement tells.
fn transaction(rows: &[Vec<Row>]) -> Option<i64> {
    rows.first()?.first()?.try_get(0).ok()
}

/// Runs all of them at once. Each is polled for the first time, which is when its statement leaves,
/// in the order given; so that is the order in which the server gets them.
async fn together<T>(mut flights: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut landed: Vec<Option<T>> = flights.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        let mut all = true;
        for (flight, landed) in flights.iter_mut().zip(&mut landed) {
            if landed.is_none() {
                match Pin::new(flight).poll(cx) {
                    Poll::Ready(value) => *landed = Some(value),
                    Poll::Pending => all = false,
                }
            }
        }
        if all { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    landed.into_iter().flatten().collect()
}
