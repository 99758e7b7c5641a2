//! What holds in a scope, and what of it concerns a call.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::any_layer::ForAll;
use super::chain::{Chain, Core, Handler, Layers, bad_name, nobody, other_types};
use super::exposed::{ErasedTool, check_name};
use super::layer::{Lane, Layer};
use super::life::{Identity, ScopeState};
use super::reached::CoreTool;
use super::remote::Remote;
use super::tool::{Key, Named, Target};
use super::wire::Wire;
use crate::Data;
use crate::transport::Transport;

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
    pub(crate) stands: LayerTarget,
    /// The layer, if it stands around more than one tool.
    pub(crate) all: Option<ForAll>,
}

/// What a layer stands around.
pub(crate) enum LayerTarget {
    /// One tool, with the layer: an `Arc<dyn Layer<I, O, P>>`.
    One(Key, Arc<dyn Any + Send + Sync>),
    /// These tools.
    Each(Vec<Key>),
    /// All tools but the built-in ones.
    All,
}

impl LayerTarget {
    pub(crate) fn each(tools: &[&dyn Named]) -> Self {
        Self::Each(tools.iter().map(|tool| tool.key()).collect())
    }
}

impl Tables {
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
    chains: HashMap<Exactly, (u64, Arc<dyn Any + Send + Sync>), BuildHasherDefault<Short>>,
}

/// A definition to the last detail: two may have one name.
#[derive(PartialEq, Eq, Hash)]
struct Exactly {
    tool: Key,
    types: TypeId,
    /// Where its own implementation is.
    own: usize,
}

/// A quick hash of what is written in programs, not sent by peers.
#[derive(Default)]
struct Short(u64);

impl Hasher for Short {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

impl ScopeState {
    /// What a call from here goes through. It is worked out once, until anything changes here or
    /// above.
    pub(crate) fn chain<I: Data, O: Data, P: Data>(
        self: &Arc<Self>,
        target: &Target<I, O, P>,
    ) -> Arc<Chain<I, O, P>> {
        let exactly = Exactly {
            tool: target.key(),
            types: TypeId::of::<(I, O, P)>(),
            own: target.own.map_or(0, |own| own as usize),
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
        let chain = Arc::new(self.resolve(target));
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
        target: &Target<I, O, P>,
    ) -> Chain<I, O, P> {
        if let Err(error) = check_name(target.name, target.wire) {
            return Chain { layers: Vec::new(), core: Core::Nobody(bad_name(&error)) };
        }
        let lineage: Vec<&Arc<Self>> = self.lineage().collect();
        let agent = lineage.iter().find_map(|scope| scope.agent);
        let mut layers = Vec::new();
        let mut others = false;
        let mut take = |scope: &Arc<Self>, lane: Lane| {
            let (found, of_others) = scope.layers_of::<I, O, P>(target.key(), agent, lane);
            others |= of_others;
            found
        };
        for scope in lineage.iter().rev() {
            layers.extend(take(scope, Lane::Outer));
        }
        for scope in &lineage {
            layers.extend(take(scope, Lane::Inner).into_iter().rev());
        }
        let core = match executed_by(&lineage, target) {
            // Elsewhere only the name counts, so a definition of other types must not be a way
            // around the layers of that name.
            Core::Remote(_) if others => Core::Nobody(other_types(target.name)),
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
            let stands = match &added.stands {
                LayerTarget::One(one, layer) if *one == tool => {
                    match layer.downcast_ref::<Arc<dyn Layer<I, O, P>>>() {
                        Some(layer) => found.push(Arc::clone(layer)),
                        None => others = true,
                    }
                    continue;
                }
                LayerTarget::One(..) => false,
                LayerTarget::Each(tools) => tools.contains(&tool),
                LayerTarget::All => tool.wire == Wire::Tool,
            };
            if stands && let Some(all) = &added.all {
                found.push(Arc::new(all.clone()));
            }
        }
        (found, others)
    }

    fn provided(&self, tool: Key) -> Option<Executor> {
        self.tables.read().provided.get(&tool).cloned()
    }

    /// Whether a tool of this scope goes to whatever transport is nearest.
    pub(crate) fn is_passed_on(&self, tool: &'static str) -> bool {
        matches!(self.provided(Key { name: tool, wire: Wire::Tool }), Some(Executor::Remote(None)))
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
    target: &Target<I, O, P>,
) -> Core<I, O, P> {
    if let Some(own) = target.own {
        return Core::Own(own);
    }
    let name = target.name;
    let transport = match lineage.iter().find_map(|scope| scope.provided(target.key())) {
        Some(Executor::Local(handler)) => {
            let typed = handler.downcast_ref::<Arc<Handler<I, O, P>>>();
            return typed.map_or_else(
                || Core::Nobody(other_types(name)),
                |handler| Core::Local(Arc::clone(handler)),
            );
        }
        Some(Executor::Remote(Some(transport))) => Some(transport),
        Some(Executor::Own) => return Core::Nobody(other_types(name)),
        Some(Executor::Remote(None)) | None => {
            lineage.first().and_then(|scope| scope.nearest_transport())
        }
    };
    match transport {
        Some(transport) => match Remote::new(name, target.wire, transport, reached(target)) {
            Ok(remote) => Core::Remote(Box::new(remote)),
            Err(fault) => Core::Nobody(fault),
        },
        None => Core::Nobody(nobody(name)),
    }
}

/// The tool of the core that a definition stands for.
fn reached<I: Data, O: Data, P: Data>(target: &Target<I, O, P>) -> Option<CoreTool> {
    target.at.map(CoreTool::typed::<I, O, P>)
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").field("tools", &self.exposed.len()).finish_non_exhaustive()
    }
}
