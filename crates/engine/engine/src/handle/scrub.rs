//! Keeping addresses that are capabilities out of everything that is kept or shown.
//!
//! What a provider writes is cleaned before it becomes an input of a shard: an address that the
//! attempt was given becomes the text that records have for it; its signature is cut out wherever
//! else it stands, and so is that of any other presigned address.

use std::borrow::Cow;
use std::sync::Arc;

use wharf_domain::Progress;

use super::signatures::{Endings, Signatures};
use crate::clean::{Clean, without};

/// The name of the part of a presigned address that makes it one.
const SIGNATURE: &str = "x-amz-signature";

/// What stands where a signature was cut out.
pub(super) const CUT: &str = "…";

/// The channel of lines for the log; a channel of text cannot have this name.
const LOG: &str = "";

/// Addresses that were given out, each with the text that records have for it.
#[derive(Clone, Default)]
pub(super) struct IssuedAddresses(Arc<Addresses>);

#[derive(Clone, Default)]
struct Addresses {
    shown: Vec<(String, String)>,
    signatures: Signatures,
}

impl Clean for IssuedAddresses {
    /// The text without any capability, if it had one.
    fn clean(&self, text: &str) -> Option<String> {
        self.clean_with(text, |signatures, text| signatures.cut(text))
    }
}

impl IssuedAddresses {
    /// Remembers an address.
    pub(super) fn add(&mut self, address: String, shown: String) {
        if address != shown {
            let addresses = Arc::make_mut(&mut self.0);
            addresses.signatures.add(&address);
            addresses.shown.push((address, shown));
        }
    }

    fn clean_with(
        &self,
        text: &str,
        cut: impl FnOnce(&Signatures, &str) -> Option<String>,
    ) -> Option<String> {
        let mut cleaned = Cow::Borrowed(text);
        let addressed = text.contains("://");
        for (address, shown) in self.0.shown.iter().filter(|_| addressed) {
            if cleaned.contains(address.as_str()) {
                cleaned = cleaned.replace(address.as_str(), shown).into();
            }
        }
        if let Some(cut) = cut(&self.0.signatures, &cleaned) {
            cleaned = cut.into();
        }
        if let Some(cut) = without_signatures(&cleaned) {
            cleaned = cut.into();
        }
        match cleaned {
            Cow::Borrowed(_) => None,
            Cow::Owned(text) => Some(text),
        }
    }

    /// Cleans the next piece of a channel.
    fn next(&self, endings: &mut Endings, channel: &str, text: &mut String) {
        let cut = |signatures: &Signatures, text: &str| signatures.cut_next(endings, channel, text);
        if let Some(cleaned) = self.clean_with(text, cut) {
            *text = cleaned;
        }
    }

    pub(super) fn progress(&self, endings: &mut Endings, pieces: &mut [Progress]) {
        let text = |endings: &mut Endings, channel: &str, text: &mut String| {
            self.next(endings, channel, text);
        };
        self.pieces(pieces, endings, text, |endings, line| self.next(endings, LOG, line));
    }
}

/// The text with every signature cut out, if it has one.
fn without_signatures(text: &str) -> Option<String> {
    let (mut spans, mut at) = (Vec::new(), 0);
    while let Some(found) = find(text, at) {
        let named = found + SIGNATURE.len();
        let begin = named + separator(&text[named..]);
        let rest = &text[begin..];
        at = begin + rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        if at > begin {
            spans.push(begin..at);
        }
    }
    without(text, spans, CUT)
}

/// Where the name of a signature stands next, in whatever case.
fn find(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let fits = |at: &usize| {
        let part = bytes.get(*at..at + SIGNATURE.len());
        part.is_some_and(|part| part.eq_ignore_ascii_case(SIGNATURE.as_bytes()))
    };
    let begins = |at: &usize| bytes[*at].eq_ignore_ascii_case(&b'x');
    (from..bytes.len()).filter(begins).find(fits)
}

/// How many bytes stand between the name of a signature and the signature: an equals sign, one
/// that was encoded however often, or what programs print between a name and a value.
fn separator(text: &str) -> usize {
    let plain = text.trim_start_matches(['=', ':', ' ', '"', '\'', '\\']);
    let mut rest = plain;
    if let Some(mut encoded) = plain.strip_prefix('%') {
        while let Some(again) = encoded.strip_prefix("25") {
            encoded = again;
        }
        let sign = encoded.strip_prefix("3D").or_else(|| encoded.strip_prefix("3d"));
        rest = sign.unwrap_or(plain);
    }
    text.len() - rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t035_signatures_are_cut_out_however_they_are_written() {
        let given = IssuedAddresses::default();
        for (dirty, clean) in [
            ("at http://h/k?X-Amz-Signature=0a1bF& more", "at http://h/k?X-Amz-Signature=…& more"),
            ("x-amz-signature%3D0a1b", "x-amz-signature%3D…"),
            ("X-AMZ-SIGNATURE%253d0a1b", "X-AMZ-SIGNATURE%253d…"),
            ("{\"X-Amz-Signature\": \"0a1b\"}", "{\"X-Amz-Signature\": \"…\"}"),
            ("X-Amz-Signature=aa X-Amz-Signature=bb", "X-Amz-Signature=… X-Amz-Signature=…"),
        ] {
            assert_eq!(given.clean(dirty).as_deref(), Some(clean));
            assert_eq!(given.clean(clean), None);
        }
        for plain in ["", "x", "X-Amz-Signature", "X-Amz-Signature=", "xX-Amz-Signatur=00 é"] {
            assert_eq!(given.clean(plain), None, "{plain}");
        }
    }

    #[test]
    fn t035_an_address_becomes_what_records_call_it_wherever_it_stands() {
        let mut given = IssuedAddresses::default();
        given.add("http://h/k?s=1".to_owned(), "world://w/k".to_owned());
        let mut value = serde_json::json!({
            "a": ["see http://h/k?s=1!", {"http://h/k?s=1": "http://h/k?s=1"}],
            "n": 1,
        });
        given.value(&mut value);
        let clean =
            serde_json::json!({"a": ["see world://w/k!", {"world://w/k": "world://w/k"}], "n": 1});
        assert_eq!(value, clean);
    }
}
