//! The pump with a session that does as it is told, over streams in memory.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf, duplex};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use wharf_protocol::{Closed, Incoming, Moment, Outgoing, Session};
use wharf_socket::{Clock, Owner, Patience, PumpEnd, pump, split_bytes};

const LARGE: usize = 1024 * 1024;
const PATIENCE: Patience =
    Patience { write: Some(Duration::from_secs(5)), close: Duration::from_secs(2), lingers: false };

/// Keeps what came, and sends what it is told to.
#[derive(Default)]
struct Script {
    sends: VecDeque<Outgoing>,
    bytes: usize,
    ticks: usize,
    deadline: Option<u64>,
    closed: Option<Closed>,
    /// What is said to a peer that does not read.
    parting: Option<Outgoing>,
}

impl Session for Script {
    type Event = ();

    fn receive(&mut self, _: Moment, incoming: Incoming<'_>) {
        if let Incoming::Bytes(bytes) = incoming {
            self.bytes += bytes.len();
        }
    }

    fn end(&mut self, _: Moment, how: Closed) {
        self.sends.clear();
        self.sends.extend(self.parting.take());
        self.closed.get_or_insert(how);
    }

    fn tick(&mut self, _: Moment) {
        self.ticks += 1;
        self.deadline = None;
    }

    fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.sends.pop_front()
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }
}

struct Scripted {
    session: Script,
    clock: Clock,
    commands: mpsc::Receiver<Command>,
    /// Gives the connection back when so many bytes have come.
    enough: usize,
}

enum Command {
    Send(Vec<u8>),
    Close,
}

impl Scripted {
    fn new(session: Script) -> (Self, mpsc::Sender<Command>) {
        let (sender, commands) = mpsc::channel(8);
        (Self { session, clock: Clock::start(), commands, enough: usize::MAX }, sender)
    }

    async fn run(&mut self, stream: impl AsyncRead + AsyncWrite + Send) -> PumpEnd {
        let (mut source, mut sink) = split_bytes(stream, 8 * 1024);
        pump(&mut source, &mut sink, self, PATIENCE).await
    }
}

impl Owner for Scripted {
    type Session = Script;
    type Command = Command;

    fn session(&mut self) -> &mut Script {
        &mut self.session
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }

    async fn work(&mut self) -> ControlFlow<()> {
        match self.session.bytes >= self.enough {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    async fn next(&mut self) -> Command {
        match self.commands.recv().await {
            Some(command) => command,
            None => std::future::pending().await,
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Send(bytes) => self.session.sends.push_back(Outgoing::Bytes(bytes)),
            Command::Close => self.session.closed = Some(Closed::ByOwner),
        }
    }
}

fn large() -> Script {
    let sends = VecDeque::from([Outgoing::Bytes(vec![7; LARGE])]);
    Script { sends, ..Script::default() }
}

#[tokio::test]
async fn two_peers_that_write_large_frames_at_once_do_not_block_each_other() {
    let (one, two) = duplex(1024);
    let ((mut left, _one), (mut right, _two)) = (Scripted::new(large()), Scripted::new(large()));
    (left.enough, right.enough) = (LARGE, usize::MAX);
    let both = async {
        let (left_end, right_end) = tokio::join!(left.run(one), right.run(two));
        assert_eq!((left_end, right_end), (PumpEnd::GivenBack, PumpEnd::Over));
    };
    timeout(Duration::from_secs(20), both).await.expect("neither waits for the other");
    assert_eq!(left.session.bytes, LARGE);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_is_let_go_in_time() {
    let (one, _unread) = duplex(1024);
    let (mut owner, _commands) = Scripted::new(large());
    let began = Instant::now();
    assert_eq!(owner.run(one).await, PumpEnd::Over);
    assert_eq!(owner.session.closed, Some(Closed::NotReading));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    // One that is told why gets a little more time for that.
    let (one, _unread) = duplex(1024);
    let parting = Some(Outgoing::Bytes(b"why".to_vec()));
    let (mut owner, _commands) = Scripted::new(Script { parting, ..large() });
    let began = Instant::now();
    owner.run(one).await;
    assert_eq!(began.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn commands_and_deadlines_are_seen_to_while_nothing_comes() {
    let (one, mut peer) = duplex(1024);
    let (mut owner, commands) =
        Scripted::new(Script { deadline: Some(1_000), ..Script::default() });
    let talks = async {
        commands.send(Command::Send(b"hello".to_vec())).await.expect("it listens");
        let mut said = [0; 5];
        peer.read_exact(&mut said).await.expect("said");
        assert_eq!(&said, b"hello");
        tokio::time::sleep(Duration::from_secs(2)).await;
        commands.send(Command::Close).await.expect("it listens");
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).await.expect("it is closed");
        assert!(rest.is_empty());
    };
    let (end, ()) = tokio::join!(owner.run(one), talks);
    assert_eq!((end, owner.session.ticks), (PumpEnd::Over, 1));
}

#[tokio::test]
async fn the_end_of_the_peer_is_the_end_of_the_session() {
    let (one, mut peer) = duplex(1024);
    let (mut owner, _commands) = Scripted::new(Script::default());
    peer.write_all(b"bye").await.expect("written");
    drop(peer);
    assert_eq!(owner.run(one).await, PumpEnd::Over);
    assert_eq!((owner.session.bytes, owner.session.closed), (3, Some(Closed::ended())));
}

#[tokio::test]
async fn all_that_waits_is_sent_in_order_however_much_room_there_is() {
    for room in [16, 64 * 1024] {
        let (one, mut peer) = duplex(room);
        let sends = (0..50).map(|n| Outgoing::Bytes(vec![n; 5])).collect();
        let (mut owner, commands) = Scripted::new(Script { sends, ..Script::default() });
        let talks = async {
            for n in 50..100 {
                commands.send(Command::Send(vec![n; 5])).await.expect("it listens");
            }
            let mut said = [0; 500];
            peer.read_exact(&mut said).await.expect("said");
            assert!(said.iter().zip(0..).all(|(byte, at)| usize::from(*byte) == at / 5), "{room}");
            drop(peer);
        };
        let both = async { tokio::join!(owner.run(one), talks) };
        timeout(Duration::from_secs(20), both).await.expect("all of it comes");
    }
}

/// A stream that counts how often it is written to.
struct Counted<S> {
    stream: S,
    writes: Arc<AtomicUsize>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn frames_that_are_there_together_go_with_one_write() {
    let (one, mut peer) = duplex(1024 * 1024);
    let writes = Arc::new(AtomicUsize::new(0));
    let stream = Counted { stream: one, writes: Arc::clone(&writes) };
    let sends = (0..100).map(|_| Outgoing::Bytes(vec![7; 1024])).collect();
    let (mut owner, commands) = Scripted::new(Script { sends, ..Script::default() });
    let talks = async {
        let mut said = vec![0; 100 * 1024];
        peer.read_exact(&mut said).await.expect("said");
        commands.send(Command::Close).await.expect("it listens");
        drop(peer);
    };
    let both = async { tokio::join!(owner.run(stream), talks) };
    timeout(Duration::from_secs(20), both).await.expect("all of it comes");
    assert_eq!(writes.load(Ordering::SeqCst), 2, "as much as is gathered, and the rest");
}
