//! `[http] origins`: pages of other origins that may call the core.

use wharf_vocab::{Code, Fault};

/// The origins as browsers write them, if each is one.
pub(super) fn checked(origins: Vec<String>, whose: &str) -> Result<Vec<String>, Fault> {
    origins.into_iter().map(|origin| one(&origin, whose)).collect()
}

fn one(origin: &str, whose: &str) -> Result<String, Fault> {
    let text = origin.trim().trim_end_matches('/').to_ascii_lowercase();
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
    if host.is_some_and(|host| !host.is_empty() && host.chars().all(is_part)) {
        return Ok(text);
    }
    let message = format!(
        "{whose} has {origin:?}, which is no origin such as http://localhost:5173: a scheme, a \
         host and perhaps a port."
    );
    Err(Fault::new(Code::ConfigInvalid, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k032_an_origin_is_a_scheme_a_host_and_a_port() {
        let read = |text: &str| checked(vec![text.to_owned()], "It");
        for (text, origin) in [
            ("http://localhost:5173", "http://localhost:5173"),
            ("https://App.Example/", "https://app.example"),
            ("http://[::1]:80", "http://[::1]:80"),
        ] {
            assert_eq!(read(text).expect("fits"), [origin]);
        }
        for text in
            ["", "*", "null", "localhost:5173", "http://", "http://a/b", "ftp://a", "http://a b"]
        {
            let fault = read(text).expect_err(text);
            assert!(
                fault.is(Code::ConfigInvalid) && fault.message.starts_with("It has"),
                "{fault}"
            );
        }
    }
}
