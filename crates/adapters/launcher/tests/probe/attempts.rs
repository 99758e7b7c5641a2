//! Things a program may try, one word each; it says which it could do.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixStream};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::UnshareFlags;

use super::say;

/// Tries each and says `WHAT: yes` or `WHAT: no, WHY`; what was read follows after `yes`.
pub(crate) fn attempt_all(words: &[&str]) -> io::Result<()> {
    for word in words {
        let (what, with) = word.split_once(':').unwrap_or((word, ""));
        match attempt(what, with) {
            Ok(text) => say(format!("{word}: yes {text}").trim_end())?,
            Err(error) => say(&format!("{word}: no, {:?}", error.kind()))?,
        }
    }
    Ok(())
}

fn attempt(what: &str, with: &str) -> io::Result<String> {
    match what {
        "read" => fs::read_to_string(with).map(|text| text.trim().to_owned()),
        "list" => {
            let names = fs::read_dir(with)?.map(|entry| Ok(entry?.file_name()));
            let mut names: Vec<_> = names.collect::<io::Result<_>>()?;
            names.sort();
            Ok(names.iter().map(|name| name.to_string_lossy()).collect::<Vec<_>>().join(" "))
        }
        "see" => fs::symlink_metadata(with).map(|_| String::new()),
        "write" => fs::write(with, "written").map(|()| String::new()),
        "chmod" => {
            let (mode, path) = with_mode(with)?;
            Ok(rustix::fs::chmod(path, mode).map(|()| String::new())?)
        }
        "create" => {
            let (mode, path) = with_mode(with)?;
            let flags = OFlags::CREATE | OFlags::WRONLY;
            Ok(rustix::fs::open(path, flags, mode).map(|_| String::new())?)
        }
        "node" => {
            let (mode, path) = with_mode(with)?;
            let made = rustix::fs::mknodat(CWD, path, FileType::RegularFile, mode, 0);
            Ok(made.map(|()| String::new())?)
        }
        "open2" => {
            let flags = ResolveFlags::empty();
            let opened = rustix::fs::openat2(CWD, with, OFlags::RDONLY, Mode::empty(), flags);
            Ok(opened.map(|_| String::new())?)
        }
        "mode" => Ok(format!("{:o}", fs::metadata(with)?.mode() & 0o7777)),
        "inotify" => {
            let mut held = Vec::new();
            while held.len() < 4096 {
                match rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::empty()) {
                    Ok(one) => held.push(one),
                    Err(_) => break,
                }
            }
            Ok(held.len().to_string())
        }
        "mkdir" => fs::create_dir(with).map(|()| String::new()),
        "tcp" => TcpStream::connect(with).map(|_| String::new()),
        "listen" => TcpListener::bind(with).map(|_| String::new()),
        "udp" => UdpSocket::bind("127.0.0.1:0")?.send_to(b"x", with).map(|_| String::new()),
        "unix" => UnixStream::connect(with).map(|_| String::new()),
        "abstract" => {
            let address = SocketAddr::from_abstract_name(with)?;
            UnixStream::connect_addr(&address).map(|_| String::new())
        }
        "raw" => socket(AddressFamily::INET, SocketType::RAW),
        "packet" => socket(AddressFamily::PACKET, SocketType::RAW),
        "netlink" => socket(AddressFamily::NETLINK, SocketType::RAW),
        "kill" => {
            let pid =
                with.parse().ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
            // A signal that nobody would notice.
            Ok(kill_process(pid, Signal::WINCH).map(|()| String::new())?)
        }
        "mount" => {
            Ok(mount("tmpfs", with, "tmpfs", MountFlags::empty(), None).map(|()| String::new())?)
        }
        "unshare" => unshare(UnshareFlags::NEWUSER),
        "host" => Ok(rustix::system::sethostname(b"mine").map(|()| String::new())?),
        "get" => get(with),
        "connection" => connection(),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// A mode in octal and a path after it.
fn with_mode(text: &str) -> io::Result<(Mode, &str)> {
    let (mode, path) = text.split_once(',').ok_or(io::ErrorKind::InvalidInput)?;
    let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
    Ok((Mode::from_raw_mode(mode), path))
}

fn socket(family: AddressFamily, kind: SocketType) -> io::Result<String> {
    Ok(rustix::net::socket(family, kind, None).map(|_| String::new())?)
}

#[expect(deprecated, reason = "a test must be able to try what a hostile program would")]
fn unshare(flags: UnshareFlags) -> io::Result<String> {
    Ok(rustix::thread::unshare(flags).map(|()| String::new())?)
}

/// Asks the proxy that the environment names for something.
fn get(url: &str) -> io::Result<String> {
    let proxy = std::env::var("http_proxy").map_err(io::Error::other)?;
    let address = proxy.strip_prefix("http://").ok_or(io::ErrorKind::InvalidData)?;
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {url} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.trim().to_owned())
}

/// Speaks on the connection that was inherited. Another program would just use descriptor 3;
/// without unsafe code it is opened again by its name.
fn connection() -> io::Result<String> {
    let kind = fs::read_link("/proc/self/fd/3")?;
    Ok(kind.to_string_lossy().split(':').next().unwrap_or_default().to_owned())
}
