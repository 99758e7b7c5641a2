//! A socket with patience that ends.
//!
//! A head must arrive in time, a connection may be silent between requests only so long, and a
//! peer that takes nothing of what is sent to it is let go. A peer that was answered before it
//! had sent everything is listened to for a while after the end, because closing a socket with
//! unread bytes would take the answer away from it again. A connection that another protocol has
//! taken over may be silent as it likes, until the core stops; but a message that it has begun must
//! be whole in time, and what is there of it counts like a body.

use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::app::{App, StopSignals};
use crate::message::IncomingMessage;
use crate::phase::ConnectionPhase;

/// Bytes that are thrown away after an early answer before the peer is cut off.
const LINGER_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Bytes thrown away in one go, so that one connection does not keep a thread for itself.
const LINGER_STEP_BYTES_MAX: usize = 1024 * 1024;
/// How long a lingering peer may be silent.
const LINGER_GAP: Duration = Duration::from_secs(2);
/// What is kept of what a peer has sent, so that the end of a head is found.
const KEPT_BYTES: usize = 64;
/// How long another protocol may take to say goodbye when the core stops.
const FAREWELL: Duration = Duration::from_secs(1);

/// A socket with patience that ends.
pub(crate) struct PacedSocket<T> {
    socket: T,
    phase: Arc<ConnectionPhase>,
    times: Times,
    /// How many requests had begun when the times below were set.
    requests: u64,
    /// When the head that has begun must be whole; none between requests.
    head_until: Option<Instant>,
    /// When silence between requests ends the connection.
    idle_until: Option<Instant>,
    read_alarm: Alarm,
    write_alarm: Alarm,
    closing: CloseStage,
    stops: StopSignals,
    /// Ends when another protocol has had its time to say goodbye.
    farewell: Option<BoxFuture<'static, ()>>,
    message: IncomingMessage,
    ahead: EarlyBytes,
    /// What hyper says by itself, with what it leaves out, and how much of it was written.
    own: Option<(Vec<u8>, usize)>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    head: Duration,
    idle: Duration,
    write: Duration,
    linger: Duration,
}

#[derive(Debug, Clone, Copy)]
enum CloseStage {
    No,
    Lingering { until: Instant, left: u64 },
    Done,
}

impl<T> PacedSocket<T> {
    pub(crate) fn new(socket: T, phase: Arc<ConnectionPhase>, app: &App) -> Self {
        let limits = &app.options.limits;
        Self {
            socket,
            phase,
            times: Times {
                head: limits.head_read,
                idle: limits.idle,
                write: limits.write,
                linger: limits.linger,
            },
            requests: 0,
            // Whoever connects is expected to say something soon.
            head_until: Some(Instant::now() + limits.head_read),
            idle_until: None,
            read_alarm: Alarm::default(),
            write_alarm: Alarm::default(),
            closing: CloseStage::No,
            stops: app.stops.clone(),
            farewell: None,
            message: IncomingMessage::new(Arc::clone(&app.bodies), limits.body_read),
            ahead: EarlyBytes::default(),
            own: None,
        }
    }

    /// Forgets the times of a head that has become a request since.
    fn catch_up(&mut self) {
        let requests = self.phase.requests();
        if self.requests != requests {
            self.requests = requests;
            (self.head_until, self.idle_until) = (None, None);
        }
    }

    /// When the silence that is heard now must be over; never while a request is under way.
    fn silence_until(&mut self) -> Option<Instant> {
        self.catch_up();
        if self.phase.is_upgraded() {
            return self.message.until;
        }
        if self.phase.is_busy() {
            return None;
        }
        let idle = self.times.idle;
        self.head_until
            .or_else(|| Some(*self.idle_until.get_or_insert_with(|| Instant::now() + idle)))
    }

    /// Whether another protocol has the connection and the core stops.
    fn is_at_its_end(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.phase.is_upgraded() {
            return false;
        }
        let farewell = self.farewell.get_or_insert_with(|| {
            let StopSignals { closing, aborted, .. } = self.stops.clone();
            Box::pin(async move {
                closing.cancelled().await;
                let _ = tokio::time::timeout(FAREWELL, aborted.cancelled()).await;
            })
        });
        farewell.as_mut().poll(cx).is_ready()
    }

