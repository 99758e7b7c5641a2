//! Addresses among inputs and outputs.

/// Whether a text is an address as a whole, not just text that has one in it.
pub fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else { return false };
    let letter = |b: u8| b.is_ascii_alphanumeric() || b"+.-".contains(&b);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(letter)
        && !rest.is_empty()
        && !rest.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// An address as records may have it: user, query and fragment often let whoever knows them in.
pub fn without_secrets(uri: &str) -> String {
    let bare = uri.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = bare.split_once("://") else { return bare.to_owned() };
    let authority_end = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.split_once(':') {
        // What follows is no port: it may be a password with a character in it that ends the part
        // of an address where passwords are.
        Some((name, port)) if !host.starts_with('[') && !is_port(port) => {
            format!("{scheme}://{name}")
        }
        _ => format!("{scheme}://{host}{path}"),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t024_only_a_text_that_is_an_address_as_a_whole_is_one() {
        for uri in ["https://a.example/x?y=1", "s3://bucket/key", "world://w/x", "a+b://c"] {
            assert!(is_uri(uri), "{uri}");
        }
        let texts = [
            "see https://a.example",
            "https://a.example and more",
            "https://",
            "://x",
            "1a://x",
            "plain",
            "https:/a",
            "",
            "a b://c",
            "https://a\n",
        ];
        for text in texts {
            assert!(!is_uri(text), "{text}");
        }
    }

    #[test]
    fn t035_what_lets_somebody_in_is_left_out_of_records() {
        let cases = [
            ("https://u:p@a.example/x?X-Amz-Signature=1#f", "https://a.example/x"),
            ("https://a.example?token=1", "https://a.example"),
            ("https://a.example/p@q", "https://a.example/p@q"),
            ("s3://bucket/key", "s3://bucket/key"),
            ("https://u:p%2F@a.example:8443/x", "https://a.example:8443/x"),
            ("https://u:p?q@a.example/x", "https://u"),
            ("https://u:p/q@a.example/x", "https://u"),
            ("http://[::1]:80/x", "http://[::1]:80/x"),
        ];
        for (uri, kept) in cases {
            assert_eq!(without_secrets(uri), kept);
            assert_eq!(without_secrets(kept), kept);
        }
    }
}
