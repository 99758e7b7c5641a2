//! Writing to storage, with as many tries as it takes.

use std::sync::Arc;
use std::time::Duration;

use futures::TryStreamExt as _;
use parking_lot::Mutex;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Body, Method, RequestBuilder, Url};
use wharf_wire::run_v1::{Written, code};

use super::TransferTrouble;
use super::content::Content;
use super::progress::TransferProgress;
use super::pulse::StallWatch;
use super::wire::StorageClient;

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

type SharedCell<T> = Arc<Mutex<T>>;

/// Some bytes and the address they go to.
#[derive(Clone, Copy)]
pub(super) struct OutputUpload<'a> {
    pub(super) wire: &'a StorageClient,
    pub(super) url: &'a Url,
    pub(super) media_type: &'static str,
    pub(super) content: &'a Content,
    pub(super) progress: &'a Arc<TransferProgress>,
}

impl OutputUpload<'_> {
    /// Writes the bytes to the address. It is done when storage says so.
    pub(super) async fn run(self) -> Result<Written, TransferTrouble> {
        let mut tried = 0;
        loop {
            match self.once().await {
                Ok(written) => return Ok(written),
                Err(trouble) => {
                    tried += 1;
                    self.wire.again(trouble, tried, self.url).await?;
                }
            }
        }
    }

    async fn once(self) -> Result<Written, TransferTrouble> {
        let pulse = self.wire.pulse();
        // A redirect sends all of it again, so the tally of the last sending counts.
        let last: Mutex<SharedCell<Tally>> = Mutex::default();
        let complete = |request: RequestBuilder| {
            let tally = SharedCell::<Tally>::default();
            *last.lock() = Arc::clone(&tally);
            self.progress.restart();
            pulse.beat(Duration::ZERO);
            request
                .header(CONTENT_LENGTH, self.content.len())
                .header(CONTENT_TYPE, self.media_type)
                .body(self.body(tally, pulse.clone()))
        };
        let answer = self.wire.request(Method::PUT, self.url, &pulse, complete).await;
        answer.map_err(|trouble| match trouble.code {
            // Only inputs are not found.
            code::NOT_FOUND => {
                TransferTrouble::new(code::STORAGE, "storage does not know the place")
            }
            _ => trouble,
        })?;
        let tally = Arc::clone(&last.lock());
        let tally = tally.lock();
        if tally.bytes != self.content.len() {
            return Err(TransferTrouble::passing("storage took less than all of it"));
        }
        Ok(Written { bytes: tally.bytes, b3: tally.hasher.finalize().to_hex().to_string() })
    }

    /// The pieces on their way out, counted and hashed as they go.
    fn body(self, tally: SharedCell<Tally>, pulse: StallWatch) -> Body {
        let (total, progress) = (self.content.len(), Arc::clone(self.progress));
        let pieces = self.content.pieces().inspect_ok(move |piece| {
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
}
