//! What is measured: one small tool, some layers around it, and somebody who executes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wharf_sdk::transport::{Link, Options, memory, ws};
use wharf_sdk::{Cx, Fault, Scope, Tool, operative};

/// How many layers stand around the calls that are measured.
pub(crate) const LAYERS: [usize; 3] = [0, 1, 5];

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Question {
    from: String,
    to: String,
    #[schemars(range(min = 1, max = 9))]
    seats: u32,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Route {
    pub(crate) stops: u32,
    price: f64,
    via: Vec<String>,
}

/// The tool.
pub(crate) const ROUTE: Tool<Question, Route> = Tool::new("route", "Finds a way.");

async fn route(question: Question, _cx: Cx) -> Result<Route, Fault> {
    let via = vec![question.from, question.to];
    Ok(Route { stops: 2, price: 129.5, via })
}

/// A question like all others.
pub(crate) fn question() -> Question {
    Question { from: "Lisbon".to_owned(), to: "Tokyo".to_owned(), seats: 2 }
}

/// What lies between the caller and whoever executes the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// Nothing: the tool is a function of this process.
    Nothing,
    /// The codec, in memory.
    Memory,
    /// A WebSocket of this machine.
    WebSocket,
}

/// A caller and whoever executes the tool for it.
pub(crate) struct Scene {
    caller: Scope,
    executor: Scope,
    link: Option<Link>,
}

impl Scene {
    pub(crate) async fn open(layers: usize, over: Over) -> anyhow::Result<Self> {
        let (caller, executor) = (Scope::root(), Scope::root());
        for _ in 0..layers {
            caller.around(&ROUTE, |question, next| async move { next.run(question).await });
        }
        let link = match over {
            Over::Nothing => {
                caller.provide(&ROUTE, route)?;
                return Ok(Self { caller, executor, link: None });
            }
            Over::Memory => {
                let (near, far) = memory::pair();
                executor.provide(&ROUTE, route)?;
                serve(&executor, far);
                near
            }
            Over::WebSocket => {
                let mut listener = ws::Listener::bind("127.0.0.1:0", Options::default()).await?;
                let address = format!("ws://{}/", listener.address());
                executor.provide(&ROUTE, route)?;
                let served = executor.clone();
                tokio::spawn(async move {
                    if let Some(far) = listener.accept().await {
                        serve(&served, far);
                    }
                });
                ws::connect(&address, &Options::default()).await?
            }
        };
        caller.set_transport(link.clone());
        Ok(Self { caller, executor, link: Some(link) })
    }

    /// Where calls are made from.
    pub(crate) fn scope(&self) -> Scope {
        self.caller.clone()
    }

    pub(crate) async fn close(self) {
        if let Some(link) = &self.link {
            link.close().await;
        }
        self.caller.close().await;
        self.executor.close().await;
    }
}

/// Executes what comes over a connection until it ends.
fn serve(scope: &Scope, link: Link) {
    let serving = operative::serve(scope, &link);
    tokio::spawn(async move {
        link.closed().await;
        serving.stop().await;
    });
}
