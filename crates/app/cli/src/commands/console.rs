//! `wharf console`: signs a browser in and shows the console there.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use wharf_vocab::Code;

use crate::commands::{CliError, Context, Exit, Result};

/// How long a browser may take to read the file that leads it to the console.
const BROWSER_TAKES: Duration = Duration::from_secs(10);
/// What the names of such files begin and end with.
const NAME: (&str, &str) = ("console-", ".html");

/// What `wharf console` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  wharf console             open the console in a browser
  wharf console --print     print the address, to open it elsewhere
  wharf console --print --token \"$TOKEN\"
                            the same with the rights of another token

The address signs one browser in, once, within 60 seconds.")]
pub(crate) struct ConsoleArgs {
    /// Only print the address
    #[arg(long)]
    print: bool,
}

/// Signs a browser in.
pub(crate) async fn run(args: ConsoleArgs, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let link = client.tokens().create_console_link().await?;
    // The core does not know by which name it is called from here, except that with TLS it knows
    // for which names its certificate is.
    let url = match client.base_url().starts_with("https://") && link.url.starts_with("https://") {
        true => link.url,
        false => format!("{}/#link={}", client.base_url().trim_end_matches('/'), link.code),
    };
    if args.print {
        let shown = json!({"url": url, "expires_at": link.expires_at});
        return match context.output.is_json() {
            true => context.output.json(&shown).map(|()| Exit::Done),
            false => context.output.line(&url).map(|()| Exit::Done),
        };
    }
    let page = LinkFile::write(&context.home()?.path().join("run"), &url).map_err(|error| {
        let message = format!("cannot write the file for the browser ({error}); use --print");
        CliError::new(Code::HomeUnwritable, message)
    })?;
    if !open_browser(&format!("file://{}", page.path.display())) {
        let message = "there is no browser here; print the address with: wharf console --print";
        return Err(CliError::new(Code::ConfigInvalid, message));
    }
    // Whoever is told nothing would wait; the file is gone in any case.
    let opened = json!({"opened": client.base_url(), "expires_at": link.expires_at});
    let sentence = format!("the console opens in your browser: {}", client.base_url());
    let told = context.output.done(&opened, &sentence);
    tokio::select! {
        () = tokio::time::sleep(BROWSER_TAKES) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    drop(page);
    told
}

/// A file that leads a browser to the console: nobody else can read it, and no list of processes
/// shows what stands in it. It is gone when this is dropped.
struct LinkFile {
    path: PathBuf,
}

impl LinkFile {
    fn write(folder: &Path, url: &str) -> io::Result<Self> {
        clear(folder)?;
        let name = format!("{}{:x}-{}{}", NAME.0, std::process::id(), nanos(), NAME.1);
        let path = folder.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let page = Self { path };
        file.write_all(leading_to(url).as_bytes())?;
        Ok(page)
    }
}

impl Drop for LinkFile {
    fn drop(&mut self) {
        // Whoever cannot remove it leaves a link that is used up or too old.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes what commands left that were killed.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(NAME.0) && name.ends_with(NAME.1) {
            let age = entry.metadata().and_then(|about| about.modified()).ok();
            let age = age.and_then(|at| at.elapsed().ok()).unwrap_or_default();
            if age > BROWSER_TAKES * 6 {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// A page that leads on. Addresses have no letters that would have to be written otherwise; one that
/// had would lead nowhere.
fn leading_to(url: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._~:/#=[]@%".contains(c);
    let url: String = url.chars().filter(|c| fits(*c)).collect();
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Wharf</title>\n<meta http-equiv=\"refresh\" content=\"0; url={url}\">\n\
         <p><a href=\"{url}\" rel=\"noreferrer\">Open the console</a></p>\n"
    )
}

fn nanos() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_nanos()
}

/// Shows an address in a browser, if there is one; says whether one was started.
pub(crate) fn open_browser(address: &str) -> bool {
    let set = std::env::var("BROWSER").ok().filter(|set| !set.trim().is_empty());
    let usual = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let set = set.unwrap_or_else(|| usual.to_owned());
    let mut words = set.split_whitespace();
    let Some(program) = words.next() else { return false };
    let mut command = std::process::Command::new(program);
    command.args(words).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn c006_the_file_is_private_leads_on_and_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let url = "http://127.0.0.1:7420/#link=c0de_-1";
        let page = LinkFile::write(folder.path(), url).expect("written");
        let mode = fs::metadata(&page.path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(fs::read_to_string(&page.path).expect("text").contains(url));
        let path = page.path.clone();
        drop(page);
        assert!(!path.exists());
        assert!(!leading_to("http://h/\"><script>").contains("<script>"));
    }
}
