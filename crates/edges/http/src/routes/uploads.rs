//! Files that arrive in parts, so that a broken connection costs one part and not all.

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use wharf_domain::Caller;
use wharf_engine::UploadRef;
use wharf_vocab::Verb;
use wharf_vocab::limits::UPLOAD_PART_BYTES_MAX;
use wharf_wire::rest_v1::{self as wire, BeginUpload, CompleteUpload};

use super::table::{ApiCall, delete, get, post, put, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer, FaultResponse, invalid};
use crate::arriving::{self, Bounds};
use crate::body::{JsonBody, OptionalJsonBody};
use crate::params::{Params, Segments};
use crate::{access, from_wire};

routes! {
    "files";
    /// Starts an upload in parts.
    begin_upload => post("/v1/worlds/{world}/uploads", Need::RUN, begin)
        .takes::<BeginUpload>()
        .gives::<wire::Upload>(201, "The upload was started.")
        .missing("world");
    /// Shows which parts of an upload have arrived.
    show_upload => get("/v1/worlds/{world}/uploads/{upload_id}", Need::RUN, show)
        .query::<String>("path", "The path the file will have.").required()
        .gives::<wire::Upload>(200, "The upload.")
        .missing("upload");
    /// Discards an upload with all its parts.
    abort_upload => delete("/v1/worlds/{world}/uploads/{upload_id}", Need::RUN, abort)
        .query::<String>("path", "The path the file would have had.").required()
        .says(204, "The upload was discarded.")
        .missing("upload");
    /// Uploads one part. A part with the same number is replaced.
    put_part => put("/v1/worlds/{world}/uploads/{upload_id}/parts/{part}", Need::RUN, put_part)
        .query::<String>("path", "The path the file will have.").required()
        .header::<u64>("Content-Length", "How many bytes the part has.").required()
        .takes_bytes()
        .gives::<wire::UploadPart>(200, "The part was stored.")
        .missing("upload")
        .fails(408, "The upload stalled for too long.")
        .fails(413, "The part is too large.");
    /// Completes an upload: the parts become a file.
    complete_upload => post("/v1/worlds/{world}/uploads/{upload_id}/complete", Need::RUN, complete)
        .query::<String>("path", "The path the file will have.").required()
        .may_take::<CompleteUpload>()
        .gives::<wire::Artifact>(201, "The file was written.")
        .missing("upload")
        .fails(422, "The size or hash does not match.");
}

async fn begin(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<BeginUpload>,
) -> Answer {
    let world = access::world_in(&caller, Verb::Run, &segments)?;
    let new = from_wire::begin_upload(world.clone(), request)?;
    let upload = app.handle.uploads().begin_upload(&caller, new).await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::upload(&world, &upload)))
}

async fn show(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let named = named(&caller, &segments, &params)?;
    let upload = app.handle.uploads().upload(&caller, &named).await?;
    answer::ok(&wharf_views::upload(&named.world, &upload))
}

async fn put_part(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    (headers, body): (HeaderMap, Body),
) -> Answer {
    let upload = named(&caller, &segments, &params)?;
    let number = from_wire::part_number(segments.get("part"))?;
    from_wire::unconditional(&headers)?;
    let limits = &app.options.limits;
    let bytes_max = UPLOAD_PART_BYTES_MAX.min(limits.file_bytes_max);
    let bounds = Bounds { bytes_max, silence: limits.file_silence };
    let Some(bytes) = arriving::length(&headers, bounds)? else {
        let message = "Say how many bytes the part has with the header Content-Length.";
        return Err(invalid("Content-Length", message).into());
    };
    let (pieces, broken) = arriving::arriving(body, bounds);
    let handle = app.handle.clone();
    let part = to_its_end(async move {
        handle.uploads().put_part(&caller, &upload, number, bytes, pieces).await
    });
    let part = part.await.map_err(|fault| broken.or(fault))?;
    answer::ok(&wharf_views::upload_part(&part))
}

async fn complete(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    OptionalJsonBody(request): OptionalJsonBody<CompleteUpload>,
) -> Answer {
    let UploadRef { world, path, id } = named(&caller, &segments, &params)?;
    let new = from_wire::complete_upload(world, path, request.unwrap_or_default())?;
    let handle = app.handle.clone();
    let file = to_its_end(async move { handle.uploads().complete_upload(&caller, new, &id).await })
        .await?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::file(&file)))
}

async fn abort(ApiCall { app, caller }: ApiCall, segments: Segments, params: Params) -> Answer {
    let upload = named(&caller, &segments, &params)?;
    app.handle.uploads().abort_upload(&caller, &upload).await?;
    answer::done()
}

/// The upload that a request names, once it is known that its world is within reach.
fn named(
    caller: &Caller,
    segments: &Segments,
    params: &Params,
) -> Result<UploadRef, FaultResponse> {
    let world = access::world_in(caller, Verb::Run, segments)?;
    let path = from_wire::path_param(params)?;
    let id = from_wire::upload_id(segments.get("upload_id"))?.to_owned();
    Ok(UploadRef { world, path, id })
}
