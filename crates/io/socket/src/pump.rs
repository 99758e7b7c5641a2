//! The one loop that moves frames, and the clock that it runs by.

use std::ops::ControlFlow;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::FutureExt as _;
use tokio::time::{Instant, timeout, timeout_at};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Pings, Session};
use wharf_vocab::Timestamp;

/// Bytes that are taken in one go, but for one frame that is larger.
const BYTES_AT_ONCE: usize = 1024 * 1024;
/// Commands that are obeyed before what came of them is sent, if they are there.
const COMMANDS_AT_ONCE: usize = 16;

/// Whoever a connection belongs to.
pub trait Owner: Send {
    /// Its session.
    type Session: Session + Send;
    /// What reaches the connection from inside.
    type Command: Send;

    /// Frames that are taken in one go before their events are looked at, if they are there.
    const FRAMES_AT_ONCE: usize = 1;

    /// The session.
    fn session(&mut self) -> &mut Self::Session;

    /// Now, on the clock of the session.
    fn now(&self) -> Moment;

    /// Passes on what arrived.
    fn receive(&mut self, incoming: Incoming<'_>) {
        let now = self.now();
        self.session().receive(now, incoming);
    }

    /// Handles everything that the session has to say. A break gives the connection back to the
    /// caller of [`pump`].
    fn work(&mut self) -> impl Future<Output = ControlFlow<()>> + Send;

    /// The next command. It may be dropped before it is ready, and then loses nothing.
    fn next(&mut self) -> impl Future<Output = Self::Command> + Send;

    /// Does what is commanded.
    fn obey(&mut self, command: Self::Command) -> impl Future<Output = ()> + Send;
}

/// Where frames come from.
pub trait Source: Send {
    /// The next frame. It may be dropped before it is ready, and then loses nothing.
    fn next(&mut self) -> impl Future<Output = SourceEvent<'_>> + Send;
}

