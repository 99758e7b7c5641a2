//! Calls through HTTP on loopback, over connections that stay open.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::report::{Report, median_us, per_second};
use crate::{Scale, core, raw};

const CALLERS: usize = 64;

pub(crate) async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = core::scratch()?;
    let core = core::start(&dir).await?;
    let (addr, token) = (core.http_addr(), core.owner_token().to_owned());
    let body = r#"{"tool":"wharf/echo","inputs":{"text":"hello"}}"#;
    let in_memory = r#"{"tool":"wharf/echo","inputs":{"text":"hello"},"durability":"memory"}"#;

    let mut client = Client::connect(addr, &token).await?;
    let health = one_caller(&mut client, "GET", "/healthz", "", scale.singles).await?;
    report.floor("HTTP GET /healthz p50, 1 caller", health, "µs");
    let p50 = one_caller(&mut client, "POST", "/v1/runs?wait=30s", body, scale.singles).await?;
    let floor = 2.0 * raw::single_commit_us(scale.singles)? + health;
    let of = Some((floor, "two raw commits + GET"));
    report.figure("durable run p50, 1 caller, HTTP", p50, "µs", of, "");
    let p50 =
        one_caller(&mut client, "POST", "/v1/runs?wait=30s", in_memory, scale.singles).await?;
    report.figure("memory run p50, 1 caller, HTTP", p50, "µs", Some((health, "GET")), "");

    let gets = many_callers(addr, &token, "GET", "/healthz", "", scale.many).await?;
    report.floor("HTTP GET /healthz, 64 callers", gets, "req/s");
    let runs =
        many_callers(addr, &token, "POST", "/v1/runs?wait=30s", body, scale.many / 2).await?;
    report.figure("durable runs, 64 callers, HTTP", runs, "runs/s", Some((gets, "GETs")), "");
    core.stop().await?;
    Ok(())
}

async fn one_caller(
    client: &mut Client,
    method: &str,
    path: &str,
    body: &str,
    count: usize,
) -> anyhow::Result<f64> {
    let mut durations = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        let (status, _) = client.request(method, path, body).await?;
        ensure!(status == 200, "{path} answered {status}");
        durations.push(started.elapsed());
    }
    Ok(median_us(durations))
}

async fn many_callers(
    addr: SocketAddr,
    token: &str,
    method: &'static str,
    path: &'static str,
    body: &'static str,
    count: usize,
) -> anyhow::Result<f64> {
    let mut clients = Vec::new();
    for _ in 0..CALLERS {
        clients.push(Client::connect(addr, token).await?);
    }
    let started = Instant::now();
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|mut client| {
            tokio::spawn(async move {
                for _ in 0..count / CALLERS {
                    let (status, _) = client.request(method, path, body).await?;
                    ensure!(status == 200, "{path} answered {status}");
                }
                Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(per_second(count / CALLERS * CALLERS, started.elapsed()))
}

/// The least HTTP client that can keep a connection open.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    addr: SocketAddr,
    head: String,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), addr, head: head(addr, token) })
    }

    /// Shows another token from now on.
    pub(crate) fn be(&mut self, token: &str) {
        self.head = head(self.addr, token);
    }

    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<(u16, Vec<u8>)> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        let answer = async {
            self.stream.write_all(request.as_bytes()).await?;
            self.answer().await
        };
        tokio::time::timeout(Duration::from_secs(60), answer).await?
    }

    async fn answer(&mut self) -> anyhow::Result<(u16, Vec<u8>)> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        let status = line.split(' ').nth(1).context("no status line")?.parse()?;
        let mut length = 0;
        loop {
            line.clear();
            if self.stream.read_line(&mut line).await? == 0 {
                bail!("the connection ended inside a head");
            }
            if line == "\r\n" {
                break;
            }
            let (name, value) = line.split_once(':').context("not a header")?;
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok((status, body))
    }
}

fn head(addr: SocketAddr, token: &str) -> String {
    format!("Host: {addr}\r\nAuthorization: Bearer {token}\r\n")
}
