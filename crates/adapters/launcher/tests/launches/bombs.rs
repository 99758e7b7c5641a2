//! Every way to keep memory or disk out of sight of a limit that is kept by looking, tried as this
//! user and, if this user is the first, as an ordinary one.
#![cfg(target_os = "linux")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::support::{Bench, PROBE, can, copy_program, tell};
use wharf_vocab::SandboxLevel::Standard;

/// An ordinary user; nobody needs to have heard of it.
const ORDINARY: u32 = 12_345;
const MEMORY: &str = "50331648";
const DISK: &str = "16777216";

/// What the texts below have in common.
const COMMON: &str = r#"
import array, ctypes, mmap, os, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
MEGABYTE = 1 << 20

def memory_file(megabytes):
    fd = os.memfd_create('x')
    for _ in range(megabytes): os.write(fd, b'x' * MEGABYTE)
    return fd

def removed_file(megabytes):
    name = os.environ['HOME'] + '/removed'
    fd = os.open(name, os.O_CREAT | os.O_RDWR)
    os.unlink(name)
    for _ in range(megabytes): os.write(fd, b'x' * MEGABYTE)
    return fd

def only_mapped(fd, length):
    at = libc.mmap(None, length, 1, 1, fd, 0)
    os.close(fd)
    return at

def send(link, fd):
    link.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [fd]))])
    os.close(fd)

def get_away():
    time.sleep(20)
    print('got away', flush=True)
"#;

