//! Lists of objects and of unfinished uploads.

use std::sync::Arc;

use rusty_s3::Method;
use wharf_ports::{ObjectEntry, ObjectError, ObjectUpload};
use wharf_vocab::Timestamp;

use super::wire::S3Call;
use super::xml::{self, Record, field};
use super::{S3State, uploads};
use crate::error::unavailable;

/// The most that servers list at once.
const PAGE_MAX: usize = 1_000;

/// Keys that begin with a prefix, behind `after` in the order of their bytes.
pub(super) async fn list(
    shared: Arc<S3State>,
    prefix: String,
    after: Option<String>,
    limit: usize,
) -> Result<Vec<ObjectEntry>, ObjectError> {
    let mut found: Vec<ObjectEntry> = Vec::new();
    let mut after = after;
    while found.len() < limit {
        let mut call = S3Call::new(Method::Get, "")
            .query("list-type", "2")
            .query("max-keys", (limit - found.len()).min(PAGE_MAX).to_string())
            .query("prefix", shared.key(&prefix));
        if let Some(after) = &after {
            call = call.query("start-after", shared.key(after));
        }
        let text = shared.wire.text(&call, "list objects").await?;
        let page = xml::records(&text, "Contents").ok_or_else(unreadable)?;
        let page = page.iter().map(|record| entry(&shared, record));
        let page = page.collect::<Option<Vec<_>>>().ok_or_else(unreadable)?;
        found.extend(page);
        let more = xml::text(&text, "ListBucketResult", "IsTruncated");
        let last = found.last().map(|entry| entry.key.clone());
        if more.as_deref() != Some("true") || last.is_none() || last == after {
            break;
        }
        after = last;
    }
    found.truncate(limit);
    Ok(found)
}

/// Ends uploads that were begun before a moment. How many bytes that frees is not known.
pub(super) async fn sweep(shared: Arc<S3State>, before: Timestamp) -> Result<u64, ObjectError> {
    let mut behind: Option<(String, String)> = None;
    loop {
        let mut call = S3Call::new(Method::Get, "");
        if let Some((key, _)) = &behind {
            call = call.query("key-marker", key);
        }
        call = call.query("prefix", &shared.prefix);
        if let Some((_, id)) = &behind {
            call = call.query("upload-id-marker", id);
        }
        call = call.query("uploads", "");
        let text = shared.wire.text(&call, "list uploads").await?;
        for record in xml::records(&text, "Upload").ok_or_else(unreadable)? {
            let (Some(key), Some(id)) = (field(&record, "Key"), field(&record, "UploadId")) else {
                return Err(unreadable());
            };
            let begun = field(&record, "Initiated").and_then(moment);
            let own = key.strip_prefix(&shared.prefix);
            if let Some(key) = own.filter(|_| begun.is_some_and(|begun| begun < before)) {
                let upload = ObjectUpload { key: key.to_owned(), id: id.to_owned() };
                uploads::abort(Arc::clone(&shared), upload).await?;
            }
        }
        let next = |name| xml::text(&text, "ListMultipartUploadsResult", name);
        let more = next("IsTruncated").as_deref() == Some("true");
        let marker = next("NextKeyMarker").zip(next("NextUploadIdMarker"));
        if !more || marker.is_none() || marker == behind {
            return Ok(0);
        }
        behind = marker;
    }
}

fn entry(shared: &S3State, record: &Record) -> Option<ObjectEntry> {
    let key = field(record, "Key")?.strip_prefix(&shared.prefix)?.to_owned();
    let bytes = field(record, "Size")?.parse().ok()?;
    let written_at = field(record, "LastModified").and_then(moment)?;
    Some(ObjectEntry { key, bytes, written_at })
}

fn moment(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(moment.as_millisecond()).ok().map(Timestamp)
}

fn unreadable() -> ObjectError {
    unavailable("the server's list cannot be read")
}
