//! What a program that is fenced in sees, and what it is denied.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use crate::support::{Bench, can, ended, output};
use wharf_launcher::Primitive;
use wharf_ports::launcher::LaunchSpec;
use wharf_vocab::SandboxLevel::{self, Basic, Standard, Strict};

const FIRM: [SandboxLevel; 2] = [Standard, Strict];

/// What came of each attempt, without what was read.
async fn attempts(bench: &Bench, mut spec: LaunchSpec, what: &[&str]) -> Vec<(String, bool)> {
    spec.args = ["attempt"].iter().chain(what).map(|&word| word.to_owned()).collect();
    let launched = bench.launch(spec).await;
    let exit = ended(launched.exited()).await;
    let lines = output(&*launched).await;
    assert_eq!(lines.len(), what.len(), "{exit} {lines:?}");
    what.iter()
        .zip(lines)
        .map(|(word, line)| {
            let answer = line.strip_prefix(*word).expect("in order").to_owned();
            (format!("{word}{answer}"), answer.starts_with(": yes"))
        })
        .collect()
}

async fn all_denied(bench: &Bench, spec: LaunchSpec, what: &[&str]) {
    for (line, allowed) in attempts(bench, spec, what).await {
        assert!(!allowed, "{line}");
    }
}

async fn all_allowed(bench: &Bench, spec: LaunchSpec, what: &[&str]) {
    for (line, allowed) in attempts(bench, spec, what).await {
        assert!(allowed, "{line}");
    }
}

#[tokio::test]
async fn its_own_folders_can_be_written_and_its_working_directory_only_read() {
    let bench = Bench::new();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let spec = bench.fenced(level, &[]);
        fs::write(spec.cwd.join("data"), "there").expect("writes");
        let own = spec.private_dirs.clone();
        let (home, tmp) = (own[0].display(), own[1].display());
        let cwd = spec.cwd.display().to_string();
        let allowed = [
            &format!("read:{cwd}/data"),
            &format!("list:{cwd}"),
            &format!("write:{home}/new"),
            &format!("mkdir:{tmp}/new"),
            "write:/dev/null",
            "write:/dev/shm/new",
            "list:/etc",
            "read:/proc/self/stat",
        ];
        all_allowed(&bench, spec.clone(), &allowed).await;
        assert_eq!(fs::read_to_string(own[0].join("new")).expect("is there"), "written");
        let denied = [
            &format!("write:{cwd}/data"),
            &format!("write:{cwd}/new"),
            &format!("mkdir:{cwd}/new"),
            "write:/new",
            "write:/etc/passwd",
            "write:/usr/new",
            "write:/proc/sys/kernel/core_pattern",
            "write:/proc/self/oom_score_adj",
        ];
        all_denied(&bench, spec, &denied).await;
        assert_eq!(fs::read_to_string(bench.dir.path().join("agent/data")).expect("is"), "there");
    }
}

#[tokio::test]
async fn what_was_granted_is_seen_under_its_path_and_nothing_beside_it() {
    let bench = Bench::new();
    let dir = bench.dir.path();
    for name in ["readable", "writable", "hidden"] {
        fs::create_dir(dir.join(name)).expect("makes it");
        fs::write(dir.join(name).join("file"), name).expect("writes");
    }
    fs::write(dir.join("single"), "one").expect("writes");
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let mut spec = bench.fenced(level, &[]);
        spec.fence.read =
            vec![dir.join("readable"), dir.join("single"), dir.join("there is nothing here")];
        spec.fence.write = vec![dir.join("writable")];
        let path = |name: &str| dir.join(name).display().to_string();
        let allowed = [
            &format!("read:{}", path("readable/file")),
            &format!("read:{}", path("single")),
            &format!("read:{}", path("writable/file")),
            &format!("write:{}", path("writable/file")),
            &format!("mkdir:{}", path(&format!("writable/{level}"))),
        ];
        all_allowed(&bench, spec.clone(), &allowed.map(|word| word.as_str())).await;
        let denied = [
            &format!("write:{}", path("readable/file")),
            &format!("write:{}", path("single")),
            &format!("see:{}", path("hidden")),
            &format!("read:{}", path("hidden/file")),
            &format!("list:{}", dir.display()),
        ];
        all_denied(&bench, spec, &denied.map(|word| word.as_str())).await;
    }
}

