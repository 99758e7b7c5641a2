//! Reading one JSON object strictly.
//!
//! serde_json keeps the last of two equal keys without a word. [`read_object`] stands between it
//! and the derived types: it sees every key of the object first, so that a key that stands twice
//! is noticed even when nobody reads it, and remembers which field a value was meant for, so
//! that an error can name the field without quoting what was in it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

/// Why an object could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadError {
    /// It is not one JSON object.
    Syntax,
    /// A key stands twice.
    Duplicate,
    /// A field is missing or has the wrong form.
    Field(String),
}

/// Reads the one object that the text consists of.
pub(super) fn read_object<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, ReadError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let mut notes = Notes::default();
    let value = T::deserialize(Watched { inner: &mut json, notes: &mut notes })
        .map_err(|error| notes.explain(text, &error))?;
    json.end().map_err(|_| ReadError::Syntax)?;
    Ok(value)
}

/// What was seen on the way to an error.
#[derive(Default)]
struct Notes<'de> {
    duplicate: bool,
    reading: Option<Cow<'de, str>>,
}

impl Notes<'_> {
    fn explain(self, text: &str, error: &serde_json::Error) -> ReadError {
        if self.duplicate {
            return ReadError::Duplicate;
        }
        // The parser also speaks of syntax when a word was expected and a number stands there, so
        // whether the text is JSON is asked separately.
        if serde_json::from_str::<IgnoredAny>(text).is_err() {
            return ReadError::Syntax;
        }
        // Without a value at fault it is the object that is at fault, and then the text is made
        // of our own names only: the field stands between backticks.
        ReadError::Field(match self.reading {
            Some(key) => key.into_owned(),
            None => error.to_string().split('`').nth(1).unwrap_or("payload").to_owned(),
        })
    }
}

struct Watched<'a, 'de, D> {
    inner: D,
    notes: &'a mut Notes<'de>,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Watched<'_, 'de, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(Watched { inner: visitor, notes: self.notes })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Watched<'_, 'de, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(WatchedKeys { inner: map, seen: Seen::default(), notes: self.notes })
    }
}

struct WatchedKeys<'a, 'de, A> {
    inner: A,
    seen: Seen<'de>,
    notes: &'a mut Notes<'de>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WatchedKeys<'_, 'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        let Some(key) = self.inner.next_key_seed(KeyVisitor)? else {
            self.notes.reading = None;
            return Ok(None);
        };
        let value = seed.deserialize(StrDeserializer::<A::Error>::new(&key))?;
        self.notes.reading = Some(key.clone());
        if !self.seen.insert(key) {
            self.notes.duplicate = true;
            return Err(de::Error::custom("a key stands twice"));
        }
        Ok(Some(value))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// A key, borrowed from the text when it has no escapes.
struct KeyVisitor;

impl<'de> DeserializeSeed<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: de::Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}

/// The keys seen so far. Real messages have few, so they are compared one by one; an object that
/// a hostile peer fills with keys is kept in order instead.
#[derive(Default)]
struct Seen<'de> {
    few: Vec<Cow<'de, str>>,
    many: BTreeSet<Cow<'de, str>>,
}

impl<'de> Seen<'de> {
    const FEW: usize = 16;

    fn insert(&mut self, key: Cow<'de, str>) -> bool {
        if self.few.contains(&key) {
            return false;
        }
        if self.few.len() < Self::FEW {
            self.few.push(key);
            return true;
        }
        self.many.insert(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Point {
        x: u64,
        #[serde(default)]
        y: Option<String>,
    }

    fn read(text: &str) -> Result<Point, ReadError> {
        read_object(text)
    }

    fn field(name: &str) -> Result<Point, ReadError> {
        Err(ReadError::Field(name.to_owned()))
    }

    #[test]
    fn keys_may_stand_once_only_even_when_nobody_reads_them() {
        assert_eq!(read(r#"{"x":1,"z":[{}]}"#), Ok(Point { x: 1, y: None }));
        for twice in [
            r#"{"x":1,"x":1}"#,
            r#"{"x":1,"z":1,"z":2}"#,
            r#"{"x":1,"z":1,"\u007a":2}"#,
            r#"{"y":"a","x":1,"y":"a"}"#,
        ] {
            assert_eq!(read(twice), Err(ReadError::Duplicate), "{twice}");
        }
    }

    #[test]
    fn many_keys_are_watched_like_few() {
        let many: String = (0..5_000).map(|n| format!("\"k{n}\":0,")).collect();
        assert_eq!(read(&format!("{{{many}\"x\":1}}")), Ok(Point { x: 1, y: None }));
        for last in ["k3", "k4999"] {
            let text = format!("{{{many}\"x\":1,\"{last}\":1}}");
            assert_eq!(read(&text), Err(ReadError::Duplicate));
        }
    }

    #[test]
    fn errors_name_the_field_and_never_its_content() {
        assert_eq!(read(r#"{"x":"secret"}"#), field("x"));
        assert_eq!(read(r#"{"x":1.0}"#), field("x"));
        assert_eq!(read(r#"{"x":-1}"#), field("x"));
        assert_eq!(read(r#"{"x":1,"y":{"a":"`secret`"}}"#), field("y"));
        assert_eq!(read(r#"{"y":"`secret`"}"#), field("x"));
    }

    #[test]
    fn what_is_not_one_object_is_a_matter_of_syntax() {
        for text in ["", "{", r#"{"x":1"#, r#"{"x":1}{}"#, r#"{"x":1} x"#, r#"{"x":1,}"#, "{x:1}"] {
            assert_eq!(read(text), Err(ReadError::Syntax), "{text}");
        }
    }
}
