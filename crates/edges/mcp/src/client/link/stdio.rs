//! A server on the other end of its standard input and output: one socket for both.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use wharf_hosting::Tasks;

use super::{LinkEnd, LinkNews, LinkOrder, UpstreamLink};

/// Bytes read in one go.
const READ_BYTES: usize = 16 * 1024;

/// Two ends of a socket: the core's, and the one that becomes a process's standard input and
/// output.
pub(crate) fn pair() -> io::Result<(StdUnixStream, OwnedFd)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((ours, theirs.into()))
}

/// A way over the core's end of a socket. When its orders are dropped the server sees the end of
/// its input; what it still says arrives.
pub(crate) fn open(tasks: &Tasks, ours: StdUnixStream) -> io::Result<UpstreamLink> {
    let (read, write) = UnixStream::from_std(ours)?.into_split();
    let (link, LinkEnd { orders, news }) = UpstreamLink::new();
    tasks.spawn("reading from a server", read_all(read, news));
    tasks.spawn("writing to a server", write_all(write, orders));
    Ok(link)
}

async fn read_all(mut read: OwnedReadHalf, news: mpsc::Sender<LinkNews>) {
    let mut buffer = vec![0; READ_BYTES];
    let why = loop {
        let got = tokio::select! {
            () = news.closed() => return,
            got = read.read(&mut buffer) => got,
        };
        match got {
            Ok(0) => break "closed its output".to_owned(),
            Ok(count) => {
                if news.send(LinkNews::Bytes(buffer[..count].to_vec())).await.is_err() {
                    return;
                }
            }
            Err(error) => break format!("cannot be read from: {}", error.kind()),
        }
    };
    // Whoever drove the session may be gone.
    let _ = news.send(LinkNews::Ended(why)).await;
}

async fn write_all(mut write: OwnedWriteHalf, mut orders: mpsc::Receiver<LinkOrder>) {
    while let Some(order) = orders.recv().await {
        let LinkOrder::Send(send) = order else { continue };
        let mut line = send.message.write();
        line.push('\n');
        if write.write_all(line.as_bytes()).await.is_err() {
            // Whoever reads from it says that it is gone. Orders are taken until then, so that
            // nobody waits for room.
            while orders.recv().await.is_some() {}
            return;
        }
    }
    // Dropping its half of the socket ends the server's input.
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use wharf_wire::mcp_v1::{McpMessage, McpNotification};

    use super::super::LinkSend;
    use super::*;

    #[tokio::test]
    async fn m049_dropping_the_way_out_ends_the_servers_input_and_its_last_words_arrive() {
        let (ours, theirs) = pair().expect("a socket");
        let mut link = open(&Tasks::default(), ours).expect("opens");
        let server = std::thread::spawn(move || {
            let mut theirs = StdUnixStream::from(theirs);
            let mut all = String::new();
            theirs.read_to_string(&mut all).expect("read to its end");
            theirs.write_all(b"last words").expect("written");
            all
        });
        let told = McpNotification::Initialized(Box::default());
        let message = McpMessage::Notification { method: told.method().into(), params: None };
        let send = LinkSend { message, mirrors: Vec::new() };
        link.orders.send(LinkOrder::Send(Box::new(send))).await.expect("taken");
        drop(link.orders);
        let Some(LinkNews::Bytes(bytes)) = link.news.recv().await else { panic!("words") };
        assert_eq!(bytes, b"last words");
        assert!(matches!(link.news.recv().await, Some(LinkNews::Ended(_))));
        let seen = tokio::task::spawn_blocking(|| server.join()).await.expect("joined");
        let seen = seen.expect("ended well");
        assert!(seen.ends_with("}\n") && seen.contains("notifications/initialized"), "{seen}");
    }
}
