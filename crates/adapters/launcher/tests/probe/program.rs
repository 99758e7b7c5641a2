//! The program that the tests launch. Its first argument says how it behaves; with the shim's
//! hidden word it is the shim. No process of it lives longer than [`LIFE`], so that a failed
//! test leaves nothing on the machine for long.

mod attempts;
mod bounded;

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process, setsid};
use tokio::signal::unix::{SignalKind, signal};
use wharf_launcher::{LauncherOptions, ProcessLauncher, shim};
use wharf_vocab::SandboxLevel;

/// Longest life of any process of a test.
const LIFE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    if shim::is_asked_for() {
        return shim::main();
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(code) => code,
        Err(error) => {
            say_on_stderr(&format!("the probe failed: {error}"));
            ExitCode::from(99)
        }
    }
}

fn run(words: &[&str]) -> io::Result<ExitCode> {
    match words {
        ["exit", code] => return Ok(ExitCode::from(code.parse().unwrap_or(98))),
        ["die", signal] => die(signal)?,
        ["args", rest @ ..] => rest.iter().try_for_each(|arg| say(arg))?,
        ["env"] => {
            std::env::vars().try_for_each(|(name, value)| say(&format!("{name}={value}")))?;
        }
        ["where"] => say(&std::env::current_dir()?.display().to_string())?,
        ["fds"] => list_descriptors()?,
        ["status"] => show_status()?,
        ["ignored"] => show_ignored()?,
        ["say", rest @ ..] => rest.iter().try_for_each(|line| say(line))?,
        ["complain", rest @ ..] => rest.iter().for_each(|line| say_on_stderr(line)),
        ["drip", text] => drip(text)?,
        ["flood"] => flood()?,
        ["count", last] => count(last.parse().unwrap_or(0))?,
        ["attempt", rest @ ..] => attempts::attempt_all(rest)?,
        ["attempt-and-live", rest @ ..] => {
            attempts::attempt_all(rest)?;
            live()?;
        }
        ["fork-bomb"] => fork_bomb()?,
        ["eat-memory"] => eat_memory()?,
        ["spin"] => spin(),
        ["spin-in-children"] => loop {
            probe(&["spin-a-little"])?.spawn()?.wait()?;
        },
        ["spin-a-little"] => spin_for(Duration::from_millis(20)),
        ["fill", dir] => fill(dir)?,
        ["fill-one", dir] => fs::write(format!("{dir}/one"), vec![1; 8 * 1024 * 1024])?,
        ["threads"] => many_threads()?,
        ["live"] => live()?,
        ["serve", port] => serve(port.parse().unwrap_or(0))?,
        ["polite"] => return terminated(Some(7)),
        ["stubborn"] => return terminated(None),
        ["family"] => {
            start_family()?;
            live()?;
        }
        ["family", "leaving"] => start_family()?,
        ["parent-of-polite"] => {
            probe(&["polite"])?.spawn()?;
            live()?;
        }
        ["parent-of-regrouped"] => {
            probe(&["live"])?.process_group(0).spawn()?;
            live()?;
        }
        ["stray"] => return stray(&["live"], true),
        ["silent-stray"] => return stray(&["live"], false),
        ["hop", left] => return hop(left.parse().unwrap_or(0)),
        ["core", rest @ ..] => return core(rest),
        ["bounded", dir, text] => return bounded::run(dir, text),
        _ => return Ok(ExitCode::from(97)),
    }
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn say_on_stderr(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Says who it is and waits for its end.
fn live() -> io::Result<()> {
    say(&format!("pid {}", std::process::id()))?;
    std::thread::sleep(LIFE);
    Ok(())
}

/// Answers every connection with what it says, as long as it says something.
fn serve(port: u16) -> io::Result<()> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
    say("listening")?;
    for stream in listener.incoming() {
        let mut stream = stream?;
        std::thread::spawn(move || {
            let mut reading = stream.try_clone()?;
            io::copy(&mut reading, &mut stream)?;
            stream.shutdown(std::net::Shutdown::Both)
        });
    }
    Ok(())
}

fn die(signal: &str) -> io::Result<()> {
    let signal = signal.parse().ok().and_then(Signal::from_named_raw);
    let signal = signal.ok_or(io::ErrorKind::InvalidInput)?;
    // Rust's own handler takes the first SEGV and steps aside for the second.
    kill_process(getpid(), signal)?;
    kill_process(getpid(), signal)?;
    std::thread::sleep(LIFE);
    Ok(())
}

fn list_descriptors() -> io::Result<()> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        // The listing itself has a descriptor, which leads to the directory it lists.
        let target = fs::read_link(entry.path()).unwrap_or_default();
        if !target.ends_with("fd") {
            numbers.push(format!("{} {}", entry.file_name().display(), target.display()));
        }
    }
    numbers.sort();
    numbers.iter().try_for_each(|line| say(line))
}

/// What a program inherits without seeing it.
fn show_status() -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    status.lines().filter(|line| line.starts_with("NoNewPrivs")).try_for_each(say)?;
    let limits = fs::read_to_string("/proc/self/limits")?;
    limits.lines().filter(|line| line.starts_with("Max core")).try_for_each(say)
}

/// The signals that it was started to ignore.
fn show_ignored() -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    status.lines().filter(|line| line.starts_with("SigIgn")).try_for_each(say)
}

