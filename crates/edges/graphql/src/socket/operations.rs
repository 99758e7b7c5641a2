//! The operations of one socket: who asks them, and how many there may be at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_graphql::{Data, Executor, Request, Response, Value};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use wharf_vocab::{Code, Fault};
use wharf_web::params::{SentTrace, TRACEPARENT, TRACESTATE};

use super::pulse::SocketHealth;
use crate::access::CallerSession;
use crate::error::response;
use crate::exec::RequestContext;
use crate::plain_changes::{self, Texts};

/// Executes the operations of one socket.
#[derive(Clone)]
pub(super) struct Operations {
    core: RequestContext,
    session: CallerSession,
    pulse: Arc<SocketHealth>,
    /// Where messages go that are written already, if the protocol is the one they are written for.
    texts: Option<Texts>,
}

impl Operations {
    pub(super) fn new(
        core: RequestContext,
        session: CallerSession,
        pulse: Arc<SocketHealth>,
        texts: Option<Texts>,
    ) -> Self {
        Self { core, session, pulse, texts }
    }
}

impl Operations {
    /// Who asks for one operation, as a part of the trace that its `extensions` name; of the one of
    /// the request that opened the socket, if they name none.
    fn session(&self, request: &Request) -> CallerSession {
        let text = |name: &str| match request.extensions.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        let mut session = self.session.clone();
        if let Some(traceparent) = text(TRACEPARENT) {
            let tracestate = text(TRACESTATE);
            session.trace = SentTrace { traceparent: Some(traceparent), tracestate };
        }
        session
    }
}

impl Executor for Operations {
    async fn execute(&self, request: Request) -> Response {
        let session = self.session(&request);
        self.core.execute(request.data(session)).await
    }

    fn execute_stream(
        &self,
        request: Request,
        data: Option<Arc<Data>>,
    ) -> BoxStream<'static, Response> {
        let max = self.core.limits.socket_operations_max;
        if self.pulse.open.load(Ordering::Relaxed) >= max {
            let message = format!("At most {max} operations can be open on one connection.");
            let fault = Fault::new(Code::CoreBusy, message).with("max", max);
            let counted = CountedOperation::new(&self.pulse, |pulse| &pulse.refused);
            return counted.along(stream::iter([response(&fault)]).boxed());
        }
        let counted = CountedOperation::new(&self.pulse, |pulse| &pulse.open);
        if let (Some(texts), Some(id)) = (&self.texts, plain_changes::asked(&request)) {
            let (session, written) = (self.session.clone(), Arc::clone(&self.core.changes));
            let recheck = self.core.limits.recheck;
            let told = plain_changes::tell(session, written, recheck, (id, texts.clone()));
            return counted.along(told);
        }
        let session = self.session(&request);
        counted.along(self.core.execute_stream(request.data(session), data))
    }
}

/// Counts an operation for as long as it lasts.
struct CountedOperation {
    pulse: Arc<SocketHealth>,
    counter: fn(&SocketHealth) -> &AtomicUsize,
}

impl CountedOperation {
    fn new(pulse: &Arc<SocketHealth>, counter: fn(&SocketHealth) -> &AtomicUsize) -> Self {
        counter(pulse).fetch_add(1, Ordering::Relaxed);
        Self { pulse: Arc::clone(pulse), counter }
    }

    fn along(self, answers: BoxStream<'static, Response>) -> BoxStream<'static, Response> {
        answers
            .map(move |answer| {
                let _lasts = &self;
                answer
            })
            .boxed()
    }
}

impl Drop for CountedOperation {
    fn drop(&mut self) {
        (self.counter)(&self.pulse).fetch_sub(1, Ordering::Relaxed);
    }
}
