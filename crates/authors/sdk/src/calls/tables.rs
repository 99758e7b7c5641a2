//! What holds in a scope, and what of it concerns a call.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::any_layer::SharedLayer;
use super::chain::{Callee, Chain, Handler, Layers, bad_name, nobody, other_types};
use super::exposed::{ErasedTool, check_name};
use super::layer::{Lane, Layer};
use super::life::{Identity, ScopeState};
use super::remote::Remote;
use super::tool::{Key, Named};
use super::wire::Wire;
use crate::transport::Transport;
use crate::{AnyLayer, Data, Tool};

/// What was added to one scope.
#[derive(Default)]
pub(crate) struct Tables {
    provided: HashMap<Key, Executor>,
    /// In the order in which they were added.
    pub(crate) layers: Vec<LayerEntry>,
    /// The tools that were provided, in their order.
    pub(crate) exposed: Vec<Arc<ErasedTool>>,
    pub(crate) transport: Option<Arc<dyn Transport>>,
}

/// Who executes a tool in a scope.
#[derive(Clone)]
pub(crate) enum Executor {
    /// An `Arc<Handler<I, O, P>>`.
    Local(Arc<dyn Any + Send + Sync>),
    /// The definition itself.
    Own,
    /// Somebody elsewhere: over this transport, else over that of the nearest scope.
    Remote(Option<Arc<dyn Transport>>),
}

/// A layer that was added.
pub(crate) struct LayerEntry {
    /// The agent it is for; for all when absent.
    pub(crate) agent: Option<Identity>,
    pub(crate) lane: Lane,
    pub(crate) target: LayerTarget,
}

/// A layer, and what it stands around.
pub(crate) enum LayerTarget {
    /// One tool: an `Arc<dyn Layer<I, O, P>>`.
    One(Key, Arc<dyn Any + Send + Sync>),
    /// These tools.
    Each(Vec<Key>, SharedLayer),
    /// All tools but the built-in ones.
    All(SharedLayer),
}

impl LayerTarget {
    pub(crate) fn one<I: Data, O: Data, P: Data, S>(
        tool: &Tool<I, O, P, S>,
        layer: impl Layer<I, O, P>,
    ) -> Self {
        let layer: Arc<dyn Layer<I, O, P>> = Arc::new(layer);
        Self::One(tool.key(), Arc::new(layer))
    }

    pub(crate) fn each(tools: &[&dyn Named], layer: impl AnyLayer) -> Self {
        Self::Each(tools.iter().map(|tool| tool.key()).collect(), SharedLayer::new(layer))
    }

    pub(crate) fn all(layer: impl AnyLayer) -> Self {
        Self::All(SharedLayer::new(layer))
    }
}

impl Tables {
    /// Whether a tool of this scope goes to whatever transport is nearest.
    pub(crate) fn is_passed_on(&self, name: &'static str) -> bool {
        let tool = Key { name, wire: Wire::Tool };
        matches!(self.provided.get(&tool), Some(Executor::Remote(None)))
    }

    pub(crate) fn is_provided(&self, tool: Key) -> bool {
        self.provided.contains_key(&tool)
    }

    /// Says who executes a tool. Each scope says it once.
    pub(crate) fn provide(&mut self, tool: Key, provided: Executor, exposed: Arc<ErasedTool>) {
        self.provided.insert(tool, provided);
        self.exposed.push(exposed);
    }
}

/// What calls from a scope go through, as it was last worked out.
#[derive(Default)]
pub(crate) struct ChainCache {
    /// A quick hash will do for what is written in programs and not sent by peers.
    chains: HashMap<DefinitionKey, (u64, Arc<dyn Any + Send + Sync>), foldhash::fast::RandomState>,
}

/// A definition to the last detail: two may have one name.
#[derive(PartialEq, Eq, Hash)]
struct DefinitionKey {
    tool: Key,
    types: TypeId,
    /// Where its own implementation is.
    own: usize,
}

impl ScopeState {
    /// What a call from here goes through. It is worked out once, until anything changes here or
    /// above.
    pub(crate) fn chain<I: Data, O: Data, P: Data>(
        self: &Arc<Self>,
        tool: &Tool<I, O, P>,
    ) -> Arc<Chain<I, O, P>> {
        let exactly = DefinitionKey {
            tool: tool.key(),
            types: TypeId::of::<(I, O, P)>(),
            own: tool.own.map_or(0, |own| own as usize),
        };
        let version = self.version.load(Ordering::Acquire);
        let known = {
            let known = self.known.read();
            let known = known.chains.get(&exactly).filter(|(of, _)| *of == version);
            known.map(|(_, chain)| Arc::clone(chain))
        };
        if let Some(Ok(chain)) = known.map(Arc::downcast) {
            return chain;
        }
        let chain = Arc::new(self.resolve(tool));
        let entry = (version, Arc::clone(&chain) as Arc<dyn Any + Send + Sync>);
        let former = {
            let mut known = self.known.write();
            // Looked at under the lock, so that nothing stays in a closed scope.
            if self.is_closed() { Some(entry) } else { known.chains.insert(exactly, entry) }
        };
        drop(former);
        chain
    }