/// Children that start children, all of which stay. Each level ends after a while, so that a
/// fence that does not hold does not take the machine along.
fn fork_bomb() -> io::Result<()> {
    let mut children = Vec::new();
    for _ in 0..400 {
        match probe(&["live"])?.spawn() {
            Ok(child) => children.push(child),
            Err(_) => break,
        }
    }
    std::thread::sleep(LIFE);
    Ok(())
}

fn eat_memory() -> io::Result<()> {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    for _ in 0..256 {
        eaten.push(vec![1; 4 * 1024 * 1024]);
        std::thread::sleep(Duration::from_millis(5));
    }
    say(&format!("ate {} blocks", eaten.len()))?;
    std::thread::sleep(LIFE);
    Ok(())
}

fn spin() {
    spin_for(LIFE);
}

fn spin_for(time: Duration) {
    let until = std::time::Instant::now() + time;
    while std::time::Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Many files, each small enough to be allowed.
fn fill(dir: &str) -> io::Result<()> {
    for number in 0..256 {
        fs::write(format!("{dir}/{number}"), vec![1; 256 * 1024])?;
    }
    std::thread::sleep(LIFE);
    Ok(())
}

fn many_threads() -> io::Result<()> {
    for _ in 0..200 {
        let builder = std::thread::Builder::new().stack_size(64 * 1024);
        let _ = builder.spawn(|| std::thread::sleep(LIFE));
    }
    std::thread::sleep(LIFE);
    Ok(())
}

/// Every byte in a write of its own.
fn drip(text: &str) -> io::Result<()> {
    for byte in text.as_bytes() {
        let mut out = io::stdout().lock();
        out.write_all(&[*byte])?;
        out.flush()?;
    }
    say("")
}

fn flood() -> io::Result<()> {
    let line = "0123456789abcdef".repeat(63) + "\n";
    let block = line.repeat(64);
    let until = std::time::Instant::now() + LIFE;
    while std::time::Instant::now() < until {
        io::stdout().write_all(block.as_bytes())?;
        io::stderr().write_all(line.as_bytes())?;
    }
    Ok(())
}

fn count(last: u64) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    (1..=last).try_for_each(|n| writeln!(out, "{n}"))?;
    out.flush()
}

/// Hears TERM and ends with a code, or does not care.
fn terminated(code: Option<u8>) -> io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        say("ready")?;
        let life = tokio::time::sleep(LIFE);
        tokio::pin!(life);
        loop {
            tokio::select! {
                _ = terminate.recv() => say("heard TERM")?,
                () = &mut life => return Ok(ExitCode::from(96)),
            }
            if let Some(code) = code {
                return Ok(ExitCode::from(code));
            }
        }
    })
}

fn probe(args: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdin(Stdio::null());
    Ok(command)
}

/// A child in the ordinary way, one that left the group, session and family, and one more of
/// those that also closed its output.
fn start_family() -> io::Result<()> {
    probe(&["live"])?.spawn()?;
    probe(&["stray"])?.spawn()?.wait()?;
    probe(&["silent-stray"])?.spawn()?.wait()?;
    say("family complete")
}

/// Leaves the session, starts a child there and ends, so that the child is an orphan that no
/// group or session ties to who started it.
fn stray(args: &[&str], talking: bool) -> io::Result<ExitCode> {
    setsid()?;
    let mut command = probe(args)?;
    if !talking {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    let child = command.spawn()?;
    say(&format!("stray {}", Pid::from_child(&child).as_raw_nonzero()))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs away: a new session and a new process all the time.
fn hop(left: u32) -> io::Result<ExitCode> {
    if left == 0 {
        live()?;
        return Ok(ExitCode::SUCCESS);
    }
    let _ = setsid();
    if left.is_multiple_of(100) {
        say(&format!("hop {left}"))?;
    }
    probe(&["hop", &(left - 1).to_string()])?.spawn()?;
    Ok(ExitCode::SUCCESS)
}

/// A little core: launches a probe and shows its log, until it is killed.
fn core(words: &[&str]) -> io::Result<ExitCode> {
    use futures::StreamExt;
    use wharf_ports::launcher::{LaunchSpec, Launcher, LogSpec};

    let [dir, mark, args @ ..] = words else { return Ok(ExitCode::from(97)) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let launcher = ProcessLauncher::start(LauncherOptions::default())?;
        let id = wharf_vocab::LaunchId::new("of-a-core").map_err(io::Error::other)?;
        let log = LogSpec::at(format!("{dir}/of-a-core.log"));
        let mut spec = LaunchSpec::new(id, std::env::current_exe()?, *dir, log);
        if let Ok(level) = std::env::var("WHARF_TEST_LEVEL") {
            spec.fence.level = SandboxLevel::parse(&level).ok_or(io::ErrorKind::InvalidInput)?;
        }
        spec.args = args.iter().map(|&arg| arg.to_owned()).collect();
        spec.env.insert("WHARF_TEST_MARK".to_owned(), (*mark).to_owned());
        let launched = launcher.launch(spec).await.map_err(io::Error::other)?;
        say(&format!("program {}", launched.pid()))?;
        let mut lines = launched.follow(100);
        while let Some(line) = lines.next().await {
            say(&line.text)?;
        }
        say("the launch ended")?;
        Ok(ExitCode::SUCCESS)
    })
}
