//! What the command line and the environment say of a server.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::{Listen, Options};
use crate::Error;

/// Where a core shows the files of runs to a server that it fences in.
const ARTIFACTS: &str = "/artifacts";

/// What a process is asked to do.
#[derive(Debug)]
pub(super) enum ProcessCommand {
    /// Serve, set up so.
    Serve(Box<Options>),
    /// Show its schemas.
    Schema,
}

/// Reads arguments and environment. Arguments count more.
pub(super) fn read(
    mut options: Options,
    arguments: impl IntoIterator<Item = String>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<ProcessCommand, Error> {
    if let Some(port) = environment("PORT") {
        options.listen = on_port(&port)?;
    }
    let origins = environment("WHARF_ALLOW_ORIGINS").unwrap_or_default();
    let origins = origins.split(',').map(str::trim).filter(|origin| !origin.is_empty());
    options.files.origins.extend(origins.map(str::to_owned));
    if options.files.artifacts.is_none() && Path::new(ARTIFACTS).is_dir() {
        options.files.artifacts = Some(ARTIFACTS.into());
    }
    if options.files.proxy.is_none() {
        options.files.proxy = environment("HTTP_PROXY").filter(|address| is_way_out(address));
    }
    let mut arguments = arguments.into_iter();
    while let Some(word) = arguments.next() {
        let (name, given) = match word.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        if name == "--schema" {
            return Ok(ProcessCommand::Schema);
        }
        let is_known = ["--port", "--listen", "--artifacts", "--allow-origin", "--token-file"];
        if !is_known.contains(&name.as_str()) {
            return Err(Error::Argument(format!("{name:?} is not known")));
        }
        let value = given.or_else(|| arguments.next()).filter(|value| !value.is_empty());
        let value = value.ok_or_else(|| Error::Argument(format!("{name} needs a value")))?;
        match name.as_str() {
            "--port" => options.listen = on_port(&value)?,
            "--listen" => options.listen = value.parse()?,
            "--artifacts" => options.files.artifacts = Some(PathBuf::from(value)),
            "--allow-origin" => options.files.origins.push(value),
            _ => options.token_file = Some(PathBuf::from(value)),
        }
    }
    Ok(ProcessCommand::Serve(Box::new(options)))
}

fn on_port(text: &str) -> Result<Listen, Error> {
    let port: u16 =
        text.parse().map_err(|_| Error::Argument(format!("{text:?} is no number of a port")))?;
    Ok(Listen::Tcp(format!("127.0.0.1:{port}")))
}

/// Whether an address is the way out of a fence, which is always on this machine. Proxies of the
/// machine's owner are none: addresses are checked here.
fn is_way_out(address: &str) -> bool {
    let Some(rest) = address.strip_prefix("http://") else { return false };
    let host = rest.trim_end_matches('/').rsplit_once(':').map(|(host, _)| host);
    host.and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok())
        .is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Options, Error> {
        let arguments = arguments.iter().map(|&word| word.to_owned());
        let environment = |name: &str| {
            let mut all = environment.iter();
            all.find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        match read(Options::default(), arguments, environment)? {
            ProcessCommand::Serve(options) => Ok(*options),
            ProcessCommand::Schema => panic!("not asked for"),
        }
    }

    #[test]
    fn arguments_count_more_than_the_environment() {
        let tcp = |port: u16| Listen::Tcp(format!("127.0.0.1:{port}"));
        let port = [("PORT", "7001")];
        assert_eq!(options(&[], &port).expect("options").listen, tcp(7001));
        assert_eq!(options(&["--port", "7002"], &port).expect("options").listen, tcp(7002));
        assert_eq!(options(&["--port=7003"], &port).expect("options").listen, tcp(7003));
        let unix = options(&["--listen", "unix:/run/x"], &port).expect("options").listen;
        assert_eq!(unix, Listen::Unix("/run/x".into()));
        let arguments =
            ["--allow-origin=https://a", "--allow-origin", "https://b", "--artifacts", "/x"];
        let all = options(&arguments, &[("WHARF_ALLOW_ORIGINS", "https://c, https://d")]);
        let all = all.expect("options").files;
        assert_eq!(all.origins, ["https://c", "https://d", "https://a", "https://b"]);
        assert_eq!(all.artifacts, Some("/x".into()));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for arguments in [&["--prot", "1"][..], &["--port"], &["--port", "x"], &["serve"]] {
            assert!(matches!(options(arguments, &[]), Err(Error::Argument(_))), "{arguments:?}");
        }
        assert!(matches!(options(&["--listen", "x"], &[]), Err(Error::Server(_))));
        assert!(matches!(options(&[], &[("PORT", "70000")]), Err(Error::Argument(_))));
    }

    #[test]
    fn t025_only_the_way_out_of_a_fence_is_a_proxy() {
        let proxy =
            |address| options(&[], &[("HTTP_PROXY", address)]).expect("options").files.proxy;
        assert!(proxy("http://127.0.0.1:3128").is_some());
        assert!(proxy("http://[::1]:3128/").is_some());
        for other in ["http://proxy.example:3128", "http://10.0.0.1:1", "socks5://127.0.0.1:1", ""]
        {
            assert_eq!(proxy(other), None, "{other}");
        }
    }
}
