//! Who may depend on whom, as data. ARCHITECTURE.md shows the same table to readers.
//!
//! A crate that is not named here may not exist: its place in the direction is a decision, and
//! decisions are written down before code relies on them.

/// What a row allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// One crate, by its folder below `crates/`.
    Crate(&'static str),
    /// Every crate of a group.
    Group(&'static str),
    /// Every crate there is.
    Everything,
}

/// One row: the crates it speaks of, and what they may depend on.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) crates: &'static [&'static str],
    pub(super) may_use: &'static [Reach],
}

use Reach::{Crate, Everything, Group};

const VOCAB: Reach = Crate("kernel/vocab");
const WIRE: Reach = Crate("kernel/wire");
const PROTOCOL: Reach = Crate("kernel/protocol");
const EXPRESSION: Reach = Crate("kernel/expression");
const DOMAIN: Reach = Crate("kernel/domain");
const JOURNAL: Reach = Crate("kernel/journal");
const PORTS: Reach = Crate("engine/ports");
const MEMORY: Reach = Crate("engine/memory");
const ENGINE: Reach = Crate("engine/engine");
const HOSTING: Reach = Crate("edges/hosting");
const SOCKET: Reach = Crate("io/socket");
const TLS: Reach = Crate("io/tls");
const WEB: Reach = Crate("edges/web");
const SDK: Reach = Crate("authors/sdk");
const CLIENT: Reach = Crate("authors/client");

