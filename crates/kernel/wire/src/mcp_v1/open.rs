//! Objects of which some fields are known and all others are kept.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use wharf_vocab::{Object, json};

use super::McpError;

/// A `T`, and what else stood in its object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpOpen<T> {
    /// What is understood.
    pub known: T,
    /// What is not. It never has a field of `T`.
    pub rest: Object,
}

/// Reads the result of a request by whoever knows what was asked.
pub fn read_result<T: DeserializeOwned>(result: Object) -> Result<McpOpen<T>, McpError> {
    fit(result, "The result")
}

/// Reads parameters; absent ones are empty.
pub(super) fn read_params<T: DeserializeOwned>(
    params: Option<Object>,
) -> Result<McpOpen<T>, McpError> {
    fit(params.unwrap_or_default(), "The parameters")
}

fn fit<T: DeserializeOwned>(object: Object, what: &str) -> Result<McpOpen<T>, McpError> {
    json::fit(Value::Object(object), what).map_err(|fault| McpError::params(fault.message))
}

/// What may follow once a first look at an object has shown what it is. The error says nothing of
/// what stands in it.
pub(super) fn known_by<T, E>(object: Object, what: &'static str) -> Result<McpOpen<T>, E>
where
    T: DeserializeOwned,
    E: serde::de::Error,
{
    McpOpen::deserialize(Value::Object(object))
        .map_err(|_| E::custom(format_args!("{what} does not fit its kind")))
}

impl<T: Serialize> McpOpen<T> {
    /// The whole object.
    #[must_use]
    pub fn to_object(&self) -> Object {
        match serde_json::to_value(self) {
            Ok(Value::Object(object)) => object,
            // Nothing here has keys that are no texts, so there is no other case.
            _ => Object::new(),
        }
    }
}

impl<T> McpOpen<T> {
    /// What is understood, with nothing else, as requests and notifications keep it.
    #[must_use]
    pub fn boxed(known: T) -> Box<Self> {
        Box::new(known.into())
    }
}

impl<T> From<T> for McpOpen<T> {
    fn from(known: T) -> Self {
        Self { known, rest: Object::new() }
    }
}

impl<T> Deref for McpOpen<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.known
    }
}

impl<T> DerefMut for McpOpen<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.known
    }
}

/// An object with its parts in a row, and its kind before them if it has one. Flattening costs
/// nothing where it is written; only reading would have to copy everything first.
#[derive(Serialize)]
pub(super) struct McpWritten<'a, T> {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(flatten)]
    pub(super) known: &'a T,
    #[serde(flatten)]
    pub(super) rest: &'a Object,
}

impl<T: Serialize> Serialize for McpOpen<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.rest.is_empty() {
            return self.known.serialize(serializer);
        }
        McpWritten { kind: None, known: &self.known, rest: &self.rest }.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for McpOpen<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut rest = Object::new();
        let known = T::deserialize(Split { inner: deserializer, fields: &[], rest: &mut rest })?;
        Ok(Self { known, rest })
    }
}

/// Stands between an object and a derived struct: the struct says which fields it has, and all
/// others go past it.
struct Split<'a, T> {
    inner: T,
    fields: &'static [&'static str],
    rest: &'a mut Object,
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Split<'_, D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(Split { inner: visitor, fields, rest: self.rest })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Split<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let fields = self.fields;
        self.inner.visit_map(Split { inner: map, fields, rest: self.rest })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Split<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(key) = self.inner.next_key::<String>()? {
            if self.fields.contains(&key.as_str()) {
                let key: StringDeserializer<A::Error> = key.into_deserializer();
                return seed.deserialize(key).map(Some);
            }
            let value = self.inner.next_value()?;
            self.rest.insert(key, value);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.inner.next_value_seed(seed)
    }
}

/// A list of which each item is open.
pub(super) type OpenList<T> = Vec<McpOpen<T>>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[serde_with_macros::skip_serializing_none]
    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named {
        name: String,
        mime_type: Option<String>,
        inside: Option<McpOpen<Inner>>,
    }

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Inner {
        n: u64,
    }

    fn object(value: &Value) -> Object {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn m001_what_is_not_understood_is_kept_at_every_depth() {
        let text = json!({"name": "a", "x": [1, {"y": null}], "inside": {"n": 1, "z": 2.5}});
        let read: McpOpen<Named> = read_result(object(&text)).expect("fits");
        assert_eq!(read.name, "a");
        assert_eq!(read.rest, object(&json!({"x": [1, {"y": null}]})));
        assert_eq!(read.inside.as_ref().map(|inside| inside.n), Some(1));
        assert_eq!(Value::Object(read.to_object()), text);
    }

    #[test]
    fn m001_errors_name_the_field_and_never_its_content() {
        for (value, message) in [
            (json!({"name": {"c4nary": 1}}), "The field `name` must be text."),
            (json!({"mimeType": "c4nary"}), "The result lacks the field `name`."),
            (
                json!({"name": "a", "inside": {"n": "c4nary"}}),
                "The field `inside.n` must be a whole number from 0 to 18446744073709551615.",
            ),
        ] {
            let error = read_result::<Named>(object(&value)).expect_err("does not fit");
            assert_eq!(error.message, message);
        }
    }
}
