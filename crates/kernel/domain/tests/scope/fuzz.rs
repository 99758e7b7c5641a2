//! Hostile bytes: nothing panics, and nothing leaves its world.

use serde_json::json;
use wharf_domain::scope::{InputSource, WorldPath, is_uri, without_secrets};
use wharf_vocab::limits::PATH_BYTES_MAX;

use super::{resolved, world};

const ITERATIONS: usize = 50_000;
const STARTS: &[&str] = &["", "/", "/@r1/", "/@r1/@a1/", "/a/", "world://w/", "world://"];

#[test]
fn t031_bytes_as_paths() {
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        let start = STARTS[bytes.len() % STARTS.len()];
        let text = format!("{start}{}", String::from_utf8_lossy(bytes));
        let stored = WorldPath::try_from(text.clone());
        for path in [WorldPath::parse(&text), WorldPath::parse_any(&text), stored] {
            let Ok(path) = path else { continue };
            assert!(path.key(&world()).starts_with("w/"));
            let inside = path.as_str().strip_prefix('/').expect("from the top");
            assert!(inside.split('/').all(|part| !matches!(part, "" | "." | "..")), "{path}");
            assert!(path.within().len() <= PATH_BYTES_MAX);
            assert_eq!(WorldPath::try_from(path.as_str().to_owned()), Ok(path));
        }
    });
}

#[test]
fn t031_spellings_of_every_byte() {
    bolero::check!().with_type::<Vec<(u8, bool)>>().with_iterations(ITERATIONS).for_each(
        |pieces| {
            let mut text = "/".to_owned();
            for (byte, encoded) in pieces {
                match char::from(*byte) {
                    _ if *encoded => text.push_str(&format!("%{byte:02x}")),
                    plain => text.push(plain),
                }
            }
            if let Ok(path) = WorldPath::parse(&text) {
                assert_eq!(WorldPath::parse(path.as_str()), Ok(path.clone()), "{text}");
                assert!(!path.as_str().contains(['%', '\\', '\0']), "{text}");
                let slashes = pieces.iter().filter(|piece| **piece == (b'/', false)).count();
                assert_eq!(
                    path.as_str().matches('/').count(),
                    slashes + 1,
                    "no slash came by itself"
                );
            }
        },
    );
}

#[test]
fn t024_bytes_as_values_and_keys() {
    bolero::check!().with_type::<(Vec<u8>, Vec<u8>, u8)>().with_iterations(ITERATIONS).for_each(
        |(key, value, how)| {
            let start = STARTS[usize::from(*how) % STARTS.len()];
            let value = format!("{start}{}", String::from_utf8_lossy(value));
            let suffix = [".world", ".local", "..world", ""][usize::from(how / 8) % 4];
            let key = format!("{}{suffix}", String::from_utf8_lossy(key));
            let continues = (how % 2 == 0).then_some("r1");
            let _ = resolved(json!({}), json!({ key.as_str(): value }), continues);
            let Ok(plan) = resolved(json!({ key.as_str(): value }), json!({}), continues) else {
                return;
            };
            assert_eq!(plan.inputs.len(), 1);
            for (name, source) in &plan.reads {
                assert!(plan.inputs.contains_key(name));
                if let InputSource::Object(path) | InputSource::Chain(path) = source {
                    assert!(path.key(&world()).starts_with("w/"));
                }
                assert!(is_uri(plan.inputs[name].as_str().expect("text")));
            }
        },
    );
}

#[test]
fn t035_bytes_as_addresses() {
    bolero::check!().with_iterations(ITERATIONS).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        for uri in [format!("https://u:canary@h.example/{text}?canary#canary"), text.to_string()] {
            let kept = without_secrets(&uri);
            assert!(!kept.contains(['?', '#']));
            assert!(kept.len() <= uri.len());
            assert_eq!(without_secrets(&kept), kept);
        }
    });
}
