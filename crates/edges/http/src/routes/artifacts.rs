//! Which files a world has, where they come from, and clearing away.

use wharf_domain::scope::WorldPath;
use wharf_engine::FileQuery;
use wharf_vocab::limits::PATH_BYTES_MAX;
use wharf_vocab::{Fault, Verb};
use wharf_wire::rest_v1 as wire;

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
        .query::<String>("delimiter",
            "With `/`: only what lies directly below the prefix, files, and folders with their sizes.")
        .query::<u32>("limit", "Items on a page, 1 to 200.")
        .query::<String>("cursor", "`next_cursor` of the previous page.")
        .gives::<wire::ArtifactPage>(200, "A page of files, and of folders with `delimiter`.")
        .missing("world");
    /// Shows which runs wrote and read a file, and from and into which files.
    trace_file => get("/v1/worlds/{world}/trace", Need::READ, trace)
        .query::<String>("path", "The file's path, which begins with `/`.").required()
        .query::<u32>("depth", "How many runs away on each side is looked, 1 to 5; 1 when absent.")
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
    let delimited = params.parsed("delimiter", "`/`", |text| match text {
        "/" => Ok(true),
        _ => Err(()),
    })?;
    let delimited = delimited.unwrap_or(false);
    let question =
        [name.as_bytes(), start.as_bytes(), &[u8::from(locals) + 2 * u8::from(delimited)]];
    let after = params.text("cursor").map(|text| cursor::read_asked(page::FILES, &question, text));
    let query = FileQuery {
        prefix,
        locals,
        after: after.transpose()?.and_then(|path| WorldPath::try_from(path).ok()),
        ..FileQuery::new(world, params.limit()?)
    };
    let (files, folders, next) = if delimited {
        let page = wharf_views::folder_page(&app.handle, &caller, query).await?;
        (page.files, Some(page.folders), page.next)
    } else {
        let page = app.handle.files().list(&caller, query).await?;
        (page.files, None, page.next)
    };
    let next = next.map(String::from);
    let next_cursor = next.map(|path| cursor::write_asked(page::FILES, &question, &path));
    let items = files.iter().map(wharf_views::file).collect();
    answer::ok(&wire::ArtifactPage { items, folders, next_cursor })
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
    let depth = wharf_views::trace_depth(params.number("depth")?)?;
    let trace = app.handle.files().trace(&caller, &world, &path, depth).await?;
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
