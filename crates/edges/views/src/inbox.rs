//! Open asks, oldest first. Those of runs in memory stand before the stored ones.

use std::sync::Arc;

use wharf_domain::{Ask, Rights};
use wharf_engine::{AskView, Handle};
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{AskKind, Fault, WorldId};
use wharf_web::cursor::Position;

/// Which open asks are wanted.
pub struct InboxQuery {
    pub kind: Option<AskKind>,
    /// Only these worlds; all when absent.
    pub worlds: Option<Vec<WorldId>>,
    /// Only tools within these.
    pub rights: Arc<Rights>,
    /// Only what comes after this place.
    pub after: Option<Position>,
    pub limit: usize,
}

impl InboxQuery {
    /// A page of asks that fit, and whether there are more.
    pub async fn page(self, handle: &Handle) -> Result<(Vec<AskView>, bool), Fault> {
        let mut found = self.find(handle).await?;
        let more = found.len() > self.limit;
        found.truncate(self.limit);
        Ok((found, more))
    }

    /// Reads the inbox until more asks were found than fit on a page, or there are no more.
    async fn find(&self, handle: &Handle) -> Result<Vec<AskView>, Fault> {
        let mut found = Vec::new();
        let (mut after, behind) = match &self.after {
            Some(Position::Number(after)) => (Some(*after), ""),
            Some(Position::Name(behind)) => (None, behind.as_str()),
            None => (None, ""),
        };
        loop {
            let read = handle.asks().inbox(after, PAGE_ITEMS_MAX).await?;
            let (mut memory, stored): (Vec<_>, Vec<_>) =
                read.into_iter().partition(|view| view.position.is_none());
            memory.sort_by_key(|view| memory_place(&view.ask));
            memory.retain(|view| memory_place(&view.ask).as_str() > behind);
            let full = stored.len() >= PAGE_ITEMS_MAX;
            after = stored.last().and_then(|view| view.position);
            found.extend(memory.into_iter().chain(stored).filter(|view| self.fits(&view.ask)));
            if !full || found.len() > self.limit {
                return Ok(found);
            }
        }
    }

    fn fits(&self, ask: &Ask) -> bool {
        self.kind.is_none_or(|kind| ask.spec.kind == kind)
            && self.worlds.as_ref().is_none_or(|worlds| worlds.contains(&ask.spec.run.world))
            && self.rights.check_tool(&ask.spec.tool).is_ok()
    }
}

/// Where an ask stands in the inbox.
#[must_use]
pub fn ask_position(view: &AskView) -> Position {
    match view.position {
        Some(position) => Position::Number(position),
        None => Position::Name(memory_place(&view.ask)),
    }
}

/// Where an ask of a run in memory stands among its like; text that sorts by age.
fn memory_place(ask: &Ask) -> String {
    format!("{:020} {}", ask.created_at.0, ask.spec.ask_id)
}
