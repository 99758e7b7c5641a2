//! What several tests need: tools, a log, and a transport that answers as it is told.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use wharf_sdk::transport::{Exchange, Outgoing, Reply, Spent};
use wharf_sdk::{Fault, Tool, Transport};

/// Twice as much.
pub(crate) const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");

/// Waits for ever.
pub(crate) const WAIT: Tool<(), ()> = Tool::new("wait", "Waits for ever.");

/// What happened, in its order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.0.lock().expect("nobody panics in here").push(what.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panics in here"))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().expect("nobody panics in here").len()
    }
}

/// Says something when it is dropped.
pub(crate) struct OnDrop(pub(crate) Log, pub(crate) &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.say(self.1);
    }
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, Fault>) -> String {
    result.expect_err("it must fail").code.as_str().to_owned()
}

/// Waits until something is so.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

/// Waits for something on this very thread, without a runtime.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut work = std::pin::pin!(work);
    loop {
        if let Poll::Ready(output) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

/// A transport of one's own, as any author may write one: a function answers each request, after
/// some progress.
struct Answers<F>(Vec<Value>, F);

pub(crate) fn answers(
    pieces: Vec<Value>,
    answer: impl Fn(Outgoing) -> Reply + Send + Sync + 'static,
) -> impl Transport {
    Answers(pieces, answer)
}

impl<F: Fn(Outgoing) -> Reply + Send + Sync + 'static> Transport for Answers<F> {
    fn request(&self, request: Outgoing) -> Exchange {
        let (say, progress) = mpsc::channel(self.0.len().max(1));
        for piece in &self.0 {
            say.try_send(piece.clone()).expect("there is room");
        }
        let (sender, answer) = oneshot::channel();
        sender.send((self.1)(request)).expect("the receiver is right here");
        Exchange { progress, answer, cost: Spent::default(), guard: Box::new(()) }
    }
}

/// A transport over which nothing ever comes, which tells when a call is called off.
pub(crate) struct Silent(pub(crate) Log);

impl Transport for Silent {
    fn request(&self, _: Outgoing) -> Exchange {
        let (say, progress) = mpsc::channel(1);
        let (sender, answer) = oneshot::channel();
        let guard = (OnDrop(self.0.clone(), "called off"), say, sender);
        Exchange { progress, answer, cost: Spent::default(), guard: Box::new(guard) }
    }
}
