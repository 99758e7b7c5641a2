//~ this tool has an implementation of its own, so it cannot be given another
//~ change what it does with a layer: `scope.around(&TOOL, …)`
use wharf_sdk::{Implemented, Scope, Tool, boxed};

const OWN: Tool<u32, u32, (), Implemented> =
    Tool::new("own", "Has its own.").implemented(|n, _cx| boxed(async move { Ok(n) }));

pub fn wrong(scope: &Scope) {
    let _ = scope.provide(&OWN, |n, _cx| async move { Ok(2 * n) });
}
