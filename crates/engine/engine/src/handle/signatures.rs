//! Signatures of the addresses that an attempt was given, cut out of whatever it writes, however
//! they are taken apart: a signature alone lets whoever knows the rest of an address in.
//!
//! What matches the beginning of a known signature is cut as far as it matches, also where one
//! piece of a channel goes on with what the one before ended with. Text that was turned into
//! something else, such as base64, cannot be recognised.

use std::collections::BTreeMap;
use std::ops::Range;

use super::scrub::CUT;
use crate::clean::without;

/// How many digits of a signature are no accident.
const BEGINNING: usize = 8;
/// Digits of a value that makes an address a capability, at least.
const DIGITS_MIN: usize = 16;
/// Channels whose last digits are remembered.
const CHANNELS_MAX: usize = 256;

/// Known signatures, in lower case, by how they begin.
#[derive(Clone, Default)]
pub(super) struct Signatures(BTreeMap<[u8; BEGINNING], String>);

/// The digits that each channel has ended with so far.
#[derive(Default)]
pub(super) struct Endings(BTreeMap<String, String>);

impl Signatures {
    /// Remembers the signature of an address, if it has one.
    pub(super) fn add(&mut self, address: &str) {
        let query = address.split_once('?').map_or("", |(_, query)| query);
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let is_signature = name.to_ascii_lowercase().ends_with("signature");
            let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
            if let Some(beginning) = value.to_ascii_lowercase().as_bytes().first_chunk()
                && is_signature
                && is_hex
                && value.len() >= DIGITS_MIN
            {
                self.0.insert(*beginning, value.to_ascii_lowercase());
            }
        }
    }

    /// The text without any of the signatures, if it had one.
    pub(super) fn cut(&self, text: &str) -> Option<String> {
        without(text, self.found(text.as_bytes()), CUT)
    }

    /// The next piece of a channel without any of the signatures, if it had one or went on with
    /// one.
    pub(super) fn cut_next(
        &self,
        endings: &mut Endings,
        channel: &str,
        piece: &str,
    ) -> Option<String> {
        let longest = self.0.values().map(String::len).max()?;
        let before = endings.0.remove(channel).unwrap_or_default();
        let all = format!("{before}{piece}");
        let found = self.found(all.as_bytes()).into_iter();
        // What was passed on before cannot be taken back.
        let later = |span: Range<usize>| {
            span.start.saturating_sub(before.len())..span.end.saturating_sub(before.len())
        };
        let found = found.map(later).filter(|span| !span.is_empty()).collect();
        let digits = all.bytes().rev().take(longest - 1).take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 {
            if endings.0.len() >= CHANNELS_MAX {
                endings.0.pop_first();
            }
            endings.0.insert(channel.to_owned(), all[all.len() - digits..].to_owned());
        }
        without(piece, found, CUT)
    }

    /// Where a text has the beginning of a signature, as far as it matches.
    fn found(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(beginning) = text.get(at..).and_then(|rest| rest.first_chunk::<BEGINNING>())
            && !self.0.is_empty()
        {
            let Some(signature) = self.0.get(&beginning.map(|byte| byte.to_ascii_lowercase()))
            else {
                at += 1;
                continue;
            };
            let pairs = text[at..].iter().zip(signature.as_bytes());
            let matches = pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
            found.push(at..at + matches);
            at += matches;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f91f2e3d4c5b6a79880716253443526170";

    fn known() -> Signatures {
        let mut known = Signatures::default();
        known.add(&format!("http://h/k?X-Amz-Date=x&X-Amz-Signature={SIGNATURE}&a=b"));
        known.add("http://h/k?X-Amz-Signature=short");
        known.add("http://h/k?X-Amz-Signature=0a1b");
        known.add("http://h/k");
        known
    }

    #[test]
    fn t035_a_signature_is_cut_out_wherever_it_stands() {
        let known = known();
        for (dirty, clean) in [
            (SIGNATURE.to_owned(), "…".to_owned()),
            (format!("é{SIGNATURE}é"), "é…é".to_owned()),
            (format!("ff{}ff", SIGNATURE.to_uppercase()), "ff…ff".to_owned()),
            (format!("{SIGNATURE}{SIGNATURE}"), "……".to_owned()),
            (format!("only {} of it", &SIGNATURE[..63]), "only … of it".to_owned()),
        ] {
            assert_eq!(known.cut(&dirty), Some(clean));
        }
        for plain in ["", "0a1b2c3", "0a1b2c3e", &SIGNATURE[1..20], "é"] {
            assert_eq!(known.cut(plain), None, "{plain}");
        }
        assert_eq!(Signatures::default().cut(SIGNATURE), None);
    }

    #[test]
    fn t035_a_signature_in_pieces_is_cut_out_from_where_it_shows() {
        let known = known();
        for size in [1, 3, 7, 8, 20, 63] {
            let mut endings = Endings::default();
            let mut passed = String::new();
            let text = format!("at {SIGNATURE}, then ff");
            for piece in text.as_bytes().chunks(size) {
                let piece = std::str::from_utf8(piece).expect("text");
                let cut = known.cut_next(&mut endings, "stdout", piece);
                passed.push_str(&cut.unwrap_or_else(|| piece.to_owned()));
                // Another channel in between changes nothing.
                assert_eq!(known.cut_next(&mut endings, "stderr", "x"), None);
            }
            assert!(passed.ends_with(", then ff"), "{passed}");
            assert!(!passed.contains(&SIGNATURE[..BEGINNING]), "{size}: {passed}");
            assert!(!passed.contains(&SIGNATURE[40..]), "{size}: {passed}");
        }
        let mut endings = Endings::default();
        assert_eq!(known.cut_next(&mut endings, "stdout", &SIGNATURE[..6]), None);
        assert_eq!(known.cut_next(&mut endings, "stderr", &SIGNATURE[6..]), None);
    }
}
