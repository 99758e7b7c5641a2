//! What a hostile program tries to use more than it may without being seen.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{Bench, DEADLINE, can, ended, mark_of, marked, output, tell};
use wharf_domain::provider::Usage;
use wharf_ports::launcher::{ExitHow, LaunchSpec};
use wharf_vocab::Resource;
use wharf_vocab::SandboxLevel::Standard;

const MEGABYTE: u64 = 1024 * 1024;
const PYTHON: &str = "/usr/bin/python3";

/// A launch of some lines of Python, if it can be had here.
async fn python(bench: &Bench, text: &str) -> Option<LaunchSpec> {
    if !can(bench, Standard).await || !Path::new(PYTHON).exists() {
        tell("python3 or a firm fence");
        return None;
    }
    let mut spec = bench.fenced(Standard, &["-c", text]);
    spec.program = PYTHON.into();
    Some(spec)
}

async fn stopped_for(resource: Resource, text: &str, limit: impl Fn(&mut Usage)) {
    let bench = Bench::new();
    let Some(mut spec) = python(&bench, text).await else { return };
    limit(&mut spec.fence.usage);
    let mark = mark_of(&spec);
    let launched = bench.launch(spec).await;
    let exit = ended(launched.exited()).await;
    let said = output(&*launched).await;
    assert_eq!(exit.how, ExitHow::Limit(resource), "{exit} {said:?}");
    assert!(!said.iter().any(|line| line.contains("got away")), "{said:?}");
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

async fn says(text: &str, limit: impl Fn(&mut Usage), expect: &[&str]) {
    let bench = Bench::new();
    let Some(mut spec) = python(&bench, text).await else { return };
    limit(&mut spec.fence.usage);
    assert_eq!(bench.said(spec).await, expect);
}

#[tokio::test]
async fn memory_in_files_without_a_name_counts() {
    let text = "import os, time\n\
        keep = []\n\
        for k in range(20):\n    \
            keep.append(os.memfd_create('x'))\n    \
            for i in range(30): os.write(keep[-1], b'x' * (1 << 20))\n    \
            time.sleep(0.02)\n\
        time.sleep(2)\n\
        print('got away', flush=True)\n";
    stopped_for(Resource::Memory, text, |usage| usage.memory_bytes = Some(128 * MEGABYTE)).await;
}

#[tokio::test]
async fn memory_in_shared_files_counts_once_and_they_are_not_without_number() {
    let text = "import os, time\n\
        f = open('/dev/shm/large', 'wb')\n\
        for i in range(48): f.write(b'x' * (1 << 20)); f.flush()\n\
        time.sleep(2)\n\
        print('got away', flush=True)\n";
    stopped_for(Resource::Memory, text, |usage| usage.memory_bytes = Some(40 * MEGABYTE)).await;
    // Mapped as well, it is still there only once.
    let text = "import mmap, os, time\n\
        f = os.open('/dev/shm/large', os.O_CREAT | os.O_RDWR)\n\
        os.ftruncate(f, 40 << 20)\n\
        m = mmap.mmap(f, 40 << 20)\n\
        for i in range(0, 40 << 20, 4096): m[i] = 1\n\
        time.sleep(0.5)\n\
        print('fine')\n";
    says(text, |usage| usage.memory_bytes = Some(72 * MEGABYTE), &["fine"]).await;
    let text = "import os\n\
        made = 0\n\
        try:\n    \
            for made in range(200000): os.close(os.open('/dev/shm/%d' % made, os.O_CREAT))\n\
        except OSError as e: print(made < 5000, e.strerror)\n";
    says(text, |_| {}, &["True No space left on device"]).await;
}

#[tokio::test]
async fn memory_that_belongs_to_no_process_is_not_to_be_had() {
    let text = "import ctypes, os\n\
        c = ctypes.CDLL(None, use_errno=True)\n\
        for name, args in [('shmget', (0, 50 << 20, 0o1600)), ('msgget', (0, 0o1600)),\n        \
                           ('semget', (0, 1, 0o1600))]:\n    \
            print(name, getattr(c, name)(*args), os.strerror(ctypes.get_errno()))\n";
    let denied =
        ["shmget", "msgget", "semget"].map(|name| format!("{name} -1 Operation not permitted"));
    says(text, |_| {}, &denied.each_ref().map(String::as_str)).await;
}

#[tokio::test]
async fn processes_that_share_memory_in_the_usual_way_just_work() {
    let text = "import multiprocessing as m\n\
        from multiprocessing import shared_memory\n\
        def twice(x): return 2 * x\n\
        if __name__ == '__main__':\n    \
            with m.get_context('fork').Pool(3) as pool: print(sum(pool.map(twice, range(100))))\n    \
            s = shared_memory.SharedMemory(create=True, size=1 << 20)\n    \
            s.buf[0] = 7\n    \
            other = shared_memory.SharedMemory(s.name)\n    \
            print(other.buf[0])\n    \
            other.close()\n    \
            s.unlink()\n";
    let limit = |usage: &mut Usage| {
        usage.memory_bytes = Some(512 * MEGABYTE);
        usage.processes = Some(40);
        usage.cpu_ms = Some(30_000);
        usage.disk_bytes = Some(64 * MEGABYTE);
    };
    says(text, limit, &["9900", "7"]).await;
}

#[tokio::test]
async fn files_that_were_removed_and_are_open_count() {
    let text = "import os, time\n\
        keep = []\n\
        for k in range(10):\n    \
            name = os.environ['HOME'] + '/f%d' % k\n    \
            keep.append(os.open(name, os.O_CREAT | os.O_RDWR))\n    \
            os.unlink(name)\n    \
            for i in range(15): os.write(keep[-1], b'y' * (1 << 20))\n\
        time.sleep(3)\n\
        print('got away', flush=True)\n";
    stopped_for(Resource::Disk, text, |usage| usage.disk_bytes = Some(16 * MEGABYTE)).await;
}

#[tokio::test]
async fn files_where_no_path_leads_count() {
    let text = "import os, time\n\
        at = os.open(os.environ['HOME'], os.O_RDONLY)\n\
        for k in range(25):\n    \
            os.mkdir('d' * 200, dir_fd=at)\n    \
            at = os.open('d' * 200, os.O_RDONLY, dir_fd=at)\n\
        for k in range(10):\n    \
            f = os.open('f%d' % k, os.O_CREAT | os.O_RDWR, dir_fd=at)\n    \
            for i in range(15): os.write(f, b'y' * (1 << 20))\n    \
            os.close(f)\n\
        time.sleep(5)\n\
        print('got away', flush=True)\n";
    stopped_for(Resource::Disk, text, |usage| usage.disk_bytes = Some(16 * MEGABYTE)).await;
}

#[tokio::test]
async fn time_of_brief_children_that_nobody_waits_for_counts() {
    let text = "import os, signal, time\n\
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
        end, n = time.monotonic() + 20, 0\n\
        while time.monotonic() < end:\n    \
            if os.fork() == 0:\n        \
                t = time.process_time()\n        \
                while time.process_time() - t < 0.009: pass\n        \
                os._exit(0)\n    \
            n += 1\n    \
            if n % 2 == 0: time.sleep(0.010)\n\
        print('got away', flush=True)\n";
    stopped_for(Resource::Cpu, text, |usage| usage.cpu_ms = Some(5_000)).await;
}

#[tokio::test]
async fn a_bomb_whose_children_are_bombs_never_gets_large() {
    let bench = Bench::new();
    let text = "import os, time\n\
        END = time.monotonic() + 15\n\
        def bomb(d):\n    \
            while time.monotonic() < END:\n        \
                try:\n            \
                    if os.fork() == 0:\n                \
                        if d < 40: bomb(d + 1)\n                \
                        time.sleep(15)\n                \
                        os._exit(0)\n        \
                except OSError: time.sleep(0.05)\n\
        bomb(0)\n";
    let Some(mut spec) = python(&bench, text).await else { return };
    spec.fence.usage.processes = Some(32);
    let mark = mark_of(&spec);
    let began = Instant::now();
    let launched = bench.launch(spec).await;
    let mut largest = 0;
    let mut exited = std::pin::pin!(launched.exited());
    let exit = loop {
        tokio::select! {
            exit = &mut exited => break exit,
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                largest = largest.max(marked(&mark).len());
            }
        }
    };
    assert_eq!(exit.how, ExitHow::Limit(Resource::Processes), "{exit}");
    assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
    // Twice the number, and what the kernel and we keep for ourselves.
    assert!(largest < 500, "{largest}");
    assert_eq!(marked(&mark), [] as [i32; 0]);
}

