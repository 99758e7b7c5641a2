//! Files of a world: reading, putting, removing.
//!
//! What is in a file was chosen by whoever wrote it. No answer lets a browser take it for a page
//! of this server.

use axum::body::Body;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE, RANGE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use wharf_domain::Caller;
use wharf_domain::scope::WorldPath;
use wharf_engine::{FileRecord, ObjectBody};
use wharf_vocab::{B3, Code, Fault, Verb, WorldId, media};
use wharf_wire::rest_v1 as wire;

use super::table::{ApiCall, Route, delete, get, put, routes};
use super::to_its_end;
use crate::access::Need;
use crate::answer::{self, Answer, refusal};
use crate::app::App;
use crate::arriving::{self, Bounds};
use crate::from_wire::B3_HEADER;
use crate::params::{Params, Segments};
use crate::range::{self, RequestedRange};
use crate::{access, from_wire};

routes! {
    "files";
    /// Downloads the file that the parameter `path` names, or a range of it. `HEAD` returns the headers
    /// only.
    read_file_by_path => reads(by_path(get("/v1/worlds/{world}/files", Need::READ, read_by_path)));
    /// Uploads the file that the parameter `path` names, replacing one with the same path.
    put_file_by_path => puts(by_path(put("/v1/worlds/{world}/files", Need::RUN, put_by_path)));
    /// Removes the file that the parameter `path` names, unless a run in progress reads or writes it.
    remove_file_by_path =>
        removes(by_path(delete("/v1/worlds/{world}/files", Need::OPERATE, remove_by_path)));
    /// Downloads a file or a range of it. `HEAD` returns the headers only.
    read_file => reads(get("/v1/worlds/{world}/files/{*path}", Need::READ, read).described(
        "The file's path, with its slashes; `@run/path` for a local file. Clients that encode \
         slashes use `?path=`.",
    ));
    /// Uploads a file, replacing one with the same path. It becomes visible once all of it is stored.
    put_file => puts(put("/v1/worlds/{world}/files/{*path}", Need::RUN, put_in_place));
    /// Removes a file, unless a run in progress reads or writes it.
    remove_file => removes(delete("/v1/worlds/{world}/files/{*path}", Need::OPERATE, remove));
}

fn by_path(route: Route) -> Route {
    let route = route.query::<String>("path", "The file's path, such as `/in/doc.txt`.");
    route.required().common_errors()
}

fn reads(route: Route) -> Route {
    let tag = "An `ETag`. If the file no longer matches it, the whole file is sent.";
    let known = "An `ETag` that the client has; if it still matches, nothing is sent.";
    let file = "The file; `ETag` and `Wharf-B3` are its BLAKE3 hash.";
    route
        .header::<String>("Range", "One range of bytes; several at once give the whole file.")
        .header::<String>("If-Range", tag)
        .header::<String>("If-None-Match", known)
        .sends(200, "application/octet-stream", file)
        .sends(206, "application/octet-stream", "The requested range.")
        .says(304, "The file has not changed.")
        .missing("file")
        .fails(416, "The file has no such range.")
        .fails(422, "The path is not valid.")
}

fn puts(route: Route) -> Route {
    let hash = "The BLAKE3 hash of the file. Content with another hash is refused.";
    route
        .header::<String>("Wharf-B3", hash)
        .takes_bytes()
        .gives::<wire::Artifact>(201, "The file was written.")
        .missing("world")
        .fails(408, "The upload stalled for too long.")
        .fails(413, "The file is too large.")
        .fails(422, "The hash does not match, or the path is not valid.")
}

fn removes(route: Route) -> Route {
    route
        .says(204, "The file was removed.")
        .missing("file")
        .fails(409, "A run in progress uses it.")
        .fails(422, "The path is not valid.")
}

/// How often a read is begun again when the file is replaced in between.
const LOOKS_MAX: usize = 3;

