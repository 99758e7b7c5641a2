//! The server half: clients of MCP behind the HTTP edge.
//!
//! | file | what it is |
//! |---|---|
//! | `shared.rs` | what all requests share |
//! | `routes.rs`, `query.rs`, `caller.rs` | who comes, where to, and as whom |
//! | `post.rs` | a message: its era, its session, what it must bring along |
//! | `dispatch.rs`, `door.rs` | which function serves a request, what it knows, how it answers |
//! | `frame.rs` | answers as JSON or as events |
//! | `session.rs`, `shares.rs` | the little of sessions that is in memory; limits of a grant |
//! | `declare.rs` | `initialize`, `server/discover` |
//! | `tools.rs`, `describe.rs`, `pages.rs` | `tools/list` |
//! | `calls.rs`, `stream.rs`, `progress.rs`, `patience.rs` | calls are runs |
//! | `questions.rs`, `form.rs`, `tasks.rs` | what a run asks its client; runs as tasks |
//! | `resources.rs`, `files.rs`, `upstream.rs`, `reading.rs` | resources, templates, prompts |
//! | `complete.rs`, `changes.rs` | completion; notices of changes |
//! | `oauth.rs` | tokens of an authorization server elsewhere |

mod calls;
mod changes;
mod complete;
mod declare;
mod describe;
mod dispatch;
mod door;
mod files;
mod form;
mod frame;
pub(crate) mod oauth;
mod pages;
mod patience;
mod post;
mod progress;
mod query;
mod questions;
mod reading;
mod resources;
pub(crate) mod routes;
mod session;
pub(crate) mod shared;
mod shares;
mod stream;
mod tasks;
mod tools;
mod upstream;
