//! What changed, as both APIs tell it.

use wharf_engine::{Change, ChangeFrame};
use wharf_vocab::{ChangeKind, WorldId};
use wharf_wire::rest_v1 as wire;

/// What a reader wants to know of.
#[derive(Debug, Clone, Default)]
pub struct ChangeQuery {
    /// Only changes of these kinds; of all when there is none.
    pub kinds: Vec<ChangeKind>,
    /// Only changes in this world.
    pub world: Option<WorldId>,
}

impl ChangeQuery {
    fn wants(&self, change: &Change) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.contains(&change.kind);
        // What has no world lies in none of them.
        let world = self.world.as_ref().is_none_or(|world| change.world.as_ref() == Some(world));
        kind && world
    }
}

/// A frame as a reader sees it who wants this and may know of what `knows` says; none if nothing
/// is left of it.
pub fn changes(
    frame: &ChangeFrame,
    query: &ChangeQuery,
    knows: impl Fn(&Change) -> bool,
) -> Option<wire::Changes> {
    let items = frame.items.iter().filter(|change| query.wants(change) && knows(change));
    let items: Vec<wire::Change> = items.map(change).collect();
    (frame.reset || !items.is_empty()).then_some(wire::Changes { reset: frame.reset, items })
}

fn change(change: &Change) -> wire::Change {
    wire::Change {
        kind: change.kind,
        world: change.world.clone(),
        id: change.id.clone(),
        seq: change.seq,
        status: change.status.to_owned(),
    }
}
