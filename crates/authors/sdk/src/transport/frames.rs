//! Frames of text in and out, whatever carries them.

use std::task::{Context, Poll};

/// The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken;

/// Frames of text in and out. One task owns them and polls both directions.
pub(crate) trait Frames: Send + Unpin + 'static {
    /// A frame as it was received.
    type Text: AsRef<str>;

    /// The next frame; `None` once there are no more.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::Text>>;

    /// Whether there is room for another frame.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>;

    /// Takes a frame after [`poll_ready`](Self::poll_ready) said that there is room.
    fn send(&mut self, frame: String) -> Result<(), Broken>;

    /// Sees to it that frames leave; ready when all have.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>;

    /// Bids farewell.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}
