//! Two ends in one process. What goes over it is the same JSON that a socket would carry.

use std::task::{Context, Poll};

use tokio::sync::mpsc;
use tokio_util::sync::PollSender;

use super::link::{Frames, LinkBroken};
use super::{Link, Options};

/// Frames that may wait in one direction.
const WAITING_MAX: usize = 64;

/// Two ends of a connection.
///
/// ```
/// use wharf_sdk::{Scope, Tool, operative, transport::memory};
///
/// const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (here, there) = memory::pair();
/// let server = Scope::root();
/// server.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) })?;
/// let serving = operative::serve(&server, &there);
///
/// let client = Scope::root().with_transport(here);
/// assert_eq!(DOUBLE.call(&client, 21).await?, 42);
/// serving.stop().await;
/// # Ok(()) }
/// ```
#[must_use]
pub fn pair() -> (Link, Link) {
    pair_with(&Options::default(), &Options::default())
}

/// The same with a choice for each end.
#[must_use]
pub fn pair_with(one: &Options, other: &Options) -> (Link, Link) {
    let (to_other, from_one) = mpsc::channel(WAITING_MAX);
    let (to_one, from_other) = mpsc::channel(WAITING_MAX);
    let end = |sender, receiver| Memory { sender: PollSender::new(sender), receiver };
    let marked = !one.plain && !other.plain;
    let link = |frames, options: &Options| Link::new(frames, marked, false, options);
    (link(end(to_other, from_other), one), link(end(to_one, from_one), other))
}

/// One end.
struct Memory {
    sender: PollSender<String>,
    receiver: mpsc::Receiver<String>,
}

impl Frames for Memory {
    type Text = String;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<String>> {
        self.receiver.poll_recv(cx)
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.sender.poll_reserve(cx).map_err(|_| LinkBroken)
    }

    fn send(&mut self, frame: String) -> Result<(), LinkBroken> {
        self.sender.send_item(frame).map_err(|_| LinkBroken)
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, _cx: &mut Context<'_>) -> Poll<bool> {
        // A place that was kept would keep the channel open.
        self.sender.abort_send();
        self.sender.close();
        Poll::Ready(true)
    }
}
