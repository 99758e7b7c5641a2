//! The bytes of an output, in pieces, as often as they are needed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use serde_json::Value;

/// How much passes at once.
pub(super) const PIECE_BYTES: usize = 256 * 1024;

/// The bytes of an output.
#[derive(Debug, Clone)]
pub(super) enum Content {
    /// In memory already.
    Bytes(Bytes),
    /// In a file, with its length.
    File(Arc<File>, u64),
}

impl Content {
    /// A value as bytes: text as it is, anything else as JSON.
    pub(super) fn of_value(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Bytes(Bytes::from(text)),
            other => Self::Bytes(Bytes::from(other.to_string())),
        }
    }

    /// A file as it is now.
    pub(super) fn of_file(file: File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        Ok(Self::File(Arc::new(file), bytes))
    }

    /// How many bytes there are.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File(_, bytes) => *bytes,
        }
    }

    /// All bytes from the first on, in pieces. Fewer than promised are an error.
    pub(super) fn pieces(&self) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static {
        let content = self.clone();
        let pieces = stream::try_unfold((content, 0), |(content, offset)| async move {
            let piece = content.piece(offset).await?;
            let next = offset + piece.len() as u64;
            Ok((!piece.is_empty()).then_some((piece, (content, next))))
        });
        pieces.boxed()
    }

    async fn piece(&self, offset: u64) -> io::Result<Bytes> {
        let left = usize::try_from(self.len() - offset).unwrap_or(usize::MAX).min(PIECE_BYTES);
        match self {
            Self::Bytes(bytes) => {
                let start = bytes.len() - usize::try_from(self.len() - offset).unwrap_or(0);
                Ok(bytes.slice(start..start + left))
            }
            Self::File(file, _) if left > 0 => {
                let file = Arc::clone(file);
                let read = tokio::task::spawn_blocking(move || {
                    let mut piece = vec![0; left];
                    file.read_exact_at(&mut piece, offset)?;
                    Ok(Bytes::from(piece))
                });
                read.await.map_err(io::Error::other)?
            }
            Self::File(..) => Ok(Bytes::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use futures::TryStreamExt as _;
    use serde_json::json;

    use super::*;

    async fn all(content: &Content) -> Vec<usize> {
        content.pieces().map_ok(|piece| piece.len()).try_collect().await.expect("pieces")
    }

    #[tokio::test]
    async fn t027_bytes_and_files_come_in_pieces_and_may_be_read_again() {
        let bytes = vec![7; 2 * PIECE_BYTES + 1];
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        let file = Content::of_file(file).expect("its length");
        for content in [Content::Bytes(bytes.into()), file] {
            for _ in 0..2 {
                assert_eq!(all(&content).await, [PIECE_BYTES, PIECE_BYTES, 1]);
            }
        }
        assert!(all(&Content::Bytes(Bytes::new())).await.is_empty());
    }

    #[tokio::test]
    async fn t027_a_file_that_shrinks_is_an_error() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"some bytes").expect("written");
        let content = Content::of_file(file.try_clone().expect("a handle")).expect("its length");
        file.set_len(4).expect("cut");
        let read: Result<Vec<_>, _> = content.pieces().try_collect().await;
        assert!(read.is_err());
    }

    #[test]
    fn t027_values_become_bytes() {
        for (value, expected) in [
            (json!("hä"), "hä"),
            (json!({"a": [1, 2.5, null]}), r#"{"a":[1,2.5,null]}"#),
            (json!(17), "17"),
            (json!(true), "true"),
        ] {
            let Content::Bytes(bytes) = Content::of_value(value) else { unreachable!() };
            assert_eq!(bytes, expected);
        }
    }
}