#[tokio::test]
async fn accounts_of_the_machine_and_how_its_kernel_was_started_are_out_of_sight() {
    let bench = Bench::new();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        for (file, expected) in [("/etc/passwd", "root:x:0:0:"), ("/etc/group", "root:x:0:")] {
            let mut spec = bench.fenced(level, &[]);
            spec.args = vec!["attempt".to_owned(), format!("read:{file}")];
            let launched = bench.launch(spec).await;
            ended(launched.exited()).await;
            let seen = output(&*launched).await;
            assert!(seen.len() <= 3, "{level}: {seen:?}");
            assert!(seen[0].contains(&format!(": yes {expected}")), "{level}: {seen:?}");
            let own = fs::read_to_string(file).unwrap_or_default();
            for account in own.lines().filter_map(|line| line.split(':').next()) {
                let known = ["root", "nobody", "nogroup", "agent"].contains(&account);
                let shown = seen.iter().any(|line| line.starts_with(&format!("{account}:")));
                assert!(known || !shown, "{level}: {account} in {seen:?}");
            }
        }
        let spec = bench.fenced(level, &[]);
        let seen = attempts(&bench, spec, &["read:/proc/cmdline"]).await;
        let kernel = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let shown = !kernel.trim().is_empty() && seen[0].0.contains(kernel.trim());
        assert!(!shown, "{level}: {seen:?}");
    }
}

#[tokio::test]
async fn the_rest_of_the_machine_is_out_of_sight() {
    let bench = Bench::new();
    let home = std::env::home_dir().expect("a home").display().to_string();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let (see_home, list_home) = (format!("see:{home}/.profile"), format!("list:{home}"));
        let denied = [
            "list:/",
            "list:/tmp",
            "see:/etc/shadow",
            "see:/etc/ssl/private",
            "see:/var/run/docker.sock",
            "see:/run/docker.sock",
            "see:/run/user",
            "see:/var",
            "see:/sys",
            "see:/dev/tty",
            "see:/dev/mem",
            &see_home,
            &list_home,
        ];
        all_denied(&bench, bench.fenced(level, &[]), &denied).await;
    }
    if can(&bench, Strict).await {
        let denied = ["see:/usr/bin/env", "see:/bin/sh", "see:/usr/share", "see:/proc/cpuinfo"];
        all_denied(&bench, bench.fenced(Strict, &[]), &denied).await;
    }
}

#[tokio::test]
async fn no_network_is_reached_by_any_protocol() {
    let bench = Bench::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let port = listener.local_addr().expect("an address").port();
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").expect("binds");
    let udp_port = receiver.local_addr().expect("an address").port();
    receiver.set_nonblocking(true).expect("sets");
    let (tcp, udp) = (format!("tcp:127.0.0.1:{port}"), format!("udp:127.0.0.1:{udp_port}"));
    all_allowed(&bench, bench.fenced(Basic, &[]), &[&tcp, &udp]).await;
    receiver.recv(&mut [0; 8]).expect("the basic level does not hinder it");
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let denied = [&tcp, &udp, "tcp:[::1]:1", "listen:127.0.0.1:0", "raw", "packet", "netlink"];
        all_denied(&bench, bench.fenced(level, &[]), &denied).await;
    }
    assert!(receiver.recv(&mut [0; 8]).is_err(), "nothing came through");
}

#[tokio::test]
async fn its_network_has_no_device_but_loopback() {
    let bench = Bench::new();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        for process in ["self", "1"] {
            let word = format!("read:/proc/{process}/net/dev");
            let said = bench.said(bench.fenced(level, &["attempt", &word])).await;
            assert_eq!(said.len(), 3, "two lines of headings and one device: {said:?}");
            assert!(said[2].trim_start().starts_with("lo:"), "{said:?}");
        }
    }
}

