//! Serving tools: whatever a scope or an agent provides is executed for a peer.
//!
//! [`serve`] does it on a link that is there already. [`connect`] connects to a core, offers the
//! tools under a name, serves them, and connects again when the connection is lost.

mod catalog;
#[cfg(feature = "ws")]
mod connect;
mod request;
mod serving;

use std::time::Duration;

#[cfg(feature = "ws")]
pub use connect::{Connect, Operative, connect};
pub use serving::Serving;

use crate::Within;
use crate::transport::{Link, OfferedTool};

/// What can be chosen about serving. The defaults suit most.
///
/// ```
/// use wharf_sdk::operative::Options;
///
/// let one_at_a_time = Options { calls_max: 1, ..Options::default() };
/// assert_eq!(one_at_a_time.calls_max, 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How many calls are worked on at once. More wait, until the link's own limit is reached and
    /// they are refused as busy.
    pub calls_max: usize,
    /// How long calls that are under way may take when serving is to stop; what takes longer is
    /// called off and answered as given up.
    pub grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { calls_max: 64, grace: Duration::from_secs(10) }
    }
}

/// Serves everything that a scope or an agent provides, until the connection ends or the result is
/// stopped or dropped.
///
/// Each call runs in a scope of its own below the one that is served, with the layers that hold
/// there. It is called off when the peer does not wait for it any more. If the peer is one of
/// Wharf's, tools that have no implementation here, questions and completions go back to it while
/// a call is worked on; else the transport of the scope holds.
///
/// ```
/// use wharf_sdk::{Cx, Fault, Scope, Tool, operative, transport::memory};
///
/// const COUNT: Tool<u32, u32, u32> = Tool::new("count", "Counts.");
///
/// async fn count(to: u32, cx: Cx<u32>) -> Result<u32, Fault> {
///     for n in 1..=to {
///         cx.progress(n).await;
///     }
///     Ok(to)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (here, there) = memory::pair();
/// let scope = Scope::root();
/// scope.provide(&COUNT, count)?;
/// let serving = operative::serve(&scope, &there);
///
/// let caller = Scope::root().with_transport(here);
/// let mut call = COUNT.call(&caller, 3);
/// assert_eq!(call.progress().await, Some(1));
/// assert_eq!(call.await?, 3);
/// serving.stop().await;
/// # Ok(()) }
/// ```
pub fn serve(within: &impl Within, link: &Link) -> Serving {
    serve_with(within, link, Options::default())
}

/// The same with choices.
pub fn serve_with(within: &impl Within, link: &Link, options: Options) -> Serving {
    Serving::begin(within.place(), link.clone(), options)
}

/// The tools of a scope or an agent as they are offered to a core.
///
/// ```
/// use wharf_sdk::{Scope, Tool, operative};
///
/// const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");
///
/// let scope = Scope::root();
/// scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) }).unwrap();
/// assert_eq!(operative::offer(&scope)[0].name, "double");
/// ```
#[must_use]
pub fn offer(within: &impl Within) -> Vec<OfferedTool> {
    catalog::offer(&within.place())
}
