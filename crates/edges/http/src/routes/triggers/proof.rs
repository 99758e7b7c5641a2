//! How whoever calls a hook proves that it may. What is proved is said of the bytes that came,
//! before anybody reads them.

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wharf_vocab::{HookProof, Timestamp};
use wharf_web::outbound::KEY_PREFIX;

/// How far the time of a signature may lie from the core's.
const STAMP_MS_MAX: u64 = 5 * 60 * 1_000;
/// Longest id of a delivery.
const DELIVERY_BYTES_MAX: usize = 255;

/// What a good call says of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proved {
    /// The id of the delivery, where the form has one that is signed or said beside it.
    pub(super) delivery: Option<String>,
}

/// Looks at a call; none if it proves nothing.
pub(super) fn check(
    proof: HookProof,
    secret: &[u8],
    now: Timestamp,
    headers: &HeaderMap,
    body: &[u8],
) -> Option<Proved> {
    let secret = secret.trim_ascii();
    match proof {
        HookProof::Github => github(secret, headers, body),
        HookProof::Stripe => stripe(secret, now, headers, body),
        HookProof::Standard => standard(secret, now, headers, body),
        HookProof::Token => token(secret, headers),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    // Two of one kind say nothing.
    values.next().is_none().then_some(value)
}

fn delivery(headers: &HeaderMap, name: &str) -> Option<String> {
    let id = text(headers, name)?;
    let fits = (1..=DELIVERY_BYTES_MAX).contains(&id.len()) && !id.chars().any(char::is_control);
    fits.then(|| id.to_owned())
}

/// Whether a code is that of these pieces; how long it takes says nothing about it.
fn is_code(key: &[u8], pieces: &[&[u8]], code: &[u8]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    pieces.iter().for_each(|piece| mac.update(piece));
    mac.verify_slice(code).is_ok()
}

fn is_recent(stamp: &str, now: Timestamp) -> Option<()> {
    let at = stamp.parse::<u64>().ok()?.checked_mul(1_000)?;
    (at.abs_diff(now.0) <= STAMP_MS_MAX).then_some(())
}

fn github(secret: &[u8], headers: &HeaderMap, body: &[u8]) -> Option<Proved> {
    let code = text(headers, "x-hub-signature-256")?.strip_prefix("sha256=")?;
    let code = hex::decode(code).ok()?;
    is_code(secret, &[body], &code)
        .then(|| Proved { delivery: delivery(headers, "x-github-delivery") })
}

fn stripe(secret: &[u8], now: Timestamp, headers: &HeaderMap, body: &[u8]) -> Option<Proved> {
    let parts = text(headers, "stripe-signature")?;
    let named = |name: &'static str| {
        parts.split(',').filter_map(move |part| part.trim().strip_prefix(name)?.strip_prefix('='))
    };
    let stamp = named("t").next()?;
    is_recent(stamp, now)?;
    let is_good = |code: Vec<u8>| is_code(secret, &[stamp.as_bytes(), b".", body], &code);
    let good = named("v1").filter_map(|code| hex::decode(code).ok()).any(is_good);
    // The id of the event is in the body, which is good now.
    let id = || {
        serde_json::from_slice::<serde_json::Value>(body).ok()?["id"].as_str().map(str::to_owned)
    };
    good.then(|| Proved { delivery: id().filter(|id| id.len() <= DELIVERY_BYTES_MAX) })
}

fn standard(secret: &[u8], now: Timestamp, headers: &HeaderMap, body: &[u8]) -> Option<Proved> {
    let id = delivery(headers, "webhook-id")?;
    let stamp = text(headers, "webhook-timestamp")?;
    is_recent(stamp, now)?;
    let key = match std::str::from_utf8(secret).ok().and_then(|it| it.strip_prefix(KEY_PREFIX)) {
        Some(key) => STANDARD.decode(key).ok()?,
        None => secret.to_vec(),
    };
    let codes = text(headers, "webhook-signature")?.split(' ');
    let codes = codes.filter_map(|code| STANDARD.decode(code.strip_prefix("v1,")?).ok());
    let pieces = [id.as_bytes(), b".", stamp.as_bytes(), b".", body];
    let good = codes.into_iter().any(|code| is_code(&key, &pieces, &code));
    good.then_some(Proved { delivery: Some(id) })
}

