//! Follows a run of tests, and ends one that stands still.
//!
//! - Every test that ends is a sign of life, and so is every line of a build. When there was none
//!   for too long, what still runs is told, by name and age, then all of it is killed.
//! - Which tests are slow is known from the tests themselves: after a minute they say so.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::processes;

/// How long a test runs before it is called slow by the test program.
const SLOW: Duration = Duration::from_secs(60);
/// How long nothing may end. The longest test builds three projects of Rust from nothing.
const STILL: Duration = Duration::from_secs(1200);
/// The variable that says another time, in seconds.
const STILL_VARIABLE: &str = "WHARF_TESTS_STILL_SECS";

/// Runs a command that runs tests, and says whether all of them are good.
pub(super) fn run(command: &mut Command, out: &mut dyn Write) -> Result<bool> {
    let still = std::env::var(STILL_VARIABLE).ok().and_then(|text| text.parse().ok());
    run_within(command, still.map_or(STILL, Duration::from_secs), out)
}

fn run_within(command: &mut Command, still: Duration, out: &mut dyn Write) -> Result<bool> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.context("failed to start cargo")?;
    let lines = BufReader::new(child.stdout.take().context("its output is not piped")?);
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        for line in lines.split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let mut report = Report::default();
    loop {
        match heard.recv_timeout(still) {
            Ok(line) => report.hear(&line, Instant::now(), out)?,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                report.tell(still, Instant::now(), out)?;
                end(&mut child, out)?;
                return Ok(false);
            }
        }
        out.flush()?;
    }
    Ok(child.wait().context("cargo is gone")?.success())
}

/// Tells which processes are left, and kills them.
fn end(child: &mut Child, out: &mut dyn Write) -> Result<()> {
    let below = processes::below(child.id());
    for process in &below {
        writeln!(out, "  {process}")?;
    }
    out.flush()?;
    let ids = below.iter().map(|process| process.id.to_string());
    if below.len() > 1 {
        // Some of them may have ended with the first.
        let _ = Command::new("kill").arg("-KILL").args(ids).stderr(Stdio::null()).status();
    }
    // Where no processes are listed this one is known all the same.
    let _ = child.kill();
    child.wait().context("cargo is gone")?;
    Ok(())
}

/// What the tests have told of themselves.
#[derive(Debug, Default)]
struct Report {
    /// Since when tests run that are slow.
    slow: BTreeMap<String, Instant>,
    /// The last line shows dots, and is not ended yet.
    dotted: bool,
}

impl Report {
    /// Passes on what a reader wants to know, and a dot for each test that passed.
    fn hear(&mut self, line: &str, now: Instant, out: &mut dyn Write) -> Result<()> {
        let test = line.strip_prefix("test ");
        if let Some((name, "ok")) = test.and_then(|test| test.rsplit_once(" ... ")) {
            self.slow.remove(name);
            self.dotted = true;
            out.write_all(b".")?;
            return Ok(());
        }
        if let Some((name, _)) = test.and_then(|test| test.split_once(" has been running for")) {
            self.slow.insert(name.to_owned(), now.checked_sub(SLOW).unwrap_or(now));
        } else if let Some((name, _)) = test.and_then(|test| test.rsplit_once(" ... ")) {
            self.slow.remove(name);
        }
        // A program without tests has nothing to say.
        if line.is_empty() || line == "running 0 tests" || line.starts_with("test result: ok. 0 ") {
            return Ok(());
        }
        if std::mem::take(&mut self.dotted) {
            writeln!(out)?;
        }
        writeln!(out, "{line}")?;
        Ok(())
    }

    /// Tells which tests stand still.
    fn tell(&self, still: Duration, now: Instant, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "\n==> no test has ended for {} s, so all are ended now", still.as_secs())?;
        if self.slow.is_empty() {
            writeln!(out, "no test has said that it is slow")?;
        }
        for (name, since) in &self.slow {
            let age = now.saturating_duration_since(*since).as_secs();
            writeln!(out, "still running after {age} s: {name}")?;
        }
        writeln!(out, "processes, each with its age:")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_pass_are_dots_and_the_rest_is_passed_on() {
        let (mut report, mut out) = (Report::default(), Vec::new());
        let lines = "\nrunning 3 tests\ntest a::b ... ok\ntest c ... ok\ntest d ... FAILED\n\nwhy";
        for line in lines.split('\n') {
            report.hear(line, Instant::now(), &mut out).expect("written");
        }
        let told = String::from_utf8(out).expect("text");
        assert_eq!(told, "running 3 tests\n..\ntest d ... FAILED\nwhy\n");
    }

    #[test]
    fn slow_tests_are_told_with_their_age_until_they_end() {
        let (mut report, mut out) = (Report::default(), Vec::new());
        let begin = Instant::now() + Duration::from_secs(1000);
        for line in [
            "test a::waits has been running for over 60 seconds",
            "test b::slow has been running for over 60 seconds",
            "test b::slow ... ok",
        ] {
            report.hear(line, begin, &mut out).expect("written");
        }
        out.clear();
        report
            .tell(Duration::from_secs(30), begin + Duration::from_secs(30), &mut out)
            .expect("told");
        let told = String::from_utf8(out).expect("text");
        assert!(told.contains("no test has ended for 30 s"), "{told}");
        assert!(told.contains("still running after 90 s: a::waits"), "{told}");
        assert!(!told.contains("b::slow"), "{told}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_run_that_stands_still_is_ended_and_all_that_it_started_is_named() {
        let mut out = Vec::new();
        let script = "echo 'test a ... ok'
            echo 'test b::hangs has been running for over 60 seconds'
            sh -c 'sleep 4711; true'
            echo never";
        let mut command = Command::new("sh");
        let good = run_within(command.args(["-c", script]), Duration::from_secs(1), &mut out);
        assert!(!good.expect("told"));
        let told = String::from_utf8(out).expect("text");
        assert!(told.contains("s: b::hangs"), "{told}");
        assert!(told.lines().all(|line| line != "never"), "{told}");
        let sleep = told.lines().find(|line| line.ends_with("sleep 4711")).expect("it is named");
        let id: u32 = sleep.trim().split(' ').next().and_then(|id| id.parse().ok()).expect("an id");
        let end = Instant::now() + Duration::from_secs(60);
        while processes::below(id).iter().any(|process| process.to_string().contains("4711")) {
            assert!(Instant::now() < end, "waited in vain for the end of: {sleep}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_run_ends_as_its_tests_end() {
        for (line, good) in [("exit 0", true), ("exit 101", false)] {
            let mut command = Command::new("sh");
            let ran =
                run_within(command.args(["-c", line]), Duration::from_secs(60), &mut Vec::new());
            assert_eq!(ran.expect("told"), good, "{line}");
        }
    }
}
