//! Programs that tests start: signals reach them, and every wait for one has an end.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::signal::unix::{SignalKind, signal};

/// The longest that a program which ends by itself may take, suites of other languages included.
pub(crate) const PROGRAM: Duration = Duration::from_secs(600);
/// The longest that a build may take.
pub(crate) const BUILD: Duration = Duration::from_secs(3600);

/// A program to start. Signals do to it what they do by default, whatever the tests were started
/// with.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    unignore_signals();
    Command::new(program)
}

/// Lets no child inherit that a signal is ignored, as `nohup make test &` would have it: a signal
/// that is caught here is back at its default there. Those that are not ignored are left alone, so
/// that Ctrl-C still ends the tests.
fn unignore_signals() {
    // The handlers live as long as the process; so does what they were made with.
    static CAUGHT: OnceLock<Option<tokio::runtime::Runtime>> = OnceLock::new();
    CAUGHT.get_or_init(|| {
        let ignored = ignored_signals("self")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let inside = runtime.enter();
        for kind in KEYS {
            if ignored & bit(kind) != 0 {
                drop(signal(kind).expect("a signal can be caught"));
            }
        }
        drop(inside);
        Some(runtime)
    });
}

/// The signals that keys of a terminal send, which shells ignore for what they start in the
/// background. A hang-up is none of them: who ignores that wants the tests to go on.
const KEYS: [SignalKind; 2] = [SignalKind::interrupt(), SignalKind::quit()];

fn bit(kind: SignalKind) -> u64 {
    1 << (kind.as_raw_value() - 1)
}

/// The set of signals that a process ignores; nothing where the system does not tell.
fn ignored_signals(pid: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

/// Runs a program to its end, which it must come to.
pub(crate) trait Finish {
    /// What it printed and how it ended; it gets no input.
    #[track_caller]
    fn finish(&mut self) -> Output {
        self.finish_within(PROGRAM)
    }

    /// The same for one that may take longer.
    #[track_caller]
    fn finish_within(&mut self, limit: Duration) -> Output;
}

impl Finish for Command {
    #[track_caller]
    fn finish_within(&mut self, limit: Duration) -> Output {
        self.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let what = line_of(self);
        let child = self.spawn().unwrap_or_else(|error| panic!("{what} does not start: {error}"));
        ended(child, &what, limit)
    }
}

fn line_of(command: &Command) -> String {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Waits for the end of a program and gives all that it printed; one that does not end is killed
/// and named with what it said.
#[track_caller]
pub(crate) fn ended(mut child: Child, what: &str, limit: Duration) -> Output {
    let deadline = Instant::now() + limit;
    let stdout = child.stdout.take().map(Heard::of);
    let stderr = child.stderr.take().map(Heard::of);
    let said = |heard: &Option<Heard>| heard.as_ref().map(Heard::so_far).unwrap_or_default();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child of this process") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            panic!(
                "waited {} s in vain for the end of: {what}\nit said: {}{}",
                limit.as_secs(),
                String::from_utf8_lossy(&said(&stdout)),
                String::from_utf8_lossy(&said(&stderr)),
            );
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    for heard in [&stdout, &stderr].into_iter().flatten() {
        let left = deadline.saturating_duration_since(Instant::now());
        let closed = heard.end.recv_timeout(left).is_ok();
        assert!(closed, "it ended, but something it started holds its output open: {what}");
    }
    Output { status, stdout: said(&stdout), stderr: said(&stderr) }
}

/// What a program prints, read as it comes.
struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Heard {
    fn of(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let (ended, end) = channel();
        let heard = Arc::clone(&bytes);
        std::thread::spawn(move || {
            let mut piece = [0; 8192];
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                heard.lock().expect("no holder panics").extend_from_slice(&piece[..count]);
            }
            // Nobody may wait for it any more.
            let _ = ended.send(());
        });
        Self { bytes, end }
    }

    fn so_far(&self) -> Vec<u8> {
        self.bytes.lock().expect("no holder panics").clone()
    }
}

/// Waits until there is something to read, or until the other side has closed.
#[track_caller]
pub(crate) fn until_readable(stream: impl AsFd, deadline: Instant, what: &str) {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "waited in vain for {what}");
        let left = Timespec::try_from(left).expect("a short time");
        let mut asked = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)];
        // A signal may come in between.
        if poll(&mut asked, Some(&left)).is_ok_and(|ready| ready > 0) {
            return;
        }
    }
}

/// The first line that a program prints.
#[track_caller]
pub(crate) fn first_line(
    stream: impl Read + Send + 'static,
    limit: Duration,
    what: &str,
) -> String {
    let (sender, first) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        // Who gave up waiting has said so.
        let read = BufReader::new(stream).read_line(&mut line);
        let _ = sender.send(read.map(|_| line));
    });
    let line = first.recv_timeout(limit);
    line.unwrap_or_else(|_| panic!("waited in vain for {what}")).expect("readable")
}

/// The variable by which a test below knows that it was started by the other.
const INNER: &str = "WHARF_TEST_INNER";

#[test]
fn programs_get_signals_also_when_the_tests_were_started_in_the_background() {
    if ignored_signals("self").is_none() {
        return wharf_skips::skip("this system does not say which signals are ignored");
    }
    let own = std::env::current_exe().expect("this program");
    // As `nohup make test &` does it; only a process of its own can be started so.
    let inner = "children::inner_a_program_started_by_a_test_is_ended_by_ctrl_c";
    let mut shell = command("sh");
    shell.args(["-c", "trap '' INT QUIT; exec \"$0\" \"$@\""]).arg(own);
    let output = shell.args(["--exact", inner]).env(INNER, "1").finish();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn inner_a_program_started_by_a_test_is_ended_by_ctrl_c() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::os::unix::process::ExitStatusExt as _;

    let told = ignored_signals("self");
    if std::env::var_os(INNER).is_some() {
        let told = told.expect("told");
        assert!(
            KEYS.iter().all(|&kind| told & bit(kind) != 0),
            "it was to be started so: {told:x}"
        );
    }
    for sent in [Signal::INT, Signal::QUIT] {
        let child = command("sleep").arg("600").spawn().expect("sleep starts");
        kill_process(Pid::from_child(&child), sent).expect("it runs");
        let output = ended(child, "a sleep that was sent a signal", Duration::from_secs(60));
        assert_eq!(output.status.signal(), Some(sent.as_raw()));
    }
}

#[test]
fn a_program_that_never_ends_is_named_with_what_it_said() {
    let waited = std::panic::catch_unwind(|| {
        command("sh")
            .args(["-c", "echo so far; exec sleep 600"])
            .finish_within(Duration::from_secs(2))
    });
    let told = waited.expect_err("it gives up");
    let told = told.downcast_ref::<String>().expect("a message");
    assert!(told.contains("exec sleep 600") && told.contains("it said: so far"), "{told}");
}
