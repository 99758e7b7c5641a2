//! Pages of the inbox. Asks of runs in memory stand before the stored ones.

use wharf_engine::AskView;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{AskKind, Fault, WorldId};

use crate::access::Session;
use crate::types::List;
use crate::types::view::View;
use crate::types::{Ask, Connection, Edge};
use wharf_web::cursor::{self, Position};

/// Which asks are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) kind: Option<AskKind>,
    /// Only these worlds; all when absent.
    pub(crate) worlds: Option<Vec<WorldId>>,
    pub(crate) after: Option<Position>,
}

impl Wanted {
    fn fits(&self, session: &Session, ask: &wharf_domain::Ask) -> bool {
        self.kind.is_none_or(|kind| ask.spec.kind == kind)
            && self.worlds.as_ref().is_none_or(|worlds| worlds.contains(&ask.spec.run.world))
            && session.caller.rights.check_tool(&ask.spec.tool).is_ok()
    }
}

/// The page that is wanted.
pub(crate) async fn page(
    session: &Session,
    wanted: &Wanted,
    limit: usize,
) -> Result<Connection<Ask>, Fault> {
    let mut found = find(session, wanted, limit + 1).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let edge = |view: &AskView| Edge {
        cursor: cursor::write(List::Inbox, &place(view)),
        node: Ask::view(wharf_views::ask(&view.ask)),
    };
    Ok(Connection::new(found.iter().map(edge).collect(), more))
}

/// Reads until enough asks were found that fit, or there are no more.
async fn find(session: &Session, wanted: &Wanted, count: usize) -> Result<Vec<AskView>, Fault> {
    let mut found = Vec::new();
    let (mut after, behind) = match &wanted.after {
        Some(Position::Number(after)) => (Some(*after), ""),
        Some(Position::Name(behind)) => (None, behind.as_str()),
        None => (None, ""),
    };
    loop {
        let read = session.handle.asks().inbox(after, PAGE_ITEMS_MAX).await?;
        let (mut memory, stored): (Vec<_>, Vec<_>) =
            read.into_iter().partition(|view| view.position.is_none());
        memory.sort_by_key(|view| memory_place(&view.ask));
        memory.retain(|view| memory_place(&view.ask).as_str() > behind);
        let full = stored.len() >= PAGE_ITEMS_MAX;
        after = stored.last().and_then(|view| view.position);
        let fits = |view: &AskView| wanted.fits(session, &view.ask);
        found.extend(memory.into_iter().chain(stored).filter(fits));
        if !full || found.len() >= count {
            return Ok(found);
        }
    }
}

fn place(view: &AskView) -> Position {
    match view.position {
        Some(position) => Position::Number(position),
        None => Position::Name(memory_place(&view.ask)),
    }
}

/// Where an ask of a run in memory stands among its like; text that sorts by age.
fn memory_place(ask: &wharf_domain::Ask) -> String {
    format!("{:020} {}", ask.created_at.0, ask.spec.ask_id)
}
