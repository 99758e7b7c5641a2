//! Executes operations: documents are checked first, queries take only so long, and only so many
//! run at once.

use std::sync::Arc;

use async_graphql::parser::types::OperationType;
use async_graphql::{Data, Executor, Request, Response, Schema};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wharf_domain::Caller;
use wharf_engine::Handle;
use wharf_views::ChangeTexts;
use wharf_vocab::{Code, Fault};

use crate::answer_bytes::AnswerBytes;
use crate::error::{coded, internal, response};
use crate::limits::{COMPLEXITY_MAX, DIRECTIVES_MAX, GraphqlLimits, SMALL_BYTES};
use crate::mutation::Mutations;
use crate::plain_changes;
use crate::query::{CoreStatusData, Queries, Secrets};
use crate::query_core::CoreParts;
use crate::subscription::Subscriptions;
use crate::{GraphqlOptions, document};

/// What can be asked, and what answers.
pub(crate) type Root = Schema<Queries, Mutations, Subscriptions>;

/// The schema with its limits.
pub(crate) fn schema(
    limits: &GraphqlLimits,
    parts: CoreParts,
    status: CoreStatusData,
    secrets: Secrets,
) -> Root {
    Schema::build(
        Queries::default(),
        Mutations::default(),
        Subscriptions { recheck: limits.recheck },
    )
    .data(parts)
    .data(status)
    .data(secrets)
    .limit_complexity(COMPLEXITY_MAX)
    .limit_directives(DIRECTIVES_MAX)
    .extension(AnswerBytes)
    .finish()
}

/// Says who bears a token.
pub type BearerCheck = Arc<dyn Fn(&str) -> Result<Caller, Fault> + Send + Sync>;

/// What every request can reach.
#[derive(Clone)]
pub(crate) struct RequestContext {
    pub(crate) handle: Handle,
    pub(crate) bearer: BearerCheck,
    pub(crate) limits: Arc<GraphqlLimits>,
    pub(crate) sockets: Arc<Semaphore>,
    /// Places for sockets of peers that have not said who they are.
    pub(crate) strangers: Arc<Semaphore>,
    /// Room for answers that wait to be read on sockets, in KiB.
    pub(crate) answers: Arc<Semaphore>,
    /// Room for operations on sockets that are not over, in KiB.
    pub(crate) asked: Arc<Semaphore>,
    /// What changed, as sockets tell it.
    pub(crate) changes: Arc<ChangeTexts>,
    schema: Root,
    operations: Arc<Semaphore>,
}

/// Room that is taken until this is dropped.
#[derive(Debug)]
pub(crate) struct ReservedBytes(
    #[expect(dead_code, reason = "dropping it is its use")] Option<OwnedSemaphorePermit>,
);

impl RequestContext {
    pub(crate) fn new(options: GraphqlOptions) -> Self {
        let GraphqlOptions { handle, bearer, limits, providers, operators, doctor, status, vault } =
            options;
        let parts = CoreParts { providers, operators, doctor };
        Self {
            handle,
            bearer,
            schema: schema(&limits, parts, CoreStatusData(status), Secrets(vault)),
            sockets: Arc::new(Semaphore::new(limits.sockets_max)),
            strangers: Arc::new(Semaphore::new(limits.strangers_max)),
            answers: Arc::new(Semaphore::new(limits.answers_bytes_max / 1024)),
            asked: Arc::new(Semaphore::new(limits.operations_bytes_max / 1024)),
            operations: Arc::new(Semaphore::new(limits.operations_max)),
            changes: Arc::new(ChangeTexts::new(plain_changes::write)),
            limits: Arc::new(limits),
        }
    }

    /// Room for this many bytes, if there is any; little needs none.
    pub(crate) fn room(place: &Arc<Semaphore>, bytes: usize) -> Result<ReservedBytes, Fault> {
        if bytes <= SMALL_BYTES {
            return Ok(ReservedBytes(None));
        }
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let full = |_| Fault::new(Code::CoreBusy, "Too much waits; try again in a moment.");
        Arc::clone(place)
            .try_acquire_many_owned(kib)
            .map(|it| ReservedBytes(Some(it)))
            .map_err(full)
    }