fn token(secret: &[u8], headers: &HeaderMap) -> Option<Proved> {
    let given = text(headers, "authorization")?.strip_prefix("Bearer ")?;
    // Codes of both are compared, so how long it takes says nothing about the token.
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(given.trim().as_bytes());
    let code = mac.finalize().into_bytes();
    is_code(secret, &[secret], &code).then(|| Proved { delivery: delivery(headers, "webhook-id") })
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const NOW: Timestamp = Timestamp(1_614_265_330_000);

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            let name: HeaderName = name.parse().expect("a name");
            (name, HeaderValue::from_str(value).expect("a value"))
        };
        pairs.iter().map(pair).collect()
    }

    fn code(key: &[u8], text: &[u8]) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
        mac.update(text);
        mac.finalize().into_bytes().to_vec()
    }

    #[test]
    fn f034_githubs_own_example_is_good_and_what_differs_is_not() {
        let secret = b"It's a Secret to Everybody";
        let signed = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let with = |signed: &str, body: &[u8]| {
            let headers = headers(&[("x-hub-signature-256", signed), ("x-github-delivery", "d-1")]);
            check(HookProof::Github, secret, NOW, &headers, body)
        };
        let proved = with(signed, b"Hello, World!").expect("good");
        assert_eq!(proved.delivery.as_deref(), Some("d-1"));
        assert_eq!(with(signed, b"Hello, World?"), None);
        assert_eq!(with(&signed.replace("757", "858"), b"Hello, World!"), None);
        assert_eq!(with("sha256=", b"Hello, World!"), None);
        let nothing = check(HookProof::Github, secret, NOW, &HeaderMap::new(), b"Hello, World!");
        assert_eq!(nothing, None);
    }

    #[test]
    fn f034_the_standards_own_example_is_good_within_five_minutes() {
        let secret = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let all = headers(&[
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ]);
        let body = br#"{"test": 2432232314}"#;
        let at = |now: Timestamp| check(HookProof::Standard, secret, now, &all, body);
        let proved = at(NOW).expect("good");
        assert_eq!(proved.delivery.as_deref(), Some("msg_p5jXN8AQM9LWM0D4loKWxJek"));
        assert!(at(NOW.plus_ms(STAMP_MS_MAX)).is_some());
        assert_eq!(at(NOW.plus_ms(STAMP_MS_MAX + 1)), None, "too old");
        assert_eq!(at(Timestamp(NOW.0 - STAMP_MS_MAX - 1)), None, "too new");
    }

    #[test]
    fn f034_stripes_form_has_a_time_and_several_codes() {
        let (secret, body) = (b"whsec_test", br#"{"id":"evt_1"}"#);
        let good = hex::encode(code(secret, &[b"1614265330.", &body[..]].concat()));
        let with = |text: String| {
            let headers = headers(&[("stripe-signature", &text)]);
            check(HookProof::Stripe, secret, NOW, &headers, body)
        };
        let proved = with(format!("t=1614265330,v1=00,v1={good}")).expect("good");
        assert_eq!(proved.delivery.as_deref(), Some("evt_1"));
        assert_eq!(with(format!("t=1614265331,v1={good}")), None);
        assert_eq!(with(format!("t=1614265330,v0={good}")), None);
    }

    #[test]
    fn f034_a_token_is_the_secret_itself() {
        let with = |text: &str| {
            let headers = headers(&[("authorization", text)]);
            check(HookProof::Token, b"s3cret\n", NOW, &headers, b"")
        };
        assert!(with("Bearer s3cret").is_some());
        assert!(with("Bearer s3cre").is_none() && with("s3cret").is_none());
        // Two say nothing.
        let mut two = headers(&[("authorization", "Bearer s3cret")]);
        two.append("authorization", HeaderValue::from_static("Bearer s3cret"));
        assert_eq!(check(HookProof::Token, b"s3cret", NOW, &two, b""), None);
    }
}
