//! Files that arrive in parts, so that a broken connection costs one part and not all.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use wharf_domain::Caller;
use wharf_domain::scope::WorldPath;
use wharf_vocab::limits::UPLOAD_PART_BYTES_MAX;
use wharf_vocab::{Verb, WorldId};
use wharf_wire::rest_v1::{self as wire, BeginUpload, CompleteUpload, ErrorBody};

use super::to_its_end;
use crate::answer::{self, Answer, Refused, invalid};
use crate::app::App;
use crate::arriving::{self, Bounds};
use crate::body::{JsonBody, OptionalJsonBody};
use crate::params::{Params, Segments};
use crate::{access, from_wire};

/// Starts an upload in parts.
#[utoipa::path(
    post, path = "/v1/worlds/{world}/uploads", tag = "files",
    operation_id = "begin_upload",
    params(("world" = String, Path, description = "The world's id.")),
    request_body = BeginUpload,
    responses(
        (status = 201, description = "The upload was started.", body = wire::Upload),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn begin(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    JsonBody(request): JsonBody<BeginUpload>,
) -> Answer {
    let world = from_wire::world_id(segments.get("world"))?;
    access::world(&caller, Verb::Run, &world)?;
    let new = from_wire::begin_upload(world.clone(), request)?;
    let upload = app.handle.files().begin_upload(&caller, new).await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::upload(&world, &upload)))
}

/// Shows which parts of an upload have arrived.
#[utoipa::path(
    get, path = "/v1/worlds/{world}/uploads/{upload_id}", tag = "files",
    operation_id = "show_upload",
    params(
        ("world" = String, Path, description = "The world's id."),
        ("upload_id" = String, Path, description = "The upload's id."),
        ("path" = String, Query, description = "The path the file will have."),
    ),
    responses(
        (status = 200, description = "The upload.", body = wire::Upload),
        (status = 404, description = "There is no such upload.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn show(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    params: Params,
) -> Answer {
    let named = Named::of(&caller, &segments, &params)?;
    let Named { world, path, id } = &named;
    let upload = app.handle.files().upload(&caller, world, path, id).await?;
    Ok(answer::json(StatusCode::OK, &wharf_views::upload(world, &upload)))
}

/// Uploads one part. A part with the same number is replaced.
#[utoipa::path(
    put, path = "/v1/worlds/{world}/uploads/{upload_id}/parts/{part}", tag = "files",
    operation_id = "put_part",
    params(
        ("world" = String, Path, description = "The world's id."),
        ("upload_id" = String, Path, description = "The upload's id."),
        ("part" = u32, Path, description = "The part's number, 1 to 10000."),
        ("path" = String, Query, description = "The path the file will have."),
        ("Content-Length" = u64, Header, description = "How many bytes the part has."),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, description = "The part was stored.", body = wire::UploadPart),
        (status = 404, description = "There is no such upload.", body = ErrorBody),
        (status = 408, description = "The upload stalled for too long.", body = ErrorBody),
        (status = 413, description = "The part is too large.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn put_part(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    params: Params,
    (headers, body): (HeaderMap, Body),
) -> Answer {
    let named = Named::of(&caller, &segments, &params)?;
    let number = from_wire::part_number(segments.get("part"))?;
    from_wire::unconditional(&headers)?;
    let limits = &app.limits;
    let bytes_max = UPLOAD_PART_BYTES_MAX.min(limits.file_bytes_max);
    let bounds = Bounds { bytes_max, silence: limits.file_silence };
    let Some(bytes) = arriving::length(&headers, bounds)? else {
        let message = "Say how many bytes the part has with the header Content-Length.";
        return Err(invalid("Content-Length", message).into());
    };
    let (pieces, broken) = arriving::arriving(body, bounds);
    let handle = app.handle.clone();
    let part = to_its_end(async move {
        let Named { world, path, id } = &named;
        let upload = (world, path, id.as_str());
        handle.files().put_part(&caller, upload, (number, bytes), pieces).await
    });
    let part = part.await.map_err(|fault| broken.or(fault))?;
    Ok(answer::json(StatusCode::OK, &wharf_views::upload_part(&part)))
}

/// Completes an upload: the parts become a file.
#[utoipa::path(
    post, path = "/v1/worlds/{world}/uploads/{upload_id}/complete", tag = "files",
    operation_id = "complete_upload",
    params(
        ("world" = String, Path, description = "The world's id."),
        ("upload_id" = String, Path, description = "The upload's id."),
        ("path" = String, Query, description = "The path the file will have."),
    ),
    request_body = Option<CompleteUpload>,
    responses(
        (status = 201, description = "The file was written.", body = wire::Artifact),
        (status = 404, description = "There is no such upload.", body = ErrorBody),
        (status = 422, description = "The size or hash does not match.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn complete(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    params: Params,
    OptionalJsonBody(request): OptionalJsonBody<CompleteUpload>,
) -> Answer {
    let Named { world, path, id } = Named::of(&caller, &segments, &params)?;
    let new = from_wire::complete_upload(world, path, request.unwrap_or_default())?;
    let handle = app.handle.clone();
    let file =
        to_its_end(async move { handle.files().complete_upload(&caller, new, &id).await }).await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::file(&file)))
}

/// Discards an upload with all its parts.
#[utoipa::path(
    delete, path = "/v1/worlds/{world}/uploads/{upload_id}", tag = "files",
    operation_id = "abort_upload",
    params(
        ("world" = String, Path, description = "The world's id."),
        ("upload_id" = String, Path, description = "The upload's id."),
        ("path" = String, Query, description = "The path the file would have had."),
    ),
    responses(
        (status = 204, description = "The upload was discarded."),
        (status = 404, description = "There is no such upload.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn abort(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    segments: Segments,
    params: Params,
) -> Answer {
    let Named { world, path, id } = Named::of(&caller, &segments, &params)?;
    app.handle.files().abort_upload(&caller, &world, &path, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The upload that a request names, once it is known that its world is within reach.
struct Named {
    world: WorldId,
    path: WorldPath,
    id: String,
}

impl Named {
    fn of(caller: &Caller, segments: &Segments, params: &Params) -> Result<Self, Refused> {
        let world = from_wire::world_id(segments.get("world"))?;
        access::world(caller, Verb::Run, &world)?;
        let path = from_wire::path_param(params)?;
        let id = from_wire::upload_id(segments.get("upload_id"))?.to_owned();
        Ok(Self { world, path, id })
    }
}
