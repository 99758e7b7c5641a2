//~ to be a future that resolves to `Result<u32, Fault>`, but it resolves to `u32`
use wharf_sdk::{Cx, Scope, Tool};

const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");

async fn double(n: u32, _cx: Cx) -> u32 {
    2 * n
}

pub fn wrong(scope: &Scope) {
    let _ = scope.provide(&DOUBLE, double);
}
