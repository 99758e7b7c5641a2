//! One WebSocket: a run's request comes in, what the run says goes out.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use wharf_protocol::run::server::{Credential, NextFrames, RunServer, ServerEvent};
use wharf_protocol::{Moment, Session as _};
use wharf_socket::{Owner, Patience, pump, split_frames};
use wharf_vocab::limits::{SOCKET_READ_BYTES, SOCKET_SPARE_BYTES};
use wharf_wire::run_v1::Refusal;

use super::hub::{Hub, JoinResult, RunSubscription};
use super::metered::MeteredStream;

const PATIENCE: Patience =
    Patience { write: Some(Duration::from_secs(30)), close: Duration::from_secs(2), lingers: true };

/// Serves a connection that was upgraded.
pub(super) async fn serve<S>(hub: Arc<Hub>, credential: Credential, stream: S)
where
    S: AsyncRead + AsyncWrite + Send + Unpin,
{
    let bytes_max = hub.options.limits.frame_bytes_max;
    let mut config = WebSocketConfig::default();
    config.max_message_size = Some(bytes_max);
    config.max_frame_size = Some(bytes_max);
    config.read_buffer_size = SOCKET_READ_BYTES;
    config.max_write_buffer_size = bytes_max + SOCKET_SPARE_BYTES;
    let stream = MeteredStream::new(stream, Arc::clone(&hub.unfinished));
    let socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    let (mut source, mut sink) = split_frames(socket);
    let session = RunServer::new(hub.clock.now(), &hub.options.limits, hub.profile());
    let session = session.serving(hub.options.tool.clone());
    let mut connection = RunConnection { hub, credential, session, seat: None };
    pump(&mut source, &mut sink, &mut connection, PATIENCE).await;
}

struct RunConnection {
    hub: Arc<Hub>,
    credential: Credential,
    session: RunServer,
    /// Its place at the run, once it has named one.
    seat: Option<RunSubscription>,
}

/// What a run has for its reader.
enum ReaderCommand {
    Say(Vec<String>),
    Close(Refusal),
    /// The reader is too slow.
    Cut,
}

impl Owner for RunConnection {
    type Session = RunServer;
    type Command = ReaderCommand;

    fn session(&mut self) -> &mut RunServer {
        &mut self.session
    }

    fn now(&self) -> Moment {
        self.hub.clock.now()
    }

    async fn work(&mut self) -> ControlFlow<()> {
        let now = self.now();
        while let Some(event) = self.session.poll_event() {
            match (event, &self.seat) {
                (ServerEvent::Request { request, bytes }, _) => {
                    match self.hub.join(self.credential, *request, bytes) {
                        JoinResult::Seat(seat) => {
                            self.session.ack(now);
                            self.seat = Some(seat);
                        }
                        JoinResult::Unfit(unfit) => self.session.answer(now, &unfit),
                        JoinResult::Refused(refusal) => self.session.close(refusal),
                    }
                }
                (ServerEvent::Unfit(unfit), _) => self.session.answer(now, &unfit),
                (ServerEvent::Cancel, Some(seat)) => seat.cancel(),
                (ServerEvent::Stepped(stepped), Some(seat)) => seat.stepped(*stepped),
                (ServerEvent::Cancel | ServerEvent::Stepped(_), None) => {}
            }
        }
        if self.session.is_closed() {
            // Nobody reads the run from here any more.
            self.seat = None;
        }
        ControlFlow::Continue(())
    }

    /// What the run says next, as soon as all that it said before is on its way: a reader that
    /// falls behind is known by what waits for it.
    async fn next(&mut self) -> ReaderCommand {
        let Some(seat) = &self.seat else { return std::future::pending().await };
        let has_room = self.session.has_room();
        let said = async {
            loop {
                let mut said = std::pin::pin!(seat.said.notified());
                said.as_mut().enable();
                match seat.next() {
                    NextFrames::Frames(texts) => return ReaderCommand::Say(texts),
                    NextFrames::Close(refusal) => return ReaderCommand::Close(refusal),
                    NextFrames::Wait => said.await,
                }
            }
        };
        tokio::select! {
            biased;
            () = seat.cut.cancelled() => ReaderCommand::Cut,
            command = said, if has_room => command,
        }
    }

    async fn obey(&mut self, command: ReaderCommand) {
        match command {
            ReaderCommand::Say(texts) => self.session.say(self.now(), texts),
            ReaderCommand::Close(refusal) => self.session.close(refusal),
            ReaderCommand::Cut => self.session.cut(),
        }
    }
}
