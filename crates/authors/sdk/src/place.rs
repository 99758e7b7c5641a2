//! Where calls are made.

use std::fmt;
use std::sync::Arc;

use crate::life::Inner;

/// Where a call can be made: a [`Scope`](crate::Scope), an [`Active`](crate::Active) agent, a [`Place`], or a
/// tool that is working, by its [`Cx`](crate::Cx).
///
/// ```
/// use wharf_sdk::{Fault, Scope, Tool, Within};
///
/// const ROLL: Tool<u8, u8> = Tool::new("roll", "Rolls a die.");
///
/// // Works wherever calls can be made.
/// async fn twice(within: &impl Within) -> Result<u8, Fault> {
///     Ok(ROLL.call(within, 6).await? + ROLL.call(within, 6).await?)
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&ROLL, |sides, _cx| async move { Ok(sides) })?;
/// assert_eq!(twice(&scope).await?, 12);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "a call cannot be made from `{Self}`",
    label = "neither a scope, nor an agent, nor the `Cx` of a tool",
    note = "pass `&scope`, an activated agent, or the `&cx` that the tool was given"
)]
pub trait Within {
    /// The place.
    fn place(&self) -> Place;
}

/// Where a call is made. Unlike a [`Scope`](crate::Scope) it keeps nothing open, so a task can hold it.
///
/// ```
/// use wharf_sdk::{Scope, Tool, Within};
///
/// const NEXT: Tool<u8, u8> = Tool::new("next", "One more.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let scope = Scope::root();
/// scope.provide(&NEXT, |n, _cx| async move { Ok(n + 1) })?;
/// let place = scope.place();
/// scope.spawn(async move {
///     assert_eq!(NEXT.call(&place, 1).await, Ok(2));
/// });
/// # scope.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Place(pub(crate) Arc<Inner>);

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

impl Within for Place {
    fn place(&self) -> Place {
        self.clone()
    }
}
