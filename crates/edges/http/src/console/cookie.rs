//! The cookie of a console session, and what becomes of the cookies of others.
//!
//! Every server on the same host fills the same jar, whatever its port. So cookies have room of
//! their own, and what is not ours is not looked at.

use axum::body::Body;
use axum::http::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HeaderValue, REFERRER_POLICY,
};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use wharf_domain::grant::console::CONSOLE_AGE_MS_MAX;
use wharf_vocab::{Code, Fault};

use crate::answer::refusal_with;

/// What all cookies of a request may take.
const COOKIES_BYTES_MAX: usize = 16 * 1024;
/// Cookies of our name that are looked at: another server can add some, but not take ours away.
const VALUES_MAX: usize = 4;
/// How much of a home's id stands in the name.
const HOME_CHARS: usize = 8;
/// What browsers make sure of with this prefix: no other host and no plain connection set it.
const SECURE_PREFIX: &str = "__Host-";

/// The name of the cookie: each home has its own, since homes share a host.
#[derive(Debug)]
pub(crate) struct CookieName(String);

impl CookieName {
    pub(super) fn of(home_id: &str) -> Self {
        Self(format!("wharf-{}", home_id.chars().take(HOME_CHARS).collect::<String>()))
    }

    /// The values of this name in a request.
    pub(crate) fn values<'h>(&'h self, headers: &'h HeaderMap) -> impl Iterator<Item = &'h str> {
        let texts = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
        let own = pairs.filter(|(name, _)| {
            let name = name.trim();
            name.strip_prefix(SECURE_PREFIX).unwrap_or(name) == self.0
        });
        own.map(|(_, value)| value.trim()).take(VALUES_MAX)
    }

    /// What gives a browser its cookie.
    pub(crate) fn set(&self, value: &str, secure: bool) -> Option<HeaderValue> {
        self.write(value, CONSOLE_AGE_MS_MAX / 1000, secure)
    }

    /// What takes it away again, under either name.
    pub(crate) fn unset(&self, secure: bool) -> Option<HeaderValue> {
        self.write("", 0, secure)
    }

    fn write(&self, value: &str, age_s: u64, secure: bool) -> Option<HeaderValue> {
        let (prefix, end) = if secure { (SECURE_PREFIX, "; Secure") } else { ("", "") };
        let text = format!(
            "{prefix}{}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age_s}{end}",
            self.0
        );
        let mut text = HeaderValue::from_str(&text).ok()?;
        text.set_sensitive(true);
        Some(text)
    }
}

/// Refuses a request whose cookies alone are too much. People see a page that says why.
pub(crate) fn check_size(headers: &HeaderMap) -> Result<(), Box<Response>> {
    let bytes: usize = headers.get_all(COOKIE).iter().map(HeaderValue::len).sum();
    if bytes <= COOKIES_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "The cookies of this request have {bytes} bytes, and {COOKIES_BYTES_MAX} is the most. \
         Programs on other ports of the same host set them; remove cookies of this host in the \
         browser, or open the core under another name of this machine."
    );
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    let accepts = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/html") {
        let fault = Fault::new(Code::RequestTooLarge, message);
        return Err(Box::new(refusal_with(status, &fault)));
    }
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Too many \
         cookies</title></head><body><h1>Too many cookies</h1><p>{message}</p></body></html>\n"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    Err(Box::new((status, headers, Body::from(page)).into_response()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, cookie.parse().expect("a header"));
        }
        headers
    }

    #[test]
    fn c007_only_cookies_of_the_own_home_are_looked_at() {
        let name = CookieName::of("0123456789");
        let values = |cookies: &[&str]| {
            name.values(&headers(cookies)).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(values(&["a=b; wharf-01234567=x.y; c"]), ["x.y"]);
        assert_eq!(values(&["__Host-wharf-01234567=x"]), ["x"]);
        assert_eq!(values(&["wharf-01234567=1", "wharf-01234567=2"]), ["1", "2"]);
        for none in ["wharf-0123456=x", "wharf-012345678=x", "WHARF-01234567=x", "", "=", ";;"] {
            assert_eq!(values(&[none]), [""; 0], "{none}");
        }
        let many = vec!["wharf-01234567=x"; 100].join("; ");
        assert_eq!(values(&[&many]).len(), VALUES_MAX);
    }

    #[test]
    fn c007_the_cookie_says_all_that_browsers_must_know() {
        let name = CookieName::of("0123456789");
        let text = |secure| {
            let set = name.set("v", secure).expect("text");
            set.to_str().expect("text").to_owned()
        };
        let plain = "wharf-01234567=v; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800";
        assert_eq!(text(false), plain);
        assert_eq!(text(true), format!("__Host-{plain}; Secure"));
    }

    #[test]
    fn c007_cookies_alone_may_take_so_much() {
        let of = |bytes: usize, accept: &str| {
            let mut headers = headers(&["x".repeat(bytes).as_str()]);
            headers.insert(ACCEPT, accept.parse().expect("a header"));
            check_size(&headers).map_err(|refused| {
                let kind = &refused.headers()[CONTENT_TYPE];
                (refused.status().as_u16(), kind.to_str().expect("text").to_owned())
            })
        };
        assert_eq!(of(COOKIES_BYTES_MAX, "*/*"), Ok(()));
        let json = (431, "application/json".to_owned());
        assert_eq!(of(COOKIES_BYTES_MAX + 1, "*/*"), Err(json));
        let page = (431, "text/html; charset=utf-8".to_owned());
        assert_eq!(of(COOKIES_BYTES_MAX + 1, "text/html,*/*"), Err(page));
    }
}
