//! What a secret's file is called.
//!
//! Names tell upper case from lower case, and some file systems do not. So a file's name is the
//! secret's in lower case, then a number whose bits say which letters are upper case: `API_key` is
//! kept in `api_key.7.secret`. The ending keeps clear of the vault's own files.

use wharf_vocab::SecretName;

const ENDING: &str = ".secret";

/// The file of a secret.
pub(crate) fn file_of(name: &SecretName) -> String {
    let name = name.as_str();
    let upper = name
        .bytes()
        .enumerate()
        .fold(0_u128, |bits, (at, byte)| bits | (u128::from(byte.is_ascii_uppercase()) << at));
    format!("{}.{upper:x}{ENDING}", name.to_ascii_lowercase())
}

/// Whether a file is one of a secret.
pub(crate) fn is_secret(file: &str) -> bool {
    file.ends_with(ENDING) && !file.starts_with('.')
}

/// The secret whose file it is; none if no secret's file is called so.
pub(crate) fn name_of(file: &str) -> Option<SecretName> {
    let (lower, upper) = file.strip_suffix(ENDING)?.rsplit_once('.')?;
    let upper = u128::from_str_radix(upper, 16).ok()?;
    let bytes = lower.char_indices().map(|(at, letter)| {
        let is_upper =
            u32::try_from(at).is_ok_and(|at| upper.checked_shr(at).unwrap_or(0) & 1 == 1);
        if is_upper { letter.to_ascii_uppercase() } else { letter }
    });
    let name = SecretName::new(bytes.collect::<String>()).ok()?;
    // One secret has one file: other spellings of the same are nobody's.
    (file_of(&name) == file).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_one_file_also_where_case_does_not_count() {
        let longest = "Z".repeat(128);
        let names =
            ["a", "A", "api.key", "API.key", "api.KEY", "vault.key", "grant.keys", &longest];
        let mut seen = std::collections::BTreeSet::new();
        for name in names {
            let name = SecretName::new(name).expect("a name");
            let file = file_of(&name);
            assert!(seen.insert(file.to_lowercase()), "{file} stands for two names");
            assert!(file.len() <= 255, "{file} is too long for a file system");
            assert!(is_secret(&file));
            assert_eq!(name_of(&file), Some(name));
        }
        assert_eq!(file_of(&SecretName::new("API_key").expect("a name")), "api_key.7.secret");
    }

    #[test]
    fn other_spellings_are_nobodys() {
        for file in ["a.secret", "A.1.secret", "a.01.secret", "a.2.secret", "a.x.secret", "a.0"] {
            assert_eq!(name_of(file), None, "{file}");
        }
        assert!(!is_secret("vault.key") && !is_secret("grant.keys") && !is_secret(".x.0.secret"));
    }
}
