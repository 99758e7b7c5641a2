//! The most that tools have cost, as far as is committed, for whoever works out what to hold.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use wharf_domain::{LedgerOp, Price};
use wharf_vocab::{Digest, Micro, Mode, ToolId};

use crate::catalog::CatalogTool;

/// What tools have cost, by their definitions.
#[derive(Debug, Default)]
pub(crate) struct Prices {
    most: RwLock<HashMap<(ToolId, Digest), Micro>>,
    /// How often one of them has changed.
    changes: AtomicU64,
}

impl Prices {
    /// Takes up what the store knows.
    pub(crate) fn load(&self, prices: Vec<Price>) {
        for Price { tool, tool_hash, cost_micro } in prices {
            self.learn(tool, tool_hash, cost_micro);
        }
    }

    /// Takes up what a batch that was committed tells.
    pub(crate) fn committed(&self, ops: &[LedgerOp]) {
        for op in ops {
            if let LedgerOp::Learn { tool, tool_hash, cost } = op {
                self.learn(tool.clone(), tool_hash.clone(), *cost);
            }
        }
    }

    fn learn(&self, tool: ToolId, tool_hash: Digest, cost: Micro) {
        let mut known = self.most.write();
        let most = known.entry((tool, tool_hash)).or_default();
        if cost > *most {
            *most = cost;
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// How often one has changed: what was worked out under the same number is still so.
    pub(crate) fn changed(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    fn most(&self, tool: &ToolId, tool_hash: &Digest) -> Micro {
        let known = self.most.read();
        known.get(&(tool.clone(), tool_hash.clone())).copied().unwrap_or(0)
    }

    /// Whether a tool counts as free, and what is held for an attempt of it: the largest of its
    /// price, the world's default and the most it has cost; or, where its provider can tell what
    /// this call costs at most, that or the world's default. What pretends costs nothing.
    pub(crate) fn hold(
        &self,
        tool: &CatalogTool,
        default: Micro,
        mode: Mode,
        quote: impl FnOnce() -> Option<Micro>,
    ) -> (bool, Micro) {
        let def = &tool.def;
        let most = self.most(&def.tool, &tool.hash);
        let free = def.free && most == 0;
        if free || mode == Mode::Mock {
            return (free, 0);
        }
        let known = || def.max_cost_micro.unwrap_or(0).max(most);
        (false, quote().unwrap_or_else(known).max(default))
    }
}
