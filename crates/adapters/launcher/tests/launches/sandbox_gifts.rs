//! What a fenced program is given beside its files: secrets, and a way to hosts.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Bench, ended, log_path, output, parent_of, read_until, signal, tell};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wharf_launcher::Primitive;
use wharf_ports::launcher::{ExitHow, Launcher};
use wharf_ports::vault::Secret;
use wharf_vocab::SandboxLevel::{self, Basic, None as Unfenced, Standard, Strict};
use wharf_vocab::{Code, SecretName};

async fn levels(bench: &Bench, from: SandboxLevel) -> Vec<SandboxLevel> {
    let achieved = bench.launcher.probe().await;
    if achieved.level < Strict {
        tell(&format!("{:?}", achieved.notes));
    }
    let all = [Unfenced, Basic, Standard, Strict];
    all.into_iter().filter(|level| from <= *level && *level <= achieved.level).collect()
}

#[tokio::test]
async fn secrets_are_files_that_only_the_program_sees_and_that_are_gone_afterwards() {
    let bench = Bench::new();
    for level in levels(&bench, Unfenced).await {
        let mut spec = bench.fenced(level, &["-c", SHOW_SECRETS]);
        if level == Strict {
            // There is no shell.
            spec.args = vec!["attempt".into(), "read:/run/wharf/secrets/api-key".into()];
        } else {
            spec.program = "/bin/sh".into();
        }
        let name = SecretName::new("api-key").expect("valid");
        spec.secret_files.insert(name, Secret::new(*b"canary-secret"));
        let launched = bench.launch(spec).await;
        let lines = read_until(&*launched, |line| line.contains("canary")).await;
        if level != Strict {
            assert_eq!(lines[0], "400 700 api-key", "{level}");
            let environ = fs::read_to_string(format!("/proc/{}/environ", launched.pid()));
            let environ = environ.expect("lives");
            assert!(!environ.contains("canary"), "only the folder is named");
            let dir = environ.split('\0').find_map(|line| line.strip_prefix("WHARF_SECRETS_DIR="));
            let dir = PathBuf::from(dir.expect("is set"));
            assert_eq!(dir.exists(), level <= Basic, "{level}: nobody else sees the firm ones");
            ended(launched.kill()).await;
            assert!(!dir.exists(), "{level}");
        }
        ended(launched.exited()).await;
    }
}

const SHOW_SECRETS: &str = "cd $WHARF_SECRETS_DIR && \
    echo $(stat -c %a api-key) $(stat -c %a .) * && cat api-key && echo && sleep 60";

#[tokio::test]
async fn secrets_are_removed_even_if_the_shim_was_killed() {
    let bench = Bench::new();
    let mut spec = bench.fenced(Basic, &["live"]);
    let name = SecretName::new("api-key").expect("valid");
    spec.secret_files.insert(name, Secret::new(*b"canary-secret"));
    let launched = bench.launch(spec).await;
    read_until(&*launched, |line| line.starts_with("pid")).await;
    let environ = fs::read_to_string(format!("/proc/{}/environ", launched.pid())).expect("lives");
    let dir = environ.split('\0').find_map(|line| line.strip_prefix("WHARF_SECRETS_DIR="));
    let dir = PathBuf::from(dir.expect("is set"));
    assert!(dir.join("api-key").exists());
    signal(parent_of(launched.pid()), Signal::KILL);
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Lost);
    assert!(!dir.exists(), "the core does it then");
}

#[tokio::test]
async fn secrets_of_one_are_not_seen_by_another() {
    let bench = Bench::new();
    for level in levels(&bench, Standard).await {
        let mut spec = bench.fenced(level, &["live"]);
        let name = SecretName::new("api-key").expect("valid");
        spec.secret_files.insert(name, Secret::new(*b"canary-secret"));
        let first = bench.launch(spec).await;
        let words = ["attempt", "see:/run/wharf/secrets", "read:/run/wharf/secrets/api-key"];
        let said = bench.said(bench.fenced(level, &words)).await;
        assert!(said.iter().all(|line| line.contains(": no")), "{said:?}");
        ended(first.kill()).await;
    }
}

#[tokio::test]
async fn without_secrets_nothing_is_told_of_them() {
    let bench = Bench::new();
    for level in levels(&bench, Unfenced).await {
        let said = bench.said(bench.fenced(level, &["env"])).await;
        assert!(said.iter().all(|line| !line.contains("SECRET")), "{said:?}");
    }
}

