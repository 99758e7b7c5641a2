//~ type mismatch in function arguments
//~ expected function signature `fn(u32, Cx<String>)
//~ found function signature `fn(String, Cx
use wharf_sdk::{Cx, Fault, Scope, Tool};

const DOUBLE: Tool<u32, u32, String> = Tool::new("double", "Twice as much.");

async fn double(text: String, _cx: Cx) -> Result<u32, Fault> {
    Ok(text.len() as u32)
}

pub fn wrong(scope: &Scope) {
    let _ = scope.provide(&DOUBLE, double);
}
