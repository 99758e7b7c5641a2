//! Hostile peers: each makes a real attempt from outside at a real core, and must be stopped.
//!
//! How to add an attempt:
//! 1. Put a test into `agent/`, `tool_server/`, `operator/` or `client/`, in the file of its topic
//!    (a new topic is a new file and one `mod` line, sorted). Name it after what it tries.
//! 2. Use `support::TestHome` for the core and `peers` for the peer: a raw WebSocket, a caller with
//!    a narrow token, a seat, a tool server of a few lines.
//! 3. End it with `tried(Peer::ToolServer, "links its socket to another's", "the socket is the
//!    core's", &what_came_back)`. Title and what stops it are plain literals right behind the peer,
//!    also in tables of several attempts; the title completes "It …". `cargo xtask tidy` reads
//!    them there and compares them with `docs/security.md`, so nothing is missing and nothing stale.
//! 4. Write its row: `WHARF_BLESS=1 cargo test -p wharf-cli --test e2e hostile::client::pings`, then
//!    `cargo xtask security-page`, which keeps the rows of attempts that were not made just now.
//!    `make security-page` makes them all. A test without its row passes; `tidy` does not.
//! 5. What came back is a code or a short text without ids, times and ports.

mod agent;
mod client;
mod operator;
mod peers;
mod together;
mod tool_server;
