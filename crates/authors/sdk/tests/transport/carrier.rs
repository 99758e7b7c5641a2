//! Every transport as a pair of ends.

use std::any::Any;
use std::time::Duration;

use wharf_sdk::operative::{self, Serving};
use wharf_sdk::transport::{Link, Options, memory, sse, unix, ws};
use wharf_sdk::{Scope, Within};

/// What carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Memory,
    Unix,
    Ws,
    Sse,
}

/// Two ends of a connection: the one that calls, and the one that serves.
pub(crate) struct Ends {
    pub(crate) caller: Link,
    pub(crate) server: Link,
    /// Listeners and folders, which go with their connections.
    _kept: Box<dyn Any + Send>,
}

/// Options for tests: a lost session of server-sent events is not waited for for long.
pub(crate) fn options() -> Options {
    Options { unread_max: Duration::from_millis(300), ..Options::default() }
}

impl Carrier {
    pub(crate) async fn ends(self) -> Ends {
        self.ends_with(options()).await
    }

    pub(crate) async fn ends_with(self, options: Options) -> Ends {
        match self {
            Self::Memory => {
                let (caller, server) = memory::pair_with(&options, &options);
                Ends { caller, server, _kept: Box::new(()) }
            }
            Self::Unix => {
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("tools.sock");
                let mut listener = unix::Listener::bind(&path, options.clone()).expect("bound");
                let caller = unix::connect(&path, &options).await.expect("connected");
                let server = listener.accept().await.expect("accepted");
                Ends { caller, server, _kept: Box::new((listener, folder)) }
            }
            Self::Ws => {
                let bound = ws::Listener::bind("127.0.0.1:0", options.clone()).await;
                let mut listener = bound.expect("bound");
                let address = format!("ws://{}/tools", listener.address());
                let caller = ws::connect(&address, &options).await.expect("connected");
                let server = listener.accept().await.expect("accepted");
                Ends { caller, server, _kept: Box::new(listener) }
            }
            Self::Sse => {
                let bound = sse::Listener::bind("127.0.0.1:0", options.clone()).await;
                let mut listener = bound.expect("bound");
                let address = format!("http://{}/tools", listener.address());
                let caller = sse::connect(&address, &options).await.expect("connected");
                let server = listener.accept().await.expect("accepted");
                Ends { caller, server, _kept: Box::new(listener) }
            }
        }
    }
}

impl Ends {
    /// Serves everything of a scope at one end, and gives a scope whose calls go to the other.
    pub(crate) fn serve(&self, served: &impl Within) -> (Scope, Serving) {
        let caller = Scope::root().with_transport(self.caller.clone());
        (caller, operative::serve(served, &self.server))
    }
}

/// Runs each case over every transport.
macro_rules! over_every_transport {
    ($($case:ident),+ $(,)?) => {
        over_every_transport!(@one memory Memory $($case)+);
        over_every_transport!(@one unix Unix $($case)+);
        over_every_transport!(@one ws Ws $($case)+);
        over_every_transport!(@one sse Sse $($case)+);
    };
    (@one $module:ident $carrier:ident $($case:ident)+) => {
        mod $module {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(crate::carrier::Carrier::$carrier).await;
                }
            )+
        }
    };
}
pub(crate) use over_every_transport;

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    waited.await.unwrap_or_else(|_| panic!("it never came to this: {what}"));
}

/// Waits for something that must not take for ever.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it takes too long")
}