/// What the program and its little core said.
fn said(text: &str, user: Option<u32>, limits: &[(&str, &str)]) -> Vec<String> {
    let dir = tempfile::tempdir().expect("a directory");
    // The probe may lie where an ordinary user cannot go.
    let probe = dir.path().join("probe");
    copy_program(PROBE, &probe);
    let place = dir.path().join("place");
    fs::create_dir(&place).expect("makes it");
    for (path, mode) in [(dir.path(), 0o755), (&probe, 0o755), (&place, 0o777)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("opens it");
    }
    let mut command = Command::new(&probe);
    command.args(["bounded", place.to_str().expect("text"), &format!("{COMMON}{text}")]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("WHARF_TEST_POLLING", "1");
    command.envs(limits.iter().copied());
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    let output = command.output().expect("runs");
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Runs a text as each user there is; what was said must end with this.
#[expect(clippy::print_stdout, reason = "how long it took is worth knowing")]
async fn each(text: &str, limits: &[(&str, &str)], expect: &[&str]) {
    let bench = Bench::new();
    if !can(&bench, Standard).await || !Path::new("/usr/bin/python3").exists() {
        return tell("python3 or a firm fence");
    }
    let is_first = rustix::process::geteuid().is_root();
    for user in [None, is_first.then_some(ORDINARY)].into_iter().take(1 + usize::from(is_first)) {
        let said = said(text, user, limits);
        println!("user {user:?}: {said:?}");
        assert_eq!(said.len(), expect.len(), "{user:?} {said:?}");
        for (line, expect) in said.iter().zip(expect) {
            let line = if line.starts_with("ended in") { line.rsplit(": ").next() } else { None }
                .unwrap_or(line);
            assert_eq!(&line, expect, "{user:?} {said:?}");
        }
    }
}

async fn stopped(text: &str, limits: &[(&str, &str)], resource: &str) {
    let text = format!("{text}\nget_away()\n");
    each(&text, limits, &[&format!("it went over its limit of {resource}")]).await;
}

#[tokio::test]
async fn memory_of_a_process_that_made_itself_invisible_counts() {
    let text = "libc.prctl(4, 0, 0, 0, 0)\nkeep = [memory_file(32) for _ in range(8)]\n";
    stopped(text, &[("WHARF_TEST_MEMORY", MEMORY)], "memory").await;
}

#[tokio::test]
async fn removed_files_of_a_process_that_made_itself_invisible_count() {
    let text = "libc.prctl(4, 0, 0, 0, 0)\nkeep = [removed_file(8) for _ in range(8)]\n";
    stopped(text, &[("WHARF_TEST_DISK", DISK)], "disk").await;
}

/// Fifty thousand and more descriptors before the one that matters.
fn behind_descriptors(what: &str) -> String {
    format!(
        "null = os.open('/dev/null', 0)\n\
         for _ in range(60):\n    \
             if os.fork() == 0:\n        \
                 keep = [os.dup(null) for _ in range(1000)]\n        \
                 time.sleep(60)\n\
         if os.fork() == 0:\n    \
             keep = [{what}(8) for _ in range(8)]\n    \
             get_away()\n"
    )
}

#[tokio::test]
async fn memory_behind_very_many_descriptors_is_not_looked_for_but_ended() {
    let text = behind_descriptors("memory_file");
    let limits = [("WHARF_TEST_MEMORY", "2000000000")];
    stopped(&text, &limits, "open_files").await;
}

#[tokio::test]
async fn removed_files_behind_very_many_descriptors_are_ended_too() {
    let text = behind_descriptors("removed_file");
    stopped(&text, &[("WHARF_TEST_DISK", "1000000000")], "open_files").await;
}

#[tokio::test]
async fn removed_files_that_are_only_mapped_count() {
    let whole = "keep = [only_mapped(removed_file(8), 8 << 20) for _ in range(8)]\n";
    stopped(whole, &[("WHARF_TEST_DISK", DISK)], "disk").await;
    // Of each only one page is mapped; nobody can tell how much there is behind it.
    let page = "keep = [only_mapped(removed_file(8), 4096) for _ in range(20)]\n";
    stopped(page, &[("WHARF_TEST_DISK", DISK)], "disk").await;
}

#[tokio::test]
async fn memory_that_is_only_mapped_and_never_touched_counts() {
    let text = "keep = [only_mapped(memory_file(16), 16 << 20) for _ in range(8)]\n";
    stopped(text, &[("WHARF_TEST_MEMORY", MEMORY)], "memory").await;
    // A child touches what its parent shares, and ends.
    let text = "keep = []\n\
        for _ in range(8):\n    \
            m = mmap.mmap(-1, 16 << 20)\n    \
            keep.append(m)\n    \
            if os.fork() == 0:\n        \
                for i in range(0, 16 << 20, 4096): m[i] = 1\n        \
                os._exit(0)\n    \
            os.wait()\n";
    stopped(text, &[("WHARF_TEST_MEMORY", MEMORY)], "memory").await;
}

#[tokio::test]
async fn tables_of_pages_count() {
    let text = "flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000\n\
        m = mmap.mmap(-1, 64 << 30, flags)\n\
        m.madvise(15)\n\
        for at in range(0, 64 << 30, 2 << 20): m[at]\n";
    stopped(text, &[("WHARF_TEST_MEMORY", MEMORY)], "memory").await;
}

#[tokio::test]
async fn memory_of_a_process_whose_first_thread_ended_counts() {
    let text = "def rest():\n    \
            time.sleep(0.3)\n    \
            keep = [b'x' * (16 << 20) for _ in range(8)]\n    \
            get_away()\n\
        threading.Thread(target=rest).start()\n\
        libc.syscall(60, 0)\n";
    stopped(text, &[("WHARF_TEST_MEMORY", MEMORY)], "memory").await;
    let text = "def rest():\n    \
            time.sleep(0.3)\n    \
            keep = [removed_file(8) for _ in range(8)]\n    \
            get_away()\n\
        threading.Thread(target=rest).start()\n\
        libc.syscall(60, 0)\n";
    stopped(text, &[("WHARF_TEST_DISK", DISK)], "disk").await;
}

#[tokio::test]
async fn files_on_their_way_count_and_those_behind_others_hide() {
    let text = "keep = []\n\
        for _ in range(8):\n    \
            keep.append(socket.socketpair())\n    \
            send(keep[-1][0], memory_file(16))\n";
    stopped(text, &[("WHARF_TEST_MEMORY", MEMORY)], "memory").await;
    let text = "a, b = socket.socketpair()\n\
        for _ in range(8): send(a, removed_file(1))\n";
    let text = format!("{text}\nget_away()\n");
    let hidden = "it hid from its limits what it uses (hidden)";
    each(&text, &[("WHARF_TEST_DISK", DISK)], &[hidden]).await;
}

#[tokio::test]
async fn what_waits_in_sockets_and_pipes_counts() {
    let text = "keep = []\n\
        for _ in range(220):\n    \
            pair = socket.socketpair()\n    \
            keep.append(pair)\n    \
            for end in pair:\n        \
                end.setblocking(False)\n        \
                try:\n            \
                    while True: end.send(b'x' * 65536)\n        \
                except BlockingIOError: pass\n";
    stopped(text, &[("WHARF_TEST_MEMORY", MEMORY)], "memory").await;
}

#[tokio::test]
async fn memory_and_descriptors_that_nobody_could_see_are_not_to_be_had() {
    // Secret memory, pages lent to a pipe, a table of a thread's own by two ways.
    let text = "def refused(number, *args):\n    \
            print(libc.syscall(number, *args), os.strerror(ctypes.get_errno()), flush=True)\n\
        refused(447, 0)\n\
        refused(278, 1, 0, 0, 0)\n\
        refused(436, 1000, 1001, 2)\n\
        refused(56, 0x10000 | 0x100 | 0x800, 0, 0, 0, 0)\n";
    if cfg!(target_arch = "x86_64") {
        let refused = "-1 Operation not permitted";
        each(text, &[], &[refused, refused, refused, refused, "exit code 0"]).await;
    }
}

#[tokio::test]
async fn what_a_program_writes_to_the_folder_of_its_runs_counts() {
    let text = "for k in range(8):\n    \
        with open('/artifacts/%d' % k, 'wb') as f: f.write(b'x' * (8 << 20))\n";
    stopped(text, &[("WHARF_TEST_DISK", DISK)], "disk").await;
}

#[tokio::test]
async fn a_program_that_does_such_things_within_its_limits_is_left_alone() {
    let text = "libc.prctl(4, 0, 0, 0, 0)\n\
        keep = [memory_file(2), removed_file(2)]\n\
        maps = [only_mapped(removed_file(1), MEGABYTE) for _ in range(4)]\n\
        shared = mmap.mmap(-1, MEGABYTE)\n\
        a, b = socket.socketpair()\n\
        send(a, memory_file(2))\n\
        r, w = os.pipe()\n\
        os.write(w, b'x')\n\
        threads = [threading.Thread(target=time.sleep, args=(1,)) for _ in range(4)]\n\
        for thread in threads: thread.start()\n\
        time.sleep(2.5)\n\
        print(len(b.recvmsg(1, 1000)[1]), os.read(r, 9), flush=True)\n";
    let limits = [("WHARF_TEST_MEMORY", MEMORY), ("WHARF_TEST_DISK", DISK)];
    each(text, &limits, &["1 b'x'", "exit code 0"]).await;
}