#[tokio::test]
async fn the_machines_own_number_of_process_ids_stays() {
    let most = || fs::read_to_string("/proc/sys/kernel/pid_max").expect("is there");
    let before = most();
    let bench = Bench::new();
    let mut spec = bench.fenced(Standard, &["attempt", "read:/proc/sys/kernel/pid_max"]);
    spec.fence.usage.processes = Some(20);
    let said = bench.said(spec).await;
    assert_eq!(most(), before);
    // Where the kernel has a number for each namespace, there is room for twice the processes.
    let inside = said[0].rsplit(' ').next().expect("a word");
    // Elsewhere the limit of processes is kept by counting them, which other tests see to.
    assert!([before.trim(), "4194304", "468"].contains(&inside), "{said:?}");
}

#[tokio::test]
async fn more_connections_than_can_be_passed_on_cost_no_time() {
    let bench = Bench::new();
    let path = bench.dir.path().join("proxy");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("listens");
    // It takes connections and says nothing.
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            kept.push(stream);
            if kept.len() > 500 {
                return;
            }
        }
    });
    let text = "import os, socket, time\n\
        host, port = os.environ['HTTP_PROXY'][7:].split(':')\n\
        def spent():\n    \
            f = open('/proc/1/stat').read().rsplit(')', 1)[1].split()\n    \
            return int(f[11]) + int(f[12])\n\
        keep, before = [], spent()\n\
        try:\n    \
            for i in range(50):\n        \
                s = socket.socket(); s.settimeout(1); s.connect((host, int(port))); keep.append(s)\n\
        except OSError: pass\n\
        time.sleep(2)\n\
        print(len(keep) > 20, spent() - before < 50)\n";
    let Some(mut spec) = python(&bench, text).await else { return };
    spec.fence.usage.open_files = Some(64);
    spec.fence.egress = Some(path);
    assert_eq!(bench.said(spec).await, ["True True"]);
}