#[tokio::test]
async fn r163_a_given_folder_is_read_but_not_changed_though_it_lies_in_a_hidden_one() {
    let bench = Bench::new();
    for level in levels(&bench, Standard).await {
        let hidden = bench.dir.path().join(format!("core-{level}"));
        let given = hidden.join("given");
        fs::create_dir_all(&given).expect("made");
        fs::write(given.join("input"), "canary").expect("written");
        fs::write(hidden.join("secret"), "secret").expect("written");
        let at = |path: &str| hidden.join(path).display().to_string();
        let words = [
            format!("read:{}", at("given/input")),
            format!("write:{}", at("given/input")),
            format!("write:{}", at("given/new")),
            format!("read:{}", at("secret")),
        ];
        let words: Vec<&str> =
            ["attempt"].into_iter().chain(words.iter().map(String::as_str)).collect();
        let mut spec = bench.fenced(level, &words);
        spec.given_dirs = vec![given.clone()];
        spec.fence.hidden = vec![hidden.clone()];
        let said = bench.said(spec).await;
        assert!(said[0].ends_with("yes canary"), "{level}: {said:?}");
        assert!(said[1..].iter().all(|line| line.contains(": no")), "{level}: {said:?}");
        assert_eq!(fs::read_to_string(given.join("input")).expect("there"), "canary");
    }
}

/// A proxy that answers everything with what it was asked.
async fn echo_proxy(path: &Path) {
    let listener = tokio::net::UnixListener::bind(path).expect("listens");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                // It may come in pieces.
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") {
                    if stream.read_buf(&mut asked).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let asked = String::from_utf8_lossy(&asked).into_owned();
                let line = asked.lines().next().unwrap_or_default().to_owned();
                let _ = stream.write_all(format!("you said {line}").as_bytes()).await;
            });
        }
    });
}

#[tokio::test]
async fn hosts_are_reached_by_the_proxy_and_not_otherwise() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let port = listener.local_addr().expect("an address").port();
    for level in levels(&bench, Standard).await {
        let path = bench.dir.path().join(format!("proxy-{level}"));
        echo_proxy(&path).await;
        let past_it = format!("tcp:127.0.0.1:{port}");
        let words = ["attempt", "get:http://example.org/", &past_it, "udp:127.0.0.1:53"];
        let mut spec = bench.fenced(level, &words);
        spec.fence.egress = Some(path.clone());
        let said = bench.said(spec).await;
        let expect = "get:http://example.org/: yes you said GET http://example.org/ HTTP/1.0";
        assert_eq!(said[0], expect);
        assert!(said[1..].iter().all(|line| line.contains(": no")), "{said:?}");
        let mut spec = bench.fenced(level, &["env"]);
        spec.fence.egress = Some(path);
        let said = bench.said(spec).await;
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            for name in [name.to_owned(), name.to_lowercase()] {
                let prefix = format!("{name}=http://127.0.0.1:");
                assert!(said.iter().any(|line| line.starts_with(&prefix)), "{name} {said:?}");
            }
        }
    }
}

#[tokio::test]
async fn many_connections_to_the_proxy_are_passed_on_at_once() {
    let bench = Bench::new();
    if levels(&bench, Standard).await.is_empty() || !Path::new("/usr/bin/python3").exists() {
        return tell("many connections");
    }
    let path = bench.dir.path().join("proxy");
    echo_proxy(&path).await;
    let text = "import os, socket, threading\n\
        host, port = os.environ['HTTP_PROXY'][7:].split(':')\n\
        good = []\n\
        def one(n):\n    \
            s = socket.create_connection((host, int(port)))\n    \
            s.sendall(b'number %d\\n' % n)\n    \
            s.shutdown(socket.SHUT_WR)\n    \
            d = b''\n    \
            while (p := s.recv(100)): d += p\n    \
            good.append(d == b'you said number %d' % n)\n\
        all = [threading.Thread(target=one, args=(n,)) for n in range(200)]\n\
        [t.start() for t in all]\n\
        [t.join() for t in all]\n\
        print(len(good), sum(good))\n";
    let mut spec = bench.fenced(Standard, &["-c", text]);
    spec.program = "/usr/bin/python3".into();
    spec.fence.egress = Some(path);
    assert_eq!(bench.said(spec).await, ["200 200"]);
}

#[tokio::test]
async fn with_the_core_on_tcp_only_that_port_is_reached_and_that_is_told() {
    let bench = Bench::new();
    if levels(&bench, Standard).await.is_empty() {
        return;
    }
    let core = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let port = |listener: &std::net::TcpListener| listener.local_addr().expect("bound").port();
    let words = [
        "attempt",
        &format!("tcp:127.0.0.1:{}", port(&core)),
        &format!("tcp:127.0.0.1:{}", port(&other)),
        "udp:127.0.0.1:53",
        "listen:127.0.0.1:0",
    ];
    let mut spec = bench.fenced(Standard, &words);
    spec.fence.tcp_port = Some(port(&core));
    let launched = bench.launch(spec).await;
    assert_eq!(launched.fence().level, Standard);
    assert!(launched.fence().notes[0].contains("shares the machine's network"));
    ended(launched.exited()).await;
    let said = output(&*launched).await;
    assert!(said[0].ends_with(": yes"), "{said:?}");
    assert!(said[1..].iter().all(|line| line.contains(": no")), "{said:?}");
}