    /// Waits for a place among the operations at once.
    pub(crate) async fn place(&self) -> Result<OwnedSemaphorePermit, Fault> {
        let place = Arc::clone(&self.operations).acquire_owned();
        match tokio::time::timeout(self.limits.query, place).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) => Err(internal()),
            Err(_) => {
                let message = "The core has too much to do; try again in a moment.";
                Err(Fault::new(Code::CoreBusy, message))
            }
        }
    }

    async fn answer(&self, request: Request, kind: OperationType) -> Response {
        if kind == OperationType::Mutation {
            // What is asked for is carried to its end, also when the asker hangs up in between.
            let schema = self.schema.clone();
            let done = tokio::spawn(async move { schema.execute(request).await }).await;
            return done.map_or_else(|_| response(&internal()), coded);
        }
        match tokio::time::timeout(self.limits.query, self.schema.execute(request)).await {
            Ok(answer) => coded(answer),
            Err(_) => {
                let message = "The query took too long; ask for less at once.";
                response(&Fault::new(Code::RequestTimeout, message))
            }
        }
    }
}

impl Executor for RequestContext {
    async fn execute(&self, mut request: Request) -> Response {
        match document::check(&mut request) {
            Err(fault) => response(&fault),
            Ok(OperationType::Subscription) => {
                let message = "Subscriptions need a WebSocket; open one on the same path.";
                response(&Fault::new(Code::RequestInvalid, message))
            }
            Ok(kind) => self.answer(request, kind).await,
        }
    }

    fn execute_stream(
        &self,
        mut request: Request,
        session: Option<Arc<Data>>,
    ) -> BoxStream<'static, Response> {
        let core = self.clone();
        match document::check(&mut request) {
            Err(fault) => stream::iter([response(&fault)]).boxed(),
            Ok(OperationType::Subscription) => core
                .schema
                .execute_stream_with_session_data(request, session.unwrap_or_default())
                .map(coded)
                .boxed(),
            Ok(kind) => {
                // The session stands in the request, where an operation that is not streamed
                // looks for it.
                stream::once(async move {
                    match core.place().await {
                        Ok(_place) => core.answer(request, kind).await,
                        Err(fault) => response(&fault),
                    }
                })
                .boxed()
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use async_graphql::extensions::{Extension, ExtensionContext, ExtensionFactory, NextExecute};
    use wharf_journal::audit::AuditKey;
    use wharf_memory::MemoryStore;
    use wharf_ports::SystemClock;
    use wharf_vocab::NodeId;

    use super::*;

    /// An engine with nothing in it.
    pub(crate) async fn engine() -> Handle {
        let clock = Arc::new(SystemClock);
        let store = Arc::new(MemoryStore::new(&AuditKey::new([7; 32]), clock.clone()));
        let node = NodeId::new("test").expect("valid");
        let options = wharf_engine::EngineOptions::new(node, store, clock, 1);
        Handle::start(options).await.expect("starts")
    }

    /// Lets every operation stand still.
    struct Standstill;

    impl ExtensionFactory for Standstill {
        fn create(&self) -> Arc<dyn Extension> {
            Arc::new(Standstill)
        }
    }

    #[async_graphql::async_trait::async_trait]
    impl Extension for Standstill {
        async fn execute(
            &self,
            _: &ExtensionContext<'_>,
            _: Option<&str>,
            _: NextExecute<'_>,
        ) -> Response {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn t045_a_query_that_takes_too_long_is_given_up() {
        let limits = GraphqlLimits { query: Duration::from_millis(10), ..GraphqlLimits::default() };
        let bearer: BearerCheck = Arc::new(|_| Err(internal()));
        let mut core = RequestContext::new(GraphqlOptions {
            limits,
            ..GraphqlOptions::new(engine().await, bearer)
        });
        let query = "{ tools { edges { cursor } } }";
        core.schema = Schema::build(
            Queries::default(),
            Mutations::default(),
            Subscriptions { recheck: Duration::MAX },
        )
        .extension(Standstill)
        .finish();
        let plain = core.execute(Request::new(query)).await;
        let streamed = core.execute_stream(Request::new(query), None).collect::<Vec<_>>().await;
        for answer in [&plain, &streamed[0]] {
            let code = answer.errors[0].extensions.as_ref().and_then(|it| it.get("code")).cloned();
            assert_eq!(code, Some("request.timeout".into()), "{answer:?}");
        }
        assert_eq!(core.operations.available_permits(), core.limits.operations_max);
    }
}
