//! Takes what arrives, on a thread of its own: hashes it and writes it down.

use std::io::{self, Write};

use blake3::Hasher;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How many pieces may wait to be written; each is as large as the connection gives it.
const PIECES_MAX: usize = 8;

/// Where pieces of a file go.
pub(super) struct Incoming<W> {
    pieces: mpsc::Sender<Bytes>,
    written: JoinHandle<(W, io::Result<Hasher>)>,
    /// How many bytes there are, those of an earlier try included.
    pub(super) bytes: u64,
}

impl<W: Write + Send + 'static> Incoming<W> {
    /// Continues after what `hasher` has seen.
    pub(super) fn new(mut out: W, mut hasher: Hasher) -> Self {
        let (sender, mut pieces) = mpsc::channel::<Bytes>(PIECES_MAX);
        let bytes = hasher.count();
        let written = tokio::task::spawn_blocking(move || {
            while let Some(piece) = pieces.blocking_recv() {
                hasher.update(&piece);
                if let Err(error) = out.write_all(&piece) {
                    return (out, Err(error));
                }
            }
            let flushed = out.flush();
            (out, flushed.map(|()| hasher))
        });
        Self { pieces: sender, written, bytes }
    }

    /// Takes a piece; `false` if nothing can be written any more, which `finish` tells why.
    pub(super) async fn push(&mut self, piece: Bytes) -> bool {
        let bytes = piece.len() as u64;
        let taken = self.pieces.send(piece).await.is_ok();
        if taken {
            self.bytes += bytes;
        }
        taken
    }

    /// Waits until all is written.
    pub(super) async fn finish(self) -> io::Result<(W, Hasher)> {
        drop(self.pieces);
        let (out, hasher) = self.written.await.map_err(io::Error::other)?;
        Ok((out, hasher?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_are_written_in_order_and_hashed_on() {
        let mut hasher = Hasher::new();
        hasher.update(b"be");
        let mut incoming = Incoming::new(Vec::new(), hasher);
        for piece in [&b"for"[..], b"e and after"] {
            assert!(incoming.push(Bytes::from_static(piece)).await);
        }
        assert_eq!(incoming.bytes, 16);
        let (out, hasher) = incoming.finish().await.expect("written");
        assert_eq!(out, b"fore and after");
        assert_eq!(hasher.finalize(), blake3::hash(b"before and after"));
    }

    #[tokio::test]
    async fn a_full_disk_is_told_in_the_end() {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("there");
        let mut incoming = Incoming::new(full, Hasher::new());
        while incoming.push(Bytes::from_static(b"x")).await {}
        let error = incoming.finish().await.expect_err("full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
