//! Calls through HTTP on loopback, over connections that stay open.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::cpu::cpu_us;
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
    let (health, cpu) = one_caller(&mut client, "GET", "/healthz", "", scale.singles).await?;
    report.floor("HTTP GET /healthz p50, 1 caller", health, "µs");
    report.cpu(cpu);
    let (p50, cpu) =
        one_caller(&mut client, "POST", "/v1/runs?wait=30s", body, scale.singles).await?;
    let floor = 2.0 * raw::single_commit_us(scale.singles)? + health;
    let of = Some((floor, "two raw commits + GET"));
    report.figure("durable run p50, 1 caller, HTTP", p50, "µs", of, "");
    report.cpu(cpu);
    let (p50, cpu) =
        one_caller(&mut client, "POST", "/v1/runs?wait=30s", in_memory, scale.singles).await?;
    report.figure("memory run p50, 1 caller, HTTP", p50, "µs", Some((health, "GET")), "");
    report.cpu(cpu);

    let door = Door { addr, token };
    let (gets, cpu) = many_callers(&door, "GET", "/healthz", "", scale.many).await?;
    report.floor("HTTP GET /healthz, 64 callers", gets, "req/s");
    report.cpu(cpu);
    let count = scale.many / 2;
    let (runs, cpu) = many_callers(&door, "POST", "/v1/runs?wait=30s", body, count).await?;
    report.figure(
        "durable runs, 64 callers, HTTP",
        runs,
        "runs/s",
        Some((gets, "GETs")),
        "≥ 12,000",
    );
    report.cpu(cpu);
    core.stop().await?;
    Ok(())
}

/// The way to a core.
struct Door {
    addr: SocketAddr,
    token: String,
}

/// The middle of so many requests, and the processor time of each, at both ends together.
async fn one_caller(
    client: &mut Client,
    method: &str,
    path: &str,
    body: &str,
    count: usize,
) -> anyhow::Result<(f64, f64)> {
    let mut durations = Vec::with_capacity(count);
    let cpu = cpu_us()?;
    for _ in 0..count {
        let started = Instant::now();
        let (status, _) = client.request(method, path, body).await?;
        ensure!(status == 200, "{path} answered {status}");
        durations.push(started.elapsed());
    }
    let cpu = (cpu_us()? - cpu) / count as f64;
    Ok((median_us(durations), cpu))
}

/// Requests a second, and the processor time of each, at both ends together.
async fn many_callers(
    door: &Door,
    method: &'static str,
    path: &'static str,
    body: &'static str,
    count: usize,
) -> anyhow::Result<(f64, f64)> {
    let mut clients = Vec::new();
    for _ in 0..CALLERS {
        clients.push(Client::connect(door.addr, &door.token).await?);
    }
    let cpu = cpu_us()?;
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
    let (made, took) = (count / CALLERS * CALLERS, started.elapsed());
    Ok((per_second(made, took), (cpu_us()? - cpu) / made as f64))
}

/// The least HTTP client that can keep a connection open.
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    addr: SocketAddr,
    /// The headers of all requests.
    common: String,
}

impl Client {
    pub(crate) async fn connect(addr: SocketAddr, token: &str) -> anyhow::Result<Self> {
        Ok(Self { stream: connect(addr).await?, addr, common: common(addr, token) })
    }

    /// Shows another token from now on.
    pub(crate) fn be(&mut self, token: &str) {
        self.common = common(self.addr, token);
    }

    pub(crate) async fn request(
        &mut self,
        method: &str,
        path: &str,
        body: &str,
    ) -> anyhow::Result<(u16, Vec<u8>)> {
        let answer = self.exchange(method, path, "", body).await?;
        Ok((answer.status, answer.body))
    }

    /// The same with more headers, each with its end of line.
    pub(crate) async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> anyhow::Result<Answer> {
        let exchange = async {
            let mut answer = self.open(method, path, headers, body).await?;
            self.body(&mut answer).await?;
            Ok(answer)
        };
        tokio::time::timeout(Duration::from_secs(60), exchange).await?
    }

    /// The same without waiting for the body, which may go on for ever.
    pub(crate) async fn open(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> anyhow::Result<Answer> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\n{}{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.common,
            body.len()
        );
        if let Some(answer) = self.head(&request).await? {
            return Ok(answer);
        }
        // Servers close connections that nobody used for a while; then there is another one.
        self.stream = connect(self.addr).await?;
        self.head(&request).await?.context("the connection ended before the answer")
    }

    /// The head of the answer; `None` if the connection ended before it.
    async fn head(&mut self, request: &str) -> anyhow::Result<Option<Answer>> {
        let mut head = String::new();
        if self.stream.write_all(request.as_bytes()).await.is_err()
            || !matches!(self.stream.read_line(&mut head).await, Ok(1..))
        {
            return Ok(None);
        }
        loop {
            let line = head.len();
            if self.stream.read_line(&mut head).await? == 0 {
                bail!("the connection ended inside a head");
            }
            if &head[line..] == "\r\n" {
                break;
            }
        }
        let status = head.split(' ').nth(1).context("no status line")?.parse()?;
        Ok(Some(Answer { status, head, body: Vec::new() }))
    }

    async fn body(&mut self, answer: &mut Answer) -> anyhow::Result<()> {
        if answer.header("transfer-encoding").is_some_and(|coding| coding == "chunked") {
            while self.chunk(&mut answer.body).await? > 0 {}
            return Ok(());
        }
        let length = answer.header("content-length").map_or(Ok(0), str::parse)?;
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body).await?;
        Ok(())
    }

    /// Reads one chunk; the last one is empty.
    async fn chunk(&mut self, into: &mut Vec<u8>) -> anyhow::Result<usize> {
        let mut line = String::new();
        self.stream.read_line(&mut line).await?;
        let length = usize::from_str_radix(line.trim(), 16).context("no length of a chunk")?;
        let start = into.len();
        into.resize(start + length, 0);
        self.stream.read_exact(&mut into[start..]).await?;
        line.clear();
        self.stream.read_line(&mut line).await?;
        Ok(length)
    }
}

/// What a server answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

async fn connect(addr: SocketAddr) -> anyhow::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

fn common(addr: SocketAddr, token: &str) -> String {
    format!("Host: {addr}\r\nAuthorization: Bearer {token}\r\n")
}
