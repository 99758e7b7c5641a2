//~ cannot stand around a tool that takes `u32`, gives `u32` and says `()`
//~ not a layer for this tool
use wharf_sdk::{Lane, Scope, Tool};
use wharf_sdk::layers::Cache;

const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");

pub fn wrong(scope: &Scope) {
    scope.layer(Lane::Outer, &DOUBLE, Cache::<String>::new());
}
