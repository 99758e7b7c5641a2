//! Open files: a program has far fewer than the core, so that it cannot use up what all share.
#![cfg(target_os = "linux")]

use std::path::Path;

use crate::support::{Bench, can, ended, read_until, tell};
use rustix::process::{Resource, getrlimit, setrlimit};
use wharf_ports::launcher::ExitHow;
use wharf_vocab::SandboxLevel::{Basic, Standard, Strict};

#[tokio::test]
async fn a_program_that_nobody_gave_a_number_has_a_thousand_open_files() {
    let bench = Bench::new();
    for level in [Basic, Standard, Strict] {
        if !can(&bench, level).await {
            continue;
        }
        for (given, most) in [(None, "1024"), (Some(64), "64"), (Some(2), "16")] {
            let mut spec = bench.fenced(level, &["attempt", "read:/proc/self/limits"]);
            spec.fence.usage.open_files = given;
            let said = bench.said(spec).await;
            let line = said.iter().find(|line| line.starts_with("Max open files")).expect("told");
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(words[3..5], [most, most], "{level} {given:?}");
        }
    }
}

/// Descriptors that were sent and nobody has received count for all processes of a user.
#[tokio::test]
async fn descriptors_on_their_way_keep_no_other_program_from_starting() {
    let bench = Bench::new();
    if !can(&bench, Standard).await || !Path::new("/usr/bin/python3").exists() {
        return tell("descriptors on their way");
    }
    // As the core does when it starts.
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("raises it");
    let text = "import array, os, socket, time\n\
        fds = array.array('i', [os.open('/dev/null', 0)] * 250)\n\
        keep, sent = [], 0\n\
        try:\n    \
            while sent < 60000:\n        \
                a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n        \
                keep.append((a, b))\n        \
                a.setblocking(False)\n        \
                try:\n            \
                    while True:\n                \
                        a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])\n                \
                        sent += 250\n        \
                except BlockingIOError: pass\n\
        except OSError as e: print('stopped', e.errno, flush=True)\n\
        print('sent', sent, flush=True)\n\
        time.sleep(100)\n";
    let mut spec = bench.fenced(Standard, &["-c", text]);
    spec.program = "/usr/bin/python3".into();
    let greedy = bench.launch(spec).await;
    let said = read_until(&*greedy, |line| line.starts_with("sent")).await;
    let sent: u64 = said[said.len() - 1][5..].parse().expect("a number");
    assert!((1_000..2_000).contains(&sent), "{said:?}");
    for level in [Standard, Strict] {
        let launched = bench.launch(bench.fenced(level, &["live"])).await;
        read_until(&*launched, |line| line.starts_with("pid")).await;
        assert!(launched.owns(launched.pid()), "its id outside is known all the same");
        let command = std::fs::read(format!("/proc/{}/cmdline", launched.pid())).expect("lives");
        assert!(String::from_utf8_lossy(&command).contains("live"), "and it is the program's");
        ended(launched.kill()).await;
    }
    assert!(matches!(ended(greedy.kill()).await.how, ExitHow::Signal(9)));
}
