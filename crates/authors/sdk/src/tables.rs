//! What holds in a scope, and what of it concerns a call.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use wharf_vocab::Fault;

use crate::Data;
use crate::chain::{Chain, Core, Handler, nobody, other_types};
use crate::error::Error;
use crate::exposed::Exposed;
use crate::layer::{Lane, Layer};
use crate::remote::Remote;
use crate::scope::Inner;
use crate::tool::Target;
use crate::transport::Transport;

/// What was added to one scope.
#[derive(Default)]
pub(crate) struct Tables {
    provided: HashMap<&'static str, Provided>,
    layers: HashMap<&'static str, Vec<Added>>,
    /// The tools that were provided, in their order.
    pub(crate) exposed: Vec<Arc<Exposed>>,
    pub(crate) transport: Option<Arc<dyn Transport>>,
}

/// Who executes a tool in a scope.
#[derive(Clone)]
pub(crate) enum Provided {
    /// An `Arc<Handler<I, O, P>>`.
    Local(Arc<dyn Any + Send + Sync>),
    /// The definition itself.
    Own,
    /// Somebody elsewhere: over this transport, else over that of the nearest scope.
    Remote(Option<Arc<dyn Transport>>),
}

/// A layer that was added.
struct Added {
    /// The agent it is for; for all when absent.
    agent: Option<&'static str>,
    lane: Lane,
    /// An `Arc<dyn Layer<I, O, P>>`.
    layer: Arc<dyn Any + Send + Sync>,
}

impl Tables {
    /// Says who executes a tool. Each scope says it once.
    pub(crate) fn provide(
        &mut self,
        tool: &'static str,
        provided: Provided,
        exposed: Exposed,
    ) -> Result<(), Error> {
        if self.provided.contains_key(tool) {
            return Err(Error::SameName { name: tool.to_owned() });
        }
        self.provided.insert(tool, provided);
        self.exposed.push(Arc::new(exposed));
        Ok(())
    }

    pub(crate) fn layer(
        &mut self,
        tool: &'static str,
        agent: Option<&'static str>,
        lane: Lane,
        layer: Arc<dyn Any + Send + Sync>,
    ) {
        self.layers.entry(tool).or_default().push(Added { agent, lane, layer });
    }
}

impl Inner {
    /// What a call from here goes through. It is worked out once, until anything changes.
    pub(crate) fn chain<I: Data, O: Data, P: Data>(
        self: &Arc<Self>,
        target: Target<I, O, P>,
    ) -> Arc<Chain<I, O, P>> {
        let version = self.version.load(Ordering::Acquire);
        let known = {
            let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
            let known = cache.get(target.name).filter(|(of, _)| *of == version);
            known.map(|(_, chain)| Arc::clone(chain))
        };
        if let Some(Ok(chain)) = known.map(Arc::downcast) {
            return chain;
        }
        let name = target.name;
        let chain = Arc::new(self.resolve(target));
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        cache.insert(name, (version, Arc::clone(&chain) as Arc<dyn Any + Send + Sync>));
        chain
    }

    /// This scope and those above it.
    fn lineage(self: &Arc<Self>) -> Vec<Arc<Self>> {
        let above = |scope: &Arc<Self>| scope.parent.clone();
        std::iter::successors(Some(Arc::clone(self)), above).collect()
    }

    fn resolve<I: Data, O: Data, P: Data>(
        self: &Arc<Self>,
        target: Target<I, O, P>,
    ) -> Chain<I, O, P> {
        let lineage = self.lineage();
        let agent = lineage.iter().find_map(|scope| scope.agent);
        let mut layers = Vec::new();
        let mut fits = true;
        let mut take = |scope: &Arc<Self>, lane: Lane| {
            let (found, all) = scope.layers_of::<I, O, P>(target.name, agent, lane);
            fits &= all;
            found
        };
        for scope in lineage.iter().rev() {
            layers.extend(take(scope, Lane::Outer));
        }
        for scope in &lineage {
            layers.extend(take(scope, Lane::Inner).into_iter().rev());
        }
        let core = if fits {
            executed_by(&lineage, target)
        } else {
            Core::Nobody(other_types(target.name))
        };
        Chain { layers, core }
    }

    /// The layers of this scope around a tool, and whether all of them are for its types.
    fn layers_of<I: Data, O: Data, P: Data>(
        &self,
        tool: &str,
        agent: Option<&'static str>,
        lane: Lane,
    ) -> (Vec<Arc<dyn Layer<I, O, P>>>, bool) {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let added = tables.layers.get(tool).map_or(&[][..], Vec::as_slice);
        let added = added.iter().filter(|added| added.lane == lane);
        let added = added.filter(|added| added.agent.is_none() || added.agent == agent);
        let typed = added.map(|added| added.layer.downcast_ref::<Arc<dyn Layer<I, O, P>>>());
        let typed: Vec<_> = typed.map(Option::<&_>::cloned).collect();
        let fits = typed.iter().all(Option::is_some);
        (typed.into_iter().flatten().collect(), fits)
    }

    fn provided(&self, tool: &str) -> Option<Provided> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.provided.get(tool).cloned()
    }

    /// Whether a tool of this scope goes to whatever transport is nearest.
    pub(crate) fn is_passed_on(&self, tool: &str) -> bool {
        matches!(self.provided(tool), Some(Provided::Remote(None)))
    }

    fn transport(&self) -> Option<Arc<dyn Transport>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.transport.clone()
    }
}

/// Who executes a tool, nearest first.
fn executed_by<I: Data, O: Data, P: Data>(
    lineage: &[Arc<Inner>],
    target: Target<I, O, P>,
) -> Core<I, O, P> {
    let Target { name, own, wire } = target;
    if let Some(own) = own {
        return Core::Own(own);
    }
    let transport = match lineage.iter().find_map(|scope| scope.provided(name)) {
        Some(Provided::Local(handler)) => {
            let typed = handler.downcast_ref::<Arc<Handler<I, O, P>>>();
            return typed.map_or_else(
                || Core::Nobody(other_types(name)),
                |handler| Core::Local(Arc::clone(handler)),
            );
        }
        Some(Provided::Remote(Some(transport))) => Some(transport),
        Some(Provided::Own) => return Core::Nobody(other_types(name)),
        Some(Provided::Remote(None)) | None => lineage.iter().find_map(|scope| scope.transport()),
    };
    match transport {
        Some(transport) => match Remote::new(name, wire, transport) {
            Ok(remote) => Core::Remote(Box::new(remote)),
            Err(fault) => Core::Nobody(fault),
        },
        None => Core::Nobody(nobody(name)),
    }
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").field("tools", &self.exposed.len()).finish_non_exhaustive()
    }
}

/// A fault of a schema that cannot be used.
pub(crate) fn unusable(tool: &str, what: &str) -> Fault {
    let message = format!("The schema of the {what} of the tool {tool:?} cannot be used.");
    Fault::new(wharf_vocab::Code::ToolSchemaInvalid, message)
}
