//~ `Retry` cannot stand around a tool that takes `I`, gives `u32` and says `()`
//~ `Retry` clones inputs
use wharf_sdk::{Data, Lane, Scope, Tool};
use wharf_sdk::layers::Retry;

pub fn wrong<I: Data>(scope: &Scope, tool: &Tool<I, u32>) {
    scope.layer(Lane::Outer, tool, Retry::new());
}
