//! The HTTP edge: REST, server-sent events, authentication, OpenAPI and metrics.
//!
//! It turns requests into inputs of the engine and what the engine shows into answers. It never
//! opens the store, decides nothing about runs, and a slow peer never slows anybody else.

pub use wharf_wire::rest_v1::CoreInfo;
