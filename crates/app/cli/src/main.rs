//! `wharf`, the command line: it starts the core, and talks to a running one over HTTP.
//!
//! Each command has one file under `commands`. What a command says goes through `output`, what
//! it asks of a core through `wharf_client`, and what it does with a home through `wharf_server`.

mod amount;
mod cli;
mod commands;
mod complete;
mod document;
mod exit;
mod failure;
mod form;
mod inputs;
mod moment;
mod output;
mod plain;
mod progress;
mod prompt;
mod render;
mod shape;
mod table;
mod target;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // A core starts this program again as the parent of each provider it launches. Nothing may
    // have happened in the process before that.
    if wharf_launcher::shim::is_asked_for() {
        return wharf_launcher::shim::main();
    }
    // A tool server starts this program again as the parent of each program that it runs.
    if wharf_toolserver::worker::keeper::is_asked_for() {
        return wharf_toolserver::worker::keeper::main();
    }
    cli::main()
}
