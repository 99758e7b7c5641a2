//! Pages of runs, newest first.

use wharf_domain::RunSummary;
use wharf_engine::{RunPlace, RunQuery};
use wharf_vocab::{Fault, WorldId};

use crate::access::CallerSession;
use crate::types::page::RUNS;
use crate::types::view::View;
use crate::types::{self, Connection, Edge};
use wharf_web::cursor::{self, Position};

/// Which runs are wanted.
#[derive(Debug)]
pub(crate) struct RunsQuery {
    /// Only these worlds; all when absent.
    pub(crate) worlds: Option<Vec<WorldId>>,
    /// Only these of them.
    pub(crate) query: RunQuery,
    pub(crate) limit: usize,
    pub(crate) after: Option<Position>,
}

impl RunsQuery {
    fn query(&self, after: RunPlace, limit: usize) -> RunQuery {
        let only = self.worlds.as_ref().filter(|worlds| worlds.len() == 1);
        RunQuery {
            // Several worlds are sorted out in `fits`.
            world: only.map(|worlds| worlds[0].clone()),
            before: Some(after.stored),
            memory_before: Some(after.memory),
            limit,
            ..self.query.clone()
        }
    }

    fn fits(&self, session: &CallerSession, run: &RunSummary) -> bool {
        self.worlds.as_ref().is_none_or(|worlds| worlds.contains(&run.key.world))
            && session.caller.rights.check_tool(&run.tool).is_ok()
    }
}

/// The page that is wanted.
pub(crate) async fn page(
    session: &CallerSession,
    wanted: RunsQuery,
) -> Result<Connection<types::RunSummary>, Fault> {
    let mut page = RunPage { session, wanted, edges: Vec::new(), more: false };
    if page.wanted.worlds.as_ref().is_none_or(|worlds| !worlds.is_empty()) {
        let after = match &page.wanted.after {
            Some(Position::Name(place)) => {
                RunPlace::parse(place).ok_or_else(|| cursor::foreign(RUNS))?
            }
            Some(Position::Number(stored)) => RunPlace { stored: *stored, ..RunPlace::FIRST },
            None => RunPlace::FIRST,
        };
        page.fill(after).await?;
    }
    Ok(Connection::new(page.edges, page.more))
}

struct RunPage<'s> {
    session: &'s CallerSession,
    wanted: RunsQuery,
    edges: Vec<Edge<types::RunSummary>>,
    more: bool,
}

impl RunPage<'_> {
    /// Takes runs until the page is full or there are no more.
    async fn fill(&mut self, mut after: RunPlace) -> Result<(), Fault> {
        while self.edges.len() < self.wanted.limit {
            let count = self.wanted.limit - self.edges.len();
            let read =
                self.session.handle.run_lists().list(self.wanted.query(after, count)).await?;
            self.more = read.next.is_some();
            for (run, place) in read.runs.iter().zip(read.places) {
                after = place;
                if self.wanted.fits(self.session, run) {
                    let cursor = cursor::write(RUNS, &Position::Name(place.to_string()));
                    let node =
                        types::RunSummary::view(wharf_views::listed(&self.session.handle, run));
                    self.edges.push(Edge { cursor, node });
                }
            }
            if !self.more {
                break;
            }
        }
        Ok(())
    }
}
