//! Writing to storage, with as many tries as it takes.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Body, Method, RequestBuilder, Url};
use wharf_wire::run_v1::{Written, code};

use super::Trouble;
use super::content::Content;
use super::progress::Progress;
use super::pulse::Pulse;
use super::wire::Wire;

/// How much may still be on its way when the last piece was handed over.
const UNDERWAY_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The slowest way that is waited for, per second.
const SLOWEST_BYTES: u64 = 64 * 1024;

/// What has gone out in one try.
#[derive(Debug, Default)]
struct Tally {
    bytes: u64,
    hasher: blake3::Hasher,
}

type Shared<T> = Arc<Mutex<T>>;

/// Writes some bytes to an address. It is done when storage says so.
pub(super) async fn upload(
    wire: &Wire,
    url: &Url,
    media_type: &'static str,
    content: &Content,
    progress: &Arc<Progress>,
) -> Result<Written, Trouble> {
    let mut tried = 0;
    loop {
        match once(wire, url, media_type, content, progress).await {
            Ok(written) => return Ok(written),
            Err(trouble) => {
                tried += 1;
                wire.again(trouble, tried, url).await?;
            }
        }
    }
}

async fn once(
    wire: &Wire,
    url: &Url,
    media_type: &'static str,
    content: &Content,
    progress: &Arc<Progress>,
) -> Result<Written, Trouble> {
    let pulse = wire.pulse();
    // A redirect sends all of it again, so the tally of the last sending counts.
    let last: Mutex<Shared<Tally>> = Mutex::default();
    let complete =
        |request: RequestBuilder| {
            let tally = Shared::<Tally>::default();
            *last.lock() = Arc::clone(&tally);
            progress.restart();
            pulse.beat(Duration::ZERO);
            request
                .header(CONTENT_LENGTH, content.len())
                .header(CONTENT_TYPE, media_type)
                .body(body(content, tally, pulse.clone(), Arc::clone(progress)))
        };
    let answer = wire.request(Method::PUT, url, &pulse, complete).await;
    answer.map_err(|trouble| match trouble.code {
        // Only inputs are not found.
        code::NOT_FOUND => Trouble::new(code::STORAGE, "storage does not know the place"),
        _ => trouble,
    })?;
    let tally = Arc::clone(&last.lock());
    let tally = tally.lock();
    if tally.bytes != content.len() {
        return Err(Trouble::passing("storage took less than all of it"));
    }
    Ok(Written { bytes: tally.bytes, b3: tally.hasher.finalize().to_hex().to_string() })
}

/// The pieces on their way out, counted and hashed as they go.
fn body(content: &Content, tally: Shared<Tally>, pulse: Pulse, progress: Arc<Progress>) -> Body {
    let total = content.len();
    let pieces = content.pieces().inspect_ok(move |piece| {
        let mut tally = tally.lock();
        tally.bytes += piece.len() as u64;
        tally.hasher.update(piece);
        let is_last = tally.bytes == total;
        let underway = if is_last { total.min(UNDERWAY_BYTES_MAX) } else { 0 };
        pulse.beat(Duration::from_secs(underway / SLOWEST_BYTES));
        progress.moved(piece.len(), Some(total));
    });
    Body::wrap_stream(pieces)
}