    /// Whether another protocol has the connection and has had all the time there is. All others
    /// end with the task that serves them.
    fn is_cut_off(&self) -> bool {
        self.phase.is_upgraded() && self.stops.aborted.is_cancelled()
    }

    fn heard(&mut self) {
        self.catch_up();
        let expected = self.phase.is_busy() || self.phase.is_upgraded();
        if !expected && self.head_until.is_none() {
            self.head_until = Some(Instant::now() + self.times.head);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for PacedSocket<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if this.is_cut_off() {
            return Poll::Ready(Err(cut_off()));
        }
        if this.phase.is_upgraded() && this.ahead.is_ahead {
            return Poll::Ready(Err(unasked()));
        }
        if this.phase.is_upgraded() && this.message.poll_room(cx).is_pending() {
            return match this.silence_until() {
                Some(until) if this.read_alarm.rings(until, cx) => {
                    Poll::Ready(Err(too_slow("there is no room for the message")))
                }
                _ => Poll::Pending,
            };
        }
        let read = Pin::new(&mut this.socket).poll_read(cx, buf);
        if read.is_ready() {
            if buf.filled().len() > before {
                this.heard();
                let bytes = &buf.filled()[before..];
                match this.phase.is_upgraded() {
                    true => this.message.arrived(bytes),
                    false => this.ahead.arrived(bytes, this.phase.is_busy()),
                }
                // A head that arrives byte by byte is in time or not as a whole.
                if let Some(until) = this.silence_until()
                    && until <= Instant::now()
                {
                    return Poll::Ready(Err(too_slow("the peer sends too slowly")));
                }
            }
            return read;
        }
        if this.is_at_its_end(cx) {
            // To whoever reads it looks as if the peer had gone.
            return Poll::Ready(Ok(()));
        }
        match this.silence_until() {
            Some(until) if this.read_alarm.rings(until, cx) => {
                Poll::Ready(Err(too_slow("the peer was silent for too long")))
            }
            _ => Poll::Pending,
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> PacedSocket<T> {
    /// Lets a write wait only so long.
    fn bounded<R>(&mut self, cx: &mut Context<'_>, write: Poll<R>) -> Poll<std::io::Result<R>> {
        if self.is_cut_off() {
            return Poll::Ready(Err(cut_off()));
        }
        match write {
            Poll::Ready(done) => {
                self.write_alarm.forget();
                Poll::Ready(Ok(done))
            }
            Poll::Pending => {
                let until = self.write_alarm.set_for.unwrap_or(Instant::now() + self.times.write);
                if self.write_alarm.rings(until, cx) {
                    return Poll::Ready(Err(too_slow("the peer does not read")));
                }
                Poll::Pending
            }
        }
    }

    /// Whether hyper answers by itself: no request is under way. It closes the connection then and
    /// does not say so.
    fn is_own(&self, buf: &[u8]) -> bool {
        !self.phase.is_busy() && !self.phase.is_upgraded() && buf.starts_with(b"HTTP/1.1 4")
    }

    /// Writes what hyper says by itself, and that the connection ends with it.
    fn poll_own(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        let (own, mut written) = self.own.take().unwrap_or_else(|| {
            let line = buf.windows(2).position(|end| end == b"\r\n").map_or(0, |at| at + 2);
            ([&buf[..line], b"connection: close\r\n", &buf[line..]].concat(), 0)
        });
        while written < own.len() {
            let write = Pin::new(&mut self.socket).poll_write(cx, &own[written..]);
            match self.bounded(cx, write) {
                Poll::Ready(done) => written += done??,
                Poll::Pending => {
                    self.own = Some((own, written));
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(buf.len()))
    }

    /// Reads and forgets until the peer is done, or has had time enough.
    fn poll_linger(&mut self, cx: &mut Context<'_>, until: Instant, left: u64) -> Poll<()> {
        let mut scrap = [0_u8; 16 * 1024];
        let mut left = left;
        let mut step = 0;
        loop {
            let mut buf = ReadBuf::new(&mut scrap);
            match Pin::new(&mut self.socket).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    let count = buf.filled().len();
                    left = left.saturating_sub(count as u64);
                    step += count;
                    self.read_alarm.forget();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    self.closing = CloseStage::Lingering { until, left };
                    let gap = Instant::now() + LINGER_GAP.min(self.times.linger);
                    let until = self.read_alarm.set_for.unwrap_or(gap).min(until);
                    return if self.read_alarm.rings(until, cx) {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    };
                }
            }
            if left == 0 || Instant::now() >= until {
                return Poll::Ready(());
            }
            if step >= LINGER_STEP_BYTES_MAX {
                self.closing = CloseStage::Lingering { until, left };
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PacedSocket<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        if this.own.is_some() || this.is_own(buf) {
            return this.poll_own(cx, buf);
        }
        let write = Pin::new(&mut this.socket).poll_write(cx, buf);
        this.bounded(cx, write).map(|done| done?)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let this = self.get_mut();
        let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
        if this.own.is_some() || this.is_own(first) {
            return this.poll_own(cx, first);
        }
        let write = Pin::new(&mut this.socket).poll_write_vectored(cx, bufs);
        this.bounded(cx, write).map(|done| done?)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let flush = Pin::new(&mut this.socket).poll_flush(cx);
        if flush.is_ready()
            && let Some(until) = this.silence_until()
        {
            // An answer has gone out, and nobody may read from the socket before the peer sends
            // something: the alarm must wake the task by itself.
            let _ = this.read_alarm.rings(until, cx);
        }
        this.bounded(cx, flush).map(|done| done?)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        if let CloseStage::No = this.closing {
            ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
            this.read_alarm.forget();
            this.closing = match this.phase.has_unread() {
                true => CloseStage::Lingering {
                    until: Instant::now() + this.times.linger,
                    left: LINGER_BYTES_MAX,
                },
                false => CloseStage::Done,
            };
        }
        if let CloseStage::Lingering { until, left } = this.closing {
            ready!(this.poll_linger(cx, until, left));
            this.closing = CloseStage::Done;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T> Drop for PacedSocket<T> {
    fn drop(&mut self) {
        self.phase.end_of_socket();
    }
}

/// A timer that is made when it is first needed and moved when it must be.
#[derive(Debug, Default)]
struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    set_for: Option<Instant>,
}

impl Alarm {
    /// Whether it is `until` or later; if not, the task is woken then.
    fn rings(&mut self, until: Instant, cx: &mut Context<'_>) -> bool {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if self.set_for != Some(until) {
            sleep.as_mut().reset(until);
            self.set_for = Some(until);
        }
        sleep.as_mut().poll(cx).is_ready()
    }

    fn forget(&mut self) {
        self.set_for = None;
    }
}

/// Whether a peer has sent more than the head of its request. Whoever asks for another protocol
/// must wait for the answer; what came before it would not be counted with the rest.
#[derive(Debug, Default)]
struct EarlyBytes {
    is_ahead: bool,
    /// The last bytes, among which the end of a head may have begun.
    tail: Vec<u8>,
}

impl EarlyBytes {
    /// Something arrived: of a head, or while a request is under way.
    fn arrived(&mut self, bytes: &[u8], busy: bool) {
        const END: &[u8] = b"\r\n\r\n";
        if busy {
            self.is_ahead = true;
            self.tail.clear();
            return;
        }
        self.tail.extend_from_slice(bytes);
        let end = self.tail.windows(END.len()).position(|window| window == END);
        self.is_ahead = end.is_some_and(|at| at + END.len() < self.tail.len());
        let old = self.tail.len().saturating_sub(END.len() - 1);
        self.tail.drain(..old);
        if self.tail.capacity() > KEPT_BYTES {
            self.tail.shrink_to(KEPT_BYTES);
        }
    }
}

/// The peer did not wait for the answer.
fn unasked() -> Error {
    Error::new(ErrorKind::InvalidData, "the peer did not wait for the answer")
}

fn cut_off() -> Error {
    Error::new(ErrorKind::ConnectionAborted, "the core has stopped")
}

fn too_slow(what: &'static str) -> Error {
    Error::new(ErrorKind::TimedOut, what)
}
