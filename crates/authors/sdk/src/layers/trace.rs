//! Calls as spans.

use tracing::{Instrument, Level, Span, field};
use wharf_vocab::Fault;

use crate::{AnyLayer, Around};

/// Puts each call into a span of `tracing`, with the names of the tool and the agent, and the
/// code of the fault if there is one. Neither input nor output is ever in it.
///
/// ```
/// use wharf_sdk::Scope;
/// use wharf_sdk::layers::Trace;
///
/// let scope = Scope::root();
/// scope.around_all(Trace::new());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Trace {
    level: Level,
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}

impl Trace {
    /// Spans for whoever is interested.
    #[must_use]
    pub fn new() -> Self {
        Self { level: Level::INFO }
    }

    /// Spans for whoever looks for a mistake.
    #[must_use]
    pub fn debug() -> Self {
        Self { level: Level::DEBUG }
    }

    fn span(&self, call: &Around) -> Span {
        let (tool, agent) = (call.tool(), call.agent());
        if self.level == Level::DEBUG {
            tracing::debug_span!("tool", tool, agent, code = field::Empty)
        } else {
            tracing::info_span!("tool", tool, agent, code = field::Empty)
        }
    }
}

impl AnyLayer for Trace {
    fn around<T: Send + 'static>(
        &self,
        call: Around,
        work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    ) -> impl Future<Output = Result<T, Fault>> + Send + 'static {
        let span = self.span(&call);
        async move {
            let ended = work.instrument(span.clone()).await;
            if let Err(fault) = &ended {
                span.record("code", fault.code.as_str());
            }
            ended
        }
    }
}
