//! Requests about files: paths, kinds of data, hashes, uploads.

use axum::http::header::{
    CONTENT_RANGE, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE,
};
use axum::http::{HeaderMap, Uri};
use wharf_domain::scope::{PathError, WorldPath};
use wharf_engine::NewFile;
use wharf_vocab::limits::UPLOAD_PARTS_MAX;
use wharf_vocab::{B3, Code, Fault, WorldId};
use wharf_wire::rest_v1::{BeginUpload, CompleteUpload};

use crate::answer::invalid;
use crate::params::Params;

/// The header that carries a file's hash, in both directions.
pub(crate) const B3_HEADER: &str = "wharf-b3";

/// Longest name of a kind of data.
const MEDIA_TYPE_BYTES_MAX: usize = 255;
/// Longest id of an upload; an S3 makes its own.
const UPLOAD_ID_BYTES_MAX: usize = 1_024;
/// What `curl` says of a body when nobody has said what it is.
const UNSAID: &str = "application/x-www-form-urlencoded";

/// The file that the end of an address names. It is taken as it was sent, so that it is decoded
/// once and an encoded slash can be told from a slash.
pub(crate) fn path_in(uri: &Uri) -> Result<WorldPath, Fault> {
    let rest = uri.path().strip_prefix("/v1/worlds/").and_then(|rest| rest.split_once('/'));
    let path = rest.and_then(|(_, rest)| rest.strip_prefix("files"));
    path_of(path.unwrap_or_default())
}

/// The file that the parameter `path` names. The parameter has been decoded already.
pub(crate) fn path_param(params: &Params) -> Result<WorldPath, Fault> {
    let Some(path) = params.text("path") else {
        return Err(invalid("path", "Name the file with the parameter `path`."));
    };
    path_text(path)
}

/// A file whose name came as plain text, in which nothing is encoded.
pub(crate) fn path_text(path: &str) -> Result<WorldPath, Fault> {
    if path.contains('%') { Err(wrong_path(PathError::Character)) } else { path_of(path) }
}

/// A file that somebody names. Percent signs are decoded once.
pub(crate) fn path_of(text: &str) -> Result<WorldPath, Fault> {
    WorldPath::parse_any(text).map_err(wrong_path)
}

/// Refuses headers that ask for something else than to write all that is sent, whatever is there:
/// to leave them out of account would overwrite what their sender wants to keep.
pub(crate) fn unconditional(headers: &HeaderMap) -> Result<(), Fault> {
    if headers.contains_key(CONTENT_RANGE) {
        let message = "A file is written whole: `Content-Range` is not supported on PUT. Send all \
                       of it, or use an upload in parts.";
        return Err(invalid("Content-Range", message));
    }
    for (name, shown) in [
        (IF_MATCH, "If-Match"),
        (IF_NONE_MATCH, "If-None-Match"),
        (IF_UNMODIFIED_SINCE, "If-Unmodified-Since"),
    ] {
        if headers.contains_key(name) {
            let message = format!("Conditions on PUT are not supported; leave out `{shown}`.");
            return Err(invalid(shown, message));
        }
    }
    Ok(())
}

/// A file that is sent whole, by its headers.
pub(crate) fn new_file(
    world: WorldId,
    path: WorldPath,
    headers: &HeaderMap,
    bytes: Option<u64>,
) -> Result<NewFile, Fault> {
    let said = match headers.get(CONTENT_TYPE).map(|value| value.to_str()) {
        None => None,
        Some(Ok(said)) => Some(said.to_owned()),
        Some(Err(_)) => return Err(wrong_media_type("Content-Type")),
    };
    let said = said.filter(|said| said != UNSAID);
    let hash = match headers.get(B3_HEADER).map(|value| value.to_str()) {
        None => None,
        Some(Ok(hash)) => Some(b3("Wharf-B3", hash)?),
        Some(Err(_)) => return Err(wrong_b3("Wharf-B3")),
    };
    let media_type = said.map(|said| media_type("Content-Type", said)).transpose()?;
    Ok(NewFile { world, path, media_type, bytes, b3: hash })
}

/// A file that is to arrive in parts.
pub(crate) fn begin_upload(world: WorldId, request: BeginUpload) -> Result<NewFile, Fault> {
    let path = path_of(&request.path)?;
    let media_type = request.media_type.map(|said| media_type("media_type", said)).transpose()?;
    Ok(NewFile { world, path, media_type, bytes: None, b3: None })
}

/// A file that has arrived in parts.
pub(crate) fn complete_upload(
    world: WorldId,
    path: WorldPath,
    request: CompleteUpload,
) -> Result<NewFile, Fault> {
    let media_type = request.media_type.map(|said| media_type("media_type", said)).transpose()?;
    let hash = request.b3.map(|hash| b3("b3", &hash)).transpose()?;
    Ok(NewFile { world, path, media_type, bytes: request.bytes, b3: hash })
}

