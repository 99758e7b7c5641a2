//~ cannot be the input, output or progress of a tool
//~ derive `Serialize`, `Deserialize` and `JsonSchema`
use wharf_sdk::{Scope, Tool};

pub struct Plain;

const PLAIN: Tool<Plain, u32> = Tool::new("plain", "Takes something plain.");

pub fn wrong(scope: &Scope) {
    let _ = PLAIN.call(scope, Plain);
}
