//! Copies that the server makes by itself.

use std::sync::Arc;

use rusty_s3::Method;
use wharf_ports::{ObjectError, ObjectInfo, ObjectUpload, UploadPart};

use super::get;
use super::uploads::{abort, create, finish, unreadable};
use super::wire::S3Call;
use super::{S3State, xml};
use crate::error::not_found;

/// The largest part of an object that is copied in parts.
const PART_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Makes an object a copy of another one.
pub(super) async fn copy(
    shared: Arc<S3State>,
    from: String,
    to: String,
) -> Result<ObjectInfo, ObjectError> {
    let source = get::head(Arc::clone(&shared), from.clone()).await?;
    let source = source.ok_or_else(|| not_found("object"))?;
    if from == to {
        return Ok(source);
    }
    let path = source_path(&shared, &from);
    if source.bytes <= shared.copy_bytes_max {
        let call = S3Call::new(Method::Put, shared.key(&to)).signed("x-amz-copy-source", path);
        shared.wire.text(&call, "copy an object").await?;
    } else {
        let b3 = source.b3.as_ref();
        let id = create(&shared, &to, &source.media_type, b3).await?;
        let upload = ObjectUpload { key: to.clone(), id };
        let copied = copy_parts(&shared, &upload, &path, source.bytes).await;
        if let Err(error) = copied {
            // What cannot be given up now is swept later.
            let _ = abort(shared, upload).await;
            return Err(error);
        }
    }
    let copied = get::head(shared, to).await?;
    copied.ok_or_else(|| not_found("copy"))
}

async fn copy_parts(
    shared: &S3State,
    upload: &ObjectUpload,
    path: &str,
    bytes: u64,
) -> Result<(), ObjectError> {
    let part = shared.copy_bytes_max.min(PART_BYTES_MAX);
    let mut parts = Vec::new();
    let mut start = 0;
    while start < bytes {
        let end = bytes.min(start + part);
        let number = u32::try_from(parts.len() + 1).unwrap_or(u32::MAX);
        let call = S3Call::new(Method::Put, shared.key(&upload.key))
            .query("partNumber", number.to_string())
            .query("uploadId", &upload.id)
            .signed("x-amz-copy-source", path)
            .signed("x-amz-copy-source-range", format!("bytes={start}-{}", end - 1));
        let text = shared.wire.text(&call, "copy a part of an object").await?;
        let tag = xml::text(&text, "CopyPartResult", "ETag");
        let tag = tag.ok_or_else(|| unreadable("what became of a copied part"))?;
        let tag = tag.trim_matches('"').to_owned();
        parts.push(UploadPart { number, bytes: end - start, tag });
        start = end;
    }
    finish(shared, upload, &parts).await.map(drop)
}

/// Where the source is, as a header names it.
fn source_path(shared: &S3State, from: &str) -> String {
    let name = shared.wire.bucket.name();
    let url = shared.wire.bucket.object_url(&shared.key(from));
    // In a path the bucket comes first already; in a host it does not.
    let path = url.path().trim_start_matches('/');
    let in_path = path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    let virtual_host = url.host_str().is_some_and(|host| host.starts_with(&format!("{name}.")));
    if in_path && !virtual_host { format!("/{path}") } else { format!("/{name}/{path}") }
}