/// What came out of a source.
#[derive(Debug)]
pub enum SourceEvent<'a> {
    /// A frame.
    Frame(Incoming<'a>),
    /// The last that can be read.
    Last(Incoming<'a>),
    /// Nothing more will come.
    End(Closed),
}

/// Where frames go.
pub trait Sink: Send {
    /// Whether a frame can be taken now.
    fn is_ready(&mut self) -> Result<bool, Closed>;

    /// Takes a frame, when it is ready for one.
    fn start(&mut self, frame: Outgoing) -> Result<(), Closed>;

    /// Sends what was taken. It may be dropped before it is ready, and then loses nothing.
    fn flush(&mut self) -> impl Future<Output = Result<(), Closed>> + Send;

    /// Ends the connection, where it has no last frame that does.
    fn shutdown(&mut self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// How long a peer is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// How long it may take to read a frame; for ever if the session itself sees to that.
    pub write: Option<Duration>,
    /// How long the last frames may take.
    pub close: Duration,
    /// Whether it is waited for after the last frame, so that it can read that.
    pub lingers: bool,
}

/// How a connection was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PumpEnd {
    /// It is over.
    Over,
    /// The owner wanted to have it back.
    GivenBack,
}

/// Runs a session until its connection is of no use any more.
pub async fn pump(
    source: &mut impl Source,
    sink: &mut impl Sink,
    owner: &mut impl Owner,
    patience: Patience,
) -> PumpEnd {
    // Until when what is being written may take.
    let mut written_by: Option<Instant> = None;
    let mut is_writing = false;
    let mut closed_by: Option<Instant> = None;
    let mut alarm = pin!(tokio::time::sleep_until(Instant::now()));
    loop {
        match advance(sink, owner, &mut is_writing).await {
            Ok(Advance::Waits) => {}
            Ok(Advance::Writes) => {
                written_by = patience.write.map(|write| Instant::now() + write);
            }
            Ok(Advance::Last) => {
                let by = closed_by.unwrap_or_else(|| Instant::now() + patience.close);
                // A peer that does not take it is gone.
                let _ = timeout_at(by, farewell(source, sink, patience.lingers)).await;
                return PumpEnd::Over;
            }
            Ok(Advance::GivesBack) => return PumpEnd::GivenBack,
            Err(how) => return lost(sink, owner, patience, how).await,
        }
        let is_closed = owner.session().is_closed();
        if is_closed {
            let by = closed_by.get_or_insert_with(|| Instant::now() + patience.close);
            if !is_writing {
                let _ = timeout_at(*by, sink.shutdown()).await;
                return PumpEnd::Over;
            }
        }
        let reads = owner.session().wants_input();
        let now = owner.now();
        let wake = owner.session().deadline().map(|ms| until(now, ms));
        let stuck = if is_closed { closed_by } else { written_by.filter(|_| is_writing) };
        let next = wake.into_iter().chain(stuck).min();
        // Times mostly move on: an alarm that rings too early is cheaper than one that is set anew
        // with each frame.
        if let Some(next) = next
            && (alarm.is_elapsed() || next < alarm.deadline())
        {
            alarm.as_mut().reset(next);
        }
        tokio::select! {
            received = source.next(), if reads => {
                if let ControlFlow::Break(how) = take(owner, received) {
                    end(sink, owner, patience, how).await;
                } else {
                    take_more(source, sink, owner, patience).await;
                }
            }
            flushed = sink.flush(), if is_writing => match flushed {
                Ok(()) => is_writing = false,
                Err(how) => return lost(sink, owner, patience, how).await,
            },
            command = owner.next(), if !is_closed => owner.obey(command).await,
            () = alarm.as_mut(), if next.is_some() => {
                if next.is_some_and(|next| next > Instant::now()) {
                    continue;
                }
                if stuck.is_some_and(|stuck| stuck <= Instant::now()) {
                    return lost(sink, owner, patience, Closed::NotReading).await;
                }
                let now = owner.now();
                owner.session().tick(now);
            }
        }
    }
}

/// Lets a peer close the connection in its own way, for so long.
pub async fn linger(mut source: impl Source, mut sink: impl Sink, patience: Duration) {
    let mut pings = Pings::of_a_stranger();
    let rest = async {
        while let SourceEvent::Frame(incoming) = source.next().await {
            if incoming == Incoming::Ping && !pings.take(0) {
                return;
            }
        }
    };
    if timeout(patience, rest).await.is_err() {
        hang_up(&mut sink, 1000, String::new(), patience).await;
    }
}

/// Closes a connection that no session runs on.
pub async fn hang_up(sink: &mut impl Sink, code: u16, reason: String, patience: Duration) {
    // Whether the peer hears of it does not matter any more.
    let _ = timeout(patience, send(sink, Outgoing::Close { code, reason })).await;
}

/// What is left when nothing more can be done without waiting.
enum Advance {
    /// Nothing new.
    Waits,
    /// What was begun to be written is not taken yet.
    Writes,
    /// The last frame is to be sent.
    Last,
    /// The owner wants the connection back.
    GivesBack,
}

/// Does all that can be done without waiting for anybody: what is to be sent goes together with what
/// comes of commands that are there already, and is mostly taken at once.
async fn advance(
    sink: &mut impl Sink,
    owner: &mut impl Owner,
    is_writing: &mut bool,
) -> Result<Advance, Closed> {
    let mut commands = 0;
    loop {
        let gives_back = owner.work().await.is_break();
        match fill(sink, owner.session())? {
            FillResult::Last => return Ok(Advance::Last),
            _ if gives_back => return Ok(Advance::GivesBack),
            FillResult::Nothing => return Ok(Advance::Waits),
            FillResult::Some => *is_writing = true,
        }
        if commands < COMMANDS_AT_ONCE
            && !owner.session().is_closed()
            && let Some(command) = owner.next().now_or_never()
        {
            commands += 1;
            owner.obey(command).await;
            continue;
        }
        commands = 0;
        match sink.flush().now_or_never() {
            Some(flushed) => flushed?,
            None => return Ok(Advance::Writes),
        }
        *is_writing = false;
    }
}

enum FillResult {
    Nothing,
    Some,
    Last,
}

/// Hands on what the session wants to send, as far as there is room for it.
fn fill(sink: &mut impl Sink, session: &mut impl Session) -> Result<FillResult, Closed> {
    let mut filled = FillResult::Nothing;
    while sink.is_ready()? {
        let Some(frame) = session.poll_send() else { break };
        let is_last = matches!(frame, Outgoing::Close { .. });
        sink.start(frame)?;
        if is_last {
            return Ok(FillResult::Last);
        }
        filled = FillResult::Some;
    }
    Ok(filled)
}

/// Passes on what was received; breaks if it was the last.
fn take(owner: &mut impl Owner, received: SourceEvent<'_>) -> ControlFlow<Closed, usize> {
    match received {
        SourceEvent::Frame(incoming) => {
            owner.receive(incoming);
            ControlFlow::Continue(match incoming {
                Incoming::Text(text) => text.len(),
                Incoming::Bytes(bytes) => bytes.len(),
                _ => 0,
            })
        }
        SourceEvent::Last(incoming) => {
            owner.receive(incoming);
            ControlFlow::Break(Closed::Broken("what came is no frame".to_owned()))
        }
        SourceEvent::End(how) => ControlFlow::Break(how),
    }
}

/// Takes what is there already.
async fn take_more<O: Owner>(
    source: &mut impl Source,
    sink: &mut impl Sink,
    owner: &mut O,
    patience: Patience,
) {
    let mut bytes = 0;
    for _ in 1..O::FRAMES_AT_ONCE {
        if bytes >= BYTES_AT_ONCE || !owner.session().wants_input() {
            return;
        }
        let Some(received) = source.next().now_or_never() else { return };
        match take(owner, received) {
            ControlFlow::Continue(count) => bytes += count,
            ControlFlow::Break(how) => return end(sink, owner, patience, how).await,
        }
    }
}

/// Nothing more can be read.
async fn end(sink: &mut impl Sink, owner: &mut impl Owner, patience: Patience, how: Closed) {
    if owner.session().is_closed() {
        return;
    }
    if matches!(how, Closed::With { .. }) {
        // The peer's farewell is returned; whoever does not take it is gone.
        let _ = timeout(patience.close, sink.flush()).await;
    }
    let now = owner.now();
    owner.session().end(now, how);
}

/// Nothing more can be written, but perhaps why.
async fn lost(
    sink: &mut impl Sink,
    owner: &mut impl Owner,
    patience: Patience,
    how: Closed,
) -> PumpEnd {
    let now = owner.now();
    let is_slow = how == Closed::NotReading && !owner.session().is_closed();
    if !owner.session().is_closed() {
        owner.session().end(now, how);
    }
    if is_slow && let Some(last) = owner.session().poll_send() {
        // It was told to read; perhaps it does for a moment.
        let _ = timeout(patience.close, send(sink, last)).await;
    }
    let _ = owner.work().await;
    PumpEnd::Over
}

/// Sends a frame however long it takes.
async fn send(sink: &mut impl Sink, frame: Outgoing) -> Result<(), Closed> {
    while !sink.is_ready()? {
        sink.flush().await?;
    }
    sink.start(frame)?;
    sink.flush().await
}

/// Sends the last frames, and waits until the peer has closed the connection, too.
async fn farewell(source: &mut impl Source, sink: &mut impl Sink, lingers: bool) {
    if sink.flush().await.is_ok() && lingers {
        // What the peer still sends is of no interest, but must be taken for it to read on.
        while let SourceEvent::Frame(_) = source.next().await {}
    }
}

/// When so many milliseconds are reached on a clock on which it is now that moment.
fn until(now: Moment, ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms.saturating_sub(now.ms))
}

/// Counts the milliseconds since a connection began.
#[derive(Debug, Clone, Copy)]
pub struct Clock(Instant);

impl Clock {
    /// A clock that begins now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Now, on this clock and on the calendar of the machine.
    #[must_use]
    pub fn now(self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.moment(Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
    }

    /// Now, on this clock and on another calendar.
    #[must_use]
    pub fn moment(self, at: Timestamp) -> Moment {
        Moment::new(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX), at)
    }
}

/// Sleeps until an instant, or for ever if there is none.
pub async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
