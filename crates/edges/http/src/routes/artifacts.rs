//! Which files a world has, where they come from, and clearing away.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use wharf_domain::Caller;
use wharf_domain::scope::WorldPath;
use wharf_engine::FileQuery;
use wharf_vocab::limits::PATH_BYTES_MAX;
use wharf_vocab::{Fault, Verb};
use wharf_wire::rest_v1::{self as wire, ErrorBody, Page};

use super::to_its_end;
use crate::answer::{self, Answer, invalid};
use crate::app::App;
use crate::cursor;
use crate::page::List;
use crate::params::{Params, Segments};
use crate::{access, from_wire};

/// Lists the files in a world by path.
#[utoipa::path(
    get, path = "/v1/worlds/{world}/artifacts", tag = "files",
    operation_id = "list_artifacts",
    params(
        ("world" = String, Path, description = "The world's id."),
        ("prefix" = Option<String>, Query, description = "Only paths that begin with this text."),
        ("local" = Option<bool>, Query,
            description = "Whether to list local files of runs, below `/@run/`, too."),
        ("limit" = Option<u32>, Query, description = "Items on a page, 1 to 200."),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the previous page."),
    ),
    responses(
        (status = 200, description = "A page of files.", body = Page<wire::Artifact>),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    params: Params,
) -> Answer {
    let world = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Read, &world)?;
    let (prefix, locals) = (prefix(&params)?, params.is_on("local")?);
    let name = world.to_string();
    let start = prefix.clone().unwrap_or_default();
    let question = [name.as_bytes(), start.as_bytes(), &[u8::from(locals)]];
    let after = params.text("cursor").map(|text| cursor::read_asked(List::Files, &question, text));
    let query = FileQuery {
        prefix,
        locals,
        after: after.transpose()?.and_then(|path| WorldPath::try_from(path).ok()),
        ..FileQuery::new(world, params.limit()?)
    };
    let page = app.handle.files().list(&caller, query).await?;
    let next = page.next.map(String::from);
    let next = next.map(|path| cursor::write_asked(List::Files, &question, &path));
    let items = page.files.iter().map(wharf_views::file).collect();
    Ok(answer::json(StatusCode::OK, &Page { items, next_cursor: next }))
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

/// Shows which runs wrote and read a file, and from and into which files.
#[utoipa::path(
    get, path = "/v1/worlds/{world}/trace", tag = "files",
    operation_id = "trace_file",
    params(
        ("world" = String, Path, description = "The world's id."),
        ("path" = String, Query, description = "The file's path, which begins with `/`."),
    ),
    responses(
        (status = 200, description = "Who wrote and read the file.", body = wire::Trace),
        (status = 404, description = "There has never been such a file.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    params: Params,
) -> Answer {
    let world = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Read, &world)?;
    let path = from_wire::path_param(&params)?;
    let trace = app.handle.files().trace(&caller, &world, &path).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::trace(&world, &path, &trace)))
}

/// Shows how much a world stores.
#[utoipa::path(
    get, path = "/v1/worlds/{world}/usage", tag = "files",
    operation_id = "world_usage",
    params(("world" = String, Path, description = "The world's id.")),
    responses(
        (status = 200, description = "Files and bytes.", body = wire::Usage),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn usage(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
) -> Answer {
    let world = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Read, &world)?;
    let usage = app.handle.files().usage(&caller, &world).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::usage(&world, usage)))
}

/// Removes files past the world's retention, and leftovers of runs and uploads.
#[utoipa::path(
    post, path = "/v1/worlds/{world}/collect", tag = "files",
    operation_id = "collect_files",
    params(
        ("world" = String, Path, description = "The world's id."),
        ("dry" = Option<bool>, Query, description = "Report what would be removed, and remove nothing."),
    ),
    responses(
        (status = 200, description = "The files removed, or, with `dry`, those that would be.", body = wire::Collected),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn collect(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    params: Params,
) -> Answer {
    let world = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Admin, &world)?;
    let dry = params.is_on("dry")?;
    let (handle, at) = (app.handle.clone(), world.clone());
    let collected =
        to_its_end(async move { handle.files().collect(&caller, &at, dry).await }).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::collected(&world, dry, collected)))
}
