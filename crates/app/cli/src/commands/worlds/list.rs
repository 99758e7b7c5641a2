//! `wharf worlds list`.

use wharf_wire::rest_v1::World;

use super::show::{left_of, limit_of};
use crate::cli::Context;
use crate::exit::Exit;
use crate::failure::Result;
use crate::table::{self, Table};
use crate::{amount, moment};

/// Lists worlds. How much each holds is shown by `show` and `du`, which must add it up.
pub(super) async fn run(context: &Context) -> Result<Exit> {
    let output = context.output;
    let items = context.client()?.worlds().list().raw().all().await?;
    if output.is_json() {
        output.json(&items)?;
        return Ok(Exit::Done);
    }
    let worlds: Vec<World> = table::rows(items)?;
    let headings = ["WORLD", "LIMIT", "SPENT", "HELD", "LEFT", "PUBLISH", "KEEPS", "CREATED"];
    let mut table = Table::new(output, &headings)
        .keep_whole(&[0])
        .leave_out(5, "direct")
        .leave_out(6, "")
        .spare(&[7, 3, 6, 5]);
    for world in &worlds {
        let keeps = world.retention_days.map(|days| format!("{days}d")).unwrap_or_default();
        table.row([
            &world.world,
            &limit_of(world),
            &amount::dollars(world.spent_micro),
            &amount::dollars(world.held_micro),
            &left_of(world),
            world.publish.as_str(),
            &keeps,
            &moment::shown(world.created_at),
        ]);
    }
    output.text(&table.text())?;
    Ok(Exit::Done)
}
