//! Fetching from storage: goes on where it stopped after trouble, as often as it moves forward.

use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use reqwest::header::{CONTENT_RANGE, ETAG, HeaderMap, IF_RANGE, RANGE};
use reqwest::{Method, Response, StatusCode, Url};

use super::TransferTrouble;
use super::wire::{StorageClient, lost};

/// A file on its way here.
#[derive(Debug)]
pub(super) struct FileDownload {
    wire: Arc<StorageClient>,
    url: Url,
    answer: Option<Response>,
    /// Which version of the file it is, if the server says so in a way that can be relied on.
    version: Option<String>,
    total: Option<u64>,
    got: u64,
    /// The most that was ever got; only more than that is progress.
    best: u64,
    /// What the server sends once more and nobody needs.
    skip: u64,
    failures: u32,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum DownloadPiece {
    /// Some bytes.
    Bytes(Bytes),
    /// What came so far is void; it begins anew.
    Restart,
    /// That was all.
    End,
}

impl FileDownload {
    /// A file to be fetched.
    pub(super) fn new(wire: Arc<StorageClient>, url: Url) -> Self {
        Self {
            wire,
            url,
            answer: None,
            version: None,
            total: None,
            got: 0,
            best: 0,
            skip: 0,
            failures: 0,
        }
    }

    /// How large it is, once that is known.
    pub(super) fn total(&self) -> Option<u64> {
        self.total
    }

    /// Gets in touch, so that what is wrong with the address is known.
    pub(super) async fn begin(&mut self) -> Result<(), TransferTrouble> {
        while self.answer.is_none() {
            if let Err(trouble) = self.connect().await {
                self.failed(trouble).await?;
            }
        }
        Ok(())
    }

    /// The next piece, after as many tries as it takes.
    pub(super) async fn next(&mut self) -> Result<DownloadPiece, TransferTrouble> {
        loop {
            let tried = match self.answer.take() {
                Some(answer) => self.receive(answer).await,
                None => self.connect().await,
            };
            match tried {
                Ok(Some(piece)) => return Ok(piece),
                Ok(None) => {}
                Err(trouble) => self.failed(trouble).await?,
            }
        }
    }

    async fn failed(&mut self, trouble: TransferTrouble) -> Result<(), TransferTrouble> {
        self.failures += 1;
        self.wire.again(trouble, self.failures, &self.url).await
    }

    /// Asks for what is missing.
    async fn connect(&mut self) -> Result<Option<DownloadPiece>, TransferTrouble> {
        let resume = match &self.version {
            Some(version) if self.got > 0 => {
                Some((format!("bytes={}-", self.got), version.clone()))
            }
            _ => None,
        };
        let pulse = self.wire.pulse();
        let ask = |request: reqwest::RequestBuilder| match &resume {
            Some((range, version)) => request.header(RANGE, range).header(IF_RANGE, version),
            None => request,
        };
        let answer = self.wire.request(Method::GET, &self.url, &pulse, ask).await?;
        let version = version(answer.headers());
        if answer.status() == StatusCode::PARTIAL_CONTENT {
            let is_expected = resume.is_some()
                && version == self.version
                && range_start(answer.headers()) == Some(self.got);
            if !is_expected {
                return Err(TransferTrouble::passing("storage sent another part than asked for"));
            }
            self.skip = 0;
            self.answer = Some(answer);
            return Ok(None);
        }
        let is_same = version.is_some() && version == self.version;
        let restart = self.got > 0 && !is_same;
        self.skip = if is_same { self.got } else { 0 };
        if restart {
            self.got = 0;
        }
        self.total = answer.content_length();
        self.version = version;
        self.answer = Some(answer);
        Ok(restart.then_some(DownloadPiece::Restart))
    }

    async fn receive(
        &mut self,
        mut answer: Response,
    ) -> Result<Option<DownloadPiece>, TransferTrouble> {
        let pulse = self.wire.pulse();
        let received = pulse.watch(answer.chunk()).await;
        let received = received.ok_or(TransferTrouble::passing("storage stopped half-way"))?;
        let Some(mut piece) = received.map_err(lost)? else {
            let is_whole = self.skip == 0 && self.total.is_none_or(|total| total == self.got);
            return if is_whole {
                Ok(Some(DownloadPiece::End))
            } else {
                Err(TransferTrouble::passing("storage sent less than it said"))
            };
        };
        self.answer = Some(answer);
        let skipped = self.skip.min(piece.len() as u64);
        self.skip -= skipped;
        piece.advance(usize::try_from(skipped).unwrap_or(piece.len()));
        if piece.is_empty() {
            return Ok(None);
        }
        self.got += piece.len() as u64;
        if self.got > self.best {
            self.best = self.got;
            self.failures = 0;
        }
        Ok(Some(DownloadPiece::Bytes(piece)))
    }
}

/// The version of a file, if two of the same name are the same bytes for certain.
fn version(headers: &HeaderMap) -> Option<String> {
    let tag = headers.get(ETAG)?.to_str().ok()?;
    tag.starts_with('"').then(|| tag.to_owned())
}

/// Where a part of a file begins.
fn range_start(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}
