use wharf_sdk::{Cx, Fault, Scope, Tool, tool};

const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");

/// Three times as much.
#[tool]
async fn triple(n: u32, cx: Cx) -> Result<u32, Fault> {
    Ok(n + DOUBLE.call(&cx, n).await?)
}

pub fn good(scope: &Scope) {
    let _ = scope.provide(&DOUBLE, |n, _cx| async move { Ok(2 * n) });
    scope.around(&TRIPLE, |n, next| async move { next.run(n).await });
}
