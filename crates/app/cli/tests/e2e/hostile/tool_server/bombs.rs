//! It hides what it takes from its limits.

use crate::hostile::peers::Stage;
use crate::security_page::{Audit, Peer, tried_and_audited};
use crate::support::wait_for;
use crate::tool_servers::{add, program};

/// A program that never serves anything and fills the folder that it shares with the core.
const FILLS: &str = "\
import time
for number in range(16):
    with open('/artifacts/%d' % number, 'wb') as file:
        file.write(b'x' * (4 << 20))
time.sleep(60)
";

#[test]
fn a_hostile_program_that_fills_the_folder_of_its_runs_is_ended_and_named() {
    if !crate::agents::has_python() {
        return;
    }
    let stage = Stage::up();
    let reference = "sec/fills@1";
    let folder = program(reference, FILLS, "[resources]\ndisk = \"16Mi\"");
    add(&stage.home, folder.path());
    let mut audit = Audit::of(&stage.home, "sec/fills");
    stage.home.run(&["run", reference]).code(1);
    let lines = wait_for("the end to be named", || {
        let lines = audit.fresh(&stage.home);
        let is_named = |line: &String| line.contains("\"resource\":\"disk\"");
        lines.iter().any(is_named).then_some(lines)
    });
    let row = (Peer::ToolServer, "fills the folder of its runs", "the launch's limits");
    let came_back = "stopped: it went over its limit of disk";
    tried_and_audited(row.0, row.1, row.2, came_back, &lines);
    stage.core.stop().code(0);
}
