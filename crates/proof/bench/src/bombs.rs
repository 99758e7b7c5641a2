//! How long a program that hides what it takes goes on once it has taken it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::StreamExt as _;
use wharf_launcher::{LauncherOptions, Primitive, ProcessLauncher};
use wharf_ports::launcher::{ExitHow, LaunchSpec, Launcher as _, LogSpec};
use wharf_vocab::{LaunchId, SandboxLevel};

use crate::report::{Report, median_us};
use crate::{core, process};

const PYTHON: &str = "/usr/bin/python3";
const LIMIT_BYTES: u64 = 64 * 1024 * 1024;
const TURNS: usize = 5;

/// Each says `taken` when it has twice of what it may.
const BOMBS: [(&str, &str); 3] = [
    (
        "memory of an invisible process",
        "import ctypes, os, time\n\
         ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n\
         keep = [os.memfd_create('x') for _ in range(4)]\n\
         for fd in keep: os.write(fd, b'x' * (32 << 20))\n\
         print('taken', flush=True)\n\
         time.sleep(60)\n",
    ),
    (
        "removed files that are only mapped",
        "import ctypes, os, time\n\
         c = ctypes.CDLL(None)\n\
         c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n\
         for k in range(4):\n    \
             name = os.environ['TMPDIR'] + '/x'\n    \
             fd = os.open(name, os.O_CREAT | os.O_RDWR)\n    \
             os.write(fd, b'x' * (32 << 20))\n    \
             c.mmap(None, 32 << 20, 1, 1, fd, 0)\n    \
             os.unlink(name)\n    \
             os.close(fd)\n\
         print('taken', flush=True)\n\
         time.sleep(60)\n",
    ),
    (
        "page tables",
        "import mmap, time\n\
         m = mmap.mmap(-1, 64 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n\
         m.madvise(15)\n\
         for at in range(0, 64 << 30, 2 << 20): m[at]\n\
         print('taken', flush=True)\n\
         time.sleep(60)\n",
    ),
];

pub(crate) async fn measure(report: &mut Report) -> anyhow::Result<()> {
    if !Path::new(PYTHON).exists() {
        return Ok(());
    }
    let launcher =
        ProcessLauncher::start(LauncherOptions { shim_program: Some(process::program()?) })?;
    let launcher = launcher.without(Primitive::Groups);
    for (name, text) in BOMBS {
        let mut took = Vec::new();
        for _ in 0..TURNS {
            took.push(goes_on(&launcher, text).await?);
        }
        let name = format!("end a launch that hides {name}, p50");
        report.figure(&name, median_us(took) / 1e3, "ms", None, "≤ 2,000 ms");
    }
    Ok(())
}

async fn goes_on(launcher: &ProcessLauncher, text: &str) -> anyhow::Result<Duration> {
    let dir = core::scratch()?;
    let launch = LaunchId::new("bench-bomb")?;
    let mut spec =
        LaunchSpec::new(launch, PYTHON, dir.path(), LogSpec::at(dir.path().join("log/log")));
    spec.args = vec!["-c".to_owned(), text.to_owned()];
    spec.cwd = dir.path().join("cwd");
    std::fs::create_dir_all(&spec.cwd)?;
    spec.private_dirs = vec![dir.path().join("tmp")];
    spec.env.insert("TMPDIR".to_owned(), dir.path().join("tmp").display().to_string());
    spec.env.insert("PATH".to_owned(), "/usr/bin:/bin".to_owned());
    spec.fence.level = SandboxLevel::Standard;
    spec.fence.minimum = SandboxLevel::Standard;
    spec.fence.usage.memory_bytes = Some(LIMIT_BYTES);
    spec.fence.usage.disk_bytes = Some(LIMIT_BYTES);
    let launched = launcher.launch(spec).await.map_err(|fault| anyhow::anyhow!("{fault}"))?;
    let mut lines = launched.follow(10);
    let mut taken = None;
    while let Some(line) = lines.next().await {
        if &*line.text == "taken" {
            taken = Some(Instant::now());
            break;
        }
    }
    let exit = launched.exited().await;
    ensure!(matches!(exit.how, ExitHow::Limit(_)), "it got away: {exit}");
    // One that was ended before it had all did not go on at all.
    Ok(taken.map_or(Duration::ZERO, |taken| taken.elapsed()))
}