#[tokio::test]
async fn namespaces_hold_by_themselves() {
    let bench = Bench::without(&[Primitive::Landlock, Primitive::Seccomp]);
    if !can(&Bench::new(), Standard).await {
        return;
    }
    let hidden = bench.dir.path().join("hidden");
    let _listener = UnixListener::bind(&hidden).expect("listens");
    let other = bench.launch(bench.spec(&["live"])).await;
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("listens");
    let port = tcp.local_addr().expect("bound").port();
    let name = format!("wharf-alone-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("listens");
    let spec = bench.fenced(Standard, &[]);
    let cwd = spec.cwd.display().to_string();
    let denied = [
        format!("write:{cwd}/new"),
        "write:/etc/new".to_owned(),
        "write:/new".to_owned(),
        "write:/usr/new".to_owned(),
        "write:/proc/sys/kernel/core_pattern".to_owned(),
        "see:/var".to_owned(),
        format!("see:{}", hidden.display()),
        format!("unix:{}", hidden.display()),
        format!("abstract:{name}"),
        format!("tcp:127.0.0.1:{port}"),
        format!("udp:127.0.0.1:{port}"),
        format!("kill:{}", other.pid()),
        "read:/proc/1/environ".to_owned(),
        "list:/proc/1/root".to_owned(),
        "host".to_owned(),
        format!("mount:{cwd}"),
    ];
    let denied: Vec<&str> = denied.iter().map(String::as_str).collect();
    all_denied(&bench, spec, &denied).await;
    ended(other.kill()).await;
}

#[tokio::test]
async fn only_its_own_socket_can_be_connected_to() {
    let bench = Bench::new();
    let dir = bench.dir.path().join("sockets");
    fs::create_dir(&dir).expect("makes it");
    let _own = UnixListener::bind(dir.join("own")).expect("listens");
    let _other = UnixListener::bind(dir.join("other")).expect("listens");
    let name = format!("wharf-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("listens");
    let (own, other) = (dir.join("own"), dir.join("other"));
    let own_word = format!("unix:{}", own.display());
    let denied = [&format!("unix:{}", other.display()), &format!("abstract:{name}")];
    let denied = denied.map(|word| word.as_str());
    all_allowed(&bench, bench.fenced(Basic, &[]), &denied).await;
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let mut spec = bench.fenced(level, &[]);
        spec.fence.sockets = vec![own.clone()];
        all_allowed(&bench, spec.clone(), &[&own_word]).await;
        all_denied(&bench, spec, &denied).await;
    }
}

#[tokio::test]
async fn other_processes_are_neither_seen_nor_signalled() {
    let bench = Bench::new();
    let other = bench.launch(bench.spec(&["live"])).await;
    let words = [
        format!("kill:{}", other.pid()),
        format!("read:/proc/{}/environ", other.pid()),
        format!("see:/proc/{}", other.pid()),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    all_allowed(&bench, bench.fenced(Basic, &[]), &words).await;
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        all_denied(&bench, bench.fenced(level, &[]), &words).await;
        let denied = ["kill:1", "read:/proc/1/environ", "read:/proc/1/maps", "list:/proc/1/root"];
        all_denied(&bench, bench.fenced(level, &[]), &denied).await;
        let said = bench.said(bench.fenced(level, &["attempt", "list:/proc"])).await;
        let seen = said[0].split(' ').filter(|name| name.parse::<u32>().is_ok()).count();
        assert_eq!(seen, 2, "itself and the first process: {said:?}");
    }
    ended(other.kill()).await;
}

#[tokio::test]
async fn a_sibling_cannot_be_looked_into_nor_signalled() {
    let bench = Bench::new();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let sibling = bench.launch(bench.fenced(level, &["live"])).await;
        let words = [format!("kill:{}", sibling.pid()), format!("see:/proc/{}", sibling.pid())];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        all_denied(&bench, bench.fenced(level, &[]), &words).await;
        ended(sibling.kill()).await;
    }
}

#[tokio::test]
async fn the_machine_cannot_be_changed() {
    let bench = Bench::new();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let spec = bench.fenced(level, &[]);
        let mount = format!("mount:{}", spec.private_dirs[0].display());
        all_denied(&bench, spec, &[&mount, "unshare", "host"]).await;
    }
}

#[tokio::test]
async fn privileges_are_gone_for_good() {
    let bench = Bench::new();
    for level in FIRM {
        if !can(&bench, level).await {
            continue;
        }
        let said = bench.said(bench.fenced(level, &["attempt", "read:/proc/self/status"])).await;
        let value = |name: &str| {
            let line = said.iter().find(|line| line.starts_with(name)).expect("is told");
            line.split_whitespace().nth(1).expect("a value").to_owned()
        };
        for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
            assert_eq!(value(name), "0000000000000000", "{name} {level}");
        }
        assert_eq!(value("NoNewPrivs:"), "1");
        assert_eq!(value("Seccomp:"), "2");
    }
}
