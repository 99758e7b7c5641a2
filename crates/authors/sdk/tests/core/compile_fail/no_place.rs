//~ a call cannot be made from `u32`
//~ pass `&scope`, an activated agent, or the `&cx` that the tool was given
use wharf_sdk::Tool;

const DOUBLE: Tool<u32, u32> = Tool::new("double", "Twice as much.");

pub fn wrong() {
    let _ = DOUBLE.call(&7_u32, 1);
}
