//! A large file into and out of a handler that a core serves and fences in, beside a bare
//! streaming copy over loopback.

use std::path::Path;

use crate::files::{Cli, bare_get, bare_put, free_mib, make, rate, skipped, text};
use crate::process::{Running, peak_mib, program};
use crate::report::Report;
use crate::{Scale, core};

const TOOL: &str = "bench/copy@1";

pub(crate) fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let Some(mib) = scale.file_mib.first().copied() else { return Ok(()) };
    let dir = core::scratch()?;
    let free = free_mib(dir.path())?;
    // The file, its copies in the store and in the folders of the server and of the run.
    if free < mib * 8 {
        report.figure(&skipped(mib), free as f64, "MiB free", None, "");
        return Ok(());
    }
    through_a_handler(dir.path(), mib, report)
}

fn through_a_handler(dir: &Path, mib: u64, report: &mut Report) -> anyhow::Result<()> {
    let source = dir.join("source");
    make(&source, mib)?;
    let put = rate(mib, bare_put(&source, &dir.join("bare"))?);
    let get = rate(mib, bare_get(&dir.join("bare"), &dir.join("back"))?);
    std::fs::remove_file(dir.join("bare"))?;
    std::fs::remove_file(dir.join("back"))?;
    let floor = 2.0 / (1.0 / put + 1.0 / get);
    report.floor(&format!("bare streaming PUT and GET, {mib} MiB"), floor, "MB/s");

    let (wharf, home) = (program()?, dir.join("home"));
    let running = Running::start(&wharf, &home)?;
    let cli = Cli { wharf: &wharf, home: &home };
    let folder = dir.join("copy");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("wharf.tool.toml"), include_str!("../copy/wharf.tool.toml"))?;
    std::fs::write(folder.join("handler.py"), include_str!("../copy/handler.py"))?;
    cli.timed(&["tools", "add", &text(&folder)?, "--approve"])?;
    cli.timed(&["worlds", "put", "default", "/big", &text(&source)?])?;
    cli.timed(&["worlds", "put", "default", "/small", &text(&folder.join("handler.py"))?])?;
    let run = |from: &str| {
        let input = format!("data.world={from}");
        cli.timed(&["run", TOOL, &input, "--out", "copy.world=/copied", "--timeout", "1h"])
    };
    // The first run pays for the start of the server.
    run("/small")?;
    let idle = peak_mib(running.pid())?;
    let (took, _) = run("/big")?;
    let name = format!("in and out of a fenced handler, {mib} MiB each way");
    let of = Some((floor, "bare PUT and GET"));
    report.figure(&name, rate(2 * mib, took), "MB/s", of, "≥ 0.9 ×");
    let added = peak_mib(running.pid())? - idle;
    report.figure("  what it added to the core's peak memory", added, "MiB", None, "< 64 MiB");
    running.stop()
}
