//! Pages of runs: those in memory first, then the stored ones, newest first in each.
//!
//! The store tells where a page ends and not where each run stands, so cursors within a page are
//! found by looking at it run by run, and only if somebody wants them.

use std::collections::HashMap;

use wharf_domain::RunSummary;
use wharf_engine::RunQuery;
use wharf_vocab::limits::PAGE_ITEMS_MAX;
use wharf_vocab::{Durability, Fault, RunKey, RunStatus, Timestamp, ToolId, WorldId};

use crate::access::Session;
use crate::cursor::{self, List, Place};
use crate::types::{self, Connection, Edge};

/// Behind every position there is, and so at the first stored run.
const FIRST: u64 = i64::MAX as u64;
/// Before every position there is, and so behind the last stored run.
const LAST: u64 = 0;

/// Which runs are wanted.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// Only these worlds; all when absent.
    pub(crate) worlds: Option<Vec<WorldId>>,
    pub(crate) tool: Option<ToolId>,
    pub(crate) status: Option<RunStatus>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) limit: usize,
    pub(crate) after: Option<Place>,
    /// Whether the cursor of each run is wanted, or only that of the page's end.
    pub(crate) cursors: bool,
}

impl Wanted {
    fn query(&self, before: Option<u64>, limit: usize) -> RunQuery {
        let only = self.worlds.as_ref().filter(|worlds| worlds.len() == 1);
        RunQuery {
            // Several worlds are sorted out in `fits`.
            world: only.map(|worlds| worlds[0].clone()),
            tool: self.tool.clone(),
            status: self.status,
            since: self.since,
            until: self.until,
            before,
            limit,
        }
    }

    fn fits(&self, session: &Session, run: &RunSummary) -> bool {
        self.worlds.as_ref().is_none_or(|worlds| worlds.contains(&run.key.world))
            && session.caller.rights.check_tool(&run.tool).is_ok()
    }
}

/// The page that is wanted.
pub(crate) async fn page(
    session: &Session,
    wanted: Wanted,
) -> Result<Connection<types::RunSummary>, Fault> {
    let mut page = Page { session, wanted, edges: Vec::new(), more: false };
    if page.wanted.worlds.as_ref().is_none_or(|worlds| !worlds.is_empty()) {
        match page.wanted.after.clone() {
            Some(Place::Number(before)) => page.stored(before).await?,
            Some(Place::Name(behind)) => page.memory(Some(&behind)).await?,
            None => page.memory(None).await?,
        }
    }
    Ok(Connection::new(page.edges, page.more))
}

struct Page<'s> {
    session: &'s Session,
    wanted: Wanted,
    edges: Vec<Edge<types::RunSummary>>,
    more: bool,
}

impl Page<'_> {
    fn push(&mut self, place: &Place, run: &RunSummary) {
        let cursor = cursor::write(List::Runs, place);
        self.edges.push(Edge { cursor, node: types::RunSummary::from(run) });
    }

    /// Takes runs that are kept in memory, then stored ones.
    async fn memory(&mut self, behind: Option<&str>) -> Result<(), Fault> {
        let read = self.session.handle.runs(self.wanted.query(None, PAGE_ITEMS_MAX)).await?;
        let (memory, stored): (Vec<_>, Vec<_>) =
            read.runs.into_iter().partition(|run| run.durability == Durability::Memory);
        // One that is gone since was the oldest of them, so nothing is left behind it.
        let found = |behind: &str| memory.iter().position(|run| run.key.to_string() == behind);
        let begin = behind.map_or(0, |behind| found(behind).map_or(memory.len(), |at| at + 1));
        let rest: Vec<&RunSummary> =
            memory[begin..].iter().filter(|run| self.wanted.fits(self.session, run)).collect();
        for run in rest.iter().take(self.wanted.limit) {
            self.push(&Place::Name(run.key.to_string()), run);
        }
        if rest.len() > self.wanted.limit || self.edges.len() == self.wanted.limit {
            self.more = rest.len() > self.wanted.limit || !stored.is_empty();
            return Ok(());
        }
        self.stored(FIRST).await
    }

    /// Takes stored runs until the page is full or there are no more.
    async fn stored(&mut self, mut before: u64) -> Result<(), Fault> {
        while self.edges.len() < self.wanted.limit {
            let count = self.wanted.limit - self.edges.len();
            let read = self.session.handle.runs(self.wanted.query(Some(before), count)).await?;
            let fits = |run: &&RunSummary| self.wanted.fits(self.session, run);
            let fitting: Vec<&RunSummary> = read.runs.iter().filter(fits).collect();
            let end = read.next.unwrap_or(LAST);
            let places = match self.wanted.cursors && !fitting.is_empty() {
                true => self.places(before, read.runs.len()).await?,
                false => HashMap::new(),
            };
            for run in fitting {
                let place = places.get(&run.key).copied().unwrap_or(end);
                self.push(&Place::Number(place), run);
            }
            self.more = read.next.is_some();
            match read.next {
                Some(next) => before = next,
                None => break,
            }
        }
        Ok(())
    }

    /// Where each of the next runs stands.
    async fn places(&self, mut before: u64, count: usize) -> Result<HashMap<RunKey, u64>, Fault> {
        let mut places = HashMap::new();
        for _ in 0..count {
            let read = self.session.handle.runs(self.wanted.query(Some(before), 1)).await?;
            before = read.next.unwrap_or(LAST);
            places.extend(read.runs.into_iter().map(|run| (run.key, before)));
            if read.next.is_none() {
                break;
            }
        }
        Ok(places)
    }
}