/// The direction of the workspace.
pub(super) const ROWS: &[Row] = &[
    Row { crates: &["kernel/vocab"], may_use: &[] },
    Row { crates: &["kernel/wire", "kernel/expression"], may_use: &[VOCAB] },
    Row { crates: &["kernel/domain"], may_use: &[VOCAB, EXPRESSION] },
    Row { crates: &["kernel/journal"], may_use: &[VOCAB, DOMAIN] },
    Row { crates: &["kernel/protocol"], may_use: &[VOCAB, WIRE] },
    // Runs sessions on real connections, for both ends of each wire.
    Row { crates: &["io/socket"], may_use: &[VOCAB, PROTOCOL] },
    // Certificates and encrypted connections of whatever listens.
    Row { crates: &["io/tls"], may_use: &[] },
    Row { crates: &["engine/ports"], may_use: &[VOCAB, DOMAIN] },
    // A store that is gone with its process: for programs with a core inside, the simulator, tests.
    Row { crates: &["engine/memory"], may_use: &[VOCAB, DOMAIN, JOURNAL, PORTS] },
    Row { crates: &["engine/engine"], may_use: &[VOCAB, DOMAIN, PORTS] },
    Row {
        crates: &[
            "adapters/store-sqlite",
            "adapters/store-postgres",
            "adapters/bus-nats",
            "adapters/launcher",
            "adapters/vault",
        ],
        may_use: &[VOCAB, DOMAIN, JOURNAL, PORTS],
    },
    Row { crates: &["adapters/artifacts"], may_use: &[VOCAB, DOMAIN, JOURNAL, PORTS, TLS] },
    Row {
        crates: &["edges/egress", "edges/operator", "edges/tool", "edges/console"],
        may_use: &[VOCAB, WIRE, PROTOCOL, SOCKET, WEB, DOMAIN, PORTS, ENGINE],
    },
    // What edges that speak HTTP share; it knows no engine.
    Row { crates: &["edges/web"], may_use: &[VOCAB, WIRE] },
    Row { crates: &["edges/views"], may_use: &[VOCAB, WIRE, WEB, DOMAIN, PORTS, ENGINE] },
    Row {
        crates: &["edges/graphql"],
        may_use: &[VOCAB, WIRE, PROTOCOL, SOCKET, WEB, DOMAIN, PORTS, ENGINE, Crate("edges/views")],
    },
    // Posts to receivers outside.
    Row { crates: &["edges/notify"], may_use: &[VOCAB, WEB, DOMAIN, PORTS, ENGINE] },
    // Talks to providers of models itself, and reads their streams.
    Row { crates: &["edges/models"], may_use: &[VOCAB, PROTOCOL, DOMAIN, PORTS, ENGINE] },
    Row {
        crates: &["edges/http"],
        may_use: &[
            VOCAB,
            WIRE,
            PROTOCOL,
            SOCKET,
            TLS,
            WEB,
            DOMAIN,
            PORTS,
            ENGINE,
            Crate("edges/views"),
        ],
    },
    Row {
        crates: &["edges/builtin", "edges/hosting", "edges/telemetry"],
        may_use: &[VOCAB, DOMAIN, PORTS, ENGINE],
    },
    Row {
        crates: &["edges/agent", "edges/run"],
        may_use: &[VOCAB, WIRE, PROTOCOL, SOCKET, DOMAIN, PORTS, ENGINE, HOSTING],
    },
    // Serves clients of MCP behind the HTTP edge, and hosts servers of MCP as providers.
    Row {
        crates: &["edges/mcp"],
        may_use: &[VOCAB, WIRE, PROTOCOL, SOCKET, WEB, DOMAIN, PORTS, ENGINE, HOSTING],
    },
    Row { crates: &["authors/toolserver"], may_use: &[VOCAB, WIRE, PROTOCOL, SOCKET, TLS] },
    Row { crates: &["authors/client"], may_use: &[VOCAB, WIRE, PROTOCOL] },
    // What a compiler runs depends on nothing that it compiles.
    Row { crates: &["authors/sdk-macros"], may_use: &[] },
    // An author's own tool server is served by the same library as `wharf tool serve`.
    Row {
        crates: &["authors/sdk"],
        may_use: &[
            VOCAB,
            WIRE,
            PROTOCOL,
            SOCKET,
            Crate("authors/sdk-macros"),
            Crate("authors/toolserver"),
        ],
    },
    Row { crates: &["examples/agents/hello", "examples/tools/rust/text/words/1"], may_use: &[SDK] },
    // A core inside a program is assembled like the server's, and offers tools as the core's own.
    Row {
        crates: &["authors/embedded"],
        may_use: &[
            VOCAB,
            DOMAIN,
            JOURNAL,
            PORTS,
            MEMORY,
            ENGINE,
            SDK,
            Group("adapters"),
            Crate("edges/builtin"),
        ],
    },
    Row { crates: &["examples/sdk/faces"], may_use: &[SDK, Crate("authors/embedded")] },
    Row {
        crates: &["app/server"],
        may_use: &[
            VOCAB,
            DOMAIN,
            JOURNAL,
            PORTS,
            ENGINE,
            // What a service manager hands over is taken as tool servers take what a core does.
            SOCKET,
            TLS,
            Group("adapters"),
            Group("edges"),
            // A core writes into its home what clients read there.
            CLIENT,
        ],
    },
    Row {
        crates: &["app/cli"],
        may_use: &[
            VOCAB,
            WIRE,
            // The bridge from a client's stdio to a core is a session as well, and so is a seat.
            PROTOCOL,
            SOCKET,
            SDK,
            CLIENT,
            Crate("adapters/launcher"),
            Crate("app/server"),
            Crate("authors/toolserver"),
            Crate("proof/testkit"),
            Crate("proof/conformance"),
        ],
    },
    // What tests of every layer say they left out depends on nothing.
    Row { crates: &["proof/skips"], may_use: &[] },
    // A server for tests; it knows nothing of Wharf.
    Row { crates: &["proof/postgres"], may_use: &[Crate("proof/skips")] },
    // What fuzz targets of every wire share, and those of the sessions themselves.
    Row { crates: &["proof/fuzz"], may_use: &[VOCAB, WIRE, PROTOCOL] },
    // The suites that every store must pass.
    Row { crates: &["proof/contract"], may_use: &[VOCAB, DOMAIN, JOURNAL, PORTS] },
    Row { crates: &["proof/testkit"], may_use: &[VOCAB, DOMAIN, PORTS, MEMORY, ENGINE, JOURNAL] },
    Row { crates: &["proof/conformance"], may_use: &[VOCAB, WIRE, PROTOCOL] },
    Row { crates: &["proof/bench"], may_use: &[Everything] },
    Row { crates: &["xtask"], may_use: &[] },
];

/// Groups from the bottom up. Tests may reach everything in their own and in lower layers.
pub(super) const LAYERS: &[&[&str]] = &[
    &["kernel"],
    &["io"],
    &["engine"],
    &["adapters", "edges", "authors"],
    &["app", "proof", "examples", "xtask"],
];

/// What tests of every layer but the kernel may use, wherever it stands. The engine is tested with
/// the core's own tools.
pub(super) const TEST_SUPPORT: &[Reach] = &[
    Crate("proof/testkit"),
    Crate("proof/contract"),
    Crate("proof/skips"),
    Crate("proof/postgres"),
    Crate("proof/fuzz"),
    Crate("edges/builtin"),
];

/// Pairs that never see each other below `app` and `proof`, not even in tests: then each side
/// can be replaced without the other noticing.
pub(super) const APART: &[(Reach, Reach)] = &[(DOMAIN, WIRE), (Group("edges"), Group("adapters"))];

/// What the kernel may not use: runtimes, sockets, databases, clocks and randomness.
pub(super) const NOT_IN_THE_KERNEL: &[&str] = &[
    "async-nats",
    "axum",
    "fastrand",
    "getrandom",
    "hyper",
    "mio",
    "rand",
    "reqwest",
    "rusqlite",
    "rustix",
    "sqlx",
    "tokio",
    "tokio-util",
];
