//! Ready-made layers.
//!
//! Those that do not care for types can stand around one tool, several, or all of them:
//! [`Timeout`], [`RateLimit`], [`Concurrency`], [`Trace`] and [`Approve`]. The others stand around
//! one tool: [`Retry`] clones inputs, [`Cache`] clones outputs, and [`Redact`] reads and writes
//! both.
//!
//! The order in which layers are added matters: the first is outermost.
//!
//! ```
//! use wharf_sdk::layers::{Retry, Timeout};
//! use wharf_sdk::{Lane, Scope, Tool};
//!
//! const FETCH: Tool<String, String> = Tool::new("fetch", "Fetches a page.");
//!
//! let scope = Scope::root();
//! // Each of three attempts has ten seconds.
//! scope.layer(Lane::Outer, &FETCH, Retry::new().attempts(3));
//! scope.layer(Lane::Outer, &FETCH, Timeout::after_secs(10));
//! ```

mod approve;
mod cache;
mod concurrency;
mod rate_limit;
mod redact;
mod retry;
mod timeout;
mod trace;

pub use approve::Approve;
pub use cache::Cache;
pub use concurrency::Concurrency;
pub use rate_limit::RateLimit;
pub use redact::Redact;
pub use retry::Retry;
pub use timeout::Timeout;
pub use trace::Trace;
