//! `wharf up`: starts the core and keeps it running in the foreground.

use std::net::SocketAddr;
use std::path::PathBuf;

use wharf_server::{CertFiles, Ready, UpOptions};

use crate::commands::{Context, Exit, Output, Result};
use crate::plain;

/// What `wharf up` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf up
  wharf up --listen 127.0.0.1:0      let the system pick a port
  wharf up --home ./my-home --demo   a separate home, with the example providers
  wharf up --listen 0.0.0.0:7420 --tls-cert cert.pem --tls-key key.pem
                                     let other machines in, over TLS
  wharf up --allow-origin http://localhost:5173
                                     let pages of a development server connect")]
pub(crate) struct UpArgs {
    /// Where to listen; port 0 lets the system pick one
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Speak TLS with this certificate: PEM, followed by those that vouch for it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's key: PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Listen beyond this machine without TLS, behind a proxy that provides it
    #[arg(long)]
    behind_proxy: bool,
    /// Let pages of this origin call the core, with a token; may be given more than once
    #[arg(long, value_name = "URL")]
    allow_origin: Vec<String>,
    /// Serve the console from this folder instead of the one built in, to work on it
    #[arg(long, value_name = "DIR")]
    console_dir: Option<PathBuf>,
    /// Add, approve and start the example providers as well
    #[arg(long)]
    demo: bool,
}

/// Runs the core until it is told to stop.
pub(crate) async fn run(args: UpArgs, context: &Context) -> Result<Exit> {
    let UpArgs { listen, behind_proxy, allow_origin: origins, console_dir, demo, .. } = args;
    let tls = args.tls_cert.zip(args.tls_key).map(|(cert, key)| CertFiles { cert, key });
    let output = context.output;
    let needs_home = context.locator.home.is_some();
    let home = context.home()?;
    // A link is for somebody who sees it now, and not for a log.
    let console_link = output.out_is_terminal() && !output.is_json();
    let options =
        UpOptions { home, listen, tls, behind_proxy, origins, console_dir, demo, console_link };
    let ready = move |ready: &Ready| {
        // A core goes on even when nobody reads what it prints.
        let _ = greet(output, ready, needs_home);
    };
    wharf_server::up(options, ready).await?;
    Ok(Exit::Done)
}

fn greet(output: Output, started: &Ready, needs_home: bool) -> Result<()> {
    if output.is_json() {
        return output.json(started);
    }
    let paint = output.out_paint();
    let home = started.home.display().to_string();
    let option = if needs_home { format!(" --home {}", quoted(&home)) } else { String::new() };
    let address = paint.strong(&plain::line(&started.http));
    let link = started.console_link.as_deref().map_or(String::new(), |link| {
        format!(
            "  open  {} (signs one browser in, within a minute)\n",
            paint.strong(&plain::line(link))
        )
    });
    let later = if link.is_empty() { "open " } else { "later" };
    output.text(&format!(
        "{} is up at {address} with {} tools\n  home  {}\n  try   wharf{option} run wharf/count n=20\n{link}  {later} wharf{option} console\n  stop  Ctrl-C\n",
        paint.good("wharf"),
        started.tools,
        plain::line(&home),
    ))
}

/// A path as a shell takes it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", plain::line(path).replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("/srv/wharf-1"), "/srv/wharf-1");
        assert_eq!(quoted("/my home"), "'/my home'");
        assert_eq!(quoted("/it's"), "'/it'\\''s'");
    }
}
