//! Queries about files: which there are, and where each comes from.

use async_graphql::{Context, Object};
use wharf_engine::FileQuery;
use wharf_vocab::{Fault, Verb};
use wharf_web::cursor;

use crate::access::CallerSession;
use crate::input;
use crate::types::page::{self, PageInfo};
use crate::types::view::View;
use crate::types::{Artifact, Artifacts, Edge, Trace, limit, list_cost};

/// What there is to see of files.
#[derive(Debug, Default)]
pub(crate) struct FileQueries;

#[Object]
impl FileQueries {
    /// Files of a world that are there now, by path.
    #[graphql(complexity = "list_cost(first, child_complexity)")]
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of the field")]
    async fn artifacts(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The world; `default` when absent.")] world: Option<String>,
        #[graphql(desc = "Only paths that begin with this text.")] prefix: Option<String>,
        #[graphql(desc = "Whether local files of runs, below `/@run/`, are listed, too.", default)]
        local: bool,
        #[graphql(
            desc = "With `/`: only what lies directly below the prefix, files, and folders with \
                    their sizes."
        )]
        delimiter: Option<String>,
        #[graphql(desc = "Items on a page, 1 to 200; 50 when absent.")] first: Option<i32>,
        #[graphql(desc = "Only what comes behind this cursor.")] after: Option<String>,
    ) -> Result<Artifacts, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let world = world.as_deref().unwrap_or(wharf_views::DEFAULT_WORLD);
        let world = session.world_named(Verb::Read, world)?;
        if delimiter.as_deref().is_some_and(|it| it != "/") {
            return Err(Fault::invalid("delimiter", "The argument `delimiter` must be `/`."));
        }
        let mut query = FileQuery::new(world, limit(first)?);
        query.prefix = prefix.map(input::prefix).transpose()?;
        query.locals = local;
        // A cursor is good only in the same world and for the same files.
        let prefix = query.prefix.clone().unwrap_or_default();
        let shape = [u8::from(local) + 2 * u8::from(delimiter.is_some())];
        let world = query.world.to_string();
        let asked = [world.as_bytes(), prefix.as_bytes(), &shape];
        let after = after.map(|after| cursor::read_asked(page::FILES, &asked, &after));
        query.after = after.transpose()?.map(|name| input::path(&name)).transpose()?;
        let (handle, caller) = (&session.handle, &session.caller);
        let (files, folders, next) = match delimiter {
            Some(_) => {
                let page = wharf_views::folder_page(handle, caller, query).await?;
                (page.files, Some(View::view(page.folders)), page.next)
            }
            None => {
                let page = handle.files().list(caller, query).await?;
                (page.files, None, page.next)
            }
        };
        let cursor = |path: &str| cursor::write_asked(page::FILES, &asked, path);
        let edge = |record: &wharf_engine::FileRecord| Edge {
            cursor: cursor(record.artifact.path.as_str()),
            node: Artifact::view(wharf_views::file(record)),
        };
        let edges: Vec<_> = files.iter().map(edge).collect();
        // Where a page ends with a folder, the next one begins behind all that lies in it.
        let last = next.as_ref().map(|path| cursor(path.as_str()));
        let end_cursor = last.or_else(|| edges.last().map(|edge| edge.cursor.clone()));
        let page_info = PageInfo { has_next_page: next.is_some(), end_cursor };
        Ok(Artifacts { edges, folders, page_info })
    }

    /// Where a file comes from and where it went.
    #[graphql(complexity = "100 + 20 * child_complexity")]
    async fn trace(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "The file's path.")] path: String,
        #[graphql(desc = "The world; `default` when absent.")] world: Option<String>,
        #[graphql(desc = "How many runs away on each side is looked, 1 to 5; 1 when absent.")]
        depth: Option<u32>,
    ) -> Result<Trace, Fault> {
        let session = CallerSession::with(ctx, Verb::Read)?;
        let world = world.as_deref().unwrap_or(wharf_views::DEFAULT_WORLD);
        let world = session.world_named(Verb::Read, world)?;
        let path = input::path(&path)?;
        let depth = wharf_views::trace_depth(depth.map(u64::from))?;
        let trace = session.handle.files().trace(&session.caller, &world, &path, depth).await?;
        Ok(Trace::view(wharf_views::trace(&world, &path, &trace)))
    }
}