#[tokio::test]
async fn a_machine_that_lacks_something_falls_back_and_says_why() {
    use Primitive::{Landlock, Namespaces, Seccomp};
    let cases: [(&[Primitive], &str); 4] = [
        (&[Namespaces], "Namespaces cannot be made"),
        (&[Landlock], "Landlock is not available"),
        (&[Seccomp], "System calls cannot be filtered"),
        (&[Namespaces, Landlock, Seccomp], "Namespaces cannot be made"),
    ];
    for (missing, reason) in cases {
        let bench = Bench::without(missing);
        let achieved = bench.launcher.probe().await;
        assert_eq!(achieved.level, Basic, "{missing:?}");
        assert!(achieved.notes.iter().any(|note| note.starts_with(reason)), "{achieved:?}");
        let launched = bench.launch(bench.fenced(Strict, &["say", "hello"])).await;
        assert_eq!(launched.fence().level, Basic, "{missing:?}");
        let notes = &launched.fence().notes;
        assert!(notes.iter().any(|note| note.starts_with(reason)), "{notes:?}");
        assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0), "{missing:?}");
        assert_eq!(output(&*launched).await, ["hello"], "{missing:?}");
    }
}

#[tokio::test]
async fn what_is_left_of_a_fence_is_used_all_the_same() {
    let bench = Bench::without(&[Primitive::Namespaces]);
    let hidden = bench.dir.path().join("hidden");
    fs::write(&hidden, "x").expect("writes");
    let spec = bench.fenced(Standard, &[]);
    let words = [
        "attempt".to_owned(),
        format!("write:{}/new", spec.private_dirs[0].display()),
        format!("list:{}", spec.cwd.display()),
        format!("read:{}", hidden.display()),
        format!("write:{}", hidden.display()),
        "tcp:127.0.0.1:1".to_owned(),
        "udp:127.0.0.1:1".to_owned(),
        "unshare".to_owned(),
    ];
    let mut spec = spec;
    spec.args = words.to_vec();
    let launched = bench.launch(spec).await;
    let notes = launched.fence().notes.join(" ");
    assert!(notes.contains("used all the same"), "{notes}");
    ended(launched.exited()).await;
    let said = output(&*launched).await;
    assert!(said[..2].iter().all(|line| line.contains(": yes")), "{said:?}");
    assert!(said[2..].iter().all(|line| line.contains("no, PermissionDenied")), "{said:?}");
}

#[tokio::test]
async fn below_the_owners_minimum_nothing_is_started() {
    let bench = Bench::without(&[Primitive::Namespaces]);
    let mut spec = bench.fenced(Strict, &["exit", "0"]);
    spec.fence.minimum = Standard;
    let log = log_path(&spec);
    let fault = bench.try_launch(spec).await.expect_err("refused");
    assert!(fault.is(Code::AgentSandboxUnavailable), "{fault}");
    assert!(!fault.retryable);
    let expect = "The program must be fenced in at the level standard or higher, but here it can \
                  only be basic. Namespaces cannot be made: function not implemented.";
    assert!(fault.message.starts_with(expect), "{}", fault.message);
    assert!(!log.exists(), "nothing was made");
    let mut spec = bench.fenced(Basic, &["exit", "0"]);
    spec.fence.minimum = Basic;
    let launched = bench.launch(spec).await;
    assert_eq!(ended(launched.exited()).await.how, ExitHow::Code(0));
}

#[tokio::test]
async fn a_layer_that_fails_although_it_worked_before_starts_nothing() {
    let bench = Bench::new();
    if levels(&bench, Standard).await.is_empty() {
        return;
    }
    // The trial goes well; the proxy of this launch is not there.
    let mut spec = bench.fenced(Standard, &["exit", "0"]);
    spec.fence.egress = Some(bench.dir.path().join("no-such-proxy"));
    let fault = bench.try_launch(spec).await.expect_err("not started");
    assert!(fault.is(Code::AgentSandboxUnavailable), "{fault}");
    let expect = "could not be fenced in, so it was not started; making its network failed";
    assert!(fault.message.contains(expect), "{}", fault.message);
}
