//! What a refusal says it wants: the `Bearer` challenge of `WWW-Authenticate`.

use super::super::link::rights::RightsRefusal;

/// Most scopes that are asked for.
pub(super) const SCOPES_MAX: usize = 64;
/// Longest scope.
const SCOPE_BYTES_MAX: usize = 256;

/// What a server said when it let nobody in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where it says who lets people in.
    pub(super) resource_metadata: Option<String>,
    /// What it wants to be asked for.
    pub(super) scopes: Option<Vec<String>>,
    /// Whether what there is is not enough, and not just missing or over.
    pub(super) is_step_up: bool,
}

impl Challenge {
    /// Reads that of a refusal; `None` if it is not about rights that a login could bring.
    pub(super) fn of(refusal: &RightsRefusal) -> Option<Self> {
        let params = bearer(&refusal.challenge);
        let get = |name: &str| {
            let found = params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let is_step_up = get("error").as_deref() == Some("insufficient_scope");
        if refusal.is_forbidden && !is_step_up {
            return None;
        }
        Some(Self {
            resource_metadata: get("resource_metadata"),
            scopes: get("scope").map(|text| scopes(text.split(' '))).filter(|it| !it.is_empty()),
            is_step_up: refusal.is_forbidden,
        })
    }
}

/// Scopes as they may be asked for: words, each once, not too many.
pub(super) fn scopes<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut all = Vec::new();
    for word in words {
        let is_word = !word.is_empty()
            && word.len() <= SCOPE_BYTES_MAX
            && word.bytes().all(|b| b.is_ascii_graphic() && !b"\"\\".contains(&b));
        if is_word && all.len() < SCOPES_MAX && !all.iter().any(|have| have == word) {
            all.push(word.to_owned());
        }
    }
    all
}

/// The parameters of the first `Bearer` challenge.
fn bearer(text: &str) -> Vec<(String, String)> {
    let mut rest = text;
    let mut params = Vec::new();
    let mut is_bearer = false;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let word_end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        if word_end == 0 {
            return params;
        }
        let (word, behind) = rest.split_at(word_end);
        let behind = behind.trim_start_matches([' ', '\t']);
        match behind.strip_prefix('=') {
            Some(value) => {
                let Some((value, behind)) = value_of(value.trim_start_matches([' ', '\t'])) else {
                    return params;
                };
                if is_bearer {
                    params.push((word.to_owned(), value));
                }
                rest = behind;
            }
            None if is_bearer => return params,
            None => {
                is_bearer = word.eq_ignore_ascii_case("bearer");
                rest = behind;
            }
        }
    }
}

/// A value, plain or in quotes, and what stands behind it.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            c => value.push(c),
        }
    }
    None
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(is_forbidden: bool, challenge: &str) -> Option<Challenge> {
        Challenge::of(&RightsRefusal { is_forbidden, challenge: challenge.to_owned() })
    }

    #[test]
    fn m071_a_challenge_is_read_whatever_stands_around_it() {
        let read = |text| of(false, text).expect("read");
        for text in [
            r#"Bearer resource_metadata="https://a.example/x?a=\"b\"", scope="one two""#,
            r#"Basic realm="a, Bearer scope=no", bearer scope="one  two one" , resource_metadata="https://a.example/x?a=\"b\"""#,
            r#"Negotiate abc==, Bearer Scope="one two",resource_metadata = "https://a.example/x?a=\"b\"", DPoP scope="three""#,
        ] {
            let read = read(text);
            let place = read.resource_metadata.as_deref();
            assert_eq!(place, Some("https://a.example/x?a=\"b\""), "{text}");
            assert_eq!(read.scopes, Some(vec!["one".to_owned(), "two".to_owned()]), "{text}");
        }
        for nothing in ["", "Bearer", ",,,", "Bearer scope=\"", "Basic realm=\"x\"", "\u{e9}=1"] {
            assert_eq!(read(nothing), Challenge::default(), "{nothing}");
        }
        let many = (0..1000).map(|at| format!("s{at} ")).collect::<String>();
        assert_eq!(read(&format!("Bearer scope=\"{many}\"")).scopes.map(|it| it.len()), Some(64));
    }

    #[test]
    fn m071_only_a_want_of_scopes_makes_a_403_a_matter_of_logins() {
        assert_eq!(of(true, ""), None);
        assert_eq!(of(true, "Bearer error=\"invalid_token\""), None);
        let step = of(true, "Bearer error=\"insufficient_scope\", scope=\"w\"").expect("one");
        assert_eq!((step.is_step_up, step.scopes), (true, Some(vec!["w".to_owned()])));
    }
}
