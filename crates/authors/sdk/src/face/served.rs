//! A tool as the core sees it, whose calls are made in the scope it belongs to.

use std::fmt;
use std::sync::{Arc, PoisonError};

use jsonschema::Validator;
use serde_json::Value;
use tokio::sync::mpsc;
use wharf_protocol::tool::value::{Form, kept};
use wharf_vocab::{Code, Executed, Fault, Object};

use super::{Bridge, Host, Meter, Reach, Terms};
use crate::Within as _;
use crate::error::Error;
use crate::exposed::{Exposed, compile};
use crate::scope::{Inner, Scope};
use crate::transport::Transport;

/// Pieces of progress that may wait for the host; beyond it the tool waits.
const WAITING_MAX: usize = 16;

/// A tool as the core sees it: its input and its output are objects. Cheap to clone.
#[derive(Clone)]
pub struct Served {
    inner: Arc<Parts>,
}

struct Parts {
    tool: Arc<Exposed>,
    scope: Scope,
    reach: Reach,
    terms: Terms,
    input: (Form, Value),
    output: (Form, Value),
    /// What outputs are checked against.
    fits: Validator,
}

impl Served {
    pub(super) fn new(
        tool: Arc<Exposed>,
        scope: Scope,
        reach: Reach,
        terms: Terms,
    ) -> Result<Self, Error> {
        let definition = tool.definition();
        let formed = |schema: &Value| {
            let schema = kept(schema);
            (Form::of(&schema), schema)
        };
        let (input, output) = (formed(&definition.input), formed(&definition.output));
        let name = definition.name.to_owned();
        let fits = compile(&definition.output).map_err(|why| Error::Schema {
            name,
            what: "output",
            why,
        })?;
        Ok(Self { inner: Arc::new(Parts { tool, scope, reach, terms, input, output, fits }) })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.tool.definition().name
    }

    /// What it does.
    #[must_use]
    pub fn description(&self) -> &'static str {
        self.inner.tool.definition().description
    }

    /// JSON Schema of its input, which is an object.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        &self.inner.input.1
    }

    /// JSON Schema of its output, which is an object.
    #[must_use]
    pub fn output_schema(&self) -> &Value {
        &self.inner.output.1
    }

    /// Whether it acts on the world, if that was said.
    #[must_use]
    pub fn side_effects(&self) -> Option<bool> {
        self.inner.terms.side_effects
    }

    /// Whether it is called only after somebody has approved the call, if that was said.
    #[must_use]
    pub fn requires_directive(&self) -> Option<bool> {
        self.inner.terms.requires_directive
    }

    /// Checks the input, calls the tool, and checks its output. All progress has reached the host
    /// before this ends, and everything that the tool wanted done at its end is done. Dropping it
    /// calls the tool off.
    pub async fn call<H: Host>(&self, input: Object, host: H) -> Result<Object, Fault> {
        let parts = &*self.inner;
        let scope = parts.scope_of_call(&host);
        let (told, mut pieces) = mpsc::channel(WAITING_MAX);
        let input = parts.input.0.unpack(input);
        let work = parts.tool.call(scope.place(), input, Some(told));
        let show = async {
            while let Some(piece) = pieces.recv().await {
                if host.progress(piece).await.is_err() {
                    // Nobody is told any more, and the tool goes on.
                    pieces.close();
                }
            }
        };
        let output = tokio::select! {
            biased;
            (output, ()) = async { futures::join!(work, show) } => output,
            () = host.stopped() => Err(canceled()),
        };
        scope.close().await;
        let output = output?;
        self.check(&output)?;
        Ok(parts.output.0.pack(output))
    }

    fn check(&self, output: &Value) -> Result<(), Fault> {
        self.inner.fits.validate(output).map_err(|error| {
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { "the top level" } else { &path };
            // The error's own text can quote the value; the masked form never does.
            let why = error.masked();
            let message =
                format!("The output of the tool {:?} does not fit at {place}: {why}.", self.name());
            Fault::new(Code::ToolInvalidOutput, message)
                .with("path", path.as_str())
                .executed(Executed::Yes)
        })
    }
}

impl Parts {
    /// A scope of its own for one call: what the call begins ends with it.
    fn scope_of_call<H: Host>(&self, host: &H) -> Scope {
        let above = self.scope.place().0;
        let meter = {
            let host = host.clone();
            Arc::new(Meter(Box::new(move |micro| host.spent(micro))))
        };
        let scope = Scope::serving(&above, meter);
        let bridge = Bridge::new(host.clone(), self.reach.clone()).below(nearest(&above));
        // Nobody has worked out anything for the new scope, so nothing can be stale.
        let inner = scope.place().0;
        let mut tables = inner.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.transport = Some(Arc::new(bridge));
        drop(tables);
        scope
    }
}

fn canceled() -> Fault {
    Fault::new(Code::ToolCanceled, "The call was canceled.").executed(Executed::Maybe)
}

/// The transport of the nearest scope that has one.
fn nearest(scope: &Arc<Inner>) -> Option<Arc<dyn Transport>> {
    let own = scope.tables.read().unwrap_or_else(PoisonError::into_inner).transport.clone();
    own.or_else(|| scope.parent.as_ref().and_then(nearest))
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Served").field("name", &self.name()).finish_non_exhaustive()
    }
}
