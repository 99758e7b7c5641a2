//! Addresses of storage that a server was given before the core was restarted.
//!
//! A new core signs anew, so what the server repeats is not the address that the core knows now;
//! it is the same place with another signature.

use serde_json::Value;
use wharf_domain::Progress;

/// The last part of a presigned address.
const SIGNATURE: &str = "X-Amz-Signature=";

/// Places of storage, each with the text that records have for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownAddresses(Vec<(String, String)>);

impl ShownAddresses {
    /// Remembers addresses without what makes them capabilities.
    pub(crate) fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let signed = |(address, shown): (String, String)| {
            let (bare, _) = address.split_once('?')?;
            Some((format!("{bare}?"), shown))
        };
        let mut places: Vec<_> = pairs.into_iter().filter_map(signed).collect();
        places.sort();
        places.dedup();
        Self(places)
    }

    /// Puts the text of records in the place of every address, however it was signed.
    pub(crate) fn restore(&self, piece: &mut Progress) {
        match piece {
            Progress::Text { text, .. } | Progress::Log { text, .. } => self.text(text),
            Progress::Partial { value, .. } => self.value(value),
            Progress::Phase { .. } | Progress::Gap { .. } | Progress::Withheld => {}
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(object) => object.values_mut().for_each(|item| self.value(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&self, text: &mut String) {
        for (place, shown) in &self.0 {
            let mut from = 0;
            while let Some(at) = text[from..].find(place.as_str()).map(|at| from + at) {
                let end = at + place.len() + query_bytes(&text[at + place.len()..]);
                text.replace_range(at..end, shown);
                from = at + shown.len();
            }
        }
    }
}

/// How long the query is that the text begins with: to the end of its signature, or of all that a
/// query may have.
fn query_bytes(text: &str) -> usize {
    let in_query = |c: char| c.is_ascii_alphanumeric() || "%&=._~+-/".contains(c);
    let end = text.find(|c| !in_query(c)).unwrap_or(text.len());
    let Some(signed) = text[..end].find(SIGNATURE).map(|at| at + SIGNATURE.len()) else {
        return end;
    };
    let rest = &text[signed..end];
    signed + rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len())
}

/// Whether two addresses are the same place, whatever their signatures.
pub(crate) fn is_same_place(one: &str, other: &str) -> bool {
    let bare = |address: &str| address.split(['?', '#']).next().unwrap_or_default().to_owned();
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown() -> ShownAddresses {
        let address = |name: &str| format!("https://s/b/w/{name}?X-Amz-Date=1&X-Amz-Signature=aa");
        ShownAddresses::new([
            (address("in"), "world://w/in".to_owned()),
            (address("in2"), "world://w/in2".to_owned()),
            ("https://elsewhere/x".to_owned(), "https://elsewhere/x".to_owned()),
        ])
    }

    #[test]
    fn t035_an_address_of_an_earlier_signature_becomes_what_records_have() {
        for (said, kept) in [
            ("plain", "plain"),
            ("https://s/b/w/in?X-Amz-Date=0&X-Amz-Signature=0b", "world://w/in"),
            ("got https://s/b/w/in2?X-Amz-Signature=ff.", "got world://w/in2."),
            ("(https://s/b/w/in?a=1 https://s/b/w/in?b=2)", "(world://w/in world://w/in)"),
            ("https://s/b/w/in", "https://s/b/w/in"),
            ("https://elsewhere/x?y", "https://elsewhere/x?y"),
        ] {
            let mut piece = Progress::Text { channel: "c".to_owned(), text: said.to_owned() };
            shown().restore(&mut piece);
            assert!(matches!(&piece, Progress::Text { text, .. } if text == kept), "{piece:?}");
        }
    }

    #[test]
    fn t035_also_inside_of_values() {
        let address = "https://s/b/w/in?X-Amz-Signature=0b";
        let value = serde_json::json!({"a": [address, 1], "b": null});
        let mut piece = Progress::Partial { key: None, value };
        shown().restore(&mut piece);
        let expected = serde_json::json!({"a": ["world://w/in", 1], "b": null});
        assert_eq!(piece, Progress::Partial { key: None, value: expected });
    }

    #[test]
    fn places_are_compared_without_their_signatures() {
        assert!(is_same_place("https://s/a?x=1", "https://s/a?x=2"));
        assert!(is_same_place("/artifacts/r/a", "/artifacts/r/a"));
        assert!(!is_same_place("https://s/a?x=1", "https://s/b?x=1"));
    }
}