async fn read(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Answer {
    let world = access::world_in(&caller, Verb::Read, &segments)?;
    let file = (world, from_wire::path_in(&uri)?);
    sent(&app, &caller, file, (&method, &headers)).await
}

async fn read_by_path(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    (method, headers): (Method, HeaderMap),
) -> Answer {
    let world = access::world_in(&caller, Verb::Read, &segments)?;
    let file = (world, from_wire::path_param(&params)?);
    sent(&app, &caller, file, (&method, &headers)).await
}

/// Sends a file, or the part of it that is wanted.
pub(super) async fn sent(
    app: &App,
    caller: &Caller,
    (world, path): (WorldId, WorldPath),
    (method, headers): (&Method, &HeaderMap),
) -> Answer {
    let record = app.handle.files().get(caller, &world, &path).await?;
    let mut known = FileVersion::of_record(&record);
    for _ in 0..LOOKS_MAX {
        if known.is_known_to(headers) {
            return Ok(known.unchanged());
        }
        let range = match known.wanted(headers) {
            RequestedRange::Whole => None,
            RequestedRange::Part(range) => Some(range),
            RequestedRange::Beyond => return Ok(known.beyond()),
        };
        if *method == Method::HEAD {
            return Ok(known.answer(range, Body::empty()));
        }
        match app.handle.files().read(caller, &world, &path, range.clone()).await {
            Ok(body) if known.is(&body) => {
                return Ok(known.answer(range, Body::from_stream(body.stream)));
            }
            // The file was replaced in between: the answer must speak of what is sent.
            Ok(body) => known = FileVersion::of_body(&body),
            Err(fault) if fault.is(Code::RequestRangeInvalid) => {
                known =
                    FileVersion::of_record(&app.handle.files().get(caller, &world, &path).await?);
            }
            Err(fault) => return Err(fault.into()),
        }
    }
    Err(restless().into())
}

/// What is known of the file that is sent.
struct FileVersion {
    bytes: u64,
    b3: Option<B3>,
    media_type: String,
}

impl FileVersion {
    fn of_record(record: &FileRecord) -> Self {
        let file = &record.artifact;
        Self { bytes: file.bytes, b3: file.b3.clone(), media_type: file.media_type.clone() }
    }

    fn of_body(body: &ObjectBody) -> Self {
        let info = &body.info;
        Self { bytes: info.bytes, b3: info.b3.clone(), media_type: info.media_type.clone() }
    }

    /// Whether this is the file that was opened, as far as can be told.
    fn is(&self, body: &ObjectBody) -> bool {
        let same_hash = match (&self.b3, &body.info.b3) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        self.bytes == body.info.bytes && same_hash
    }

    fn etag(&self) -> Option<String> {
        self.b3.as_ref().map(|b3| format!("\"{b3}\""))
    }

    /// Whether whoever asks has this very file already.
    fn is_known_to(&self, headers: &HeaderMap) -> bool {
        let Some(etag) = self.etag() else { return false };
        let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let mut tags = values.flat_map(|value| value.split(',')).map(str::trim);
        tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
    }

    /// Which part is wanted; all of it if whoever asks has a part of another version.
    fn wanted(&self, headers: &HeaderMap) -> RequestedRange {
        let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(condition) = headers.get(IF_RANGE)
            && self.etag().is_none_or(|etag| condition.as_bytes() != etag.as_bytes())
        {
            return RequestedRange::Whole;
        }
        range::wanted(text(RANGE), self.bytes)
    }

    fn answer(&self, range: Option<std::ops::Range<u64>>, body: Body) -> Response {
        let (status, length) = match &range {
            Some(range) => (StatusCode::PARTIAL_CONTENT, range.end - range.start),
            None => (StatusCode::OK, self.bytes),
        };
        let mut response = (status, body).into_response();
        self.describe(response.headers_mut());
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        let kind = HeaderValue::from_str(&self.media_type);
        let kind = kind.unwrap_or(HeaderValue::from_static(media::UNKNOWN));
        headers.insert(CONTENT_TYPE, kind);
        if let Some(range) = range {
            let shown = format!("bytes {}-{}/{}", range.start, range.end - 1, self.bytes);
            insert(headers, CONTENT_RANGE, &shown);
        }
        response
    }

    fn unchanged(&self) -> Response {
        let mut response = StatusCode::NOT_MODIFIED.into_response();
        self.describe(response.headers_mut());
        response
    }

    fn beyond(&self) -> Response {
        let message = format!("The file has {} bytes, and none where you asked.", self.bytes);
        let fault = Fault::new(Code::RequestRangeInvalid, message).with("bytes", self.bytes);
        let mut response = refusal(&fault);
        insert(response.headers_mut(), CONTENT_RANGE, &format!("bytes */{}", self.bytes));
        response
    }

    /// Says which file it is, and that no browser is to show it as a page.
    fn describe(&self, headers: &mut HeaderMap) {
        if let (Some(etag), Some(b3)) = (self.etag(), &self.b3) {
            insert(headers, ETAG, &etag);
            insert(headers, HeaderName::from_static(B3_HEADER), b3.as_str());
        }
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    }
}

async fn put_in_place(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    (uri, headers, body): (Uri, HeaderMap, Body),
) -> Answer {
    let world = access::world_in(&caller, Verb::Run, &segments)?;
    let file = (world, from_wire::path_in(&uri)?);
    keep(&app, caller, file, (&headers, body)).await
}

async fn put_by_path(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
    (headers, body): (HeaderMap, Body),
) -> Answer {
    let world = access::world_in(&caller, Verb::Run, &segments)?;
    let file = (world, from_wire::path_param(&params)?);
    keep(&app, caller, file, (&headers, body)).await
}

/// Keeps a file that is sent.
async fn keep(
    app: &App,
    caller: Caller,
    (world, path): (WorldId, WorldPath),
    (headers, body): (&HeaderMap, Body),
) -> Answer {
    from_wire::unconditional(headers)?;
    let limits = &app.options.limits;
    let bounds = Bounds { bytes_max: limits.file_bytes_max, silence: limits.file_silence };
    let bytes = arriving::length(headers, bounds)?;
    let new = from_wire::new_file(world, path, headers, bytes)?;
    let (pieces, broken) = arriving::arriving(body, bounds);
    let handle = app.handle.clone();
    // A lost connection ends the body, and with it the writing; once all has arrived, the file is
    // put in its place whether or not anybody waits for the answer.
    let file = to_its_end(async move { handle.files().put(&caller, new, pieces).await });
    let file = file.await.map_err(|fault| broken.or(fault))?;
    Ok(answer::json(StatusCode::CREATED, &wharf_views::file(&file)))
}

async fn remove(ApiCall { app, caller }: ApiCall, segments: Segments, uri: Uri) -> Answer {
    let world = access::world_in(&caller, Verb::Operate, &segments)?;
    let file = (world, from_wire::path_in(&uri)?);
    drop_file(&app, caller, file).await
}

async fn remove_by_path(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    params: Params,
) -> Answer {
    let world = access::world_in(&caller, Verb::Operate, &segments)?;
    let file = (world, from_wire::path_param(&params)?);
    drop_file(&app, caller, file).await
}

async fn drop_file(app: &App, caller: Caller, (world, path): (WorldId, WorldPath)) -> Answer {
    let handle = app.handle.clone();
    to_its_end(async move { handle.files().remove(&caller, &world, &path).await }).await?;
    answer::done()
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn restless() -> Fault {
    let message = "The file was replaced again and again while it was opened; try again.";
    Fault::new(Code::CoreBusy, message)
}
