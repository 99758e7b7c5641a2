//! `wharf up`: a core in the foreground until a signal stops it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};
use wharf_tls::CertFiles;
use wharf_vocab::{Code, Fault};

use crate::service::ServiceManager;
use crate::settings::Settings;
use crate::{Core, CoreOptions, Home, demo, logging, service};

/// How to start a core in the foreground.
#[derive(Debug, Clone)]
pub struct UpOptions {
    /// Its home.
    pub home: Home,
    /// Where it listens; environment and configuration say when absent.
    pub listen: Option<SocketAddr>,
    /// Its certificate and key; configuration says when absent.
    pub tls: Option<CertFiles>,
    /// Whether a proxy in front of it takes care of TLS.
    pub behind_proxy: bool,
    /// Origins of pages that may call it, besides those of its configuration.
    pub origins: Vec<String>,
    /// The folder with the console's page, instead of what the program carries.
    pub console_dir: Option<PathBuf>,
    /// Whether to add the example providers.
    pub demo: bool,
    /// Whether to make a link that signs one browser in at the console.
    pub console_link: bool,
}

/// What is told once the core is ready.
#[derive(Debug, serde::Serialize)]
pub struct Ready {
    /// Where its API is.
    pub http: String,
    /// Its home.
    pub home: PathBuf,
    /// How many tools it has.
    pub tools: usize,
    /// A link that signs one browser in at the console, once and soon, if one was wanted.
    #[serde(skip)]
    pub console_link: Option<String>,
}

/// Runs a core until SIGINT or SIGTERM, then lets it finish what is under way. A second signal
/// ends the process at once.
pub async fn up(options: UpOptions, on_ready: impl FnOnce(&Ready) + Send) -> Result<(), Fault> {
    let UpOptions { home, listen, tls, behind_proxy, origins, console_dir, demo, console_link } =
        options;
    logging::begin(&Settings::load(&home)?.log)?;
    raise_open_files();
    let mut signals = Signals::new().map_err(|error| {
        Fault::new(Code::CoreInternal, format!("Signals cannot be received: {error}."))
    })?;
    let manager = ServiceManager::from_env();
    let path = home.path().to_owned();
    let options = CoreOptions {
        listen,
        socket: service::handed_over()?.map(Arc::new),
        tls,
        behind_proxy,
        origins,
        console_dir,
        ..CoreOptions::new(home.clone())
    };
    let core = Core::start(options).await?;
    if demo {
        demo::furnish(&home, core.agents(), core.tools()).await;
        demo::tour::set_up(&home).await;
    }
    let tools = core.handle().providers().tools().len();
    let http = core.http_url();
    let console_link = if console_link { link(&home, &http).await } else { None };
    let ready = Ready { http, home: path, tools, console_link };
    tracing::info!(http = ready.http, tools, "the core is ready");
    on_ready(&ready);
    manager.ready(&ready.http);
    let signs = manager.watch(core.handle().clone())?;
    let ended = tokio::select! {
        _ = signals.next() => Ok(()),
        () = core.handle().ended() => {
            let message = "The engine stopped unexpectedly; see its log. Start it again.";
            Err(Fault::new(Code::CoreInternal, message))
        }
    };
    tracing::info!("the core is stopping; a second signal ends it at once");
    drop(signs);
    manager.stopping();
    tokio::spawn(async move {
        let code = signals.next().await;
        tracing::warn!("ended at once; what was under way is taken up at the next start");
        std::process::exit(128 + code);
    });
    core.stop().await?;
    tracing::info!("the core has stopped");
    ended
}

/// A link that signs a browser in as the owner. Without one, `wharf console` makes the next.
async fn link(home: &Home, http: &str) -> Option<String> {
    let locator =
        wharf_client::Locator { home: Some(home.path().to_owned()), ..Default::default() };
    let client = wharf_client::Client::new(locator).ok()?;
    let link = client.tokens().create_console_link().await.ok()?;
    // With TLS the core knows a name that its certificate is for.
    match link.url.starts_with("https://") {
        true => Some(link.url),
        false => Some(format!("{}/#link={}", http.trim_end_matches('/'), link.code)),
    }
}

/// The signals that ask a program to stop.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Listens from now on.
    pub fn new() -> io::Result<Self> {
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        Ok(Self { interrupt: signal(interrupt)?, terminate: signal(terminate)? })
    }

    /// The number of the next one.
    pub async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
        }
    }
}

/// Each connection is an open file, and what a shell allows by default is few.
fn raise_open_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
