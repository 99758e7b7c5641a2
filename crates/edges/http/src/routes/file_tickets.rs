//! Addresses of single files, which a page can show and download.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName,
    HeaderValue, REFERRER_POLICY,
};
use axum::http::{HeaderMap, Method, StatusCode};
use wharf_vocab::{Code, DateTime, Fault, Verb, media};
use wharf_wire::rest_v1::{CreateFileTicket, FileTicket};

use super::files::sent;
use super::table::{ApiCall, get, post, routes};
use crate::access::{self, Need};
use crate::answer::{self, Answer};
use crate::app::App;
use crate::body::JsonBody;
use crate::file_tickets::{IssuedFile, media_type};
use crate::from_wire;
use crate::params::{Params, Segments};

routes! {
    "files";
    /// Creates an address of one file in its present version. It is good for five minutes and needs no
    /// token, so that a page can show a picture or download the file.
    create_file_ticket => post("/v1/worlds/{world}/tickets", Need::READ, create)
        .takes::<CreateFileTicket>()
        .gives::<FileTicket>(201, "The address.")
        .missing("file")
        .fails(422, "The path is not valid.")
        .fails(503, "There are too many such addresses.");
    /// Downloads the file of an address or a range of it. Pictures, sound and film are sent with their
    /// type, all else as bytes.
    read_file_ticket => get("/v1/worlds/{world}/tickets/{ticket}", Need::Nothing, read)
        .header::<String>("Range", "One range of bytes; several at once give the whole file.")
        .query::<String>("download", "The name to save it under; then it is never shown.")
        .sends(200, "application/octet-stream", "The file.")
        .sends(206, "application/octet-stream", "The requested range.")
        .fails(401, "The address is not good any more.")
        .missing("file")
        .fails(409, "Another version is in its place.")
        .fails(416, "The file has no such range.");
}

/// Longest name that a file is saved under.
const NAME_CHARS_MAX: usize = 200;

async fn create(
    ApiCall { app, caller }: ApiCall,
    segments: Segments,
    JsonBody(request): JsonBody<CreateFileTicket>,
) -> Answer {
    let world = access::world_in(&caller, Verb::Read, &segments)?;
    let path = from_wire::path_text(&request.path)?;
    let record = app.handle.files().get(&caller, &world, &path).await?;
    let file = &record.artifact;
    let (bytes, b3, media_type) = (file.bytes, file.b3.clone(), media_type(&file.media_type));
    let shown = b3.as_ref().map(ToString::to_string);
    let issued = IssuedFile { caller, world: world.clone(), path, bytes, b3, media_type };
    let (ticket, until) = app.file_tickets.make(issued, app.handle.now())?;
    let ticket = FileTicket {
        url: format!("/v1/worlds/{world}/tickets/{ticket}"),
        expires_at: DateTime(until),
        media_type: media_type.to_owned(),
        bytes,
        b3: shown,
    };
    Ok(answer::json(StatusCode::CREATED, &ticket))
}

async fn read(
    State(app): State<Arc<App>>,
    segments: Segments,
    params: Params,
    (method, headers): (Method, HeaderMap),
) -> Answer {
    from_own_page(&headers)?;
    let world = wharf_views::id("world", segments.get("world"))?;
    let found = app.file_tickets.find(segments.get("ticket"), &world, app.handle.now());
    let file = found.ok_or_else(not_good)?;
    let current = app.handle.trust().authorise(&file.caller, Verb::Read, &world);
    current.map_err(|_| not_good())?;
    let there = app.handle.files().get(&file.caller, &world, &file.path).await?.artifact;
    if there.bytes != file.bytes || there.b3 != file.b3 {
        return Err(replaced().into());
    }
    let place = (world, file.path.clone());
    let mut response = sent(&app, &file.caller, place, (&method, &headers)).await?;
    // The file may have been replaced just now.
    let tag = response.headers().get(ETAG).map(|tag| tag.as_bytes().to_vec());
    let wanted = file.b3.as_ref().map(|b3| format!("\"{b3}\"").into_bytes());
    if response.status().is_success() && tag != wanted {
        return Err(replaced().into());
    }
    describe(response.headers_mut(), &file, params.text("download"));
    Ok(response)
}

/// Says how the file is to be shown: what can act is only ever saved.
fn describe(headers: &mut HeaderMap, file: &IssuedFile, download: Option<&str>) {
    let is_shown = file.media_type != media::UNKNOWN && download.is_none();
    let disposition = match download {
        _ if is_shown => HeaderValue::from_static("inline"),
        Some(name) => {
            HeaderValue::from_str(&format!("attachment; filename=\"{}\"", saved_as(name)))
                .unwrap_or(HeaderValue::from_static("attachment"))
        }
        None => HeaderValue::from_static("attachment"),
    };
    if headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type));
    }
    let mut say = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
    say(CACHE_CONTROL, "private, no-store");
    say(CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'; frame-ancestors 'none'");
    say(REFERRER_POLICY, "no-referrer");
    say(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    headers.insert(CONTENT_DISPOSITION, disposition);
}

/// A name as it can stand in a header and on every disk.
fn saved_as(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_. ()+@".contains(c);
    let name = name.chars().take(NAME_CHARS_MAX);
    let name: String = name.map(|c| if fits(c) { c } else { '_' }).collect();
    name.trim_start_matches('.').to_owned()
}

/// Other pages do not show the files of a world, even if they know the address.
fn from_own_page(headers: &HeaderMap) -> Result<(), Fault> {
    let mut sites = headers.get_all("sec-fetch-site").iter();
    match sites.all(|site| site == "same-origin" || site == "none") {
        true => Ok(()),
        false => {
            let message = "Pages of another origin may not read this.";
            Err(Fault::new(Code::RequestOriginForbidden, message))
        }
    }
}

fn not_good() -> Fault {
    let message = "This address is not good any more; ask for another one.";
    Fault::new(Code::AuthInvalid, message)
}

fn replaced() -> Fault {
    let message = "Another version is in the place of this file; ask for its address again.";
    Fault::new(Code::ArtifactChanged, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c004_a_name_breaks_out_of_no_header() {
        assert_eq!(saved_as("a b-1.png"), "a b-1.png");
        assert_eq!(saved_as("../x\";\r\ny=\u{202e}"), "_x____y__");
        assert_eq!(saved_as(&"x".repeat(1_000)).len(), NAME_CHARS_MAX);
    }
}
