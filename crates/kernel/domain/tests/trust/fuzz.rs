//! Hostile texts: nothing panics, and no token that this core did not seal is ever good.

use wharf_domain::Permission;
use wharf_domain::grant::Narrowing;
use wharf_domain::grant::token::{mint, narrow, verify};
use wharf_domain::permission::{HostPattern, PathGlob, ToolPattern};

use super::tokens::{grant, id, keyring};

const ITERATIONS: usize = 50_000;
const DOMAINS: &[&str] =
    &["filesystem:read:/", "network:egress:", "tool:invoke:", "secret:use:", "x:"];

#[test]
fn bytes_as_permissions() {
    let any = HostPattern::parse("*").expect("valid");
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let domain = DOMAINS[bytes.len() % DOMAINS.len()];
        for text in [text.to_string(), format!("{domain}{text}")] {
            if let Ok(permission) = Permission::parse(&text) {
                let shown = permission.to_string();
                let again = Permission::parse(&shown).expect("what is shown can be read");
                assert_eq!(again, permission);
                assert_eq!(again.to_string(), shown);
                assert!(permission.covers(&again));
            }
            let _ = (PathGlob::parse(&text), ToolPattern::parse(&text));
            if any.matches(&text, 1) {
                assert!(HostPattern::parse(&text).is_ok(), "{text}");
            }
        }
    });
}

#[test]
fn bytes_as_tokens() {
    let ring = keyring("k1", &["k1"]);
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        for text in [text.to_string(), format!("whf1.k1.{text}")] {
            assert!(verify(&ring, &text).is_err());
            let _ = narrow(&text, &id("x"), &Narrowing::default());
        }
    });
}

/// Three tokens whose parts can be mixed.
fn tokens() -> [String; 3] {
    let ring = keyring("k1", &["k1", "k2"]);
    let root = mint(&ring, &grant("g-1", true));
    let narrowed = narrow(root.expose(), &id("n"), &Narrowing::default()).expect("narrowed");
    let other = mint(&keyring("k2", &["k1", "k2"]), &grant("g-2", false));
    [root, narrowed, other].map(|token| token.expose().to_owned())
}

#[test]
fn spoilt_tokens_are_never_good() {
    let ring = keyring("k1", &["k1", "k2"]);
    let good = tokens();
    for token in &good {
        assert!(verify(&ring, token).is_ok());
    }
    bolero::check!().with_type::<(u8, u8, u16, u16, u8)>().with_iterations(ITERATIONS).for_each(
        |&(which, how, at, to, byte)| {
            let token = &good[usize::from(which) % good.len()];
            let at = usize::from(at) % token.len();
            let to = usize::from(to) % token.len();
            let mut bytes = token.clone().into_bytes();
            match how % 6 {
                0 => bytes[at] ^= byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                3 => bytes.swap(at, to),
                4 => bytes.truncate(at),
                _ => {
                    let parts: Vec<&str> = good.iter().flat_map(|token| token.split('.')).collect();
                    let mut mixed: Vec<&str> = token.split('.').collect();
                    let place = at % mixed.len();
                    mixed[place] = parts[to % parts.len()];
                    bytes = mixed.join(".").into_bytes();
                }
            }
            let text = String::from_utf8_lossy(&bytes);
            let accepted = verify(&ring, &text).is_ok();
            assert_eq!(accepted, good.iter().any(|token| *token == text), "{text}");
        },
    );
}
