//! The HTTP edge: REST, server-sent events, authentication, OpenAPI and metrics.
//!
//! It turns requests into inputs of the engine and what the engine shows into answers. It never
//! opens the store, decides nothing about runs, and a slow peer never slows anybody else.
//!
//! The way of a request: [`HttpListener`] accepts once there is a permit, `conn` pumps bytes at a
//! bounded pace, `guard` checks sizes, host, origin, token and verb, a file of `routes` reads the
//! request, and the engine's handle does the rest. `wharf_views` makes messages of what the
//! engine shows, and `from_wire` reads the requests that only REST has.

mod access;
mod app;
mod arriving;
mod auth;
mod body;
mod conn;
mod console;
mod cors;
mod file_tickets;
mod from_wire;
mod guard;
mod handshake;
mod hosts;
mod listen;
mod measures;
mod message;
mod metrics;
mod mounted;
mod openapi;
mod options;
mod pace;
mod page;
mod phase;
mod range;
mod routes;
mod sessions;
mod tickets;
mod unread;

use wharf_web::{answer, cursor, params, sse};

pub use auth::OwnerToken;
pub use listen::{HttpListener, HttpServer};
pub use metrics::install as install_metrics;
pub use options::{Auditor, Doctor, HttpLimits, HttpOptions, Mount};
pub use wharf_views::{CoreStatus, LogRing, Steering, Vitals};
pub use wharf_wire::rest_v1::{AuditVerdict, CoreInfo, Finding, Fix};
