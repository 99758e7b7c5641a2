//! Which values are keys, and what they are to be called.

use std::collections::BTreeMap;

use super::place::{ConfigPlace, MissingValue};
use super::{ImportedSecret, ImportedServer, KeyText, SecretPlace};

/// Parts of names whose values are keys.
const KEY_WORDS: &[&str] =
    &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE"];
/// Names that say nothing of what they open; the server's name is put before them.
const VAGUE: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "API_KEY",
    "API_TOKEN",
    "ACCESS_TOKEN",
    "ACCESS_KEY",
    "AUTH_TOKEN",
    "SECRET_KEY",
    "CLIENT_SECRET",
    "AUTHORIZATION",
];
/// Beginnings of well-known keys.
const BEGINNINGS: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "eyJ",
    "hf_",
    "npm_",
    "pypi-",
    "shpat_",
    "whf1.",
    "lin_api_",
    "ntn_",
    "secret_",
    "tvly-",
    "Bearer ",
    "Basic ",
];
/// A value without meaning for people is at least so long.
const RANDOM_CHARS_MIN: usize = 20;
/// Longest name of a secret.
const NAME_CHARS_MAX: usize = 100;

/// A value after a look at it.
#[derive(Debug)]
pub(super) enum SortedValue {
    /// It may be shown and written down.
    Plain(String),
    /// It may not.
    Key(ImportedSecret),
}

/// Looks at a variable of a server's environment.
pub(super) fn of_variable(
    server: &str,
    variable: &str,
    value: &str,
    around: &ConfigPlace<'_>,
) -> Result<SortedValue, MissingValue> {
    let key = |from: &str, text: Option<String>| {
        SortedValue::Key(ImportedSecret {
            to: SecretPlace::Variable(variable.to_owned()),
            name: secret_name(server, from),
            value: text.filter(|text| !text.is_empty()).map(KeyText),
        })
    };
    match around.fill(value) {
        Ok(filled) if is_key_name(variable) || looks_random(&filled) => {
            Ok(key(variable, Some(filled)))
        }
        Ok(filled) => Ok(SortedValue::Plain(filled)),
        // What is not there now is asked for by its own name.
        Err(missing @ MissingValue::Input(_)) => Ok(key(missing.name(), None)),
        Err(missing) if is_key_name(variable) || is_key_name(missing.name()) => {
            Ok(key(variable, None))
        }
        Err(missing) => Err(missing),
    }
}

/// Looks at a header. Whatever a header holds is kept like a key.
pub(super) fn of_header(
    server: &str,
    header: &str,
    value: &str,
    around: &ConfigPlace<'_>,
) -> ImportedSecret {
    let is_bearer = header.eq_ignore_ascii_case("authorization")
        && value.get(..7).is_some_and(|begin| begin.eq_ignore_ascii_case("bearer "));
    let (to, text) = match is_bearer {
        true => (SecretPlace::Bearer, value[7..].trim()),
        false => (SecretPlace::Header(header.to_owned()), value),
    };
    let (name, value) = match around.fill(text) {
        Ok(filled) => (secret_name(server, header), Some(filled)),
        Err(missing) => (secret_name(server, missing.name()), None),
    };
    let value = value.filter(|text| !text.is_empty()).map(KeyText);
    ImportedSecret { to, name, value }
}

/// Whether one of the arguments is a key.
pub(super) fn on_a_command_line(args: &[String]) -> bool {
    let mut after_flag = false;
    for arg in args {
        let (name, value) = match arg.split_once('=') {
            Some((name, value)) => (Some(name), value),
            None => (None, arg.as_str()),
        };
        let is_flag = arg.starts_with('-');
        let stands_for = value.starts_with('$') || value.starts_with("${");
        let by_name = name.is_some_and(is_key_name) || (after_flag && !is_flag);
        let is_switch = matches!(value, "" | "true" | "false" | "none");
        if (by_name && !is_switch && !stands_for) || has_key_beginning(value) {
            return true;
        }
        after_flag = is_flag && name.is_none() && is_key_name(arg);
    }
    false
}

/// Whether an address carries a key.
pub(super) fn in_an_address(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    if !url.username().is_empty() || url.password().is_some() {
        return true;
    }
    let in_query = url
        .query_pairs()
        .any(|(name, value)| !value.is_empty() && (is_key_name(&name) || looks_random(&value)));
    let mut parts = url.path_segments().into_iter().flatten();
    in_query || parts.any(has_key_beginning)
}

/// Whether the name of a variable, header or option says that its value is a key.
pub(super) fn is_key_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase().replace('-', "_");
    // An author is none, nor is where keys are kept.
    let place = ["_FILE", "_PATH", "_URL", "_DIR", "_NAME", "_ID", "_LIMIT", "_MAX"];
    if place.iter().any(|end| name.ends_with(end)) || name.contains("AUTHOR_") {
        return false;
    }
    let is_word = |word: &&str| name.split('_').any(|part| part == *word);
    KEY_WORDS.iter().any(|word| match *word {
        "KEY" | "AUTH" => is_word(word) || name.ends_with(word),
        word => name.contains(word),
    }) || is_word(&"PAT")
        || is_word(&"PWD") && name != "PWD"
}

/// Whether a value has no meaning but as a key.
fn looks_random(value: &str) -> bool {
    if has_key_beginning(value) {
        return true;
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+/=~".contains(c);
    if value.chars().count() < RANDOM_CHARS_MIN
        || !value.chars().all(is_part)
        || value.starts_with(['/', '.', '~'])
        || value.contains("//")
    {
        return false;
    }
    // Names of hosts, models and files have long words in them; keys change all the time.
    let longest_word =
        value.split(|c: char| !c.is_ascii_lowercase()).map(str::len).max().unwrap_or_default();
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let is_hex = value.len() >= 32 && value.chars().all(|c| c.is_ascii_hexdigit());
    is_hex || (digits >= 3 && longest_word <= 5 && !value.contains('.'))
}

fn has_key_beginning(value: &str) -> bool {
    let is_long = |begin: &&&str| value.len() >= begin.len() + 8;
    BEGINNINGS.iter().filter(is_long).any(|begin| value.starts_with(*begin))
}

/// What a key is to be called in the vault.
pub(super) fn secret_name(server: &str, from: &str) -> String {
    let from = spelled(from);
    let is_vague = VAGUE.contains(&from.as_str()) || from.is_empty();
    let name = if is_vague { format!("{}_{from}", spelled(server)) } else { from };
    let name = name.trim_matches('_');
    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
    if name.is_empty() { "MCP_KEY".to_owned() } else { name }
}

fn spelled(text: &str) -> String {
    let each = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    text.chars().map(each).collect()
}

/// Gives two keys that differ different names.
pub(super) fn name_apart(servers: &mut [ImportedServer]) {
    let mut texts: BTreeMap<String, Option<KeyText>> = BTreeMap::new();
    for server in servers {
        let prefix = spelled(&server.name);
        for secret in &mut server.secrets {
            let taken = texts.get(&secret.name).is_some_and(|text| *text != secret.value);
            if taken && !secret.name.starts_with(&prefix) {
                secret.name = format!("{prefix}_{}", secret.name);
            }
            texts.entry(secret.name.clone()).or_insert_with(|| secret.value.clone());
        }
    }
}
