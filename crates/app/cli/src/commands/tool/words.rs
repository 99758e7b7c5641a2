//! A command as people type it, as the words that a program is started with.

/// The words of a command: split at spaces, unless they stand in quotes or behind a backslash.
pub(super) fn split(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => match letters.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("nothing stands behind the last backslash".to_owned()),
            },
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    words.extend(word);
    if words.is_empty() {
        return Err("there is no command".to_owned());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_command_is_split_as_a_shell_would() {
        for (command, words) in [
            ("./tool", &["./tool"][..]),
            ("  python3  tool.py ", &["python3", "tool.py"]),
            ("a 'b c' \"d e\"f", &["a", "b c", "d ef"]),
            (r#"a\ b "c\"d" 'e\f'"#, &["a b", "c\"d", "e\\f"]),
            ("a ''", &["a", ""]),
        ] {
            assert_eq!(split(command).expect(command), words, "{command}");
        }
        for command in ["", "  ", "a 'b", "a \"b", "a\\"] {
            assert!(split(command).is_err(), "{command}");
        }
    }
}
