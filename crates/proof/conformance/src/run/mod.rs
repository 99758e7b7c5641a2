//! Checks whether a tool server keeps the run protocol, over the wire only: [`check`] speaks to
//! any server and says which requirements it kept, which it broke, and which were skipped.
//!
//! It does not know what the tool does. It sends the inputs it is given, reads every frame, and
//! judges what it saw by rules that hold for every run; beside that it sends what no core ever
//! would. Every wait has an end, and every connection is closed.

mod checks;
mod frames;
mod requirements;
mod rules;
mod server;
mod session;

use std::time::Duration;

use wharf_vocab::Object;
pub use wharf_wire::run_v1::Mode;

pub use crate::Profile;

use tokio::sync::mpsc;

use crate::error::Error;
use crate::findings::{Findings, News};
use crate::report::{Report, Row};

/// How a tool server is checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Where it is: `http://`, `https://`, `ws://` or `wss://` with host and port, or `unix:` and
    /// the path of a socket.
    pub url: String,
    /// The bearer token it asks for.
    pub token: Option<String>,
    /// Inputs of an ordinary run.
    pub inputs: Object,
    /// Inputs of a run that takes long; what needs one is skipped without them.
    pub slow_inputs: Option<Object>,
    /// The mode of the one ordinary run; everything else pretends.
    pub mode: Mode,
    /// Which requirements are checked.
    pub profile: Profile,
    /// Whether to check what takes many seconds.
    pub slow: bool,
    /// The largest frame the server takes.
    pub frame_bytes_max: usize,
    /// How long the server waits for the first frame.
    pub first_frame: Duration,
    /// How long a run may be silent.
    pub silence: Duration,
    /// How long a run may take to end after it was canceled.
    pub canceled: Duration,
    /// How long one run may take.
    pub reply: Duration,
    /// What is added to every bound of the protocol, because machines are busy at times.
    pub slack: Duration,
}

impl Options {
    /// The usual check of the server at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: None,
            inputs: Object::new(),
            slow_inputs: None,
            mode: Mode::Mock,
            profile: Profile::Full,
            slow: false,
            frame_bytes_max: 8 * 1024 * 1024,
            first_frame: Duration::from_secs(10),
            silence: Duration::from_secs(10),
            canceled: Duration::from_secs(7),
            reply: Duration::from_secs(30),
            slack: Duration::from_millis(300),
        }
    }
}

/// Checks the tool server at `options.url`.
pub async fn check(options: Options) -> Result<Report, Error> {
    check_aloud(options, |_| {}).await
}

/// Checks the tool server at `options.url`, and tells each row as soon as something is known of
/// it. A row comes again when what is found later speaks against it; those that nothing was found
/// of are only in the report.
pub async fn check_aloud(options: Options, mut tell: impl FnMut(Row)) -> Result<Report, Error> {
    let only_seed = options.profile == Profile::Seed;
    let server = server::Server::new(options)?;
    server.reachable().await?;
    let (news, mut heard) = mpsc::unbounded_channel();
    let mut tell = |news: News| {
        let row = Row::new(&requirements::RUN, news.number, news.verdict, news.note);
        row.filter(|row| !(only_seed && row.addition)).map(&mut tell);
    };
    let checking = checks::all(&server, Findings::told_to(news));
    tokio::pin!(checking);
    let findings = loop {
        tokio::select! {
            biased;
            Some(news) = heard.recv() => tell(news),
            findings = &mut checking => break findings,
        }
    };
    while let Ok(news) = heard.try_recv() {
        tell(news);
    }
    let report = Report::new(&requirements::RUN, findings);
    Ok(if only_seed { report.without_additions() } else { report })
}