/// The upload that a path names.
pub(crate) fn upload_id(text: &str) -> Result<&str, Fault> {
    let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\');
    if (1..=UPLOAD_ID_BYTES_MAX).contains(&text.len())
        && text.bytes().all(fits)
        && !text.starts_with('.')
    {
        return Ok(text);
    }
    Err(Fault::new(Code::UploadNotFound, "There is no such upload."))
}

/// The number of a part that a path names.
pub(crate) fn part_number(text: &str) -> Result<u32, Fault> {
    text.parse().ok().filter(|number| (1..=UPLOAD_PARTS_MAX).contains(number)).ok_or_else(|| {
        let message = format!("A part has a number from 1 to {UPLOAD_PARTS_MAX}.");
        invalid("part", message)
    })
}

fn b3(field: &str, text: &str) -> Result<B3, Fault> {
    B3::parse(text).map_err(|_| wrong_b3(field))
}

fn media_type(field: &str, said: String) -> Result<String, Fault> {
    let shaped = said.split_once('/').is_some_and(|(kind, of)| !kind.is_empty() && !of.is_empty());
    let fits = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if said.len() <= MEDIA_TYPE_BYTES_MAX && shaped && said.bytes().all(fits) {
        return Ok(said);
    }
    Err(wrong_media_type(field))
}

fn wrong_media_type(field: &str) -> Fault {
    let message = format!("`{field}` must be a media type such as text/plain, 255 bytes at most.");
    invalid(field, message)
}

fn wrong_b3(field: &str) -> Fault {
    let message = format!("`{field}` must be a BLAKE3 hash: 64 digits from 0 to 9 and a to f.");
    invalid(field, message)
}

fn wrong_path(error: PathError) -> Fault {
    let message = format!("The path is not valid ({error}).");
    Fault::new(Code::ScopePathInvalid, message).with("key", "path")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(uri: &str) -> Result<String, Code> {
        let uri = uri.parse().expect("a URI");
        path_in(&uri).map(|path| path.to_string()).map_err(|_| Code::ScopePathInvalid)
    }

    #[test]
    fn t031_the_end_of_an_address_is_decoded_once() {
        let found = |uri| path(&format!("/v1/worlds/lab/files/{uri}"));
        assert_eq!(found("a/b.txt").as_deref(), Ok("/a/b.txt"));
        assert_eq!(found("a%20b").as_deref(), Ok("/a b"));
        assert_eq!(found("files/x").as_deref(), Ok("/files/x"));
        assert_eq!(found("%C3%A4").as_deref(), Ok("/ä"));
        assert_eq!(found("@r1/x").as_deref(), Ok("/@r1/x"));
        for bad in [
            "",
            "/",
            "a//b",
            "a/",
            "..",
            "a/../b",
            "%2e%2e",
            "a/%2E",
            "a%2fb",
            "a%252fb",
            "a%2541",
            "%252e%252e",
            "a%00",
            "a%5cb",
            "a%ff",
            "a%",
            "a%2",
            "a%zz",
            "@r1",
            "@/x",
            "@r1/@a/1",
            "a%CC%88",
        ] {
            assert_eq!(found(bad), Err(Code::ScopePathInvalid), "{bad}");
        }
    }

    #[test]
    fn ids_of_uploads_cannot_be_paths() {
        assert_eq!(upload_id("2~abc_DEF-1.2").as_deref(), Ok("2~abc_DEF-1.2"));
        for bad in ["", "..", ".", "../x", "a/b", "a\\b", "a b", "a\0", &"x".repeat(1_025)] {
            assert!(upload_id(bad).is_err_and(|fault| fault.is(Code::UploadNotFound)), "{bad}");
        }
        assert_eq!(part_number("10000"), Ok(10_000));
        for bad in ["0", "10001", "-1", "x", ""] {
            assert!(part_number(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_say_what_a_file_is() {
        let world = WorldId::new("lab").expect("valid");
        let path = WorldPath::parse("/a").expect("valid");
        let read = |headers: &[(&'static str, &str)]| {
            let pairs = headers.iter().map(|(name, value)| {
                let name = axum::http::HeaderName::from_static(name);
                (name, value.parse().expect("a value"))
            });
            new_file(world.clone(), path.clone(), &pairs.collect(), Some(3))
        };
        assert_eq!(read(&[]).expect("fits").media_type, None);
        let plain = read(&[("content-type", "text/plain; charset=utf-8")]).expect("fits");
        assert_eq!(plain.media_type.as_deref(), Some("text/plain; charset=utf-8"));
        assert_eq!(read(&[("content-type", UNSAID)]).expect("fits").media_type, None);
        for bad in ["text", "/", "a/", "/b", &"x/".repeat(200)] {
            assert!(read(&[("content-type", bad)]).is_err(), "{bad}");
        }
        let hash = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert!(read(&[("wharf-b3", hash)]).expect("fits").b3.is_some());
        let fault = read(&[("wharf-b3", "af13")]).expect_err("refused");
        assert_eq!(fault.details["field"], "Wharf-B3");
    }
}
