//! Takes secrets out of a stream of bytes, wherever the stream happens to be cut into chunks.

use std::fmt;
use std::sync::Arc;

/// What stands where a secret stood.
const REDACTED: &[u8] = b"[redacted]";

/// A stream may end in the middle of a secret. A beginning of this many bytes tells too much of
/// it and is taken out as well; a shorter one is most likely ordinary text.
const TELLING_BYTES: usize = 8;

/// What stands before the parts of an address that make it a capability. Who is given such an
/// address may well write it to its log, and nobody knows it in advance.
const MARKERS: [&[u8]; 3] = [b"X-Amz-Signature=", b"X-Amz-Security-Token=", b"X-Amz-Credential="];

/// A set of secrets.
#[derive(Clone)]
pub struct Redactor {
    /// Longest first, so that a secret wins over another one that it begins with.
    secrets: Arc<[Vec<u8>]>,
    /// Which bytes a secret begins with.
    begins: Arc<[bool; 256]>,
}

impl Redactor {
    /// Knows these secrets. Empty ones are left out.
    pub fn new(secrets: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let mut secrets: Vec<Vec<u8>> = secrets
            .into_iter()
            .map(|secret| secret.as_ref().to_vec())
            .filter(|secret| !secret.is_empty())
            .collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        let mut begins = [false; 256];
        for secret in secrets.iter().map(Vec::as_slice).chain(MARKERS) {
            begins[usize::from(secret[0])] = true;
        }
        Self { secrets: secrets.into(), begins: Arc::new(begins) }
    }

    /// A fresh stream.
    #[must_use]
    pub fn stream(&self) -> StreamRedaction {
        StreamRedaction { redactor: self.clone(), held: Vec::new(), veiled: false }
    }

    /// The secret that `text` begins with, if any.
    fn secret_at(&self, text: &[u8]) -> Option<&[u8]> {
        self.secrets.iter().find(|secret| text.starts_with(secret)).map(Vec::as_slice)
    }

    /// Whether `text` could still become a secret, or what stands before one.
    fn may_become_secret(&self, text: &[u8]) -> bool {
        let mut known = self.secrets.iter().map(Vec::as_slice).chain(MARKERS);
        known.any(|secret| secret.len() > text.len() && secret.starts_with(text))
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

/// One stream from which secrets are taken.
pub struct StreamRedaction {
    redactor: Redactor,
    /// The end of what has arrived, while it may be the beginning of a secret.
    held: Vec<u8>,
    /// Whether what comes next belongs to a part of an address that is not shown.
    veiled: bool,
}

impl StreamRedaction {
    /// Takes the next bytes and appends to `out` those that may be shown by now.
    pub fn push(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(chunk);
        self.advance(out, false);
    }

    /// Appends to `out` what is left at the end of the stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.advance(out, true);
    }

    fn advance(&mut self, out: &mut Vec<u8>, ended: bool) {
        let text = std::mem::take(&mut self.held);
        let mut rest = self.unveiled(&text);
        while let Some(plain) =
            rest.iter().position(|byte| self.redactor.begins[usize::from(*byte)])
        {
            out.extend_from_slice(&rest[..plain]);
            rest = &rest[plain..];
            let may_become_secret = self.redactor.may_become_secret(rest);
            if may_become_secret && !ended {
                self.held = rest.to_vec();
                return;
            }
            if let Some(secret) = self.redactor.secret_at(rest) {
                out.extend_from_slice(REDACTED);
                rest = &rest[secret.len()..];
            } else if let Some(marker) = MARKERS.iter().find(|marker| rest.starts_with(marker)) {
                out.extend_from_slice(marker);
                out.extend_from_slice(REDACTED);
                self.veiled = true;
                rest = self.unveiled(&rest[marker.len()..]);
            } else if may_become_secret && rest.len() >= TELLING_BYTES {
                out.extend_from_slice(REDACTED);
                return;
            } else {
                out.push(rest[0]);
                rest = &rest[1..];
            }
        }
        out.extend_from_slice(rest);
    }

    /// What follows the part of an address that is not shown.
    fn unveiled<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        if !self.veiled {
            return text;
        }
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"%-._~+/=".contains(byte);
        let end = text.iter().position(|byte| !is_part(byte));
        self.veiled = end.is_none();
        &text[end.unwrap_or(text.len())..]
    }
}

impl fmt::Debug for StreamRedaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redaction({} bytes held)", self.held.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out when `chunks` arrive one after the other.
    fn redact(secrets: &[&str], chunks: &[&[u8]]) -> String {
        let mut stream = Redactor::new(secrets).stream();
        let mut out = Vec::new();
        for chunk in chunks {
            stream.push(chunk, &mut out);
        }
        stream.finish(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn secrets_are_found_wherever_the_stream_is_cut() {
        let secrets = ["tok-0123456789", "pässwort"];
        let text = "a tok-0123456789 tok-01 pässwort tok-tok-0123456789\nend tok".as_bytes();
        let expect = "a [redacted] tok-01 [redacted] tok-[redacted]\nend tok";
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let chunks = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(redact(&secrets, &chunks), expect, "cut at {first} and {second}");
            }
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(redact(&secrets, &bytes), expect);
    }

    #[test]
    fn the_longest_of_nested_secrets_wins() {
        for chunks in [vec![&b"x abcdef abc y"[..]], vec![b"x abc", b"def ab", b"c y"]] {
            assert_eq!(redact(&["abc", "abcdef"], &chunks), "x [redacted] [redacted] y");
        }
    }

    #[test]
    fn t035_addresses_lose_what_makes_them_capabilities_wherever_the_stream_is_cut() {
        let text = b"GET http://h/w/a?X-Amz-Credential=AK%2F1&X-Amz-Signature=0aF9&x=1 ok\n\
                     X-Amz-Security-Token=a/b+c== \"X-Amz-Signature=77\"\n";
        let expect = "GET http://h/w/a?X-Amz-Credential=[redacted]&X-Amz-Signature=[redacted]&x=1 \
                      ok\nX-Amz-Security-Token=[redacted] \"X-Amz-Signature=[redacted]\"\n";
        for first in 0..=text.len() {
            assert_eq!(redact(&[], &[&text[..first], &text[first..]]), expect, "cut at {first}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(redact(&["some secret"], &bytes), expect);
    }

    #[test]
    fn ordinary_text_is_not_held_back() {
        let mut stream = Redactor::new(["secret"]).stream();
        let mut out = Vec::new();
        stream.push(b"nothing to see\n", &mut out);
        assert_eq!(out, b"nothing to see\n");
    }

    #[test]
    fn half_a_secret_at_the_end_is_taken_out_when_it_tells_too_much() {
        assert_eq!(redact(&["0123456789abcdef"], &[b"end 0123456789"]), "end [redacted]");
        assert_eq!(redact(&["0123456789abcdef"], &[b"end 0123"]), "end 0123");
    }

    #[test]
    fn no_secret_and_empty_secrets_change_nothing() {
        assert_eq!(redact(&[], &[b"plain"]), "plain");
        assert_eq!(redact(&[""], &[b"plain"]), "plain");
    }

    #[test]
    fn nothing_shows_the_secrets() {
        let redactor = Redactor::new(["canary"]);
        let mut stream = redactor.stream();
        stream.push(b"cana", &mut Vec::new());
        assert!(!format!("{redactor:?} {stream:?}").contains("cana"));
    }
}
