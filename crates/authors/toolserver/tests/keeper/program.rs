//! A binary that is nothing but a keeper, for tests.

use std::process::ExitCode;

use wharf_toolserver::worker::keeper;

fn main() -> ExitCode {
    if keeper::is_asked_for() { keeper::main() } else { ExitCode::FAILURE }
}
