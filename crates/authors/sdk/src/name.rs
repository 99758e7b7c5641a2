//! Names of tools, agents and what else has one.

/// Whether a text is made of the letters that ids and names allow.
pub(crate) fn is_name(text: &str, bytes_max: usize) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"_.-".contains(&b);
    (1..=bytes_max).contains(&text.len()) && text.bytes().all(is_letter)
}