    fn resolve<I: Data, O: Data, P: Data>(
        self: &Arc<Self>,
        tool: &Tool<I, O, P>,
    ) -> Chain<I, O, P> {
        if let Err(error) = check_name(tool.name(), tool.wire) {
            return Chain { layers: Vec::new(), core: Callee::Nobody(bad_name(&error)) };
        }
        let lineage: Vec<&Arc<Self>> = self.lineage().collect();
        let agent = lineage.iter().find_map(|scope| scope.agent);
        let mut layers = Vec::new();
        let mut others = false;
        let mut take = |scope: &Arc<Self>, lane: Lane| {
            let (found, of_others) = scope.layers_of::<I, O, P>(tool.key(), agent, lane);
            others |= of_others;
            found
        };
        for scope in lineage.iter().rev() {
            layers.extend(take(scope, Lane::Outer));
        }
        for scope in &lineage {
            layers.extend(take(scope, Lane::Inner).into_iter().rev());
        }
        let core = match executed_by(&lineage, tool) {
            // Elsewhere only the name counts, so a definition of other types must not be a way
            // around the layers of that name.
            Callee::Remote(_) if others => Callee::Nobody(other_types(tool.name())),
            core => core,
        };
        Chain { layers, core }
    }

    /// The layers of this scope around a tool, and whether there are layers of its name that are
    /// for other types.
    fn layers_of<I: Data, O: Data, P: Data>(
        &self,
        tool: Key,
        agent: Option<Identity>,
        lane: Lane,
    ) -> (Layers<I, O, P>, bool) {
        let tables = self.tables.read();
        let mut found: Layers<I, O, P> = Vec::new();
        let mut others = false;
        for added in &tables.layers {
            if added.lane != lane || (added.agent.is_some() && added.agent != agent) {
                continue;
            }
            match &added.target {
                LayerTarget::One(one, layer) if *one == tool => {
                    match layer.downcast_ref::<Arc<dyn Layer<I, O, P>>>() {
                        Some(layer) => found.push(Arc::clone(layer)),
                        None => others = true,
                    }
                }
                LayerTarget::Each(tools, all) if tools.contains(&tool) => {
                    found.push(Arc::new(all.clone()));
                }
                LayerTarget::All(all) if tool.wire == Wire::Tool => {
                    found.push(Arc::new(all.clone()));
                }
                LayerTarget::One(..) | LayerTarget::Each(..) | LayerTarget::All(_) => {}
            }
        }
        (found, others)
    }

    fn provided(&self, tool: Key) -> Option<Executor> {
        self.tables.read().provided.get(&tool).cloned()
    }

    /// The tools of this scope that can be served: all that have an implementation here, or a
    /// transport of their own.
    pub(crate) fn served(&self) -> Vec<Arc<ErasedTool>> {
        let tables = self.tables.read();
        let is_served = |tool: &&Arc<ErasedTool>| {
            tool.wire == Wire::Tool && !tables.is_passed_on(tool.definition().name)
        };
        tables.exposed.iter().filter(is_served).cloned().collect()
    }

    fn transport(&self) -> Option<Arc<dyn Transport>> {
        self.tables.read().transport.clone()
    }

    /// The transport of the nearest scope that has one.
    pub(crate) fn nearest_transport(self: &Arc<Self>) -> Option<Arc<dyn Transport>> {
        self.lineage().find_map(|scope| scope.transport())
    }
}

/// Who executes a tool, nearest first.
fn executed_by<I: Data, O: Data, P: Data>(
    lineage: &[&Arc<ScopeState>],
    tool: &Tool<I, O, P>,
) -> Callee<I, O, P> {
    if let Some(own) = tool.own {
        return Callee::Own(own);
    }
    let name = tool.name();
    let transport = match lineage.iter().find_map(|scope| scope.provided(tool.key())) {
        Some(Executor::Local(handler)) => {
            let typed = handler.downcast_ref::<Arc<Handler<I, O, P>>>();
            return typed.map_or_else(
                || Callee::Nobody(other_types(name)),
                |handler| Callee::Local(Arc::clone(handler)),
            );
        }
        Some(Executor::Remote(Some(transport))) => Some(transport),
        Some(Executor::Own) => return Callee::Nobody(other_types(name)),
        Some(Executor::Remote(None)) | None => {
            lineage.first().and_then(|scope| scope.nearest_transport())
        }
    };
    match transport {
        Some(transport) => Remote::new(tool, transport)
            .map_or_else(Callee::Nobody, |remote| Callee::Remote(Arc::new(remote))),
        None => Callee::Nobody(nobody(name)),
    }
}
