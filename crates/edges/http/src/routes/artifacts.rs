//! Which files a world has, where they come from, and clearing away.

use wharf_domain::scope::WorldPath;
use wharf_engine::FileQuery;
use wharf_vocab::limits::PATH_BYTES_MAX;
use wharf_vocab::{Fault, Verb};
use wharf_wire::rest_v1::{self as wire, Page};

use super::table::{ApiCall, get, post, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer, invalid};
use crate::cursor;
use crate::params::{Params, Segments};
use crate::{access, from_wire, page};

routes! {
    "files";
    /// Lists the files in a world by path.
    list_artifacts => get("/v1/worlds/{world}/artifacts", Need::READ, list)
        .query::<String>("prefix", "Only paths that begin with this text.")
        .query::<bool>("local", "Whether to list local files of runs, below `/@run/`, too.")
        .page::<wire::Artifact>("A page of files.")
        .missing("world");
    /// Shows which runs wrote and read a file, and from and into which files.
    trace_file => get("/v1/worlds/{world}/trace", Need::READ, trace)
        .query::<String>("path", "The file's path, which begins with `/`.").required()
        .gives::<wire::Trace>(200, "Who wrote and read the file.")
        .fails(404, "There has never been such a file.");
    /// Shows how much a world stores.
    world_usage => get("/v1/worlds/{world}/usage", Need::READ, usage)
        .gives::<wire::Usage>(200, "Files and bytes.")
        .missing("world");
    /// Removes files past the world's retention, and leftovers of runs and uploads.
    collect_files => post("/v1/worlds/{world}/collect", Need::ADMIN, collect)
        .query::<bool>("dry", "Report what would be removed, and remove nothing.")
        .gives::<wire::Collected>(200, "The files removed, or, with `dry`, those that would be.")
        .missing("world");
}

async fn list(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let world = access::world_in(&caller, Verb::Read, &segments)?;
    let (prefix, locals) = (prefix(&params)?, params.is_on("local")?);
    let name = world.to_string();
    let start = prefix.clone().unwrap_or_default();
    let question = [name.as_bytes(), start.as_bytes(), &[u8::from(locals)]];
    let after = params.text("cursor").map(|text| cursor::read_asked(page::FILES, &question, text));
    let query = FileQuery {
        prefix,
        locals,
        after: after.transpose()?.and_then(|path| WorldPath::try_from(path).ok()),
        ..FileQuery::new(world, params.limit()?)
    };
    let page = app.handle.files().list(&caller, query).await?;
    let next = page.next.map(String::from);
    let next = next.map(|path| cursor::write_asked(page::FILES, &question, &path));
    let items = page.files.iter().map(wharf_views::file).collect();
    answer::ok(&Page { items, next_cursor: next })
}

fn prefix(params: &Params) -> Result<Option<String>, Fault> {
    let Some(prefix) = params.text("prefix") else { return Ok(None) };
    if prefix.starts_with('/') && prefix.len() <= PATH_BYTES_MAX {
        return Ok(Some(prefix.to_owned()));
    }
    let message = format!(
        "The parameter `prefix` must begin with / and may have {PATH_BYTES_MAX} bytes at most."
    );
    Err(invalid("prefix", message))
}

async fn trace(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let world = access::world_in(&caller, Verb::Read, &segments)?;
    let path = from_wire::path_param(&params)?;
    let trace = app.handle.files().trace(&caller, &world, &path).await?;
    answer::ok(&wharf_views::trace(&world, &path, &trace))
}

async fn usage(ApiCall { app, caller }: ApiCall, segments: Segments) -> Answer {
    let world = access::world_in(&caller, Verb::Read, &segments)?;
    let usage = app.handle.files().usage(&caller, &world).await?;
    answer::ok(&wharf_views::usage(&world, usage))
}

async fn collect(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let world = access::world_in(&caller, Verb::Admin, &segments)?;
    let dry = params.is_on("dry")?;
    let (handle, at) = (app.handle.clone(), world.clone());
    let collected =
        to_its_end(async move { handle.files().collect(&caller, &at, dry).await }).await?;
    answer::ok(&wharf_views::collected(&world, dry, collected))
}
